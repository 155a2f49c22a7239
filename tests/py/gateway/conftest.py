"""A scene whose gateway is called directly."""

from __future__ import annotations

from collections.abc import AsyncIterator

import aiohttp
import pytest

from counterfoil.gateway import create_app
from tests.py.driver.scene import Scene, open_scene, serving
from tests.py.gateway.client import Client


@pytest.fixture
async def scene(installed: str) -> AsyncIterator[Scene]:
    """An installed database and a gateway on a real port, with a small limit on bodies."""
    async with open_scene(installed, body_max_bytes=200_000, body_timeout=1.0) as opened:
        yield opened


@pytest.fixture
async def client(scene: Scene) -> AsyncIterator[Client]:
    """A client of a gateway with nothing in between, with a token for the run `run`."""
    app = create_app(scene.database, scene.settings)
    async with serving(app, scene.settings) as url, aiohttp.ClientSession() as session:
        yield Client(session, scene, url)
