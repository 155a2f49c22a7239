"""Lanes and positions while everybody meets everybody.

Producers of the same facts at every isolation level, sessions that are killed, dispatchers of both
lanes, an operator who skips, retention twice. What must be true of a lane's row and of a run's
positions is looked at all the time, not only when all is quiet.
"""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest

from tests.py.properties.test_delivery_chaos import ORG, RUNS, Actor

SECONDS = 6.0
TOLERATED = {"P0001", "40001", "57014", "55P03", "57P01"}
"""Beside the package's own class RL: what time limits, isolation and killed sessions bring."""

SEEN = """
create table public.seen (
    run_id text, seq bigint, event_id text, lane text, events jsonb, primary key (run_id, seq)
);
create function public.see() returns trigger language plpgsql as $$
begin
    insert into public.seen
    select new.run_id, new.seq, new.event_id, new.lane, counterfoil.project_events(
        new.event_type, new.event_id, new.run_id, new.seq, new.created_at, new.payload
    );
    return null;
end $$;
create trigger see after insert on counterfoil.outbox for each row execute function public.see();
"""
"""Every fact that was ever written, whatever retention does; its key breaks where a position is
given twice."""

WRONG_LANES = """
with facts as (
    select
        o.run_id, o.lane,
        min(o.seq) filter (where d.run_id is null) as first,
        max(o.seq) filter (where d.run_id is null) as last,
        max(o.seq) filter (where d.run_id is not null) as delivered
    from counterfoil.outbox as o
    left join counterfoil.deliveries as d
        on d.org_id = o.org_id and d.run_id = o.run_id and d.lane = o.lane
        and o.seq between d.first_seq and d.last_seq
    group by o.run_id, o.lane
)
select f.run_id, f.lane, f.first, f.last, f.delivered, array_agg(l.head_seq) as heads
from facts as f
full join counterfoil.lanes as l on l.run_id = f.run_id and l.lane = f.lane
group by f.run_id, f.lane, f.first, f.last, f.delivered
having
    count(l.head_seq) <> (f.first is not null)::integer
    or (f.first is not null and not (
        min(l.head_seq) > coalesce(f.delivered, 0) and min(l.head_seq) <= f.first
        and min(l.tail_seq) = f.last
    ))
"""
"""One row where something is pending, from the first of it to the last; else none."""

WRONG_POSITIONS = """
select s.run_id
from public.seen as s
group by s.run_id
having
    min(s.seq) <> 1 or max(s.seq) <> count(*)
    or min(s.event_id) filter (where s.seq = 1) not like 'run.created%'
"""

WRONG_LEDGERS = """
with due as (
    select distinct on (s.run_id, s.event_id, e.n) s.run_id, s.seq, e.event, e.n
    from public.seen as s
    cross join lateral jsonb_array_elements(s.events) with ordinality as e (event, n)
    where not exists (
        select
        from counterfoil.operator_audit as a
        where a.action = 'skip_blocked' and a.target ->> 'eventId' = s.event_id
    )
    -- What came again after retention is known already.
    order by s.run_id, s.event_id, e.n, s.seq
),
wanted as (
    select d.run_id, jsonb_agg(d.event order by d.seq, d.n) as events
    from due as d
    group by d.run_id
),
found as (
    select k.run_id, jsonb_agg(k.event order by k.position) as events
    from counterfoil.ledger_events as k
    -- A fact may be skipped after the receiver took it.
    where not exists (
        select
        from counterfoil.operator_audit as a
        where a.action = 'skip_blocked' and a.target ->> 'eventId' = k.event_id
    )
    group by k.run_id
)
select w.run_id
from wanted as w
full join found as f on f.run_id = w.run_id
where w.events is distinct from f.events
"""


