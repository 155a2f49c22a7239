"""Materialisation beside everything else: hand-off, crashes, lanes that do not know each other."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from counterfoil.database import Database, OnConnection
from counterfoil.delivering.deliveries import held_runs, materialise
from counterfoil.dispatcher import Dispatcher
from counterfoil.functions import Functions
from tests.py.driver.scene import ORG, Scene
from tests.servers.pooler import transaction_pooler

RUNS = 24
SEARCH = {"searchOnly": True, "deferredProjection": True}


async def test_a_hand_off_wakes_the_projector(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.append("d", "run.progress", {"deferredProjection": True, "done": 1})
    # Somebody who is no projector has it, for longer than this test has patience.
    [fact] = await scene.functions.claim_deliveries("plain", 300, 64, 1)
    async with scene.dispatching(poll_seconds=600.0):
        await scene.eventually(
            lambda: scene.rows("select queue from counterfoil.listeners where queue = 'lifecycle'"),
            bool,
        )
        await scene.functions.release_delivery(ORG, "run", [fact.event_id], "plain")
        await scene.all_delivered()
    assert (await scene.ledger())[2:] == ["run.progress"]


async def test_a_crash_after_the_indexing_keeps_nothing_and_the_next_try_everything(
    scene: Scene,
) -> None:
    await scene.start()
    await scene.append("f", "runner.logs", SEARCH | {"lines": ["one", "two"]})
    [_] = await scene.functions.claim_deliveries("me", 120, 64, 1, lane="search")
    # All is indexed when it comes to write the payload, and there it has to wait.
    doomed = await psycopg.AsyncConnection.connect(scene.dsn, autocommit=True)
    pid = doomed.info.backend_pid
    async with await psycopg.AsyncConnection.connect(scene.dsn) as holder:
        await holder.execute("select 1 from counterfoil.outbox where event_id = 'f' for update")
        task = asyncio.ensure_future(
            doomed.execute("select counterfoil.materialize_runtime_outbox_event('org', 'f', 'me')")
        )
        await scene.eventually(
            lambda: scene.rows(
                "select 1 from pg_stat_activity where pid = %s and wait_event_type = 'Lock'", pid
            ),
            bool,
        )
        await scene.rows("select pg_terminate_backend(%s)", pid)
        with pytest.raises(psycopg.OperationalError):
            await task
    await doomed.close()
    assert await scene.rows("select 1 from counterfoil.run_journal") == []
    [fact] = await scene.rows("select deferred from counterfoil.outbox where event_id = 'f'")
    assert fact["deferred"]
    await scene.functions.materialize_runtime_outbox_event(ORG, "f", "me")
    found = await scene.rows("select line from counterfoil.run_journal order by position")
    assert [row["line"] for row in found] == ["one", "two"]


async def begin_runs(scene: Scene, *, lifecycle: int, search: int, spoilt: int = 0) -> None:
    """RUNS runs with their start facts delivered, then so many facts in each lane of each.

    The first fact in the search lane of the first ``spoilt`` runs can never be indexed.
    """
    names = [f"run{number}" for number in range(RUNS)]
    for name in names:
        await scene.start(name)
    async with scene.dispatching():
        await scene.eventually(lambda: pending(scene, "lifecycle"), lambda runs: runs == 0)
    for number, name in enumerate(names):
        facts = [
            {"eventId": f"{name}-p{n}", "eventType": "run.progress", "payload": {"n": n}}
            for n in range(lifecycle)
        ] + [
            {"eventId": f"{name}-s{n}", "eventType": "runner.logs", "payload": SEARCH | lines}
            for n in range(search)
            for lines in [{"lines": 7 if number < spoilt and n == 0 else [f"{name} line {n}"]}]
        ]
        await scene.functions.append_facts(ORG, name, facts)


async def pending(scene: Scene, lane: str) -> int:
    """Runs that have facts of the lane pending."""
    return len(await scene.rows("select 1 from counterfoil.lanes where lane = %s", lane))


async def blocked(scene: Scene, lane: str) -> int:
    """Runs whose lane is blocked."""
    return len(
        await scene.rows(
            "select 1 from counterfoil.lanes where lane = %s and blocked_at is not null", lane
        )
    )


async def entries(scene: Scene) -> int:
    """Entries of the journal."""
    [found] = await scene.rows("select count(*) as entries from counterfoil.run_journal")
    return int(found["entries"])


async def test_lifecycle_facts_overtake_a_search_lane_that_is_far_behind(scene: Scene) -> None:
    await begin_runs(scene, lifecycle=0, search=60, spoilt=RUNS // 4)
    async with scene.dispatching():
        # The projector is at it, and some lanes are blocked already.
        await scene.eventually(lambda: entries(scene), lambda count: count > 20)
        before = await entries(scene)
        for step in range(5):
            for number in range(RUNS):
                await scene.progress(f"run{number}-{step}", f"run{number}")
        await scene.eventually(lambda: pending(scene, "lifecycle"), lambda runs: runs == 0)
        after = await entries(scene)
        # All of them, while the search lane still had work and went on with it.
        assert before < after < (RUNS - RUNS // 4) * 60
        await scene.eventually(lambda: blocked(scene, "search"), lambda runs: runs == RUNS // 4)
    assert len(await scene.ledger("run0")) == 2 + 5


async def test_lifecycle_facts_go_on_while_nothing_can_be_indexed(scene: Scene) -> None:
    await begin_runs(scene, lifecycle=10, search=10)
    async with await psycopg.AsyncConnection.connect(scene.dsn) as holder:
        await holder.execute("lock table counterfoil.run_journal in exclusive mode")
        async with scene.dispatching():
            await scene.eventually(lambda: pending(scene, "lifecycle"), lambda runs: runs == 0)
            assert await pending(scene, "search") == RUNS
            await holder.rollback()
            await scene.eventually(lambda: pending(scene, "search"), lambda runs: runs == 0)


async def test_search_facts_go_on_while_the_receiver_answers_nothing(scene: Scene) -> None:
    await begin_runs(scene, lifecycle=50, search=10)
    silence = asyncio.Event()
    scene.between.fault("run-ledger/events", hold=silence, times=10_000)
    async with scene.dispatching():
        await scene.eventually(lambda: pending(scene, "search"), lambda runs: runs == 0)
        assert await pending(scene, "lifecycle") == RUNS
        assert await entries(scene) == RUNS * 10
        scene.between.faults.clear()
        silence.set()
        await scene.eventually(lambda: pending(scene, "lifecycle"), lambda runs: runs == 0)


async def test_search_facts_go_on_while_every_lifecycle_lane_is_blocked(scene: Scene) -> None:
    await begin_runs(scene, lifecycle=1, search=0)
    scene.between.fault("run-ledger/events", status=422, body=b'{"retryable": false}', times=10_000)
    async with scene.dispatching():
        await scene.eventually(lambda: blocked(scene, "lifecycle"), lambda runs: runs == RUNS)
        for number in range(RUNS):
            for n in range(5):
                await scene.append(
                    f"{number}-{n}", "runner.logs", SEARCH | {"lines": ["on"]}, f"run{number}"
                )
        await scene.eventually(lambda: pending(scene, "search"), lambda runs: runs == 0)
    assert await entries(scene) == RUNS * 5
    assert await blocked(scene, "lifecycle") == RUNS


async def test_indexing_waits_for_no_disk_and_the_acknowledgement_does(scene: Scene) -> None:
    await scene.start()
    await scene.append("f", "runner.logs", SEARCH | {"lines": ["one"]})
    await scene.functions.claim_deliveries("me", 120, 64, 1, lane="search")
    connection = await psycopg.AsyncConnection.connect(scene.dsn, autocommit=True)
    async with connection:
        functions = Functions(OnConnection(connection))

        async def waits() -> str:
            [found] = await (await connection.execute("show synchronous_commit")).fetchall()
            return str(found[0])

        await connection.execute("set synchronous_commit = on")
        async with connection.transaction():
            await functions.materialize_runtime_outbox_event(ORG, "f", "me")
            assert await waits() == "off"
        async with connection.transaction():
            await functions.acknowledge_delivery(ORG, "run", ["f"], "me")
            assert await waits() == "on"
    assert await entries(scene) == 1


async def test_a_lease_is_renewed_when_it_might_end_before_the_next_statement_does(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.start()
    for n in range(6):
        await scene.append(f"f{n}", "runner.logs", SEARCH | {"lines": [f"line {n}"]})
    renewed = []
    renew = Functions.renew_delivery

    async def counted(self: Functions, *arguments: Any) -> Any:
        renewed.append(arguments[2])
        return await renew(self, *arguments)

    monkeypatch.setattr(Functions, "renew_delivery", counted)

    async def index(age: float) -> int:
        renewed.clear()
        claimed = await scene.functions.claim_deliveries("me", 120, 2, 1, lane="search")
        [held] = held_runs(claimed, "me")
        await materialise(scene.functions, held, time.monotonic() - age)
        await scene.functions.acknowledge_delivery(ORG, "run", held.event_ids, "me")
        return len(renewed)

    assert [await index(0), await index(49), await index(51)] == [0, 0, 1]
    assert await entries(scene) == 6


async def index_all(scene: Scene, projectors: list[Dispatcher]) -> None:
    """Let the projectors work until nothing is left to index."""
    tasks = [asyncio.create_task(projector.run()) for projector in projectors]
    await scene.eventually(lambda: pending(scene, "search"), lambda runs: runs == 0)
    for projector in projectors:
        projector.stop()
    await asyncio.gather(*tasks)


async def test_projectors_side_by_side_behind_a_pooler_index_each_line_once(scene: Scene) -> None:
    await begin_runs(scene, lifecycle=0, search=10)
    settings = replace(scene.settings, poll_seconds=0.1, listen=False)
    with transaction_pooler(scene.dsn, 2) as dsn:
        async with Database(dsn, max_size=4) as database:
            await index_all(scene, [Dispatcher(database, settings) for _ in range(3)])
    [found] = await scene.rows(
        "select count(*) as entries, count(distinct line) as lines from counterfoil.run_journal"
    )
    assert (found["entries"], found["lines"]) == (RUNS * 10, RUNS * 10)


async def test_maintenance_waits_for_no_analyze_of_others(scene: Scene) -> None:
    await scene.rows(
        "insert into counterfoil.step_receipts (org_id, key, status, run_id, created_at,"
        " claimed_at, updated_at, settled_at) select 'org', n::text, 'completed', 'r', now(),"
        " now(), now(), now() from generate_series(1, 5000) as n"
    )
    async with await psycopg.AsyncConnection.connect(scene.dsn) as holder:
        await holder.execute("lock table counterfoil.step_receipts in share update exclusive mode")
        done = await asyncio.gather(*(scene.functions.maintain(100) for _ in range(4)))
        assert [one["tableAnalyzed"] for one in done] == [None] * 4
    await scene.eventually(
        lambda: scene.functions.maintain(100),
        lambda one: one["tableAnalyzed"] == "step_receipts",
    )
    [found] = await scene.rows(
        "select reltuples::integer as rows from pg_class where relname = 'step_receipts'"
    )
    assert found["rows"] == 5000
