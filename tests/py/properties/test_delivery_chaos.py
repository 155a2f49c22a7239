"""Dispatchers, producers, a canceller and an operator at once, some of whom die: nothing is lost.

The machine of deliveries takes one step after the other; here sessions truly meet.
"""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
from psycopg.rows import dict_row

ORG = "org"
RUNS = [f"run-{n}" for n in range(8)]
FACTS = 30
SECONDS = 3.0
LIFECYCLE = "select from counterfoil.lanes where lane = 'lifecycle'"
TOLERATED = {"RL004", "RL005"}
"""A lease that was lost, or a state that somebody else has changed meanwhile."""


class Actor:
    """One session, and the calls that it makes."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.connection = psycopg.connect(dsn, autocommit=True, row_factory=dict_row)
        self.connection.execute("set deadlock_timeout = '50ms'")
        self.dice = random.Random(seed)
        self.name = f"actor-{seed}"

    def call(self, function: str, *arguments: Any) -> list[dict[str, Any]] | None:
        """What the function answers; None where it refused for a reason that is tolerated."""
        marks = ", ".join(["%s"] * len(arguments))
        try:
            cursor = self.connection.execute(
                f"select * from counterfoil.{function}({marks})".encode(), arguments
            )
            return cursor.fetchall()
        except psycopg.Error as error:
            if error.sqlstate not in TOLERATED:
                raise
            return None

    def dispatch(self) -> None:
        """Claim some runs and take each delivery as far as luck has it."""
        claim = (self.name, 5, self.dice.choice((64, 3)), 4, None, None, "lifecycle")
        order = self.dice.choice(("admission_first", "oldest_ready"))
        facts = self.call("claim_deliveries", *claim, order, self.dice.random() < 0.5) or []
        for run in dict.fromkeys(fact["run_id"] for fact in facts):
            self.deliver(run, [fact for fact in facts if fact["run_id"] == run])

    def deliver(self, run: str, facts: list[dict[str, Any]], dies: float = 0.1) -> None:
        while facts:
            ids = [fact["event_id"] for fact in facts]
            if self.dice.random() < dies:
                return
            frozen = self.call("renew_delivery", ORG, run, ids, self.name, 5, True)
            pieces = frozen and self.call("plan_delivery_pieces", ORG, run, ids, self.name)
            if frozen is None or pieces is None:
                return
            head = facts[0]["event_type"].removeprefix("run.")
            for piece in pieces:
                luck = self.dice.random() if dies else 1.0
                if luck < 0.05:
                    no = json.dumps({"message": "no", "retryable": luck < 0.03})
                    self.call("settle_delivery_failure", ORG, run, ids, self.name, no)
                    return
                if luck < 0.1:
                    self.call("release_delivery", ORG, run, ids, self.name)
                    return
                place = {
                    "created": (),
                    "started": (None,),
                }.get(head, (piece["chunk"], piece["chunk_count"]))
                append = f"append_run_{head if head in ('created', 'started') else 'events'}"
                to = (ORG, run, frozen[0]["idempotency_key"], self.name)
                if self.call(append, *to, json.dumps(piece["events"]), *place) is None:
                    return
            answer = self.call("acknowledge_delivery", ORG, run, ids, self.name, 64, 5, True)
            facts = [row for row in answer or [] if row["kind"] == "claimed"]

    def cancel(self) -> None:
        """Take runs over that are being cancelled, and drain them."""
        run = self.dice.choice(RUNS)
        self.deliver(run, self.call("take_over_delivery", ORG, run, self.name, 5, 64, True) or [])

    def operate(self) -> None:
        """Let backoffs and some leases be over, and replay or skip what is blocked."""
        self.shift("fact_failures", "next_attempt_at = now()", "next_attempt_at is not null")
        self.shift("lanes", "due_at = least(due_at, now())", "true")
        owned = "lease_owner is not null and random() < 0.3"
        self.shift("lanes", "lease_expires_at = now()", owned)
        for fact in self.call("list_blocked", ORG) or []:
            self.call("replay_blocked", ORG, fact["run_id"], fact["event_id"], "again")

    def shift(self, table: str, change: str, where: str) -> None:
        """Change the rows that nobody holds: in one statement more than calls ever hold, and in
        another order."""
        self.connection.execute(
            f"update counterfoil.{table} set {change} where ctid = any(array("
            f"select ctid from counterfoil.{table} where {where} for update skip locked))".encode()
        )

    def produce(self, runs: dict[str, dict[str, Any]], left: dict[str, int]) -> None:
        """Append facts to one of one's runs; end it after the last."""
        run = self.dice.choice(list(left) or [""])
        if not run:
            return
        left[run] -= 1
        if left[run] == 0:
            del left[run]
            attempt = (ORG, run, runs[run]["attempt"], runs[run]["lease_id"])
            if run in RUNS[:2]:
                self.call("cancel_run", ORG, run, None)
                error = {"error": {"message": "stopped", "code": "cancelled"}}
                self.call("fail_attempt", *attempt, json.dumps(error))
            else:
                self.call("complete_attempt", *attempt, json.dumps({"terminalLogLines": ["l"]}))
            return
        kinds: list[tuple[str, dict[str, Any]]] = [
            ("run.progress", {"n": left[run]}),
            ("run.events", {"events": [{"type": "row.done"}] * 3}),
            ("run.waiting", {"reason": "why"}),
            ("step.receipt", {}),
        ]
        event_type, payload = self.dice.choice(kinds)
        self.call("append_fact", ORG, run, f"{run}/{left[run]}", event_type, json.dumps(payload))


