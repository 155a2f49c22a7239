"""Admission and claims: against bare inserts, against the backlog, between orgs, and idle."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections.abc import Callable
from dataclasses import replace

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.clients import Result, Tally, run_clients
from benchmarks.server import empty_tables
from counterfoil.worker import Worker

SECONDS = 6.0


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


def fill(dsn: str, runs: int, org: str = "bench") -> None:
    """Admit ``runs`` runs of one org."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for first in range(0, runs, 10_000):
            batch = [launch(org, f"{org}-{i:08d}") for i in range(first, min(first + 10_000, runs))]
            connection.execute(
                "select count(*) from counterfoil.admit_launches(%s)", (Jsonb(batch),)
            )


def claim_latency(dsn: str, queued: int, claims: int = 400) -> float:
    """The 99th percentile of claims of one run with ``queued`` runs waiting, in milliseconds."""
    empty_tables(dsn)
    fill(dsn, queued)
    spent = []
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as connection:
        connection.execute("vacuum analyze")
        for _ in range(claims):
            started = time.perf_counter()
            connection.execute(
                "select run_id from counterfoil.claim_attempts('bench', 1, 300, '{bench}', null)"
            )
            spent.append(time.perf_counter() - started)
    return 1000 * sorted(spent)[int(0.99 * len(spent))]


def fairness(dsn: str, queued: int) -> int:
    """The claim with which the last run of 100 orgs of 10 starts, beside an org of ``queued``."""
    empty_tables(dsn)
    fill(dsn, queued)
    for number in range(100):
        fill(dsn, 10, f"small-{number:03d}")
    claimed = last = small = 0
    with psycopg.connect(dsn, autocommit=True) as connection:
        while small < 1_000:
            rows = connection.execute(
                "select org_id from counterfoil.claim_attempts('bench', 10, 300, '{bench}', null)"
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
