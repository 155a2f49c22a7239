"""Databases on a test server: a template with the schema installed once, and clones of it."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

SCHEMA = "counterfoil"

Connect = Callable[[str], Awaitable[psycopg.AsyncConnection]]
"""What the fixture ``connect`` gives: dsn in, asynchronous autocommit connection out."""


def create_database(admin_dsn: str, template: str = "template0") -> str:
    """Create a database with a random name, cloned from ``template``; returns its dsn."""
    name = f"cf_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute(
            # Faster than the default where nothing is flushed to disk.
            sql.SQL("create database {} template {} strategy file_copy").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
    return make_conninfo(admin_dsn, dbname=name)


def drop_database(admin_dsn: str, dsn: str) -> None:
    """Drop the database that ``dsn`` names, whoever is still connected to it."""
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute(
            sql.SQL("drop database if exists {} with (force)").format(
                sql.Identifier(database_name(dsn))
            )
        )


@contextmanager
def temporary_database(admin_dsn: str, template: str = "template0") -> Iterator[str]:
    """A database for the time of a ``with`` block; gives its dsn."""
    dsn = create_database(admin_dsn, template)
    try:
        yield dsn
    finally:
        drop_database(admin_dsn, dsn)


def database_name(dsn: str) -> str:
    """The database that ``dsn`` names."""
    return str(psycopg.conninfo.conninfo_to_dict(dsn)["dbname"])


def install(dsn: str, *extensions: str) -> None:
    """Install Counterfoil's schema, and test extensions, into the database of ``dsn``."""
    # Imported late: a server can be started before the package it tests can be imported.
    from counterfoil import migrations

    migrations.migrate(dsn, SCHEMA)
    with psycopg.connect(dsn, autocommit=True) as connection:
        for extension in extensions:
            connection.execute(
                sql.SQL("create extension if not exists {}").format(sql.Identifier(extension))
            )
