"""`Kit`: one database, and plays run against it in the test's own process."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
import uuid
from collections.abc import Callable, Coroutine
from datetime import timedelta
from types import TracebackType
from typing import Any, Self, TypeVar

import psycopg

import counterfoil.testing.looking as looking
from counterfoil.database import Database
from counterfoil.functions import Functions
from counterfoil.playing.engine import WorkerOptions
from counterfoil.playing.plays import Plays
from counterfoil.testing.delivering import deliver
from counterfoil.testing.outcome import Outcome
from counterfoil.testing.process import Killing, KitProcess, Record
from counterfoil.worker import Worker

Answer = TypeVar("Answer")

ORG = "org"
"""The org of the kit's runs."""
_LEASE_SECONDS = 300
_POLL_SECONDS = 0.01


class Kit:
    """Runs plays against one database that nobody else uses. Not for use from several threads.

    ``dsn``: connection string of its owner, with the schema installed. ``patience``: seconds after
    which a run that neither ends nor waits fails the test. Use it in a ``with`` block.
    """

    def __init__(self, dsn: str, *, patience: float = 30.0) -> None:
        self.dsn = dsn
        self.patience = patience
        self._plays = Plays()
        self._registered: dict[Any, str] = {}
        self._record = Record()
        self._last_run: str | None = None
        self._killed: set[str] = set()
        self._workers = 0

    def __enter__(self) -> Self:
        self._connection = psycopg.connect(self.dsn, autocommit=True)
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="counterfoil-kit", daemon=True).start()
        self._database = Database(self.dsn, min_size=1, max_size=2)
        self._wait(self._database.__aenter__())
        self._functions = Functions(self._database)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._wait(self._database.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._connection.close()
        killing = self._record.killing
        if kind is None and killing is not None:
            raise AssertionError(f"the test ended and {self._unkilled(killing)}")

    def use(self, worker: Worker) -> Self:
        """Know the plays of a program's worker, by their names and by their functions."""
        for name in worker.plays:
            self._register(worker.plays[name].function, name)
        return self

    def launch(
        self,
        play: str | Callable[..., Any],
        input: Any = None,
        *,
        run_id: str | None = None,
        **fields: Any,
    ) -> str:
        """Admit a run of a play (a function, or the name of one that `use` knows); its id.

        ``fields`` are further fields of the launch, such as ``maxAttempts=1`` or ``priority=0``.
        Failed attempts are retried at once unless ``retryPolicy`` says otherwise.
        """
        name = play if isinstance(play, str) else self._name_of(play)
        if name not in self._plays:
            known = ", ".join(self._plays) or "none"
            raise ValueError(f"the kit knows no play {name!r} (known: {known}): kit.use(worker)")
        run_id = run_id or f"run-{uuid.uuid4().hex[:12]}"
        launch = {
            "orgId": ORG,
            "runId": run_id,
            "playId": name,
            "playName": name,
            "executorToken": "test",
            "baseUrl": "http://127.0.0.1:1",
            "retryPolicy": {"backoffBaseMs": 1, "backoffMaxMs": 1},
            "input": input,
            **fields,
        }
        self.call(lambda functions: functions.admit_launch(launch))
        self._last_run = run_id
        return run_id

    def run(
        self,
        play: str | Callable[..., Any],
        input: Any = None,
        *,
        run_id: str | None = None,
        **fields: Any,
    ) -> Outcome:
        """`launch`, then `run_on`."""
        return self.run_on(self.launch(play, input, run_id=run_id, **fields))

    def run_on(self, run_id: str | None = None) -> Outcome:
        """Start a worker and let it work until nothing is due, or it is killed.

        Then deliver what it left to the ledger. Says what came of ``run_id``, the run launched last
        unless given. A worker that was killed before is taken for dead: its leases have lapsed.
        """
        chosen = run_id or self._last_run
        if chosen is None:
            raise ValueError("nothing was launched: kit.run(play) or kit.launch(play)")
        looking.lapse(self._connection, self._killed)
        self._killed.clear()
        self._workers += 1
        options = WorkerOptions(
            name=f"kit-{self._workers}",
            concurrency=8,
            lease_seconds=_LEASE_SECONDS,
            poll_seconds=_POLL_SECONDS,
            recover_seconds=_POLL_SECONDS * 3,
            drain_seconds=1,
            listen=False,
        )
        process = KitProcess(self.dsn, self._plays, options, self._record)
        process.start()
        try:
            self._until_settled(process)
        finally:
            process.stop()
        if process.fault is not None:
            raise process.fault
        if process.died.is_set():
            looking.cut(self._connection, process.application_name)
            self._record.killing = None
            self._killed.add(process.name)
        self._refuse_unused_killing()
        self.call(deliver)
        return self.outcome(chosen)

    def kill_after(self, step: str | None = None, *, nth: int = 1) -> None:
        """Kill the worker right after ``step`` is stored: the ``nth`` time, of any step if None."""
        self._record.killing = Killing(step, nth, "after")

    def kill_during(self, step: str | None = None, *, nth: int = 1) -> None:
        """Kill the worker when the step's function has returned, before its output is stored.

        The effect has happened and nobody knows: the step is computed again.
        """
        self._record.killing = Killing(step, nth, "during")

    def advance(self, **duration: float) -> None:
        """Let time pass: ``kit.advance(hours=2)``, with the arguments of `timedelta`.

        Every time in the database moves back by as much; the process's own clock stays. `run_on`
        then finds the waits, retries, deadlines and expiries that have come due.
        """
        looking.shift(self._connection, timedelta(**duration))

    def resume(
        self, event: str, payload: Any = None, *, run_id: str | None = None, signal: str = ""
    ) -> None:
        """Send an event to a run, the one launched last unless given; `run_on` goes on with it.

        The same ``signal`` twice is one event; by default each call is another.
        """
        at = run_id or self._last_run or ""
        signal_id = signal or uuid.uuid4().hex
        self.call(lambda functions: functions.resume_run(ORG, at, event, payload, signal_id))

    def cancel(self, reason: str = "the test", *, run_id: str | None = None) -> None:
        """Cancel a run, the one launched last unless given."""
        at = run_id or self._last_run or ""
        self.call(lambda functions: functions.cancel_run(ORG, at, reason))

    def outcome(self, run_id: str) -> Outcome:
        """What the run has come to so far."""
        document = self.call(lambda functions: functions.get_run(ORG, run_id))
        return looking.outcome(self._connection, ORG, document, self._killed, self._record)

    def call(self, operation: Callable[[Functions], Coroutine[Any, Any, Answer]]) -> Answer:
        """The answer of a stored function: ``kit.call(lambda f: f.health())``."""
        return self._wait(operation(self._functions))

    def _wait(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    def _name_of(self, function: Callable[..., Any]) -> str:
        if function in self._registered:
            return self._registered[function]
        base = getattr(function, "__name__", "play")
        others = (f"{base}-{number}" for number in itertools.count(2))
        name = next(n for n in itertools.chain([base], others) if n not in self._plays)
        return self._register(function, name)

    def _register(self, function: Callable[..., Any], name: str) -> str:
        self._plays.add(name, function)
        self._registered[function] = name
        return name

    def _until_settled(self, process: KitProcess) -> None:
        until = time.monotonic() + self.patience
        while not process.ended.wait(_POLL_SECONDS):
            if not looking.unsettled(self._connection, list(self._plays)):
                return
            if time.monotonic() > until:
                runs = ", ".join(looking.unsettled(self._connection, list(self._plays)))
                raise AssertionError(f"after {self.patience:g} s there is still work in: {runs}")

    def _refuse_unused_killing(self) -> None:
        killing = self._record.killing
        if killing is None or looking.unended(self._connection):
            return
        said = self._unkilled(killing)
        self._record.killing = None
        raise AssertionError(f"every run ended and {said}")

    def _unkilled(self, killing: Killing) -> str:
        names = ", ".join(sorted(set(self._record.names.values()))) or "none"
        wanted = "a step" if killing.step is None else f"step {killing.step!r}"
        return (
            f"{wanted} was not computed {killing.nth} times, so nothing was killed; "
            f"the steps were: {names}"
        )
