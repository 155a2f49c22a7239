"""What a kit reads from the tables, and the times that it moves there.

A test may look behind the functions; nothing else does.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import timedelta
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from counterfoil.testing.outcome import Fact, LogLine, Outcome, StepOutcome
from counterfoil.testing.process import Record

Rows = list[dict[str, Any]]
Connection = psycopg.Connection[Any]


def unsettled(connection: Connection, plays: Sequence[str]) -> list[str]:
    """Ids of runs that a worker has, would claim now or in a moment, or has to end, since their
    deadline has passed; and names of schedules that are due."""
    return [
        row["name"]
        for row in _rows(
            connection,
            "select r.run_id as name from counterfoil.runs as r"
            " left join counterfoil.run_queue as q on q.org_id = r.org_id and q.run_id = r.run_id"
            " where r.ended_at is null and (r.deadline_at <= clock_timestamp()"
            " or r.play_name = any(%s) and (r.status = 'running'"
            " or q.state in ('ready', 'sleeping')"
            " and q.ready_at <= clock_timestamp() + interval '0.2 seconds'))"
            " union all select s.name from counterfoil.schedules as s"
            " where s.look_at <= clock_timestamp()",
            list(plays),
        )
    ]


def unended(connection: Connection) -> bool:
    """Whether any run has not ended."""
    return bool(
        _rows(connection, "select 1 as one from counterfoil.runs where ended_at is null limit 1")
    )


def lapse(connection: Connection, workers: Iterable[str]) -> None:
    """Let every lease of those workers have run out, on runs and on their steps."""
    dead = list(workers)
    if not dead:
        return
    connection.execute(
        "update counterfoil.step_receipts as s set lease_expires_at = now() - interval '1 second'"
        " from counterfoil.attempts as a where a.org_id = s.org_id and a.run_id = s.run_id"
        " and a.status = 'running' and a.worker = any(%s) and s.lease_expires_at is not null",
        [dead],
    )
    connection.execute(
        "update counterfoil.attempts as a set lease_expires_at = now() - interval '1 second'"
        " where a.worker = any(%s) and a.status = 'running'",
        [dead],
    )


def cut(connection: Connection, application_name: str) -> None:
    """End the database sessions of a process that died, and wait until they are gone."""
    connection.execute(
        "select pg_terminate_backend(a.pid, 5000) from pg_stat_activity as a"
        " where a.application_name = %s and a.datname = current_database()",
        [application_name],
    )


def shift(connection: Connection, duration: timedelta) -> None:
    """Move every time of every run back by ``duration``."""
    columns = _rows(
        connection,
        "select c.table_name, array_agg(c.column_name::text) as names"
        " from information_schema.columns as c join information_schema.tables as t"
        " on t.table_schema = c.table_schema and t.table_name = c.table_name"
        " where c.table_schema = 'counterfoil' and t.table_type = 'BASE TABLE'"
        " and c.data_type = 'timestamp with time zone' and c.table_name not like 'schema\\_%%'"
        " group by c.table_name",
    )
    with connection.transaction():
        for table in columns:
            connection.execute(
                sql.SQL("update counterfoil.{} set {}").format(
                    sql.Identifier(table["table_name"]),
                    sql.SQL(", ").join(
                        sql.SQL("{0} = {0} - {1}").format(sql.Identifier(name), duration)
                        for name in table["names"]
                    ),
                )
            )


def outcome(
    connection: Connection,
    org_id: str,
    document: Mapping[str, Any],
    killed: Iterable[str],
    record: Record,
) -> Outcome:
    """The run of ``get_run``'s document with its steps, facts, log and ledger."""
    run = (org_id, document["runId"])
    attempts = document["attempts"]
    facts = _rows(
        connection,
        "select o.seq, o.event_type, o.payload from counterfoil.outbox as o"
        " where o.org_id = %s and o.run_id = %s order by o.seq",
        *run,
    )
    return Outcome(
        run_id=document["runId"],
        status=document["status"],
        result=document["result"],
        error=document.get("error"),
        attempts=len(attempts),
        killed=document["status"] == "running" and attempts[-1]["worker"] in set(killed),
        waits_for=document.get("waitEvent") if document["status"] == "waiting" else None,
        steps=_steps(connection, run, document["playName"], record),
        facts=[Fact(row["seq"], row["event_type"], row["payload"]) for row in facts],
        log=_log(connection, run),
        ledger=[
            row["event"]
            for row in _rows(
                connection,
                "select e.event from counterfoil.read_run_events(%s, %s, 0, 1000) as e",
                *run,
            )
        ],
    )


def _steps(
    connection: Connection, run: tuple[str, str], play: str, record: Record
) -> list[StepOutcome]:
    own = f"{play}:{run[1]}:"
    found = _rows(
        connection,
        "select s.key, s.status, s.output, s.error from counterfoil.step_receipts as s"
        " where s.org_id = %s and s.run_id = %s order by s.created_at, s.key",
        *run,
    )
    return [
        StepOutcome(
            name=record.names.get(row["key"]) or row["key"].removeprefix(own).split(":")[0],
            calls=record.calls[row["key"]],
            **row,
        )
        for row in found
    ]


def _log(connection: Connection, run: tuple[str, str]) -> list[LogLine]:
    found = _rows(
        connection,
        "select j.line, j.context from counterfoil.run_journal as j"
        " where j.org_id = %s and j.run_id = %s and j.channel = 'log' order by j.position",
        *run,
    )
    return [LogLine(row["line"], row["context"] or {}) for row in found]


def _rows(connection: Connection, query: str, *parameters: object) -> Rows:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(query.encode(), parameters or None).fetchall()
