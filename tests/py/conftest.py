"""Fixtures that give tests a server and databases of their own.

``COUNTERFOIL_TEST_DSN`` (a superuser's connection string) names the server to use; without it a
throwaway one is started for the session: of the embedded wheel, or of the major version that
``COUNTERFOIL_TEST_SERVER`` names. Tests that use any of these
fixtures get the marker ``database``, so that ``pytest -m database`` can repeat them on another
server.
"""

from __future__ import annotations

import os
from collections.abc import AsyncIterator, Iterator

import psycopg
import pytest

from tests.servers.databases import (
    Connect,
    create_database,
    database_name,
    drop_database,
    install,
)
from tests.servers.throwaway import EMBEDDED, ThrowawayServer


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what touches a database."""
    for item in items:
        if "admin_dsn" in getattr(item, "fixturenames", ()):
            item.add_marker("database")


@pytest.fixture(scope="session")
def admin_dsn() -> Iterator[str]:
    """Connection string of a superuser on the server under test."""
    given = os.environ.get("COUNTERFOIL_TEST_DSN")
    if given:
        yield given
        return
    with ThrowawayServer(os.environ.get("COUNTERFOIL_TEST_SERVER", EMBEDDED)) as server:
        yield server.dsn()


@pytest.fixture
def database(admin_dsn: str) -> Iterator[str]:
    """The dsn of a fresh, empty database, dropped afterwards whoever is still connected."""
    dsn = create_database(admin_dsn)
    yield dsn
    drop_database(admin_dsn, dsn)


@pytest.fixture(scope="session")
def installed_template(admin_dsn: str) -> Iterator[str]:
    """The dsn of a database with the schema installed, to be cloned; nobody may stay connected."""
    dsn = create_database(admin_dsn)
    install(dsn)
    yield dsn
    drop_database(admin_dsn, dsn)


@pytest.fixture
def installed(admin_dsn: str, installed_template: str) -> Iterator[str]:
    """The dsn of a fresh database with the schema installed."""
    dsn = create_database(admin_dsn, template=database_name(installed_template))
    yield dsn
    drop_database(admin_dsn, dsn)


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    """``await connect(dsn)``: an asynchronous autocommit connection, closed after the test."""
    opened: list[psycopg.AsyncConnection] = []

    async def open_connection(dsn: str) -> psycopg.AsyncConnection:
        connection = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        opened.append(connection)
        return connection

    yield open_connection
    for connection in opened:
        await connection.close()
