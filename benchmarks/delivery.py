"""The hot path: append, claim, freeze, prove, acknowledge, against the bare floor of the server."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable
from itertools import groupby
from typing import Any

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.clients import Client, Result, Tally, run_clients
from benchmarks.server import empty_tables

Prefix = list[tuple[Any, ...]]
"""The rows of one claimed prefix, as the claim answered them."""

ORG = "bench"
RUNS = 2000
SECONDS = 5.0


def floor(dsn: str, clients: int = 8) -> Result:
    """Bare updates of one row by its key, each a transaction: what the server gives at best."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists public.bench_floor")
        connection.execute(
            "create table public.bench_floor (id int primary key, n bigint not null) "
            "with (fillfactor = 50)"
        )
        connection.execute(
            "insert into public.bench_floor select i, 0 from generate_series(1, 10000) as i"
        )

    def client(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        chosen = random.Random(number)
        while going():
            connection.execute(
                "update public.bench_floor set n = n + 1 where id = %s",
                (chosen.randrange(10000) + 1,),
            )
            tally.units += 1

    return run_clients(dsn, [client] * clients, SECONDS)


def make_runs(dsn: str, runs: int, *, started: bool = True) -> None:
    """Admit `runs` runs; with `started`, claim them too and take their start facts as delivered."""
    launches = [
        {
            "orgId": ORG,
            "runId": f"run-{i:08d}",
            "playId": "bench",
            "playName": "bench",
            "executorToken": "none",
            "baseUrl": "http://127.0.0.1:1",
        }
        for i in range(runs)
    ]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for first in range(0, runs, 10000):
            connection.execute(
                "select count(*) from counterfoil.admit_launches(%s)",
                (Jsonb(launches[first : first + 10000]),),
            )
        if started:
            while connection.execute(
                "select from counterfoil.claim_attempts('bench', 1000, 300, '{bench}', null)"
            ).rowcount:
                pass
            connection.execute("truncate counterfoil.lanes")
        connection.execute("vacuum analyze")


def cycle(
    dsn: str,
    *,
    appenders: int = 8,
    dispatchers: int = 4,
    lanes: int = 32,
    batch: int = 1,
    freeze: bool = False,
    prove: bool = False,
) -> Result:
    """Append, claim and acknowledge side by side; units are facts acknowledged."""
    empty_tables(dsn)
    make_runs(dsn, RUNS)

    def appender(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        chosen = random.Random(number)
        while going():
            turn = chosen.randrange(RUNS)
            run = f"run-{turn:08d}"
            started = time.perf_counter()
            if batch == 1:
                connection.execute(
                    "select recorded from counterfoil.append_fact(%s, %s, %s, 'run.progress', %s)",
                    (ORG, run, str(uuid.uuid4()), Jsonb({"done": turn})),
                )
            else:
                facts = [
                    {
                        "eventId": str(uuid.uuid4()),
                        "eventType": "run.progress",
                        "payload": {"done": turn},
                    }
                    for _ in range(batch)
                ]
                connection.execute(
                    "select recorded from counterfoil.append_facts(%s, %s, %s)",
                    (ORG, run, Jsonb(facts)),
                )
            tally.timed("append", started)

    def dispatcher(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        owner = f"dispatcher-{number}"
        while going():
            started = time.perf_counter()
            rows = connection.execute(
                "select org_id, run_id, seq, event_id, events, idempotency_key "
                "from counterfoil.claim_deliveries(p_lease_owner => %s, p_max_runs => %s)",
                (owner, lanes),
            ).fetchall()
            tally.timed("claim", started)
            if not rows:
                # As a dispatcher does; spinning would take the appenders' processor.
                time.sleep(0.01)
                continue
            prefixes: list[Prefix] = [
                list(group) for _, group in groupby(rows, key=lambda row: row[:2])
            ]
            if freeze:
                _freeze(connection, owner, prefixes, tally)
            if prove:
                for prefix in prefixes:
                    started = time.perf_counter()
                    connection.execute(
                        "select * from counterfoil.assert_delivery(%s, %s, %s, %s, %s)",
                        (
                            *prefix[0][:2],
                            owner,
                            prefix[0][5],
                            Jsonb([event for row in prefix for event in row[4]]),
                        ),
                    )
                    tally.timed("prove", started)
            while prefixes:
                started = time.perf_counter()
                taken = connection.execute(
                    "select acknowledged from counterfoil.acknowledge_deliveries("
                    "%s, %s, 'lifecycle', %s, %s)",
                    (
                        [prefix[0][0] for prefix in prefixes],
                        [prefix[0][1] for prefix in prefixes],
                        [prefix[-1][2] for prefix in prefixes],
                        owner,
                    ),
                ).fetchall()
                tally.timed("acknowledge", started)
                answers = list(zip(prefixes, taken, strict=True))
                tally.units += sum(len(prefix) for prefix, (done,) in answers if done)
                # A lane that an append holds for the moment is passed over: again.
                prefixes = [prefix for prefix, (done,) in answers if not done]

    clients: list[Client] = [appender] * appenders + [dispatcher] * dispatchers
    return run_clients(dsn, clients, SECONDS)


def _freeze(
    connection: psycopg.Connection, owner: str, prefixes: list[Prefix], tally: Tally
) -> None:
    """Freeze the receipts of all prefixes in one call; again those that an append was holding."""
    waiting = prefixes
    while waiting:
        started = time.perf_counter()
        taken = connection.execute(
            "select renewed from counterfoil.renew_deliveries("
            "%s, %s, 'lifecycle', %s, %s, 30, true)",
            (
                [prefix[0][0] for prefix in waiting],
                [prefix[0][1] for prefix in waiting],
                [prefix[-1][2] for prefix in waiting],
                owner,
            ),
        ).fetchall()
        tally.timed("freeze", started)
        waiting = [prefix for prefix, (done,) in zip(waiting, taken, strict=True) if not done]


def claim_latency(dsn: str, pending: int, *, lanes: int = 1) -> Result:
    """Claim and acknowledge one at a time with `pending` runs waiting; units are facts."""
    empty_tables(dsn)
    make_runs(dsn, pending, started=False)

    def client(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        while going():
            started = time.perf_counter()
            rows = connection.execute(
                "select org_id, run_id, seq from counterfoil.claim_deliveries("
                "p_lease_owner => 'one', p_max_runs => %s)",
                (lanes,),
            ).fetchall()
            tally.timed("claim", started)
            started = time.perf_counter()
            connection.execute(
                "select acknowledged from counterfoil.acknowledge_deliveries("
                "%s, %s, 'lifecycle', %s, 'one')",
                ([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]),
            )
            tally.timed("acknowledge", started)
            tally.units += len(rows)
            if len(rows) < lanes:
                return

    return run_clients(dsn, [client], min(SECONDS, 5.0) if pending > 10000 else 2.0)
