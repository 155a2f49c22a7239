"""One delivery: a claimed prefix on its way to the ledger.

authority → widen if the receiver advertises it → materialise or hand off → renew and freeze before
every HTTP piece → append → acknowledge, with what comes next. Each step is a statement of its own,
so no database connection is held while HTTP is under way.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import psycopg

from counterfoil.append import send_piece
from counterfoil.delivering.credentials import Credentials
from counterfoil.delivering.deliveries import (
    PREFIX_MAX_FACTS,
    DeliveryOptions,
    DeliveryReport,
    HeldRun,
    InvalidFactError,
    Observer,
    Stopwatch,
    materialise,
    tell,
)
from counterfoil.errors import (
    LeaseLostError,
    PoolExhaustedError,
    ReceiverError,
    error_document,
    is_disconnection,
)
from counterfoil.functions import Acknowledgement, Functions, Piece
from counterfoil.json_text import JsonText
from counterfoil.upstream import Upstream

log = logging.getLogger(__name__)

Answer = TypeVar("Answer")


class Deliverer:
    """Delivers prefixes of the lifecycle lane. One serves any number of runs at once."""

    def __init__(
        self,
        functions: Functions,
        upstream: Upstream,
        credentials: Credentials,
        options: DeliveryOptions,
        observer: Observer | None = None,
    ) -> None:
        self._functions = functions
        self._upstream = upstream
        self._credentials = credentials
        self._options = options
        self._observer = observer

    @property
    def known_to_batch(self) -> bool:
        """Whether claims may ask for combined prefixes at once."""
        return self._credentials.known_to_batch

    async def deliver(self, held: HeldRun, budget: int | None = None) -> DeliveryReport:
        """Deliver the facts in hand; afterwards ``held.facts`` is the prefix claimed next.

        ``budget`` bounds the facts delivered and claimed from here on, those in hand included
        (None: no bound). Never raises for a delivery that failed: the report says what became of
        it. A cancelled delivery gives its lease back.
        """
        report = DeliveryReport(held.org_id, held.run_id, held.facts[0].lane, tuple(held.event_ids))
        if held.claim_milliseconds is not None:
            report.milliseconds["claim"], held.claim_milliseconds = held.claim_milliseconds, None
        watch = Stopwatch(report.milliseconds)
        try:
            await self._deliver(held, budget, report, watch)
        except asyncio.CancelledError:
            watch.stop()
            report.outcome = "released"
            await self.release(held)
            tell(self._observer, report)
            raise
        except Exception as error:  # noqa: BLE001 - whatever failed, the lease must not linger
            watch.start("settle")
            await self._fail(held, report, error)
        watch.stop()
        tell(self._observer, report)
        return report

    async def release(self, held: HeldRun, *, later: bool = False) -> None:
        """Give the lease back without charge; when even that fails, it lapses by itself.

        ``later``: nobody is to claim these facts for a while, which the database chooses.
        """
        event_ids, held.facts = held.event_ids, []
        if not event_ids:
            return
        try:
            await asyncio.shield(
                self._functions.release_delivery(
                    held.org_id, held.run_id, event_ids, held.lease_owner, later
                )
            )
        except psycopg.Error as error:
            log.warning("a lease was left to lapse", extra={"error": type(error).__name__})

    async def _deliver(
        self, held: HeldRun, budget: int | None, report: DeliveryReport, watch: Stopwatch
    ) -> None:
        if await self._hand_off(held, report):
            return
        batching = self._credentials.known_to_batch
        if any(fact.deferred or fact.event_count for fact in held.facts):
            watch.start("authority")
            await self._credentials.route(held)
            report.bypass_source = self._credentials.destination(held).bypass.source
            await self._credentials.authorise(held)
            batching = held.token is not None and held.token.prefix_batching
            if batching and self._may_widen(held):
                watch.start("widen")
                await self._widen(held, budget)
                report.event_ids = tuple(held.event_ids)
                if await self._hand_off(held, report):
                    return
            if any(fact.deferred for fact in held.facts):
                watch.start("materialise")
                await materialise(self._functions, held)
        report.events = sum(fact.event_count for fact in held.facts)
        watch.start("plan")
        pieces = await self._plan(held)
        report.pieces = len(pieces)
        watch.start("append")
        await self._append(held, pieces)
        watch.start("acknowledge")
        await self._acknowledge(held, budget, batching, report)

    async def _hand_off(self, held: HeldRun, report: DeliveryReport) -> bool:
        """Leave deferred facts to the projector, which the release wakes."""
        if self._options.projector or not any(fact.deferred for fact in held.facts):
            return False
        report.outcome = "handed_off"
        await self.release(held)
        return True

    def _may_widen(self, held: HeldRun) -> bool:
        first = held.facts[0]
        if self._credentials.known_to_batch or len(held.facts) != 1:
            return False
        return first.event_type == "run.events" and not first.frozen

    async def _widen(self, held: HeldRun, budget: int | None) -> None:
        """Extend a single ingress head to what the receiver said it can take."""
        first = held.facts[0]
        widened = await self._functions.widen_delivery(
            held.org_id,
            held.run_id,
            first.event_id,
            held.lease_owner,
            self._options.lease,
            PREFIX_MAX_FACTS if budget is None else min(PREFIX_MAX_FACTS, budget),
        )
        if not widened:
            return
        if widened[0].event_id != first.event_id:
            raise LeaseLostError(
                "the widened prefix has another head", reason="head_lease_owner_mismatch"
            )
        held.facts, held.projected = widened, True

    async def _plan(self, held: HeldRun) -> list[Piece]:
        """What to send, after the freeze that fixes it. The driver never cuts by itself."""
        events = [fact.events for fact in held.facts if fact.event_count and fact.events]
        if held.projected and not events:
            await self._renew(held, freeze=False)
            return []
        if held.projected and sum(fact.event_count for fact in held.facts) == 1:
            return [Piece(1, 1, events[0])]  # one event is one piece, wherever the bounds are
        await self._renew(held, freeze=True)
        return await self._functions.plan_delivery_pieces(
            held.org_id, held.run_id, held.event_ids, held.lease_owner
        )

    async def _append(self, held: HeldRun, pieces: list[Piece]) -> None:
        first = held.facts[0]
        launch: JsonText | None = None
        if first.event_type == "run.started":
            launch = await self._functions.dispatch_launch_for_lease(
                held.org_id, held.run_id, first.event_id, held.lease_owner
            )
        for piece in pieces:
            await self._credentials.renew_if_expiring(held)
            try:
                await self._send(held, piece, launch)
            except ReceiverError as error:
                if error.status != 401 or not held.token_served:
                    raise
                # A signer was rotated, perhaps. Once, through the lease that is still live, and
                # with the same key: the piece stays the same piece.
                held.token_served = False
                await self._credentials.refresh(held)
                await self._send(held, piece, launch)
            held.token_served = True

    async def _send(self, held: HeldRun, piece: Piece, launch: JsonText | None) -> None:
        key = await self._renew(held, freeze=True)
        await send_piece(
            self._upstream,
            self._credentials.destination(held),
            run_id=held.run_id,
            event_type=held.facts[0].event_type,
            idempotency_key=key,
            lease_owner=held.lease_owner,
            piece=piece,
            launch=launch,
        )

    async def _renew(self, held: HeldRun, *, freeze: bool) -> str:
        renewal = await self._functions.renew_delivery(
            held.org_id,
            held.run_id,
            held.event_ids,
            held.lease_owner,
            self._options.lease,
            freeze,
        )
        return renewal.idempotency_key

    async def _acknowledge(
        self, held: HeldRun, budget: int | None, batching: bool, report: DeliveryReport
    ) -> None:
        def keep(answer: Acknowledgement) -> None:
            report.acknowledged = answer.acknowledged
            if answer.not_owned:
                report.outcome, report.error_code = "lost", "delivery_lease_not_current"
            held.facts, held.projected = list(answer.claimed), True

        left = PREFIX_MAX_FACTS if budget is None else max(0, budget - len(held.facts))
        await to_its_end(
            self._functions.acknowledge_delivery(
                held.org_id,
                held.run_id,
                held.event_ids,
                held.lease_owner,
                left,
                self._options.lease,
                batching,
            ),
            keep,
        )

    async def _fail(self, held: HeldRun, report: DeliveryReport, error: Exception) -> None:
        """Charge a failed delivery, or give it back where the failure is not its own."""
        if isinstance(error, LeaseLostError):
            report.outcome, report.error_code = "lost", error.reason
            await self.release(held)
            return
        if isinstance(error, PoolExhaustedError) or is_disconnection(error):
            report.outcome, report.error_code = "released", "database_unavailable"
            await self.release(held)
            return
        document = error_document(error)
        if isinstance(error, InvalidFactError):
            # Only the bad fact is blocked; what stands before it goes free and stays deliverable.
            document = error_document(error.cause) | {"eventId": error.event_id}
        elif not isinstance(error, ReceiverError):
            log.warning("a delivery failed unexpectedly", exc_info=error)
        # A failed append learns the receiver's truth anew on its next try.
        self._credentials.drop(held)
        await self._settle(held, report, document)

    async def _settle(
        self, held: HeldRun, report: DeliveryReport, error: dict[str, object]
    ) -> None:
        event_ids, held.facts = held.event_ids, []
        report.error_code = str(error.get("code", ""))
        try:
            settled = await asyncio.shield(
                self._functions.settle_delivery_failure(
                    held.org_id, held.run_id, event_ids, held.lease_owner, error
                )
            )
        except psycopg.Error as failure:
            log.warning("a failed delivery was not settled", extra={"error": str(failure)})
            report.outcome = "lost"
            return
        report.blocked = tuple(f.event_id for f in settled if f.outcome == "blocked")
        report.retrying = tuple(f.event_id for f in settled if f.outcome == "retrying")
        report.outcome = "blocked" if report.blocked else "retrying" if report.retrying else "lost"


async def to_its_end(call: Coroutine[Any, Any, Answer], keep: Callable[[Answer], None]) -> None:
    """Await ``call`` and ``keep`` its answer, even when cancelled meanwhile.

    For calls that take a lease: a claim whose answer nobody kept would block its runs until it
    lapses.
    """
    task = asyncio.ensure_future(call)
    try:
        keep(await asyncio.shield(task))
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if not task.cancelled() and task.exception() is None:
            keep(task.result())
        raise
