"""Lifecycle deliveries while the search lane is empty, far behind, and worked on meanwhile."""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Callable

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.clients import Client, Tally, run_clients
from benchmarks.delivery import ORG, make_runs
from benchmarks.server import empty_tables

RUNS = 1_000
SECONDS = 8.0
_LATEST = (
    "select o.org_id, o.run_id, max(o.seq) as last_seq"
    " from counterfoil.outbox as o group by o.org_id, o.run_id"
)


def load_search_facts(dsn: str, facts: int) -> None:
    """``facts`` pending facts in the search lanes of ``RUNS`` runs, which have started."""
    empty_tables(dsn)
    make_runs(dsn, RUNS)
    each = facts // RUNS
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists public.bench_lanes")
        connection.execute(
            "create table public.bench_lanes as select r.org_id, r.run_id, r.last_seq + 1 as first,"
            f" r.last_seq + %s as last from ({_LATEST}) as r",
            (each,),
        )
        connection.execute(
            "insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane,"
            " deferred, payload, delivery_key, created_at)"
            " select r.org_id, r.run_id, r.last_seq + n, r.run_id || '-s' || n, 'runner.logs',"
            " 'search', true, jsonb_build_object('searchOnly', true, 'deferredProjection', true,"
            " 'lines', jsonb_build_array('row ' || n || ' of the sheet')), gen_random_uuid(), now()"
            f" from ({_LATEST}) as r cross join generate_series(1, %s) as n",
            (each,),
        )
        connection.execute("drop table if exists public.bench_journal, public.bench_outbox")
        connection.execute(
            "create table public.bench_journal (like counterfoil.run_journal including all)"
        )
        connection.execute(
            "create table public.bench_outbox as select o.org_id, o.run_id, o.seq, o.payload,"
            " false as done from counterfoil.outbox as o where o.lane = 'search' limit 100000"
        )
        connection.execute("create index on public.bench_outbox (run_id) where not done")
        connection.execute("vacuum analyze")


def set_backlog(dsn: str, *, behind: bool) -> None:
    """Put the search lanes behind by what `load_search_facts` wrote, or take them away."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "truncate counterfoil.lanes, counterfoil.run_journal, counterfoil.deliveries"
        )
        connection.execute(
            "update counterfoil.outbox set deferred = true, payload_digest = null,"
            " payload = payload || '{\"deferredProjection\": true}'"
            " where lane = 'search' and not deferred"
        )
        if behind:
            connection.execute(
                "insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq,"
                " tail_seq) select b.org_id, b.run_id, 'search', 3, now(), b.first, b.last"
                " from public.bench_lanes as b"
            )
        connection.execute("vacuum analyze counterfoil.lanes")
        connection.execute("checkpoint")


def delivery_p99(dsn: str, *beside: Client) -> float:
    """Milliseconds from an appended fact to its acknowledgement, p99; HTTP left out."""
    return run_clients(dsn, [_deliverer, *beside], SECONDS).milliseconds("delivery", 0.99)


def _deliverer(
    connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
) -> None:
    chosen = random.Random(number)
    while going():
        run = f"run-{chosen.randrange(RUNS):08d}"
        started = time.perf_counter()
        connection.execute(
            "select recorded from counterfoil.append_fact(%s, %s, %s, 'run.progress', %s)",
            (ORG, run, str(uuid.uuid4()), Jsonb({"done": 1})),
        )
        rows = connection.execute(
            "select org_id, run_id, seq from counterfoil.claim_deliveries(p_lease_owner => 'one')"
        ).fetchall()
        connection.execute(
            "select acknowledged from counterfoil.acknowledge_deliveries("
            "%s, %s, 'lifecycle', %s, 'one')",
            ([rows[0][0]], [rows[0][1]], [rows[-1][2]]),
        )
        tally.timed("delivery", started)
        tally.units += 1


def stranger(
    connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
) -> None:
    """Somebody who writes and commits what a projector would, into tables of his own."""
    chosen = random.Random()  # no place twice, round after round
    while going():
        run = f"run-{chosen.randrange(RUNS):08d}"
        connection.execute(
            "with entry as (insert into public.bench_journal (org_id, run_id, identity, channel,"
            " position, producer_attempt, occurred_at, line, content_digest, event_id, recorded_at,"
            " terms) select %s, %s, %s, 'log', %s, 1, now(), 'row 1 of it', sha256('x'), 'e',"
            " now(), counterfoil.journal_terms(%s, %s, 'log', null, now(), 'row 1 of the sheet'))"
            " update public.bench_outbox as o set payload = o.payload, done = true"
            " where o.ctid = (select b.ctid from public.bench_outbox as b where b.run_id = %s"
            " and not b.done limit 1)",
            (ORG, run, str(uuid.uuid4()), chosen.randrange(2**40), ORG, run, run),
        )
        tally.units += 1


def projector(
    connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
) -> None:
    owner = f"projector-{number}"
    while going():
        rows = connection.execute(
            "select org_id, run_id, seq, event_id from counterfoil.claim_deliveries("
            "p_lease_owner => %s, p_max_runs => 4, p_lane => 'search',"
            " p_head_priority => 'oldest_ready')",
            (owner,),
        ).fetchall()
        for org, _, _, event in rows:
            connection.execute(
                "select counterfoil.materialize_runtime_outbox_event(%s, %s, %s) is null"
                " from pg_catalog.set_config('synchronous_commit', 'off', true)",
                (org, event, owner),
            )
        through = {(org, run): seq for org, run, seq, _ in rows}
        connection.execute(
            "select acknowledged from counterfoil.acknowledge_deliveries(%s, %s, 'search', %s, %s)",
            (
                [org for org, _ in through],
                [run for _, run in through],
                list(through.values()),
                owner,
            ),
        )
        tally.units += len(rows)
