"""The kit's own fixture, on the server that this suite has already."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from counterfoil.testing import TestServer
from counterfoil.testing.plugin import kit

__all__ = ["counterfoil_server", "kit"]


@pytest.fixture(scope="session")
def counterfoil_server(admin_dsn: str) -> Iterator[TestServer]:
    """The suite's server."""
    with TestServer(admin_dsn) as server:
        yield server
