"""What a worker that is to be killed has in hand, seen from the database.

A statement that a worker has sent goes on without it, and may still end a run. So what is to be
taken over is counted only when its sessions are quiet, and again when they are gone.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import LiteralString

import psycopg
from psycopg import sql

PATIENCE_SECONDS = 10.0
"""How long statements of a worker that says nothing any more may take to end."""
_PAUSE = 0.05

# Workers in the midst of a run, with how many of its steps they have done.
_AT_WORK: LiteralString = """
select a.worker, count(r.key) as steps
from {schema}.attempts as a
left join {schema}.step_receipts as r
    on r.org_id = a.org_id and r.run_id = a.run_id and r.run_attempt = a.attempt
    and r.status = 'completed'
where a.org_id = %(org)s and a.status = 'running' and a.worker = any(%(workers)s)
group by a.worker
order by count(r.key) desc
"""

_SESSIONS: LiteralString = """
select count(*), count(*) filter (where s.state <> 'idle')
from pg_catalog.pg_stat_activity as s
where s.datname = pg_catalog.current_database() and s.application_name = %(application)s
"""


@dataclass(frozen=True)
class Killing:
    """Which worker was killed, and how many steps of unfinished runs it had done."""

    worker: str
    steps: int


def at_work(
    connection: psycopg.Connection, schema: str, org: str, workers: list[str]
) -> list[Killing]:
    """Those of ``workers`` that have runs in hand, the one with the most steps to lose first."""
    query = sql.SQL(_AT_WORK).format(schema=sql.Identifier(schema))
    rows = connection.execute(query, {"org": org, "workers": workers}).fetchall()
    return [Killing(str(worker), int(steps)) for worker, steps in rows]


def wait_until_quiet(connection: psycopg.Connection, worker: str) -> None:
    """Return when two looks in a row find no session of the worker executing anything."""
    quiet = 0
    deadline = time.monotonic() + PATIENCE_SECONDS
    while quiet < 2 and time.monotonic() < deadline:
        time.sleep(_PAUSE)
        _, active = _sessions(connection, worker)
        quiet = quiet + 1 if active == 0 else 0


def wait_until_gone(connection: psycopg.Connection, worker: str) -> None:
    """Return when the worker has no session any more: nothing of it can be committed now."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while _sessions(connection, worker)[0] > 0 and time.monotonic() < deadline:
        time.sleep(_PAUSE)


def _sessions(connection: psycopg.Connection, worker: str) -> tuple[int, int]:
    """(Sessions of the worker, those of them that execute something)."""
    parameters = {"application": f"counterfoil worker {worker}"}
    row = connection.execute(_SESSIONS, parameters).fetchone()
    assert row is not None  # noqa: S101 - an aggregate has one row
    return int(row[0]), int(row[1])
