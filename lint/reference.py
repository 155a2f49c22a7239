"""Writes ``docs/reference.md`` from the schema's own comments: ``make docs``.

Public functions, tables and settings, as an installed schema describes them. Private helpers are
described in their files.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import namedtuple_row

from lint.sources import ROOMS, Tree, read_tree
from tests.servers.databases import SCHEMA, install, temporary_database
from tests.servers.throwaway import ThrowawayServer

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/reference.md"

_OPENING = """\
# Reference

What the schema says of itself: the functions that roles may call, the settings, the tables.
Written by `make docs` from the comments in the database; edit those, not this page.
"""

_FUNCTIONS = """
select
    p.proname as name,
    pg_get_function_arguments(p.oid) as arguments,
    pg_get_function_result(p.oid) as result,
    obj_description(p.oid, 'pg_proc') as comment
from pg_catalog.pg_proc as p
where p.pronamespace = %s::regnamespace
order by p.proname collate "C", pg_get_function_identity_arguments(p.oid) collate "C"
"""
_SETTINGS = """
select s.name, s.default_value::text as value, s.unit, s.minimum, s.maximum, s.meaning
from counterfoil.settings as s
order by s.name collate "C"
"""
_TABLES = """
select c.oid, c.relname as name, obj_description(c.oid, 'pg_class') as comment
from pg_catalog.pg_class as c
where c.relnamespace = %s::regnamespace and c.relkind in ('r', 'p') and not c.relispartition
order by c.relname collate "C"
"""
_COLUMNS = """
select
    a.attname as name,
    format_type(a.atttypid, a.atttypmod) as type,
    a.attnotnull as required,
    col_description(a.attrelid, a.attnum) as comment
from pg_catalog.pg_attribute as a
where a.attrelid = %s and a.attnum > 0 and not a.attisdropped
order by a.attnum
"""


def describe(dsn: str, tree: Tree) -> str:
    """The page, from the schema installed in the database of ``dsn``."""
    with psycopg.connect(dsn, row_factory=namedtuple_row) as connection:
        parts = [
            _OPENING,
            *_functions(connection.execute(_FUNCTIONS, [SCHEMA]).fetchall(), tree),
            *_settings(connection.execute(_SETTINGS).fetchall()),
            *_tables(connection),
        ]
    return "\n".join(parts)


def _functions(rows: list[Any], tree: Tree) -> Iterator[str]:
    yield "## Functions\n"
    for room in ROOMS:
        mine = [
            row
            for row in rows
            if tree.room_of.get(row.name) == room and not tree.is_private(row.name)
        ]
        if mine:
            yield f"### {room.capitalize()}\n"
        for row in mine:
            roles = ", ".join(f"`{SCHEMA}_{role}`" for role in sorted(tree.grants[row.name]))
            yield f"#### `{row.name}({row.arguments})`\n"
            yield f"{row.comment}\n\nReturns `{row.result}`. For {roles}.\n"


def _settings(rows: list[Any]) -> Iterator[str]:
    yield "## Settings\n"
    yield "| name | default | unit | allowed | meaning |\n|---|---|---|---|---|"
    for row in rows:
        allowed = "" if row.minimum is None else f"{row.minimum} … {row.maximum}"
        yield f"| `{row.name}` | `{row.value}` | {row.unit} | {allowed} | {_cell(row.meaning)} |"
    yield ""


def _tables(connection: psycopg.Connection[Any]) -> Iterator[str]:
    yield "## Tables\n"
    for table in connection.execute(_TABLES, [SCHEMA]).fetchall():
        yield f"### {table.name}\n\n{table.comment}\n"
        yield "| column | type | | meaning |\n|---|---|---|---|"
        for column in connection.execute(_COLUMNS, [table.oid]).fetchall():
            needed = "required" if column.required else ""
            yield f"| `{column.name}` | {column.type} | {needed} | {_cell(column.comment)} |"
        yield ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def write(page: Path = PAGE) -> None:
    """Install the schema on a throwaway server and write the page."""
    tree = read_tree(ROOT / "sql")
    with ThrowawayServer() as server, temporary_database(server.dsn()) as dsn:
        install(dsn)
        page.write_text(describe(dsn, tree), encoding="utf-8")


def check(dsn: str) -> list[str]:
    """Whether the page says what the schema in the database of ``dsn`` says."""
    written = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    if written == describe(dsn, read_tree(ROOT / "sql")):
        return []
    return [f"{PAGE.relative_to(ROOT)} is not what the schema says of itself: run `make docs`"]


if __name__ == "__main__":
    write()
    print(f"wrote {PAGE.relative_to(ROOT)}")
    sys.exit(0)
