"""The database's own collation decides nothing: ids are ordered by their bytes, everywhere."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from tests.servers.databases import install
from tests.servers.throwaway import ThrowawayServer

# By bytes: B, C, a. In English: a, B, C.
ORGS = ["a", "B", "C"]


@pytest.fixture
def english() -> Iterator[psycopg.Connection]:
    """A connection to a database that sorts as English does; the embedded server has no ICU."""
    with ThrowawayServer("15") as server:
        dsn = make_conninfo(server.dsn(), dbname="english")
        with psycopg.connect(server.dsn(), autocommit=True) as admin:
            admin.execute(
                "create database english template template0 locale_provider icu icu_locale 'en-US'"
            )
        install(dsn)
        with psycopg.connect(dsn, autocommit=True) as connection:
            yield connection


def admit(connection: psycopg.Connection, runs: int) -> None:
    """Launch that many runs in each org, named after it."""
    launches = [
        {
            "orgId": org,
            "runId": f"{org}-{number}",
            "playId": "p",
            "playName": "audit",
            "executorToken": "t",
            "baseUrl": "https://x.example",
        }
        for org in ORGS
        for number in range(runs)
    ]
    connection.execute("select * from counterfoil.admit_launches(%s)", [Jsonb(launches)])


def claim(connection: psycopg.Connection, limit: int) -> list[str]:
    """Claim as one worker; answers the orgs served, in order."""
    rows = connection.execute(
        "select c.org_id from counterfoil.claim_attempts('worker', %s, 60, null, null) as c",
        [limit],
    ).fetchall()
    return [org for (org,) in rows]


def test_orgs_take_turns_where_upper_and_lower_case_are_sorted_together(
    english: psycopg.Connection,
) -> None:
    admit(english, 6)
    served = [claim(english, 1) for _ in range(9)]
    assert served == [["B"], ["C"], ["a"]] * 3
    # More places than orgs, from every place in the ring.
    assert claim(english, 4) == ["B", "C", "a", "B"]
    assert sorted(claim(english, 9)) == ["B", "C", "C", "a", "a"]
    assert claim(english, 9) == []
