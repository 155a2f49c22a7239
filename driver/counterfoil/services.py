"""Gateway and dispatcher as processes: settings in, signals handled, work drained on the way out.

The first SIGTERM or SIGINT drains. A second one ends the process at once: leases lapse, and others
take over.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable, Iterator

import uvicorn
from starlette.types import ASGIApp

from counterfoil.database import Database
from counterfoil.delivering.deliveries import Observer
from counterfoil.dispatcher import Dispatcher
from counterfoil.embedded import EmbeddedServer
from counterfoil.gateway import create_app
from counterfoil.settings import Settings

log = logging.getLogger(__name__)

GATEWAY_ACQUIRE_SECONDS = 1.0
"""How long a request waits for a connection before it is told to come back: no pile-up."""
GATEWAY_WAITING_PER_CONNECTION = 8
_MOST_CONNECTIONS = 1024


def run_dispatcher(settings: Settings, *, observer: Observer | None = None) -> None:
    """Dispatch until told to stop."""
    asyncio.run(serve_dispatcher(settings, observer=observer))


def run_gateway(settings: Settings) -> None:
    """Serve HTTP until told to stop."""
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
    async with database:
        server = make_server(create_app(database, settings), settings)

        def stop() -> None:
            server.should_exit = True

        _on_signals(stop)
        log.info("listening", extra={"host": settings.host, "port": settings.port})
        await server.serve()
    log.info("stopped")


class _Server(uvicorn.Server):
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Leave signals to the process: uvicorn would raise them again when it has stopped."""
        yield


def make_server(app: ASGIApp, settings: Settings) -> uvicorn.Server:
    """A uvicorn server for ``app``: bounded connections, requests in hand end before it stops.

    Set its ``should_exit`` to stop it.
    """
    return _Server(
        uvicorn.Config(
            app,
            host=settings.host,
            port=settings.port,
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="auto",
            limit_concurrency=_MOST_CONNECTIONS,
            timeout_graceful_shutdown=int(settings.drain_seconds),
        )
    )


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
