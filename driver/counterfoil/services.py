"""Gateway and dispatcher as processes: settings in, signals handled, work drained on the way out.

The first SIGTERM or SIGINT drains. A second one ends the process at once: leases lapse, and others
take over.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import logging
import os
import resource
import signal
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from counterfoil.database import Database
from counterfoil.delivering.deliveries import Observer
from counterfoil.dispatcher import Dispatcher
from counterfoil.embedded import EmbeddedServer
from counterfoil.gateway import create_app
from counterfoil.receiving.connections import Connection
from counterfoil.receiving.metrics import Metrics
from counterfoil.settings import Settings

log = logging.getLogger(__name__)

GATEWAY_ACQUIRE_SECONDS = 1.0
"""How long a request waits for a connection before it is told to come back: no pile-up."""
GATEWAY_WAITING_PER_CONNECTION = 8
_OTHER_FILES = 256
_M_MMAP_THRESHOLD = -3
_MMAP_THRESHOLD_BYTES = 128 * 1024
_LOOKS_PER_TICKS = 5
"""Slow clients are looked for every half second."""


def run_dispatcher(settings: Settings, *, observer: Observer | None = None) -> None:
    """Dispatch until told to stop."""
    asyncio.run(serve_dispatcher(settings, observer=observer))


def run_gateway(settings: Settings) -> None:
    """Serve HTTP until told to stop."""
    _give_back_large_blocks()
    asyncio.run(serve_gateway(settings))


async def serve_dispatcher(settings: Settings, *, observer: Observer | None = None) -> None:
    """The same on the caller's event loop."""
    database = Database(
        await _dsn(settings),
        schema=settings.schema,
        min_size=settings.pool_min,
        max_size=settings.pool_max,
        acquire_seconds=settings.pool_timeout,
        application_name="counterfoil dispatcher",
    )
    async with database:
        dispatcher = Dispatcher(database, settings, observer=observer)
        _on_signals(dispatcher.stop)
        log.info("dispatching", extra={"schema": settings.schema})
        await dispatcher.run()
    log.info("stopped")


async def serve_gateway(settings: Settings) -> None:
    """The same on the caller's event loop."""
    database = Database(
        await _dsn(settings),
        schema=settings.schema,
        min_size=settings.pool_min,
        max_size=settings.pool_max,
        acquire_seconds=min(settings.pool_timeout, GATEWAY_ACQUIRE_SECONDS),
        max_waiting=settings.pool_max * GATEWAY_WAITING_PER_CONNECTION,
        application_name="counterfoil gateway",
    )
    _allow_files(3 * settings.max_connections + settings.pool_max)
    async with database:
        metrics = Metrics()
        app = create_app(database, settings, metrics)
        server = make_server(app, settings, metrics)

        def end() -> None:
            server.should_exit = True

        def stop() -> None:
            app.state.draining = True
            asyncio.get_running_loop().call_later(settings.ready_delay, end)

        _on_signals(stop)
        log.info("listening", extra={"host": settings.host, "port": settings.port})
        await server.serve()
    log.info("stopped")


class _Server(uvicorn.Server):
    def __init__(self, config: uvicorn.Config, settings: Settings, metrics: Metrics) -> None:
        super().__init__(config)
        self._settings = settings
        metrics.gauge("connections", lambda: len(self.server_state.connections))

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: uvicorn would raise them again when it has stopped."""
        yield

    async def on_tick(self, counter: int) -> bool:
        """Give up clients that are too slow."""
        if counter % _LOOKS_PER_TICKS == 0:
            for connection in list(self.server_state.connections):
                if isinstance(connection, Connection):
                    connection.look(
                        head_seconds=self._settings.head_timeout,
                        answer_seconds=self._settings.body_timeout,
                    )
        return await super().on_tick(counter)


def make_server(app: ASGIApp, settings: Settings, metrics: Metrics | None = None) -> uvicorn.Server:
    """A uvicorn server for ``app``: bounded connections, requests in hand end before it stops.

    Set its ``should_exit`` to stop it.
    """
    config = uvicorn.Config(
        app,
        host=settings.host,
        port=settings.port,
        http=Connection,
        ws="none",
        log_config=None,
        access_log=False,
        server_header=False,
        lifespan="auto",
        limit_concurrency=settings.max_connections,
        timeout_graceful_shutdown=int(settings.drain_seconds),
    )
    return _Server(config, settings, metrics or Metrics())


def _give_back_large_blocks() -> None:
    """Have glibc return what bodies took as soon as it is freed.

    Left alone it keeps blocks of up to 32 MB in its heaps once one of that size was freed.
    """
    # Elsewhere there is no such option, and no need of it.
    with contextlib.suppress(AttributeError):
        ctypes.CDLL(None).mallopt(_M_MMAP_THRESHOLD, _MMAP_THRESHOLD_BYTES)


def _allow_files(connections: int) -> None:
    """Let the process open as many sockets as it may have connections, where it is allowed to.

    A connection that is refused has one, one that is served perhaps another to a runtime API.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = connections + _OTHER_FILES
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, most), hard))


async def _dsn(settings: Settings) -> str:
    return settings.dsn or await asyncio.to_thread(EmbeddedServer.default().ensure().dsn)


def _on_signals(stop: Callable[[], None]) -> None:
    signals = 0

    def on_signal(number: int) -> None:
        nonlocal signals
        signals += 1
        if signals > 1:
            os._exit(128 + number)
        log.info("stopping", extra={"signal": number})
        stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, on_signal, number)
