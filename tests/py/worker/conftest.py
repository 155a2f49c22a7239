"""An installed database with a worker's bench around it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from counterfoil import Database, Functions
from tests.py.worker.bench import Bench


@pytest.fixture
async def bench(installed: str) -> AsyncIterator[Bench]:
    """An installed database with its functions."""
    async with Database(installed, max_size=4) as database:
        yield Bench(installed, Functions(database))
