"""A gateway that keeps the receipts of a bench's workers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from counterfoil import Database, Settings
from counterfoil.gateway import create_app
from tests.py.driver.scene import KEY, Between, serving
from tests.py.worker.bench import Bench


@asynccontextmanager
async def through_a_gateway(bench: Bench) -> AsyncIterator[Between]:
    """The bench's workers reach receipts through a gateway; gives what stands before it."""
    settings = Settings(dsn=bench.dsn, signing_keys=(KEY,))
    async with Database(bench.dsn, max_size=4) as database:
        between = Between(create_app(database, settings))
        async with serving(between, settings) as url:
            bench.settings |= {"receipts": "gateway", "base_url": url, "signing_keys": (KEY,)}
            yield between
