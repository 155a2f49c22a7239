"""Admission and claims: against bare inserts, against the backlog, between orgs, and idle."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

import psycopg
from psycopg.conninfo import make_conninfo
from psycopg.types.json import Jsonb

from benchmarks.clients import Result, Tally, run_clients
from benchmarks.server import empty_tables
from counterfoil import migrations
from counterfoil.worker import Worker

SECONDS = 6.0
_CLAIM = "select run_id from counterfoil.claim_attempts('bench', 1, 300, '{bench}', null)"


def launch(org: str, run: str) -> dict[str, str]:
    """A small launch document."""
    return {
        "orgId": org,
        "runId": run,
        "playId": "bench",
        "playName": "bench",
        "executorToken": "none",
        "baseUrl": "http://127.0.0.1:1",
    }


def floor(dsn: str, clients: int = 8) -> Result:
    """Two bare rows a transaction, keyed as a run and its launch are."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists public.bench_run, public.bench_launch")
        for table in ("bench_run", "bench_launch"):
            connection.execute(
                f"create table public.{table} (org_id text, run_id text, document jsonb, "
                "primary key (org_id, run_id))"
            )

    def client(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        while going():
            run = str(uuid.uuid4())
            connection.execute(
                "with r as (insert into public.bench_run values (%s, %s, null)) "
                "insert into public.bench_launch values (%s, %s, %s)",
                ("bench", run, "bench", run, Jsonb(launch("bench", run))),
            )
            tally.units += 1

    return run_clients(dsn, [client] * clients, SECONDS)


def single(dsn: str, clients: int = 8) -> Result:
    """One launch a call."""
    empty_tables(dsn)

    def client(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        while going():
            connection.execute(
                "select outcome from counterfoil.admit_launch(%s)",
                (Jsonb(launch("bench", str(uuid.uuid4()))),),
            )
            tally.units += 1

    return run_clients(dsn, [client] * clients, SECONDS)


def bulk(dsn: str, launches: int = 10_000) -> float:
    """Launches a second in one call of ``launches``, by one client."""
    empty_tables(dsn)
    document = Jsonb([launch("bench", f"run-{i:08d}") for i in range(launches)])
    with psycopg.connect(dsn, autocommit=True) as connection:
        started = time.perf_counter()
        connection.execute("select count(*) from counterfoil.admit_launches(%s)", (document,))
        return launches / (time.perf_counter() - started)


# What one queued run is made of, and what of it differs from run to run.
_COPIES = {
    "runs": "jsonb_build_object('run_id', i.id, 'root_run_id', i.id)",
    "launches": "jsonb_build_object('run_id', i.id)",
    "run_queue": "jsonb_build_object('run_id', i.id)",
    "outbox": "jsonb_build_object('run_id', i.id, 'event_id', 'run.created:' || gen_random_uuid(),"
    " 'delivery_key', gen_random_uuid())",
    "lanes": "jsonb_build_object('run_id', i.id)",
}


def fill(dsn: str, runs: int, org: str = "bench") -> None:
    """Queue ``runs`` runs of one org: one is admitted, the others are copies of its rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        first = Jsonb(launch(org, f"{org}-00000000"))
        connection.execute("select counterfoil.admit_launch(%s)", (first,))
        for table, differs in _COPIES.items():
            connection.execute(
                f"insert into counterfoil.{table} select n.* from counterfoil.{table} as r"
                " cross join (select r2.org || '-' || lpad(g::text, 8, '0') as id"
                " from (select %s::text as org) as r2, generate_series(1, %s) as g) as i"
                f" cross join lateral jsonb_populate_record(r, {differs}) as n"
                " where r.org_id = %s".encode(),
                (org, runs - 1, org),
            )


def claim_latencies(
    dsn: str, few: int = 1_000, many: int = 1_000_000, rounds: int = 3, claims: int = 1_000
) -> list[tuple[float, float]]:
    """The 99th percentiles of claims of one run, in milliseconds, by round: few and many queued.

    The two queues lie in two databases of one server, and their claims take turns, so that both
    meet with the same noise.
    """
    empty_tables(dsn)
    fill(dsn, many)
    small = make_conninfo(dsn, dbname="counterfoil_bench_few")
    percentiles = []
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as large_connection:
        large_connection.execute("drop database if exists counterfoil_bench_few")
        large_connection.execute("create database counterfoil_bench_few")
        migrations.migrate(small)
        large_connection.execute("vacuum analyze")
        for _ in range(rounds):
            empty_tables(small)
            # As many more as half of the claims, so that it is `few` on average.
            fill(small, few + claims // 2)
            spent: tuple[list[float], list[float]] = ([], [])
            with psycopg.connect(small, autocommit=True, prepare_threshold=1) as small_connection:
                small_connection.execute("vacuum analyze")
                for _ in range(claims):
                    for connection, times in zip(
                        (small_connection, large_connection), spent, strict=True
                    ):
                        started = time.perf_counter()
                        connection.execute(_CLAIM)
                        times.append(time.perf_counter() - started)
            at = int(0.99 * claims)
            percentiles.append((1000 * sorted(spent[0])[at], 1000 * sorted(spent[1])[at]))
        large_connection.execute("drop database counterfoil_bench_few")
    return percentiles


def fairness(dsn: str) -> int:
    """The claim with which the last run of 100 orgs of 10 starts, beside what is queued already."""
    for number in range(100):
        fill(dsn, 10, f"small-{number:03d}")
    claimed = last = small = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        while small < 1_000:
            rows = connection.execute(
                "select org_id from counterfoil.claim_attempts('fair', 10, 300, '{bench}', null)"
            ).fetchall()
            for (org,) in rows:
                claimed += 1
                if org != "bench":
                    small, last = small + 1, claimed
    return last


def idle(dsn: str, polls: int = 720, poll_seconds: float = 0.05) -> tuple[float, int]:
    """Queries a poll interval of an idle worker, and bytes by which the schema grew.

    720 polls are an hour at the default of five seconds.
    """
    empty_tables(dsn)
    worker = Worker(dsn, concurrency=1)
    worker.play("bench")(lambda run, given: None)
    worker.configure(settings=replace(worker.settings, poll_seconds=poll_seconds))
    size = (
        "select sum(pg_total_relation_size(c.oid))::bigint from pg_class as c "
        "where c.relnamespace = 'counterfoil'::regnamespace and c.relkind = 'r'"
    )
    calls = (
        "select sum(xact_commit + xact_rollback)::bigint from pg_stat_database "
        "where datname = current_database()"
    )

    async def measure() -> tuple[float, int]:
        with psycopg.connect(dsn, autocommit=True) as connection:

            def ask(statement: str) -> int:
                row = connection.execute(statement).fetchone()
                assert row is not None
                return int(row[0])

            serving = asyncio.create_task(worker.serve())
            await asyncio.sleep(2)
            grown, made = ask(size), ask(calls)
            started = time.perf_counter()
            await asyncio.sleep(polls * poll_seconds)
            # Statistics of a session are told about once a second.
            made = ask(calls) - made - 2
            passed = time.perf_counter() - started
            grown = ask(size) - grown
            worker.stop()
            await serving
            return made / (passed / poll_seconds), grown

    return asyncio.run(measure())