def test_nothing_is_lost_or_doubled_while_everybody_meets_everybody(installed: str) -> None:
    first = Actor(installed, 0)
    first.call("set_setting", "delivery_piece_max_events", "4")
    for run in RUNS:
        names = dict.fromkeys(("runId", "playId", "playName"), run)
        place = {"orgId": ORG, "executorToken": "t", "baseUrl": "https://receiver.example"}
        first.call("admit_launch", json.dumps(place | names))
    claimed = first.call("claim_attempts", "worker", len(RUNS), 300, [], "default") or []
    runs = {row["run_id"]: row for row in claimed}
    assert sorted(runs) == RUNS
    stop = threading.Event()

    def repeat(act: Callable[[], None]) -> None:
        while not stop.is_set():
            act()

    actors = [Actor(installed, seed) for seed in range(1, 8)]
    halves = [dict.fromkeys(RUNS[n::2], FACTS) for n in range(2)]
    acts: list[Callable[[], None]] = [actor.dispatch for actor in actors[:3]]
    acts += [actors[3].cancel, actors[4].operate]
    acts += [lambda n=n: actors[5 + n].produce(runs, halves[n]) for n in range(2)]  # type: ignore[misc]
    with ThreadPoolExecutor(len(acts)) as pool:
        at_work = [pool.submit(repeat, act) for act in acts]
        until = time.monotonic() + SECONDS
        while time.monotonic() < until and not any(work.done() for work in at_work):
            stop.wait(0.05)
        stop.set()
        for work in at_work:
            work.result()  # raises what an actor met with: a deadlock, a broken constraint

    while any(halves):
        for n, left in enumerate(halves):
            actors[5 + n].produce(runs, left)
    while first.connection.execute(LIFECYCLE.encode()).rowcount:
        first.connection.execute(
            "update counterfoil.lanes set lease_expires_at = now() where lease_owner is not null"
        )
        first.operate()
        facts = first.call("claim_deliveries", first.name, 30, 64, 1) or []
        if facts:
            first.deliver(facts[0]["run_id"], facts, dies=0)

    wrong = first.connection.execute(
        """
        select r.run_id
        from counterfoil.runs as r
        cross join lateral (
            select jsonb_agg(p.event order by o.seq, p.item) as events
            from counterfoil.outbox as o
            cross join lateral counterfoil.project_fact(o.org_id, o.run_id, o.event_id) as p
            where o.org_id = r.org_id and o.run_id = r.run_id and o.lane = 'lifecycle'
        ) as due
        cross join lateral (
            select jsonb_agg(e.event order by e.position) as events, max(e.position) as last
            from counterfoil.ledger_events as e
            where e.org_id = r.org_id and e.run_id = r.run_id
        ) as found
        where
            due.events is distinct from found.events
            or jsonb_array_length(found.events) <> found.last
        """
    ).fetchall()
    assert wrong == []
    overlapping = first.connection.execute(
        """
        select from counterfoil.deliveries as d
        inner join counterfoil.deliveries as e
            on (e.org_id, e.run_id, e.lane) = (d.org_id, d.run_id, d.lane)
            and e.first_seq > d.first_seq
        where e.first_seq <= d.last_seq
        """
    ).fetchall()
    assert overlapping == []
    doubled = first.connection.execute(
        "select from counterfoil.ledger_appends group by org_id, run_id, idempotency_key"
        " having count(distinct chunk_count) > 1"
    ).fetchall()
    assert doubled == [], "a receipt was cut anew"
    for actor in (first, *actors):
        actor.connection.close()
