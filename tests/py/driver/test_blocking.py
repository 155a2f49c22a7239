"""Statements from a thread that blocks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from counterfoil import Functions, NotFoundError
from counterfoil.blocking import AllBusyError, BlockingConnections, now

SELECT = "select %(a)s::text as a, %(b)s::integer as b, %(a)s::text[] as c, %(d)s::jsonb as d"


@pytest.fixture(params=[False, True], ids=["plain", "prepared"])
def connections(installed: str, request: pytest.FixtureRequest) -> Iterator[BlockingConnections]:
    found = BlockingConnections(
        installed, schema="counterfoil", most=1, application_name="test", prepare=request.param
    )
    yield found
    found.close()


def rows(connections: BlockingConnections, query: str, **parameters: Any) -> list[Any]:
    return now(connections.rows(dict, query, parameters))  # type: ignore[arg-type]


def test_rows_come_typed(connections: BlockingConnections) -> None:
    assert rows(connections, SELECT, a="{x}", b=2, d='{"n": 1.5}') == [
        {"a": "{x}", "b": 2, "c": ["x"], "d": {"n": 1.5}}
    ]
    assert rows(connections, "select %(a)s::text as a", a=None) == [{"a": None}]
    assert rows(connections, "select {schema}.schema_version() > %(a)s as ok", a=0) == [
        {"ok": True}
    ]


def test_refusals_are_the_drivers(connections: BlockingConnections) -> None:
    functions = Functions(connections)
    with pytest.raises(NotFoundError) as raised:
        now(functions.get_run("org", "none"))
    assert raised.value.reason == "run_not_found"
    with pytest.raises(psycopg.DataError, match="NUL"):
        rows(connections, "select %(a)s::text", a="a\0b")
    with pytest.raises(psycopg.errors.DivisionByZero):
        rows(connections, "select 1 / %(a)s as n", a=0)
    assert rows(connections, "select 1 as n") == [{"n": 1}], "the connection is good for more"


def test_one_in_use_is_not_shared(connections: BlockingConnections) -> None:
    held = connections._take()
    with pytest.raises(AllBusyError):
        rows(connections, "select 1 as n")
    connections._give_back(held)
    assert rows(connections, "select 1 as n") == [{"n": 1}]


def test_a_lost_connection_is_replaced(connections: BlockingConnections) -> None:
    with pytest.raises(psycopg.OperationalError):
        rows(connections, "select pg_terminate_backend(pg_backend_pid())")
    assert rows(connections, "select 1 as n") == [{"n": 1}]


def test_none_are_left_open(connections: BlockingConnections) -> None:
    rows(connections, "select 1 as n")
    held = connections._take()
    connections.close()
    assert not held.connection.closed
    connections._give_back(held)
    assert held.connection.closed
    with pytest.raises(AllBusyError):
        rows(connections, "select 1 as n")


def test_nothing_is_prepared_where_sessions_are_not_ones_own(installed: str) -> None:
    """As behind a transaction pooler that knows nothing of prepared statements."""
    connections = BlockingConnections(
        installed, schema="counterfoil", most=1, application_name="test", prepare=True
    )
    query = "select %(n)s::integer as n"
    try:
        assert rows(connections, query, n=1) == [{"n": 1}]
        prepared = "select count(*)::integer as n from pg_prepared_statements"
        assert rows(connections, prepared) == [{"n": 2}]
        with connections._free[0].connection.cursor() as another:
            another.execute("deallocate all")
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            rows(connections, query, n=2)
        assert rows(connections, query, n=3) == [{"n": 3}]
        assert rows(connections, prepared) == [{"n": 0}]
    finally:
        connections.close()


def test_a_call_that_waits_is_refused() -> None:
    with pytest.raises(RuntimeError, match="waits for an event loop"):
        now(asyncio.sleep(0, "done"))
