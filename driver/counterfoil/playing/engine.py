"""The worker at work: claims attempts, executes their plays, keeps their leases, lets go of them.

Everything here runs on one event loop; the plays do not (`execution`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Any

import psycopg

from counterfoil.database import Database
from counterfoil.errors import LeaseLostError, SchemaVersionError, is_transient
from counterfoil.functions import ClaimedAttempt, Functions
from counterfoil.playing.base_run import current_run
from counterfoil.playing.endings import end_attempt, give_back
from counterfoil.playing.execution import PlayLoop, in_thread
from counterfoil.playing.interruptions import AttemptLost, RunCancelled
from counterfoil.playing.plays import Plays
from counterfoil.playing.run import AsyncRun, Run
from counterfoil.playing.session import Session
from counterfoil.playing.steps import Steps
from counterfoil.wakeups import Wakeups

log = logging.getLogger(__name__)

RECOVERY_BATCH = 50
"""Expired attempts that one worker takes back at a time."""
_LONGEST_BEAT = 5.0
_SHORTEST_SLEEP = 0.1
_LONGEST_BACKOFF = 10.0


@dataclass(frozen=True)
class WorkerOptions:
    """How a worker works. Times are seconds."""

    name: str
    release_lane: str = "default"
    concurrency: int = 8
    lease_seconds: int = 30
    poll_seconds: float = 5.0
    recover_seconds: float = 10.0
    drain_seconds: float = 20.0
    listen: bool = True

    def __post_init__(self) -> None:
        if self.concurrency < 1:
            raise ValueError("concurrency is at least 1")
        if not 5 <= self.lease_seconds <= 300:
            raise ValueError("lease_seconds is 5 to 300")
        if self.drain_seconds < 0:
            raise ValueError("drain_seconds is 0 or more")
        if self.poll_seconds <= 0 or self.recover_seconds <= 0:
            raise ValueError("poll_seconds and recover_seconds are more than 0")


@dataclass(eq=False)
class _Executing:
    session: Session
    steps: Steps
    task: asyncio.Task[None]

    async def renew_steps(self) -> None:
        """Extend the leases of its long steps; one run's trouble is not another's."""
        if not self.session.is_held:
            return
        try:
            await self.steps.renew()
        except LeaseLostError:
            self.session.interrupt(AttemptLost)
        except psycopg.Error as error:
            log.warning(
                "cannot renew steps", extra=self.session.label | {"error": type(error).__name__}
            )


class Engine:
    """One worker's loops. `run` returns when `stop` was called and the work in hand is done."""

    def __init__(
        self,
        database: Database,
        plays: Plays,
        options: WorkerOptions,
        steps_of: Callable[[Session], Steps] = Steps,
    ) -> None:
        self._database = database
        self._steps_of = steps_of
        self._functions = Functions(database)
        self._plays = plays
        self._options = options
        self._play_loop = PlayLoop()
        self._executing: set[_Executing] = set()
        self._place_free = asyncio.Event()
        self._stopping = asyncio.Event()
        self._wakeups = Wakeups(
            database, f"worker:{options.name}", "attempts", listen=options.listen
        )
        self._looked_at = float("-inf")
        self._pause = _SHORTEST_SLEEP

    def stop(self) -> None:
        """Claim nothing more and let go: wait for plays, then give back what is left."""
        self._stopping.set()
        self._wakeups.wake()
        self._place_free.set()

    async def run(self) -> None:
        """Work until `stop`. Raises SchemaVersionError when the schema does not fit."""
        loops = [
            asyncio.create_task(self._every(self._beat_seconds, self._beat)),
            # Apart from the beat: a gateway that does not answer must not cost the runs' leases.
            asyncio.create_task(self._every(self._beat_seconds, self._renew_steps)),
            asyncio.create_task(self._every(self._options.recover_seconds, self._recover)),
        ]
        try:
            await self._claim_until_stopped()
            await self._drain()
        finally:
            for loop in loops:
                loop.cancel()
            await asyncio.gather(*loops, return_exceptions=True)
            with contextlib.suppress(psycopg.Error):
                await self._wakeups.close()
            self._play_loop.stop()

    @property
    def _beat_seconds(self) -> float:
        return min(self._options.lease_seconds / 3, _LONGEST_BEAT)

    async def _claim_until_stopped(self) -> None:
        backoff = _SHORTEST_SLEEP
        while not self._stopping.is_set():
            free = self._options.concurrency - len(self._executing)
            if free <= 0:
                self._place_free.clear()
                await self._place_free.wait()
                continue
            try:
                found = await self._claim(free)
                if found == 0:
                    await self._sleep_until_due()
                backoff = _SHORTEST_SLEEP
            except SchemaVersionError:
                raise
            except psycopg.Error as error:
                if not is_transient(error):
                    raise
                log.warning("cannot claim", extra={"error": type(error).__name__})
                await self._wakeups.sleep(backoff)
                backoff = min(backoff * 2, _LONGEST_BACKOFF)

    async def _claim(self, free: int) -> int:
        sent_at = time.monotonic()
        claimed = await self._functions.claim_attempts(
            self._options.name,
            free,
            self._options.lease_seconds,
            list(self._plays),
            self._options.release_lane,
        )
        for attempt in claimed:
            self._begin(attempt, sent_at)
        if claimed:
            self._pause = _SHORTEST_SLEEP
            await self._wakeups.awake()
        return len(claimed)

    async def _sleep_until_due(self) -> None:
        """Sleep until woken, or until there is something to claim; one query a poll."""
        slept = False
        while not self._stopping.is_set():
            if await self._wakeups.register():
                return
            due_in = await self._functions.look_for_work(
                self._options.name,
                list(self._plays),
                self._options.release_lane,
                RECOVERY_BATCH,
                self._wakeups.listener,
            )
            self._wakeups.kept()
            longest = self._options.poll_seconds
            if due_in is None or due_in > 0:
                self._looked_at = time.monotonic()
                self._pause = _SHORTEST_SLEEP
                if due_in is not None:
                    longest = min(longest, max(due_in, _SHORTEST_SLEEP))
                if await self._wakeups.sleep(longest):
                    return
            elif slept:
                return
            else:
                # Due, but the claim just now got nothing: somebody else has a hand on it.
                pause, self._pause = self._pause, min(2 * self._pause, longest)
                await self._wakeups.sleep(min(pause, longest))
                return
            slept = True

    def _begin(self, claimed: ClaimedAttempt, leased_at: float) -> None:
        session = Session(self._functions, claimed, self._options.lease_seconds, leased_at)
        steps = self._steps_of(session)
        task = asyncio.create_task(self._execute(session, steps))
        executing = _Executing(session, steps, task)
        self._executing.add(executing)

        def ended(done: asyncio.Task[None]) -> None:
            self._executing.discard(executing)
            self._place_free.set()
            if session.goes_on_by_itself:
                # Whoever sleeps does not know of that time yet: look, and sleep until then.
                self._wakeups.wake()
            if not done.cancelled() and (error := done.exception()) is not None:
                # The lease lapses and another attempt follows; nothing is lost but time.
                log.error("attempt not ended", extra=session.label | {"error": repr(type(error))})
                log.debug("attempt not ended", extra=session.label, exc_info=error)

        task.add_done_callback(ended)

    async def _execute(self, session: Session, steps: Steps) -> None:
        log.info("attempt claimed", extra=session.label)
        loop = asyncio.get_running_loop()
        ended = asyncio.Event()

        def tell(_: Future[Any]) -> None:
            # A play given back may end when the worker is gone.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(ended.set)

        play = self._start_play(session, steps)
        play.add_done_callback(tell)
        await ended.wait()
        session.when_interrupted(None)
        await end_attempt(session, play)

    def _start_play(self, session: Session, steps: Steps) -> Future[Any]:
        loop = asyncio.get_running_loop()
        play = self._plays[session.claimed.play_name]
        given = session.claimed.launch.get("input")
        if play.is_coroutine:
            async_run = AsyncRun(session, steps, loop, self._play_loop)
            future, cancel = self._play_loop.start(
                _called(async_run, play.function, play.arguments(async_run, given))
            )
            session.when_interrupted(cancel)
            return future
        run = Run(session, steps, loop, self._play_loop)
        arguments = play.arguments(run, given)

        def called() -> Any:
            current_run.set(run)
            return play.function(*arguments)

        return in_thread(called, f"counterfoil-{play.name}")

    async def _every(self, seconds: float, action: Callable[[], Awaitable[None]]) -> None:
        while True:
            await asyncio.sleep(seconds)
            try:
                await action()
            except psycopg.Error as error:
                log.warning("database not available", extra={"error": type(error).__name__})

    async def _beat(self) -> None:
        """Renew every lease in one call, and learn which are lost or to be cancelled."""
        held = [e for e in self._executing if e.session.is_held]
        if not held:
            return
        sent_at = time.monotonic()
        claimed = [executing.session.claimed for executing in held]
        try:
            answers = await self._functions.heartbeat_attempts(
                [at.org_id for at in claimed],
                [at.run_id for at in claimed],
                [at.attempt for at in claimed],
                [at.lease_id for at in claimed],
                self._options.lease_seconds,
            )
        except psycopg.Error:
            for executing in held:
                executing.session.lapse()
            raise
        for executing, answer in zip(held, answers, strict=True):
            if answer.outcome == "lost":
                executing.session.interrupt(AttemptLost)
                continue
            executing.session.renewed(sent_at)
            if answer.outcome == "cancel_requested":
                executing.session.interrupt(RunCancelled)

    async def _renew_steps(self) -> None:
        await asyncio.gather(*(executing.renew_steps() for executing in list(self._executing)))

    async def _recover(self) -> None:
        """What the database must be asked for now and then, unless a worker without work has."""
        if time.monotonic() - self._looked_at < self._options.recover_seconds:
            return
        more = True
        while more and not self._stopping.is_set():
            found = await self._functions.recover_attempts(
                RECOVERY_BATCH, self._options.release_lane
            )
            for attempt in found:
                log.info(
                    "attempt recovered",
                    extra=_named(attempt, "org_id", "run_id", "attempt", "outcome"),
                )
            fired = await self._functions.fire_due_schedules(RECOVERY_BATCH)
            for firing in fired:
                log.info(
                    "schedule fired",
                    extra={"schedule": firing.name} | _named(firing, "org_id", "run_id", "outcome"),
                )
            if found or fired:
                self._wakeups.wake()
            more = max(len(found), len(fired)) >= RECOVERY_BATCH

    async def _drain(self) -> None:
        """Wait for the plays in hand; when they take too long, give their runs back."""
        tasks = [executing.task for executing in self._executing]
        if not tasks:
            return
        log.info("draining", extra={"plays": len(tasks)})
        _, late = await asyncio.wait(tasks, timeout=self._options.drain_seconds)
        if late:
            left = [executing.session for executing in self._executing]
            log.info("giving runs back", extra={"plays": len(left)})
            await asyncio.gather(*(give_back(session) for session in left))


def _named(row: object, *names: str) -> dict[str, Any]:
    return {name: getattr(row, name) for name in names}


async def _called(
    run: AsyncRun, function: Callable[..., Awaitable[Any]], arguments: tuple[Any, ...]
) -> Any:
    current_run.set(run)
    return await function(*arguments)
