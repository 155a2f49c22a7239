"""The search lane: deferred facts become journal rows, and nothing goes over HTTP.

It is the projector's second loop; the lifecycle lane neither waits for it nor delays it.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Sequence

import psycopg

from counterfoil.delivering.deliveries import (
    MATERIALISE_LEASE_SECONDS,
    PREFIX_MAX_FACTS,
    DeliveryReport,
    HeldRun,
    InvalidFactError,
    Observer,
    Stopwatch,
    held_runs,
    materialise,
    tell,
)
from counterfoil.delivering.delivery import to_its_end
from counterfoil.delivering.marks import Marks
from counterfoil.errors import (
    LeaseLostError,
    PoolExhaustedError,
    error_document,
    is_disconnection,
)
from counterfoil.functions import ClaimedFact, Functions

log = logging.getLogger(__name__)

RUNS_PER_CLAIM = 32


class SearchLane:
    """Claims runs with search facts, materialises them, acknowledges them together."""

    def __init__(self, functions: Functions, name: str, observer: Observer | None = None) -> None:
        self._functions = functions
        self._name = name
        self._observer = observer
        self._marks = Marks()

    async def work(self) -> bool:
        """Do one claim's worth; False when there was none."""
        owner = f"{self._name}:{uuid.uuid4().hex[:12]}"
        runs: list[HeldRun] = []
        leased_at = time.monotonic()

        def keep(facts: list[ClaimedFact]) -> None:
            runs.extend(held_runs(facts, owner))
            marks, filled = (facts[0].marks, facts[0].filled) if facts else (None, False)
            self._marks.learn(marks, took_all=filled)

        try:
            await to_its_end(
                self._functions.claim_deliveries(
                    owner,
                    MATERIALISE_LEASE_SECONDS,
                    PREFIX_MAX_FACTS,
                    RUNS_PER_CLAIM,
                    lane="search",
                    head_priority="oldest_ready",
                    marks=self._marks.start(),
                ),
                keep,
            )
            done = [run for run in runs if await self._materialise(run, leased_at)]
            await self._acknowledge(done, owner)
        except asyncio.CancelledError:
            for run in runs:
                await self._release(run)
            raise
        return bool(runs) or self._marks.looked_back

    async def _materialise(self, run: HeldRun, leased_at: float) -> bool:
        report = DeliveryReport(run.org_id, run.run_id, "search", tuple(run.event_ids))
        watch = Stopwatch(report.milliseconds)
        watch.start("materialise")
        try:
            await materialise(self._functions, run, leased_at)
        except LeaseLostError as error:
            report.outcome, report.error_code = "lost", error.reason
        except InvalidFactError as error:
            await self._settle(
                run, report, error_document(error.cause) | {"eventId": error.event_id}
            )
        except psycopg.Error as error:
            if isinstance(error, PoolExhaustedError) or is_disconnection(error):
                raise
            await self._settle(run, report, error_document(error))
        else:
            return True
        watch.stop()
        tell(self._observer, report)
        return False

    async def _settle(self, run: HeldRun, report: DeliveryReport, error: dict[str, object]) -> None:
        settled = await self._functions.settle_delivery_failure(
            run.org_id, run.run_id, run.event_ids, run.lease_owner, error
        )
        report.error_code = str(error.get("code", ""))
        report.blocked = tuple(f.event_id for f in settled if f.outcome == "blocked")
        report.retrying = tuple(f.event_id for f in settled if f.outcome == "retrying")
        report.outcome = "blocked" if report.blocked else "retrying"

    async def _acknowledge(self, runs: Sequence[HeldRun], owner: str) -> None:
        waiting = {(run.org_id, run.run_id): run for run in runs}
        # A lane row that another claim looks at just now is passed over: those are tried again.
        for _ in range(3):
            if not waiting:
                return
            held = list(waiting.values())
            answers = await self._functions.acknowledge_deliveries(
                [run.org_id for run in held],
                [run.run_id for run in held],
                "search",
                [run.facts[-1].seq for run in held],
                owner,
            )
            for answer in answers:
                run = waiting.get((answer.org_id, answer.run_id))
                if run is not None and answer.acknowledged:
                    del waiting[answer.org_id, answer.run_id]
                    ids = tuple(run.event_ids)
                    tell(
                        self._observer,
                        DeliveryReport(run.org_id, run.run_id, "search", ids, acknowledged=ids),
                    )
        for run in waiting.values():
            await self._release(run)

    async def _release(self, run: HeldRun) -> None:
        try:
            await asyncio.shield(
                self._functions.release_delivery(
                    run.org_id, run.run_id, run.event_ids, run.lease_owner
                )
            )
        except psycopg.Error as error:
            log.warning("a lease was left to lapse", extra={"error": type(error).__name__})
