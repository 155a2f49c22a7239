"""Fixtures of the migration tests: a small SQL tree, and a server that lacks the roles."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from counterfoil.migrations import migrate
from tests.py.migrations.trees import Tree, small_tree
from tests.servers.databases import create_database, database_name, drop_database
from tests.servers.throwaway import ThrowawayServer


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    """A fresh copy of the small tree."""
    return small_tree(tmp_path / "sql")


@pytest.fixture(scope="session")
def small_template(admin_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with the small tree installed, to be cloned."""
    dsn = create_database(admin_dsn)
    migrate(dsn, source=small_tree(tmp_path_factory.mktemp("small") / "sql").root)
    yield dsn
    drop_database(admin_dsn, dsn)


@pytest.fixture
def small_database(admin_dsn: str, small_template: str) -> Iterator[str]:
    """A fresh database with the small tree installed."""
    dsn = create_database(admin_dsn, template=database_name(small_template))
    yield dsn
    drop_database(admin_dsn, dsn)


@pytest.fixture
def roleless() -> Iterator[str]:
    """A database on a server of its own, where Counterfoil's roles have never been created."""
    with ThrowawayServer() as server:
        yield server.dsn()


@pytest.fixture
def second_database(admin_dsn: str) -> Iterator[str]:
    """One more fresh, empty database, to compare with."""
    dsn = create_database(admin_dsn)
    yield dsn
    drop_database(admin_dsn, dsn)
