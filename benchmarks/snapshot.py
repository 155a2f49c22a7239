"""Claims while somebody holds a snapshot open: what was delivered is not cleaned away then."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

import psycopg

from benchmarks import delivery
from benchmarks.clients import Client, Tally, run_clients
from benchmarks.scripts import run_scripts
from benchmarks.server import empty_tables
from counterfoil.delivering.marks import Marks

CALM = 20.0
"""Seconds measured before the snapshot is taken, and again after it is given up."""


class Phase(NamedTuple):
    """Claims of one part of the run: p99 and the longest in ms, and facts delivered a second."""

    p99: float
    longest: float
    facts: float


def held(dsn: str, seconds: float, *, marked: bool, dispatchers: int = 4) -> dict[str, Phase]:
    """Appends and claims at full speed, ``seconds`` of them under a snapshot.

    The phases are before, held (its second half) and after. ``marked``: dispatchers keep marks.
    """
    empty_tables(dsn)
    delivery.make_runs(dsn, delivery.RUNS)
    phases = {"before": CALM, "rising": seconds / 2, "held": seconds / 2, "after": CALM}
    whole = sum(phases.values())
    ends = [sum(list(phases.values())[: n + 1]) for n in range(len(phases))]
    began = time.monotonic()

    def dispatcher(
        connection: psycopg.Connection, number: int, going: Callable[[], bool], tally: Tally
    ) -> None:
        marks = Marks()
        while going():
            elapsed = time.monotonic() - began
            phase = next(
                (name for name, end in zip(phases, ends, strict=True) if elapsed < end), ""
            )
            _dispatch(connection, f"dispatcher-{number}", marks if marked else None, phase, tally)

    def hold() -> None:
        with psycopg.connect(dsn) as connection:
            time.sleep(max(0.0, began + CALM - time.monotonic()))
            connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            connection.execute("select count(*) from counterfoil.settings")
            time.sleep(max(0.0, began + CALM + seconds - time.monotonic()))

    threads = [
        threading.Thread(target=hold),
        threading.Thread(target=run_scripts, args=(dsn, whole, (8, delivery.APPEND))),
    ]
    for thread in threads:
        thread.start()
    clients: list[Client] = [dispatcher] * dispatchers
    done = run_clients(dsn, clients, whole)
    for thread in threads:
        thread.join()
    return {
        name: Phase(
            done.milliseconds(name, 0.99),
            done.milliseconds(name, 1.0),
            sum(done.calls[f"facts {name}"]) / length,
        )
        for name, length in phases.items()
        if name != "rising"
    }


def _dispatch(
    connection: psycopg.Connection, owner: str, marks: Marks | None, phase: str, tally: Tally
) -> None:
    started = time.perf_counter()
    rows = connection.execute(
        "select org_id, run_id, seq, marks from counterfoil.claim_deliveries("
        "p_lease_owner => %s, p_max_runs => 32, p_marks => %s::timestamptz[])",
        (owner, marks and marks.start()),
    ).fetchall()
    tally.timed(phase, started)
    heads = {run: list(facts)[-1] for run, facts in groupby(rows, key=lambda row: row[:2])}
    if marks:
        marks.learn(rows[0][3] if rows else None, took_all=len(heads) == 32)
    tally.seconds.setdefault(f"facts {phase}", []).append(len(rows))
    waiting = list(heads.values())
    while waiting:
        taken = connection.execute(
            "select acknowledged from counterfoil.acknowledge_deliveries("
            "%s, %s, 'lifecycle', %s, %s)",
            ([r[0] for r in waiting], [r[1] for r in waiting], [r[2] for r in waiting], owner),
        ).fetchall()
        # A lane that an append holds for the moment is passed over: again.
        waiting = [row for row, (done,) in zip(waiting, taken, strict=True) if not done]
    if len(heads) < 32 and not (marks and marks.looked_back):
        time.sleep(0.04)
