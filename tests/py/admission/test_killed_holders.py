"""Workers are killed while they hold slots: none leaks or is doubled, and all counts stay exact."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import time
from multiprocessing.process import BaseProcess

import psycopg
from psycopg.types.json import Jsonb

KEYS = {"one": 1, "another": 1, "two": 2}
RUNS = 12
"""Runs of each key."""
CLIENTS = 4
KILLS = 24
SEED = 20261202

TOO_MANY = """
select r.org_id, count(*) from counterfoil.runs as r
where r.status = 'running' group by r.org_id
having count(*) > case r.org_id when 'two' then 2 else 1 end
"""
# A run holds a slot until it ends, unless it stands in the queue without one.
LEAKED = """
select
    k.org_id, k.in_use, k.unended, count(r.run_id),
    count(r.run_id) filter (where q.slotless is not true)
from counterfoil.concurrency_keys as k
left join counterfoil.runs as r
  on r.org_id = k.org_id and r.concurrency_key = k.concurrency_key and r.ended_at is null
left join counterfoil.run_queue as q on q.org_id = r.org_id and q.run_id = r.run_id
group by k.org_id, k.in_use, k.unended
having k.in_use <> count(r.run_id) filter (where q.slotless is not true)
    or k.unended <> count(r.run_id)
"""
# Every run counts in its org and in the installation, exactly, at any moment.
MISCOUNTED = """
select c.org_id, sum(c.queued), sum(c.active), max(r.queued), max(r.active)
from counterfoil.admission_counters as c
cross join lateral (
  select count(*) filter (where r.status = 'queued') as queued,
    count(*) filter (where r.status = 'running') as active
  from counterfoil.runs as r where c.org_id in ('', r.org_id)
) as r
group by c.org_id
having sum(c.queued) <> max(r.queued) or sum(c.active) <> max(r.active)
"""


def work(dsn: str, worker: str, dice: random.Random) -> None:
    """Claim, execute and complete, until killed; commits are slow, so that kills find some open."""
    with psycopg.connect(dsn) as connection:
        while True:
            claimed = connection.execute(
                "select c.org_id, c.run_id, c.attempt, c.lease_id"
                " from counterfoil.claim_attempts(%s, 1, 60, null, 'default') as c",
                (worker,),
            ).fetchone()
            time.sleep(dice.uniform(0, 0.004))
            connection.commit()
            if claimed is None:
                connection.execute("select counterfoil.recover_attempts(10, 'default')")
                connection.commit()
                continue
            time.sleep(dice.uniform(0, 0.02))
            end = dice.choice(("complete", "complete", "fail"))
            connection.execute(
                f"select counterfoil.{end}_attempt(%s, %s, %s, %s, %s)".encode(),
                (*claimed, Jsonb({"error": {"message": "boom"}} if end == "fail" else {})),
            )
            time.sleep(dice.uniform(0, 0.004))
            connection.commit()


def test_killed_holders_leak_no_slot_and_let_no_more_run(installed: str) -> None:
    dice = random.Random(SEED)
    fork = multiprocessing.get_context("fork")
    living: dict[str, BaseProcess] = {}

    def start(number: int) -> None:
        name = f"worker-{number}"
        living[name] = fork.Process(
            target=work, args=(installed, name, random.Random(SEED + number)), daemon=True
        )
        living[name].start()

    with psycopg.connect(installed, autocommit=True) as connection:

        def look() -> None:
            # Limits that come and go beside all this must not spoil the counts.
            limits = {"maxActive": dice.choice((None, 100))}
            connection.execute(
                "select counterfoil.set_admission_limits(null, 'installation', %s)",
                (Jsonb(limits),),
            )
            assert connection.execute(TOO_MANY).fetchall() == []
            assert connection.execute(LEAKED).fetchall() == []
            assert connection.execute(MISCOUNTED).fetchall() == []
            # Time passes for the dead; what their servers still had in hand may come later.
            connection.execute(
                "update counterfoil.attempts set lease_expires_at = now() - interval '1 second'"
                " where status = 'running' and worker <> all (%s)",
                (list(living),),
            )
            connection.execute(
                "update counterfoil.run_queue set ready_at = now() where state = 'sleeping'"
            )

        for key, slots in KEYS.items():
            limits = {"maxPerConcurrencyKey": slots, "maxQueued": 100, "maxActive": 10}
            connection.execute(
                "select counterfoil.set_admission_limits(%s, 'org', %s)", (key, Jsonb(limits))
            )
        launches = [
            {
                "orgId": key,
                "runId": f"run-{number:02d}",
                "playId": "play",
                "playName": "play",
                "executorToken": "none",
                "baseUrl": "http://127.0.0.1:1",
                "concurrencyKey": key,
                "maxAttempts": 100,
            }
            for number in range(RUNS)
            for key in KEYS
        ]
        connection.execute("select counterfoil.admit_launches(%s)", (Jsonb(launches),))
        try:
            for number in range(CLIENTS):
                start(number)
            for number in range(CLIENTS, CLIENTS + KILLS):
                until = time.monotonic() + dice.uniform(0.01, 0.06)
                while time.monotonic() < until:
                    look()
                victim = dice.choice(list(living))
                process = living.pop(victim)
                assert process.pid is not None
                os.kill(process.pid, signal.SIGKILL)
                process.join()
                start(number)
            deadline = time.monotonic() + 30
            while connection.execute(
                "select from counterfoil.runs as r where r.ended_at is null limit 1"
            ).rowcount:
                assert time.monotonic() < deadline, "a run is stuck"
                look()
        finally:
            for process in living.values():
                process.kill()
                process.join()
        attempts = connection.execute(
            "select r.org_id, array_agg(r.run_id order by r.started_at, r.run_id),"
            " sum(r.attempt)::int, bool_and(r.status = 'completed')"
            " from counterfoil.runs as r group by r.org_id"
        ).fetchall()
        left = connection.execute("select count(*) from counterfoil.concurrency_keys").fetchone()
    assert left == (0,)
    assert all(row[3] for row in attempts)
    assert sum(row[2] for row in attempts) > RUNS * len(KEYS) + KILLS // 4, "kills hit holders"
    for key, order, *_ in attempts:
        if KEYS[key] == 1:
            assert order == sorted(order), key
