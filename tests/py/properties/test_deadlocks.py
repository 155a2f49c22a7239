"""No two public functions can wait for each other (SPEC 2.5)."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import psycopg
import pytest
from psycopg.pq import ExecStatus, PGconn

from tests.py.properties import lock_scene
from tests.py.properties.lock_order import LockOrder

DEADLOCK = "40P01"


@pytest.fixture
def sessions(installed: str) -> Iterator[list[psycopg.Connection]]:
    """Three sessions on the scene that find a deadlock quickly."""
    opened = [psycopg.connect(installed, autocommit=True) for _ in range(3)]
    lock_scene.build(opened[0])
    for number, session in enumerate(opened):
        if number:
            session.execute(lock_scene.HELPERS.encode())
        session.execute("set deadlock_timeout = '20ms'")
        session.execute("set lock_timeout = '20s'")
    yield opened
    for session in opened:
        session.close()


def test_every_public_function_that_may_lock_is_called(
    sessions: list[psycopg.Connection],
) -> None:
    found = [row[0] for row in sessions[0].execute(lock_scene.PUBLIC_FUNCTIONS.encode())]
    assert found == sorted(lock_scene.CALLS)
    assert sessions[0].execute(lock_scene.LOCKING_READERS.encode()).fetchall() == []


def test_each_call_does_something_in_the_scene(sessions: list[psycopg.Connection]) -> None:
    for call in lock_scene.statements():
        with sessions[0].transaction(force_rollback=True):
            sessions[0].execute(call.encode())


def test_calls_lock_rows_in_one_order(sessions: list[psycopg.Connection]) -> None:
    order = LockOrder(*sessions)
    stops = [stop for call in lock_scene.statements() for stop in order.stops(call)]
    assert sum(1 for stop in stops if stop.held) > 50
    deadlocks = [
        f"{one}; {other}"
        for one, other in itertools.combinations_with_replacement(stops, 2)
        if one.against(other)
    ]
    assert deadlocks == []


def test_no_pair_of_calls_that_lock_deadlocks_in_either_order(
    sessions: list[psycopg.Connection],
) -> None:
    order = LockOrder(*sessions)
    calls = [
        f"rollback; begin; {statement}; rollback".encode()
        for statement in map(lock_scene.statement, lock_scene.CALLS)
        if order.locked_by(statement)
    ]
    assert len(calls) > 40
    one, other = sessions[0].pgconn, sessions[1].pgconn
    deadlocks = []
    for first, second in itertools.product(calls, repeat=2):
        one.send_query(first)
        other.send_query(second)
        if DEADLOCK in _errors(one) + _errors(other):
            deadlocks.append((first, second))
    assert deadlocks == []


def _errors(connection: PGconn) -> list[str]:
    found = []
    while (result := connection.get_result()) is not None:
        if result.status == ExecStatus.FATAL_ERROR:
            found.append((result.error_field(67) or b"").decode())
    return found