class Wild(Actor):
    """A session that may be killed at any time, and then comes back."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.dsn = dsn
        super().__init__(dsn, seed)

    def call(self, function: str, *arguments: Any) -> list[dict[str, Any]] | None:
        try:
            marks = ", ".join(["%s"] * len(arguments))
            return self.do(f"select * from counterfoil.{function}({marks})", *arguments)
        except psycopg.Error as error:
            self.forgive(error)
            return None

    def do(self, statement: str, *values: Any) -> list[dict[str, Any]]:
        cursor = self.connection.execute(statement.encode(), values or None)
        return cursor.fetchall() if cursor.description else []

    def forgive(self, error: psycopg.Error) -> None:
        if self.connection.broken or self.connection.closed:
            super().__init__(self.dsn, self.dice.randrange(10**6))
        elif not str(error.sqlstate).startswith("RL") and error.sqlstate not in TOLERATED:
            raise error

    def append(self, run: str) -> None:
        """Append one fact or some, which others may append in the same moment."""
        facts = []
        for _ in range(self.dice.choice((1, 1, 2, 5))):
            number = int(time.monotonic() * 5) * 4 + self.dice.randrange(6)
            # The same content for the same id.
            kinds: list[tuple[str, dict[str, Any]]] = [
                ("run.progress", {"n": number}),
                ("run.events", {"events": [{"type": "row.done", "n": n} for n in range(6)]}),
                ("run.waiting", {"reason": "why"}),
                ("step.receipt", {}),
                ("runner.logs", {"searchOnly": True, "deferredProjection": True, "lines": ["l"]}),
            ]
            event_type, payload = kinds[random.Random(number).randrange(len(kinds))]
            event_id = f"{run}/{number}"
            facts.append({"eventId": event_id, "eventType": event_type, "payload": payload})
        if len(facts) > 1:
            values = (ORG, run, json.dumps(facts))
            self.do("select * from counterfoil.append_facts(%s, %s, %s)", *values)
        else:
            one = (ORG, run, event_id, event_type, json.dumps(payload))
            self.do("select * from counterfoil.append_fact(%s, %s, %s, %s, %s)", *one)

    def produce_somehow(self, levels: tuple[str, ...]) -> None:
        """In a transaction of its own, or in one that is old or given up, in part or whole."""
        run = self.dice.choice(RUNS)
        try:
            if self.dice.random() < 0.5:
                self.append(run)
                return
            self.do(f"begin isolation level {self.dice.choice(levels)}")
            self.do("select count(*) from counterfoil.lanes")
            time.sleep(self.dice.choice((0, 0.02, 0.1)))
            self.do("savepoint before")
            self.append(run)
            if self.dice.random() < 0.3:
                self.do("rollback to before")
                self.append(run)
            self.do(self.dice.choice(("commit", "commit", "rollback")))
        except psycopg.Error as error:
            self.forgive(error)
            with contextlib.suppress(psycopg.Error):
                self.do("rollback")

    def index(self) -> None:
        """Drain some of the search lane."""
        claim = (self.name, 5, self.dice.choice((1, 64)), 4, None, None, "search", "oldest_ready")
        facts = self.call("claim_deliveries", *claim) or []
        for run in dict.fromkeys(fact["run_id"] for fact in facts):
            held = [fact for fact in facts if fact["run_id"] == run]
            if all(
                self.call("materialize_runtime_outbox_event", ORG, fact["event_id"], self.name)
                for fact in held
            ):
                through = [held[-1]["seq"]]
                self.call("acknowledge_deliveries", [ORG], [run], "search", through, self.name)

    def meddle(self) -> None:
        """Skip, or let be delivered again, what is blocked; let backoffs and leases be over."""
        for fact in self.call("list_blocked", ORG) or []:
            if self.dice.random() < 0.3:
                self.call("skip_blocked", ORG, fact["run_id"], fact["event_id"], "nonsense")
        self.operate()

    def forget(self) -> None:
        """Let some deliveries be old, and retention take them."""
        self.do(
            "update counterfoil.deliveries set delivered_at = delivered_at - interval '100 days'"
            " where ctid = any(array(select ctid from counterfoil.deliveries"
            " where delivered_at > now() - interval '50 days' order by random() limit 5"
            " for update skip locked))"
        )
        self.call("purge_delivered", self.dice.choice((1, 3, 50)))

    def kill(self) -> None:
        """End a session in the middle of a call."""
        time.sleep(0.1)
        self.do(
            "select pg_terminate_backend(a.pid) from pg_stat_activity as a"
            " where a.datname = current_database() and a.state <> 'idle'"
            " and a.query ~ 'append|claim|acknowledge|renew' and a.query !~ 'pg_terminate_backend'"
            " order by random() limit 1"
        )


@pytest.mark.parametrize("retention", [False, True], ids=["killed and isolated", "retention"])
def test_lanes_and_positions_hold_while_everybody_meets_everybody(
    installed: str, retention: bool
) -> None:
    first = Wild(installed, 0)
    first.connection.execute(SEEN.encode())
    first.call("set_setting", "delivery_piece_max_events", "4")
    for run in RUNS:
        names = dict.fromkeys(("runId", "playId", "playName"), run)
        place = {"orgId": ORG, "executorToken": "t", "baseUrl": "https://receiver.example"}
        first.call("admit_launch", json.dumps(place | names))
    attempts = first.call("claim_attempts", "worker", len(RUNS), 300, [], "default") or []
    stop = threading.Event()

    def repeat(act: Callable[[], None]) -> None:
        while not stop.is_set():
            act()

    actors = [Wild(installed, seed) for seed in range(1, 11)]
    levels = ("read committed",) if retention else ("repeatable read", "serializable")
    acts: list[Callable[[], None]] = [actor.dispatch for actor in actors[:3]]
    acts += [actors[3].index, actors[4].meddle, actors[5].cancel]
    acts += [lambda actor=actor: actor.produce_somehow(levels) for actor in actors[6:8]]  # type: ignore[misc]
    acts += [actor.forget if retention else actor.kill for actor in actors[8:]]
    with ThreadPoolExecutor(len(acts)) as pool:
        at_work = [pool.submit(repeat, act) for act in acts]
        began = time.monotonic()
        try:
            while time.monotonic() < began + SECONDS and not any(w.done() for w in at_work):
                assert first.do(WRONG_LANES) == []
                assert first.do(WRONG_POSITIONS) == []
                stop.wait(0.1)
                if len(attempts) > len(RUNS) / 2 and first.dice.random() < 0.1:
                    end(first, attempts.pop())
        finally:
            stop.set()
        for work in at_work:
            work.result()  # raises what an actor met with: a deadlock, a broken constraint

    for attempt in attempts:
        end(first, attempt)
    while first.do("select run_id from counterfoil.lanes"):
        first.do("update counterfoil.lanes set lease_expires_at = now() where lease_owner <> ''")
        first.meddle()
        first.index()
        facts = first.call("claim_deliveries", first.name, 30, 64, 1) or []
        if facts:
            first.deliver(facts[0]["run_id"], facts, dies=0)
    assert first.do(WRONG_LANES) == []
    assert first.do(WRONG_POSITIONS) == []
    assert first.do(WRONG_LEDGERS) == []
    for actor in (first, *actors):
        actor.connection.close()


def end(session: Wild, attempt: dict[str, Any]) -> None:
    """Complete a run, or have it cancelled."""
    fence = (ORG, attempt["run_id"], attempt["attempt"], attempt["lease_id"])
    if session.dice.random() < 0.5:
        session.call("cancel_run", ORG, attempt["run_id"], None)
    session.call("complete_attempt", *fence, json.dumps({"terminalLogLines": ["l"]}))
