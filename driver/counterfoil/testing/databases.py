"""A server for tests, with the schema installed once and cloned for each test."""

from __future__ import annotations

import shutil
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Self

import psycopg
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from counterfoil import migrations
from counterfoil.embedded import EmbeddedServer
from counterfoil.testing.kit import Kit

# Nothing in it outlives the tests, so no commit waits for the disk.
_FAST = {"synchronous_commit": "off", "shared_buffers": "64MB", "jit": "off"}


class TestServer:
    """A PostgreSQL server for one session of tests. ``with TestServer() as server: …``

    ``dsn``: a superuser's connection string of a server to use (databases are made on it and
    dropped); None starts an embedded server in a temporary folder, gone afterwards.
    """

    __test__ = False  # pytest collects what is named Test…

    def __init__(self, dsn: str | None = None) -> None:
        self._given = dsn
        self._folder: Path | None = None
        self._server: EmbeddedServer | None = None
        self._dsn = dsn or ""
        self._template: str | None = None

    def __enter__(self) -> Self:
        if self._given is None:
            self._folder = Path(tempfile.mkdtemp(prefix="cf-kit-"))
            self._server = EmbeddedServer(self._folder / "home", settings=_FAST)
            self._server.start()
            self._dsn = self._server.dsn()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._server is not None:
            self._server.remove()
        elif self._template is not None:
            self._drop(self._template)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def database(self) -> Iterator[str]:
        """The dsn of a database of its own with the schema installed, dropped afterwards."""
        if self._template is None:
            template = self._create("template0")
            migrations.migrate(make_conninfo(self._dsn, dbname=template))
            self._template = template
        name = self._create(self._template)
        try:
            yield make_conninfo(self._dsn, dbname=name)
        finally:
            self._drop(name)

    @contextmanager
    def kit(self) -> Iterator[Kit]:
        """A `Kit` on a database of its own."""
        with self.database() as dsn, Kit(dsn) as kit:
            yield kit

    def _create(self, template: str) -> str:
        name = f"counterfoil_kit_{uuid.uuid4().hex[:12]}"
        self._execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
        return name

    def _drop(self, name: str) -> None:
        self._execute(
            sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
        )

    def _execute(self, statement: sql.Composed) -> None:
        if not conninfo_to_dict(self._dsn):
            raise RuntimeError("the server has not been started: use it in a with block")
        with psycopg.connect(self._dsn, autocommit=True) as connection:
            connection.execute(statement)
