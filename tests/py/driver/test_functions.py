"""Each method of Functions is one stored function, by its argument names, types and columns."""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from pathlib import Path
from typing import Any, LiteralString, TypeVar

import psycopg
import pytest
from psycopg import sql

from counterfoil.functions import Functions
from counterfoil.json_text import JsonText

Row = TypeVar("Row")
SQL = Path(__file__).parents[3] / "sql"

METHODS = [
    name
    for name, _ in inspect.getmembers(Functions, inspect.iscoroutinefunction)
    if not name.startswith("_")
]


class Captured(Exception):
    """Raised instead of running a statement."""

    def __init__(self, row: type[object], statement: str, parameters: Mapping[str, object]) -> None:
        super().__init__(statement)
        self.row = row
        self.statement = statement
        self.parameters = parameters


class Capture:
    """Takes the statement that a method would run."""

    async def rows(
        self,
        row: type[Row],
        statement: LiteralString,
        parameters: Mapping[str, object],
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]:
        raise Captured(row, statement, parameters)


async def capture(name: str) -> Captured:
    method = getattr(Functions(Capture()), name)
    required = [
        parameter
        for parameter in inspect.signature(method).parameters.values()
        if parameter.default is parameter.empty
    ]
    samples: dict[str, Any] = {"JsonValue": JsonText("{}"), "bool": True, "int": 1}
    arguments = [
        samples.get(str(p.annotation), [] if "Sequence" in str(p.annotation) else "x")
        for p in required
    ]
    with pytest.raises(Captured) as caught:
        await method(*arguments)
    return caught.value


@pytest.mark.parametrize("name", METHODS)
async def test_the_statement_fits_the_schema(name: str, installed_template: str) -> None:
    captured = await capture(name)
    with psycopg.connect(installed_template, cursor_factory=psycopg.ClientCursor) as connection:
        statement = sql.SQL(captured.statement).format(schema=sql.Identifier("counterfoil"))
        # A view is checked and never run: names, types and columns must all be right.
        nothing = dict.fromkeys(captured.parameters)
        connection.execute(sql.SQL("create temporary view v as ") + statement, nothing)
        cursor = connection.execute("select * from v limit 0")
        assert cursor.description is not None
        columns = {column.name for column in cursor.description}
        connection.rollback()
    assert is_dataclass(captured.row)
    wanted = {field.name for field in fields(captured.row)}
    optional = {field.name for field in fields(captured.row) if field.default is not MISSING}
    assert columns <= wanted
    assert wanted - columns <= optional


@pytest.mark.parametrize("name", METHODS)
async def test_the_statement_calls_the_function_of_the_same_name(name: str) -> None:
    captured = await capture(name)
    assert "{schema}." + name + "(" in captured.statement


def test_every_granted_function_has_a_method() -> None:
    rooms = tomllib.loads((SQL / "grants.toml").read_text())
    granted = {name for functions in rooms.values() for name, roles in functions.items() if roles}
    assert granted == set(METHODS)
