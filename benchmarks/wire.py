"""Whole runs on their way to the ledger: one dispatcher, one gateway, real HTTP between them."""

from __future__ import annotations

import asyncio
import statistics
import time
from collections import defaultdict
from dataclasses import dataclass

import psycopg
from psycopg.types.json import Jsonb

from benchmarks import gateway
from benchmarks.server import empty_tables
from counterfoil.database import Database
from counterfoil.delivering.deliveries import DeliveryReport
from counterfoil.dispatcher import Dispatcher
from counterfoil.settings import Secret, Settings

RUNS = 300
FACTS = 8
"""Facts of a run between its start and its end."""


@dataclass(frozen=True)
class Delivered:
    """What was delivered a second, and the milliseconds of a delivery by step: median and p99."""

    facts: float
    runs: float
    deliveries: int
    steps: dict[str, tuple[float, float]]


def deliver(dsn: str, *, concurrency: int = 16) -> Delivered:
    """Deliver `RUNS` runs that have ended, each with its start facts, `FACTS` more and its end."""
    empty_tables(dsn)
    with gateway.serving(dsn) as (url, _):
        _make_runs(dsn, url)
        return asyncio.run(_deliver(dsn, url, concurrency))


async def _deliver(dsn: str, url: str, concurrency: int) -> Delivered:
    reports: list[DeliveryReport] = []
    settings = Settings(
        dsn=dsn,
        base_url=url,
        signing_keys=(("k", Secret(gateway.KEY)),),
        concurrency=concurrency,
        projector=False,
    )
    async with Database(dsn, max_size=concurrency) as database:
        dispatcher = Dispatcher(database, settings, observer=reports.append)
        started = time.perf_counter()
        task = asyncio.create_task(dispatcher.run())
        while sum(len(report.acknowledged) for report in reports) < RUNS * (FACTS + 3):
            await asyncio.sleep(0.01)
            if task.done():
                break
        elapsed = time.perf_counter() - started
        dispatcher.stop()
        await task
    steps: defaultdict[str, list[float]] = defaultdict(list)
    for report in reports:
        for name, spent in report.milliseconds.items():
            steps[name].append(spent)
    return Delivered(
        sum(len(report.acknowledged) for report in reports) / elapsed,
        RUNS / elapsed,
        len(reports),
        {
            name: (statistics.median(spent), sorted(spent)[int(0.99 * len(spent))])
            for name, spent in steps.items()
        },
    )


def _make_runs(dsn: str, url: str) -> None:
    launches = [
        {
            "orgId": "bench",
            "runId": f"run-{number}",
            "playId": "bench",
            "playName": "bench",
            "executorToken": "none",
            "baseUrl": url,
        }
        for number in range(RUNS)
    ]
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select from counterfoil.admit_launches(%s)", (Jsonb(launches),))
        attempts = connection.execute(
            "select c.run_id, c.attempt, c.lease_id from counterfoil.claim_attempts("
            "'bench', %s, 300, '{bench}', null) as c",
            (RUNS,),
        ).fetchall()
        for run, attempt, lease in attempts:
            facts = [
                {
                    "eventId": f"{run}-{number}",
                    "eventType": "run.progress",
                    "payload": {"done": number},
                }
                for number in range(FACTS)
            ]
            connection.execute(
                "select from counterfoil.append_facts('bench', %s, %s)", (run, Jsonb(facts))
            )
            connection.execute(
                "select from counterfoil.complete_attempt('bench', %s, %s, %s, '{}')",
                (run, attempt, lease),
            )
