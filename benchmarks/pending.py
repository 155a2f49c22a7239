"""Claims beside many pending runs, and from a run with many pending facts."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

import psycopg

from benchmarks.clients import Result, Tally, run_clients
from benchmarks.server import empty_tables

ORG = "bench"
SECONDS = 3.0
_FACTS = (
    "insert into counterfoil.outbox (org_id, run_id, seq, event_id, event_type, lane, deferred,"
    " payload, delivery_key, created_at) select %(org)s, "
)
_REST = (
    " 'lifecycle', false, '{\"done\": 1}', gen_random_uuid(), now()"
    " from generate_series(1, %(count)s) as i"
)
_LANE = (
    "insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq, tail_seq) "
)
_CLAIM = "select count(*) from counterfoil.claim_deliveries(p_lease_owner => "
CALLS = {
    "claim of 1 lane": f"{_CLAIM} 'one')",
    "claim of 32 lanes": f"{_CLAIM} 'many', p_max_runs => 32)",
    "claim of 32 lanes, the oldest": f"{_CLAIM} 'old', p_max_runs => 32, "
    "p_head_priority => 'oldest_ready')",
    "claim of 32 lanes of one org": f"{_CLAIM} 'org', p_max_runs => 32, p_org_id => 'bench')",
    "freeze of 32 lanes": "select count(*) from counterfoil.renew_deliveries("
    "%(orgs)s, %(runs)s, 'lifecycle', %(seqs)s, 'many', 30, true)",
    "acknowledgement of 32 lanes": "select count(*) from counterfoil.acknowledge_deliveries("
    "%(orgs)s, %(runs)s, 'lifecycle', %(seqs)s, 'many')",
    "question when something is due": "select counterfoil.next_delivery_due_at('lifecycle')",
}
"""The calls whose pages are counted, in this order, in one transaction."""


def load(dsn: str, runs: int, facts: int) -> None:
    """``runs`` runs with a fact each, and the run ``long`` with ``facts``; none is pending yet."""
    empty_tables(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        # Rows as admission and appends leave them; runs and their keys play no part in a claim.
        connection.execute("set session_replication_role = replica")
        connection.execute(
            "insert into counterfoil.launches (org_id, run_id, launch, dispatch_authority)"
            " select %s, 'run-' || i, '{}', jsonb_build_object('runId', i)"
            " from generate_series(1, %s) as i",
            (ORG, runs),
        )
        connection.execute(
            _FACTS + "'run-' || i, 1, 'f' || i, 'run.created'," + _REST,
            {"org": ORG, "count": runs},
        )
        connection.execute(
            _FACTS + "'long', 2 + i, 'l' || i, 'run.progress'," + _REST,
            {"org": ORG, "count": facts},
        )
        connection.execute("vacuum analyze")


def set_pending(dsn: str, runs: int) -> None:
    """Let the first facts of so many runs be pending, and nothing else."""
    _set_lanes(
        dsn,
        "select %s, 'run-' || i, 'lifecycle', 0, now() - make_interval(secs => i), 1, 1"
        " from generate_series(1, %s) as i",
        (ORG, runs),
    )


def set_long(dsn: str, facts: int) -> None:
    """Let so many facts of the run ``long`` be pending, and nothing else."""
    _set_lanes(dsn, "values (%s, 'long', 'lifecycle', 3, now(), 3, %s)", (ORG, 2 + facts))


def _set_lanes(dsn: str, rows: str, parameters: tuple[object, ...]) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("truncate counterfoil.lanes, counterfoil.deliveries")
        connection.execute(_LANE + rows, parameters)  # type: ignore[arg-type]
        connection.execute("vacuum analyze counterfoil.lanes")
        connection.execute("checkpoint")


def claim_latency(dsn: str, *, lanes: int) -> Result:
    """Claim and acknowledge, one call after the other; units are facts."""

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
            if len(rows) < lanes:
                return
            tally.timed("claim", started)
            connection.execute(
                "select acknowledged from counterfoil.acknowledge_deliveries("
                "%s, %s, 'lifecycle', %s, 'one')",
                ([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows]),
            )
            tally.units += len(rows)

    return run_clients(dsn, [client], SECONDS)


def long_latency(dsn: str) -> Result:
    """Claim the prefix of the run ``long`` and give it back, over and over."""

    def client(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        while going():
            started = time.perf_counter()
            rows = connection.execute(
                "select event_id from counterfoil.claim_deliveries(p_lease_owner => 'one')"
            ).fetchall()
            tally.timed("claim", started)
            connection.execute(
                "select * from counterfoil.release_delivery(%s, 'long', %s, 'one')",
                (ORG, [row[0] for row in rows]),
            )

    return run_clients(dsn, [client], SECONDS)


def buffers(dsn: str, names: Sequence[str] = tuple(CALLS)) -> dict[str, int]:
    """Pages that the `CALLS` of these names touch (`explain (analyze, buffers)`), rolled back."""
    touched: dict[str, int] = {}
    with psycopg.connect(dsn) as connection:
        for _ in range(2):  # the first pass reads the catalog and plans
            for name in names:
                held = connection.execute(
                    "select array_agg(l.org_id), array_agg(l.run_id), array_agg(l.head_seq)"
                    " from counterfoil.lanes as l where l.lease_owner = 'many'"
                ).fetchone()
                answer = connection.execute(
                    f"explain (analyze, buffers, format json) {CALLS[name]}",  # type: ignore[arg-type]
                    dict(zip(("orgs", "runs", "seqs"), held or (), strict=True)),
                ).fetchone()
                node = answer[0][0]["Plan"] if answer else {}
                touched[name] = node["Shared Hit Blocks"] + node["Shared Read Blocks"]
            connection.rollback()
    return touched
