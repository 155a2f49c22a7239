"""A scene with a gateway and dispatchers, for what goes through the whole path."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.py.driver.scene import Scene, open_scene


@pytest.fixture
async def scene(installed: str) -> AsyncIterator[Scene]:
    """An installed database and a gateway on a real port."""
    async with open_scene(installed) as opened:
        yield opened
