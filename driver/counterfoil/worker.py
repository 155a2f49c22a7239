"""`Worker`: the plays of a program, and the process that executes them.

worker = Worker()

@worker.play("greet")
def greet(run, name):
    return run.step("compose", lambda: f"Hello {name}")

worker.run()
"""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import threading
import uuid
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import replace
from typing import Any, TypeVar

from counterfoil import logs
from counterfoil.database import Database
from counterfoil.embedded import EmbeddedServer
from counterfoil.playing.engine import Engine, WorkerOptions
from counterfoil.playing.keepers import connections_for_steps, keeper
from counterfoil.playing.plays import Plays
from counterfoil.settings import Settings

log = logging.getLogger(__name__)

loading: ContextVar[bool] = ContextVar("counterfoil_loading", default=False)
"""Set while a program is loaded for its plays only: its own call of `Worker.run` does nothing."""

AnyPlay = TypeVar("AnyPlay", bound=Callable[..., Any])


class Worker:
    """Executes plays. Without arguments it takes its settings from the environment and the file.

    ``dsn``: connection string (empty: the embedded server). ``schema``: schema of the installation.
    ``receipts``: who keeps the steps' receipts, "database" or "gateway" (at ``base_url``).
    ``name``: what this worker calls itself; unique by itself when None. ``concurrency``: plays at
    once. ``lease_seconds``: how long a run stays this worker's without a sign of life, 5 to 300.
    ``release_lane``: which release's runs it takes. ``drain_seconds``: how long a stopping worker
    waits for its plays before it gives their runs back.
    """

    def __init__(
        self,
        dsn: str | None = None,
        *,
        schema: str | None = None,
        receipts: str | None = None,
        name: str | None = None,
        concurrency: int | None = None,
        lease_seconds: int | None = None,
        release_lane: str | None = None,
        drain_seconds: float | None = None,
        settings: Settings | None = None,
    ) -> None:
        self.plays = Plays()
        self._connection = {"dsn": dsn, "schema": schema, "receipts": receipts}
        self._settings = settings
        self._own_name = _own_name()
        self._chosen: dict[str, Any] = {}
        self.configure(
            name=name,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            release_lane=release_lane,
            drain_seconds=drain_seconds,
        )
        self._lock = threading.Lock()
        self._engine: tuple[asyncio.AbstractEventLoop, Engine] | None = None
        self._stop_asked = False

    def play(self, name: str) -> Callable[[AnyPlay], AnyPlay]:
        """Register the decorated function, plain or coroutine, as the play of that name.

        It is called with a `Run` (or an `AsyncRun`) and the launch's input.
        """

        def register(function: AnyPlay) -> AnyPlay:
            self.plays.add(name, function)
            return function

        return register

    def configure(self, settings: Settings | None = None, **options: Any) -> None:
        """Other settings and options than before, for whoever starts the worker.

        Options are those of the constructor; what is None stays as it is. Raises ValueError for
        one that is out of range.
        """
        if settings is not None:
            self._settings = settings
        self._chosen |= {key: value for key, value in options.items() if value is not None}
        replace(WorkerOptions(name=self._own_name), **self._chosen)  # refuses what cannot be

    @property
    def settings(self) -> Settings:
        """What the process was told; read from environment and file when first asked for."""
        if self._settings is None:
            self._settings = Settings.load(self._connection)
        return self._settings

    @property
    def options(self) -> WorkerOptions:
        """How the worker works: what was chosen for it, else its settings."""
        given = self.settings
        defaults = WorkerOptions(
            name=given.worker_name or self._own_name,
            release_lane=given.release_lane,
            concurrency=given.worker_concurrency,
            lease_seconds=given.attempt_lease,
            poll_seconds=given.poll_seconds,
            recover_seconds=given.recover_seconds,
            drain_seconds=given.drain_seconds,
            listen=given.listen,
        )
        return replace(defaults, **self._chosen)

    def run(self) -> None:
        """Work until SIGTERM or SIGINT, which drains; a second one stops the process at once.

        Where the program has not set up logging, the package's goes to standard error.
        """
        if loading.get():
            return
        if not log.hasHandlers():
            logs.configure(os.environ.get("COUNTERFOIL_LOG_LEVEL", "info"))
        signals = 0

        def on_signal(number: int) -> None:
            nonlocal signals
            signals += 1
            if signals > 1:
                # Nothing is given back: the leases lapse and other workers take over.
                os._exit(128 + number)
            log.info("stopping", extra={"signal": number})
            self.stop()

        async def main() -> None:
            loop = asyncio.get_running_loop()
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.add_signal_handler(number, on_signal, number)
            await self.serve()

        asyncio.run(main())

    async def serve(self) -> None:
        """Work until `stop`, on the caller's event loop; leaves signals alone."""
        if not len(self.plays):
            raise ValueError("the worker has no play: register one with @worker.play(name)")
        given, options = self.settings, self.options
        dsn = given.dsn or await asyncio.to_thread(EmbeddedServer.default().ensure().dsn)
        application_name = f"counterfoil worker {options.name}"[:63]
        connections = given.pool_max - connections_for_steps(given)
        database = Database(
            dsn,
            schema=given.schema,
            min_size=min(given.pool_min, connections),
            max_size=connections,
            acquire_seconds=given.pool_timeout,
            application_name=application_name,
        )
        async with database, keeper(given, dsn, application_name) as steps_of:
            engine = Engine(database, self.plays, options, steps_of)
            with self._lock:
                self._engine = (asyncio.get_running_loop(), engine)
                if self._stop_asked:
                    engine.stop()
            log.info("worker started", extra={"worker": options.name, "plays": list(self.plays)})
            try:
                await engine.run()
            finally:
                with self._lock:
                    self._engine = None
                    self._stop_asked = False
        log.info("worker stopped", extra={"worker": options.name})

    def stop(self) -> None:
        """Drain and end `run` or `serve`; from any thread, also before they have begun."""
        with self._lock:
            self._stop_asked = True
            running = self._engine
        if running is not None:
            loop, engine = running
            loop.call_soon_threadsafe(engine.stop)


def _own_name() -> str:
    return f"{socket.gethostname()}:{os.getpid()}:{uuid.uuid4().hex[:6]}"[:200]
