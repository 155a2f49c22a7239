"""A database with the schema for the tests of schedules."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest

from tests.servers.databases import create_database, database_name, drop_database


@pytest.fixture(scope="module")
def reader(admin_dsn: str, installed_template: str) -> Iterator[psycopg.Connection]:
    """One connection for all tests of a module: what they call writes nothing."""
    dsn = create_database(admin_dsn, database_name(installed_template))
    with psycopg.connect(dsn, autocommit=True) as connection:
        yield connection
    drop_database(admin_dsn, dsn)
