"""A day of traffic with retention on: whether tables and indexes stop growing.

An hour is a few seconds here, and so are the times that things are kept: real rows grow old, go by
`maintain`, and their place is used again. Autovacuum looks once a second instead of once a minute.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

import psycopg

from benchmarks.server import empty_tables

TABLES = (
    "outbox",
    "deliveries",
    "run_journal",
    "ledger_events",
    "ledgers",
    "runs",
    "step_receipts",
    "lanes",
)
KEPT_HOURS = {
    "log_retention": 2,
    "outbox_retention": 4,
    "journal_retention": 6,
    "receipt_retention": 6,
    "ledger_retention": 8,
}
_TRAFFIC = Path(__file__).with_name("traffic.sql")


@dataclass(frozen=True)
class Hour:
    """Sizes at the end of an hour: megabytes by table, with indexes, and of all indexes alone."""

    megabytes: dict[str, float]
    indexes: float
    runs: int
    behind_seconds: float
    """How far the traffic was behind its time: what is kept is then kept for shorter."""

    @property
    def total(self) -> float:
        """All tables with their indexes."""
        return sum(self.megabytes.values())


def day(dsn: str, *, hours: int = 24, hour_seconds: float = 6.0, runs: int = 300) -> list[Hour]:
    """``hours`` hours of ``runs`` runs each, with retention after every tenth of an hour."""
    empty_tables(dsn)
    found = []
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("alter system set autovacuum_naptime = '1s'")
        connection.execute("select pg_reload_conf()")
        connection.execute(_TRAFFIC.read_bytes())
        for name, kept in KEPT_HOURS.items():
            # Below what set_setting() allows: nobody keeps things for seconds but here.
            connection.execute(
                "update counterfoil.settings set value = to_jsonb(%s::integer),"
                " changed_at = now(), changed_by = 'bench' where name = %s",
                (round(kept * hour_seconds), name),
            )
        started = time.monotonic()
        for hour in range(1, hours + 1):
            for part in range(10):
                connection.execute(
                    "call public.bench_traffic(%s, %s)", (f"{hour}-{part}", runs // 10)
                )
                while _more(connection):
                    pass
                behind = started + (hour - 1 + (part + 1) / 10) * hour_seconds - time.monotonic()
                if behind > 0:
                    time.sleep(behind)
            found.append(_sizes(connection, max(0.0, -behind)))
        connection.execute("drop procedure public.bench_traffic")
        connection.execute(
            "update counterfoil.settings set value = null, changed_at = null, changed_by = null"
        )
        connection.execute("alter system reset autovacuum_naptime")
        connection.execute("select pg_reload_conf()")
    return found


def _more(connection: psycopg.Connection) -> bool:
    row = connection.execute("select (counterfoil.maintain(1000) ->> 'more')::boolean").fetchone()
    assert row is not None
    return bool(row[0])


def _sizes(connection: psycopg.Connection, behind_seconds: float) -> Hour:
    rows = connection.execute(
        "select n.name, pg_total_relation_size(('counterfoil.' || n.name)::regclass) / 1048576.0,"
        " pg_indexes_size(('counterfoil.' || n.name)::regclass) / 1048576.0"
        " from unnest(%s::text[]) as n (name)",
        (list(TABLES),),
    ).fetchall()
    count = connection.execute("select count(*) from counterfoil.runs").fetchone()
    assert count is not None
    return Hour(
        {name: float(size) for name, size, _ in rows},
        sum(float(size) for _, _, size in rows),
        int(count[0]),
        behind_seconds,
    )
