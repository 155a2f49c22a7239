"""docs/data-model.md against the tables as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

_TEXT = (Path(__file__).parents[3] / "docs/data-model.md").read_text()
_DIAGRAM = _TEXT.partition("```mermaid")[2].partition("```")[0]
_LINES = re.findall(r"^ +(\w+) [|}o]+(--|\.\.)[|{o]+ (\w+) : ", _DIAGRAM, re.MULTILINE)
_ENTITIES = {
    name: re.findall(r"^ +\w+ (\w+) ?(PK|UK)?", body, re.MULTILINE)
    for name, body in re.findall(r"^ {4}(\w+) \{\n(.*?)^ {4}\}", _DIAGRAM, re.MULTILINE | re.DOTALL)
}


@pytest.fixture
def catalog(installed: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(installed, autocommit=True) as connection:
        yield connection


def test_every_table_is_on_the_page(catalog: psycopg.Connection) -> None:
    tables = {
        name
        for (name,) in catalog.execute(
            "select c.relname from pg_class as c"
            " where c.relnamespace = 'counterfoil'::regnamespace and c.relkind = 'r'"
        )
    }
    drawn = {table for first, _, second in _LINES for table in (first, second)}
    assert drawn | _ENTITIES.keys() <= tables
    assert {name for name in tables - drawn if f"`{name}`" not in _TEXT} == set()


def test_solid_lines_are_the_foreign_keys(catalog: psycopg.Connection) -> None:
    keys = catalog.execute(
        "select p.relname, c.relname from pg_constraint as k"
        " inner join pg_class as p on p.oid = k.confrelid"
        " inner join pg_class as c on c.oid = k.conrelid"
        " where k.contype = 'f' and k.connamespace = 'counterfoil'::regnamespace"
    ).fetchall()
    solid = [(first, second) for first, line, second in _LINES if line == "--"]
    assert sorted(solid) == sorted(keys)


@pytest.mark.parametrize("table", sorted(_ENTITIES))
def test_drawn_columns_are_the_tables_own(catalog: psycopg.Connection, table: str) -> None:
    columns = dict(
        catalog.execute(
            "select a.attname, exists ("
            "     select from pg_index as i where i.indrelid = a.attrelid and i.indisprimary"
            "     and a.attnum = any(i.indkey))"
            " from pg_attribute as a where a.attrelid = %s::regclass and a.attnum > 0"
            " and not a.attisdropped",
            [f"counterfoil.{table}"],
        ).fetchall()
    )
    drawn = {name for name, _ in _ENTITIES[table]}
    assert drawn <= columns.keys()
    primary = {name for name, mark in _ENTITIES[table] if mark == "PK"}
    assert primary == {name for name, is_key in columns.items() if is_key}
