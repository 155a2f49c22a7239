"""The fixtures for pytest: ``pytest_plugins = ["counterfoil.testing.plugin"]`` in conftest.py.

``kit`` is a fresh database for each test with a `Kit` on it; ``counterfoil_server`` is the server
of the session: an embedded one, or that of ``COUNTERFOIL_TEST_DSN`` (a superuser's connection
string). Override ``counterfoil_server`` to bring a server of your own.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from counterfoil.testing.databases import TestServer
from counterfoil.testing.kit import Kit


@pytest.fixture(scope="session")
def counterfoil_server() -> Iterator[TestServer]:
    """The server that the session's tests share; each has a database of its own there."""
    with TestServer(os.environ.get("COUNTERFOIL_TEST_DSN")) as server:
        yield server


@pytest.fixture
def kit(counterfoil_server: TestServer) -> Iterator[Kit]:
    """A kit on a fresh database."""
    with counterfoil_server.kit() as kit:
        yield kit
