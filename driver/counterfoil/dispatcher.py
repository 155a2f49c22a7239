"""The dispatcher: claims runs with pending facts and delivers them, many at once."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import time
import uuid
from collections.abc import Awaitable, Callable, Iterable
from typing import cast

from counterfoil.authority import GatewayTokens, LocalMint, TokenAuthority
from counterfoil.database import Database
from counterfoil.delivering.credentials import Credentials
from counterfoil.delivering.deliveries import (
    PREFIX_MAX_FACTS,
    DeliveryOptions,
    HeldRun,
    Observer,
    held_runs,
)
from counterfoil.delivering.delivery import Deliverer, to_its_end
from counterfoil.delivering.drain import DrainResult, dispatch_through_event
from counterfoil.delivering.looking import Looking
from counterfoil.delivering.marks import Marks
from counterfoil.delivering.pump import Pump
from counterfoil.delivering.receivers import Receivers, receiver_of
from counterfoil.delivering.search_lane import SearchLane
from counterfoil.delivering.turns import Turns
from counterfoil.errors import SettingsError
from counterfoil.functions import ClaimedFact, Functions
from counterfoil.settings import Settings
from counterfoil.tokens import TokenSigner
from counterfoil.upstream import Upstream
from counterfoil.wakeups import Wakeups

log = logging.getLogger(__name__)

RUN_BUDGET = 1024
"""Facts of one run that are delivered in a row before other runs get the place."""
_GATHER_SECONDS = 0.02
_STUCK_SECONDS = 0.25
"""How often a dispatcher without a free place looks whether slow receivers hold too many."""


class Dispatcher:
    """One dispatcher. `run` returns when `stop` was called and the work in hand is done.

    As a projector it also materialises deferred facts and drains the search lane.
    """

    def __init__(
        self,
        database: Database,
        settings: Settings,
        *,
        observer: Observer | None = None,
        tokens: TokenAuthority | None = None,
    ) -> None:
        """``tokens`` replaces the token authority that the settings name."""
        self._functions = Functions(database)
        self._settings = settings
        self._name = settings.dispatcher_name or f"{socket.gethostname()}:{os.getpid()}"
        self._name = f"dispatcher:{self._name[:100]}:{uuid.uuid4().hex[:8]}"
        self._receivers = Receivers(
            settings.slow_places or max(1, settings.concurrency // 2), settings.slow_seconds
        )
        self._upstream = Upstream(
            timeout_seconds=settings.append_timeout,
            connections=settings.concurrency,
            allow_private=settings.allow_private_upstreams,
            trusted_urls=[settings.base_url],
            watch=self._receivers.asked,
        )
        self._options = DeliveryOptions(
            lease_seconds=settings.delivery_lease,
            append_seconds=settings.append_timeout,
            projector=settings.projector,
        )
        self._deliverer = Deliverer(
            self._functions,
            self._upstream,
            Credentials(
                self._functions,
                tokens or token_authority(settings, self._upstream),
                environment_bypass=settings.protection_bypass,
                margin_seconds=settings.append_timeout,
            ),
            self._options,
            observer,
        )
        self._deliveries: set[asyncio.Task[None]] = set()
        self._place_free = asyncio.Event()
        self._marks = Marks()
        self._turns = Turns(self._functions)
        self._looking = Looking(self._functions, poll_seconds=settings.poll_seconds)
        self._pump = self._make_pump(database, "lifecycle", self._work)
        self._pumps = [self._pump]
        if settings.projector:
            search = SearchLane(self._functions, self._name, observer)
            self._pumps.append(self._make_pump(database, "search", search.work))

    async def run(self) -> None:
        """Dispatch until `stop`; then wait for deliveries in hand, and release what is left.

        Cancelling it releases at once.
        """
        async with self._upstream:
            loops = [asyncio.create_task(pump.run()) for pump in self._pumps]
            try:
                await asyncio.gather(*loops)
                if self._deliveries:
                    await asyncio.wait(self._deliveries, timeout=self._settings.drain_seconds)
            finally:
                self.stop()
                # Loops first: one that is cancelled while it claims still starts deliveries.
                await _cancel(loops)
                await self._looking.close()
                await _cancel(self._deliveries)

    def stop(self) -> None:
        """Claim nothing more."""
        for pump in self._pumps:
            pump.stop()
        self._place_free.set()

    async def dispatch_through_event(
        self,
        org_id: str,
        run_id: str,
        event_id: str,
        *,
        max_facts: int | None = None,
        take_over: bool = False,
    ) -> DrainResult:
        """Deliver a run's facts until ``event_id`` is acknowledged; works beside `run`.

        ``take_over``: the run was cancelled, and its pending facts are taken from whoever holds
        them.
        """
        await self._upstream.open()
        return await dispatch_through_event(
            self._functions,
            self._deliverer,
            org_id,
            run_id,
            event_id,
            max_facts=max_facts,
            take_over=take_over,
            lease_seconds=self._options.lease,
        )

    async def close(self) -> None:
        """Close HTTP connections that `dispatch_through_event` opened outside of `run`."""
        await self._upstream.close()

    def _make_pump(
        self, database: Database, lane: str, work: Callable[[], Awaitable[bool]]
    ) -> Pump:
        return Pump(
            self._looking,
            Wakeups(database, f"{self._name}:{lane}", lane, listen=self._settings.listen),
            lane,
            work,
            poll_seconds=self._settings.poll_seconds,
        )

    async def _work(self) -> bool:
        """Claim for the places that are free and start those deliveries."""
        free = await self._free_places()
        if self._pump.stopping.is_set():
            return False
        owner = f"{self._name}:{uuid.uuid4().hex[:12]}"
        org_id = await self._turns.next()
        runs: list[HeldRun] = []
        began = time.monotonic()

        def keep(facts: list[ClaimedFact]) -> None:
            runs.extend(held_runs(facts, owner, began))
            if org_id is None:
                marks, filled = (facts[0].marks, facts[0].filled) if facts else (None, False)
                self._marks.learn(marks, took_all=filled)
                self._turns.claimed(took_all=filled)

        try:
            await to_its_end(
                self._functions.claim_deliveries(
                    owner,
                    self._options.lease,
                    PREFIX_MAX_FACTS,
                    free,
                    org_id=org_id,
                    head_priority=self._settings.head_priority,
                    allow_ingress_prefix=self._deliverer.known_to_batch,
                    marks=self._marks.start() if org_id is None else self._marks.times,
                ),
                keep,
            )
        finally:
            # Also when cancelled meanwhile: a started delivery releases its lease when cancelled.
            for held in runs:
                task = asyncio.create_task(self._carry(held))
                self._deliveries.add(task)
                task.add_done_callback(self._finished)
        return bool(runs) or org_id is not None or self._marks.looked_back

    async def _free_places(self) -> int:
        """Wait for places; a little longer for several, so that one claim serves many runs."""
        wanted = max(1, self._settings.concurrency // 2)
        while (free := self._settings.concurrency - len(self._deliveries)) < wanted:
            if self._pump.stopping.is_set():
                break
            self._place_free.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(
                    self._place_free.wait(), _GATHER_SECONDS if free > 0 else _STUCK_SECONDS
                )
                continue
            for delivery in self._receivers.surplus():
                delivery.cancel()
            if free > 0:
                break
        return max(1, self._settings.concurrency - len(self._deliveries))

    async def _carry(self, held: HeldRun) -> None:
        """Deliver a run's prefixes one after the other, through its terminal when it is there."""
        left = RUN_BUDGET
        receiver, place = receiver_of(held), cast("asyncio.Task[None]", asyncio.current_task())
        try:
            if not self._receivers.take(receiver, place):
                await self._deliverer.release(held, later=True)
                self._pump.wake()  # asleep, it knows of the lease, not of the pause
            while held.facts:
                report = await self._deliverer.deliver(held, max(left, len(held.facts)))
                left -= len(report.event_ids)
                if report.outcome in ("handed_off", "released"):
                    self._pump.fruitless = True
                elif report.outcome == "retrying":
                    self._pump.wake()  # asleep, it knows of the lease, not of the backoff
                if self._pump.stopping.is_set():
                    break  # what was claimed behind it goes back
        finally:
            self._receivers.leave(receiver, place)
            await self._deliverer.release(held)

    def _finished(self, task: asyncio.Task[None]) -> None:
        self._deliveries.discard(task)
        self._place_free.set()
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("a delivery task failed", exc_info=error)


async def _cancel(tasks: Iterable[asyncio.Task[None]]) -> None:
    ending = list(tasks)
    for task in ending:
        task.cancel()
    await asyncio.gather(*ending, return_exceptions=True)


def token_authority(settings: Settings, upstream: Upstream) -> TokenAuthority:
    """The token authority that the settings name. Raises SettingsError for a missing secret."""
    if settings.token_authority == "local_mint":  # noqa: S105 - a choice, not a secret
        return LocalMint(
            TokenSigner(settings.signing_keys, settings.schema),
            prefix_batching=settings.ingress_prefix_batching,
        )
    if not settings.internal_token:
        raise SettingsError("token_authority gateway needs internal_token")
    return GatewayTokens(
        upstream,
        schema=settings.schema,
        internal_token=settings.internal_token,
        environment_bypass=settings.protection_bypass,
    )
