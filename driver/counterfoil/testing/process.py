"""The worker's process that a kit plays: it can die at a step, leaving nothing unwound.

It is the engine of a real worker on an event loop in a thread. Dying stops that loop for good and
cuts its database sessions: no ``finally`` runs, no lease is given back, nothing more is written.
What the play's threads were waiting for never comes; they are parked until the test process ends.
"""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

from counterfoil.database import Database
from counterfoil.playing.engine import Engine, WorkerOptions
from counterfoil.playing.plays import Plays
from counterfoil.playing.session import Session
from counterfoil.playing.steps import Claim, Step, Steps

# A coroutine that nothing refers to is closed, which would run its `finally`.
_dead: list[KitProcess] = []


@dataclass
class Killing:
    """When to die: at the ``nth`` time that ``step`` (None: any) is computed."""

    step: str | None
    nth: int
    moment: Literal["during", "after"]
    seen: int = 0


@dataclass
class Record:
    """What a kit has seen of its plays' steps, over all its processes."""

    names: dict[str, str] = field(default_factory=dict)
    calls: Counter[str] = field(default_factory=Counter)
    killing: Killing | None = None

    def computed(self, step: Step) -> Killing | None:
        """Count a call of the step; the killing that it triggers, if it does."""
        self.names[step.key] = step.name
        self.calls[step.key] += 1
        killing = self.killing
        if killing is None or killing.step not in (None, step.name):
            return None
        killing.seen += 1
        return killing if killing.seen == killing.nth else None


class KitProcess:
    """One worker's process, as far as its plays can tell."""

    def __init__(self, dsn: str, plays: Plays, options: WorkerOptions, record: Record) -> None:
        self.name = options.name
        self.died = threading.Event()
        self.ended = threading.Event()
        self.fault: BaseException | None = None
        self._database = Database(
            dsn, min_size=1, max_size=4, application_name=self.application_name
        )
        self._loop = asyncio.new_event_loop()
        self._engine: Engine | None = None
        self._stop_asked = False
        self._task: asyncio.Task[None] | None = None
        self._arguments = (plays, options, record)
        self._thread = threading.Thread(target=self._work, name=self.name, daemon=True)

    @property
    def application_name(self) -> str:
        """What its database sessions are called."""
        return f"counterfoil {self.name}"[:63]

    def start(self) -> None:
        """Begin to work."""
        self._thread.start()

    def stop(self) -> None:
        """Drain, and return when the process has ended; nothing to do for one that died."""
        if self.died.is_set():
            return

        def ask() -> None:
            self._stop_asked = True
            if self._engine is not None:
                self._engine.stop()

        # It may have ended by itself, with a fault.
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(ask)
        self._thread.join()

    def _work(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._task = self._loop.create_task(self._serve())
        self._task.add_done_callback(lambda _: self._loop.stop())
        self._loop.run_forever()
        if not self.died.is_set():
            self.fault = self._task.exception()
            self._loop.close()
        self.ended.set()

    async def _serve(self) -> None:
        plays, options, record = self._arguments

        def steps_of(session: Session) -> Steps:
            return _KitSteps(session, record, self._die)

        async with self._database:
            self._engine = Engine(self._database, plays, options, steps_of)
            if self._stop_asked:
                self._engine.stop()
            await self._engine.run()

    async def _die(self) -> None:
        _dead.append(self)
        self.died.set()
        self._loop.stop()
        await self._loop.create_future()


class _KitSteps(Steps):
    def __init__(self, session: Session, record: Record, die: Callable[[], Any]) -> None:
        super().__init__(session)
        self._record = record
        self._die = die

    async def complete(self, claim: Claim, output: Any) -> Claim | None:
        killing = self._record.computed(claim.step)
        if killing is not None and killing.moment == "during":
            await self._die()
        stored = await super().complete(claim, output)
        if killing is not None:
            await self._die()
        return stored

    async def fail(self, claim: Claim, error: BaseException) -> None:
        self._record.names[claim.step.key] = claim.step.name
        self._record.calls[claim.step.key] += 1
        await super().fail(claim, error)
