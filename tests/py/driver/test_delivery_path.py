"""Facts on their way: claimed, appended over HTTP, acknowledged, and read back from the ledger."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from psycopg import sql

from counterfoil.append import send_piece
from counterfoil.calls.delivery import DeliveryFunctions, Renewal
from counterfoil.delivering import delivery
from counterfoil.delivering.deliveries import DeliveryReport
from counterfoil.delivering.search_lane import SearchLane
from counterfoil.delivering.turns import Turns
from counterfoil.functions import ClaimedFact, Functions
from counterfoil.json_text import JsonText
from counterfoil.settings import Secret
from tests.py.driver.scene import ORG, PATIENCE, Scene, open_scene
from tests.servers.databases import Connect
from tests.servers.pooler import transaction_pooler


async def test_a_run_arrives_whole_and_in_order(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.progress("p1")
    await scene.ingress("e1", count=3)
    await scene.progress("p2")
    await scene.finish(
        attempt,
        terminalLogLines=["bye"],
        terminalLogContexts=[None],
        terminalProgressEvents=[{"type": "run.note", "text": "last"}],
    )
    async with scene.dispatching():
        await scene.all_delivered()
    assert await scene.ledger() == [
        *("run.created", "run.started", "run.progress"),
        *("sheet.row", "sheet.row", "sheet.row", "run.progress"),
        *("run.note", "log.appended", "run.completed"),
    ]
    snapshot = json.loads(await scene.functions.run_snapshot(ORG, "run") or "")
    assert snapshot["status"] == "completed"


@pytest.mark.parametrize(
    ("launch", "environment", "source"),
    [
        ({"vercelProtectionBypassToken": "launch-token"}, "env-token", "launch"),
        ({}, "env-token", "env"),
        ({}, "", "none"),
    ],
)
async def test_a_delivery_logs_where_its_bypass_came_from_and_never_the_token(
    scene: Scene,
    caplog: pytest.LogCaptureFixture,
    launch: dict[str, str],
    environment: str,
    source: str,
) -> None:
    caplog.set_level("DEBUG", "counterfoil")
    await scene.launch(**launch)
    async with scene.dispatching(protection_bypass=Secret(environment)):
        await scene.all_delivered()
    [request] = scene.between.requests
    sent = request.headers.get("x-vercel-protection-bypass", "none-token")
    assert sent == f"{source}-token"
    told = {r.message: r.__dict__["bypass_source"] for r in caplog.records if r.msg == "delivery"}
    assert told == {"delivery": source}
    said = [f"{record.getMessage()} {record.__dict__}" for record in caplog.records]
    assert not [line for line in said if "-token" in line]


async def test_numbers_arrive_as_they_were_written(scene: Scene) -> None:
    await scene.start()
    written = "12345678901234567890.123456789012345678901234567890"
    await scene.append("p1", "run.progress", JsonText(f'{{"amount": {written}, "one": 1.0}}'))
    async with scene.dispatching():
        await scene.all_delivered()
    events = await scene.functions.read_run_events(ORG, "run", 2, 10)
    assert written in events[0].event
    assert '"one": 1.0' in events[0].event


async def test_many_runs_are_in_flight_at_once(scene: Scene) -> None:
    for n in range(12):
        await scene.launch(f"run{n}")
    gate = asyncio.Event()
    faults = [scene.between.fault("/created", hold=gate) for _ in range(4)]
    async with scene.dispatching(concurrency=4):
        for fault in faults:
            await fault.reached.wait()
        assert scene.between.counts["created"] == 4
        gate.set()
        for n in range(12):
            await scene.all_delivered(f"run{n}")
    assert scene.between.counts["created"] == 12


async def test_no_connection_is_held_across_http(scene: Scene) -> None:
    """As many deliveries hang in HTTP as there may be connections, and every one is free."""
    for n in range(8):
        await scene.launch(f"run{n}")
    gate = asyncio.Event()
    faults = [scene.between.fault("/created", hold=gate) for _ in range(8)]
    async with scene.dispatching(concurrency=8):
        for fault in faults:
            await fault.reached.wait()

        async def free() -> bool:
            stats = scene.database._pool.get_stats()
            return stats["pool_size"] == stats["pool_available"]

        await scene.eventually(free, bool)
        gate.set()


async def test_the_stored_token_is_never_used(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.finish(attempt)
    async with scene.dispatching():
        await scene.all_delivered()
    sent = [request.headers["authorization"] for request in scene.between.requests]
    assert len(sent) >= 3
    assert all("stored token" not in value for value in sent)


async def test_a_long_delivery_goes_in_pieces_each_renewed_and_frozen(scene: Scene) -> None:
    await scene.functions.set_setting("delivery_piece_max_events", 3)
    await scene.start()
    await scene.ingress("e1", count=8)
    async with scene.dispatching():
        await scene.all_delivered()
    bodies = [r.json() for r in scene.between.requests if r.path.endswith("/events")]
    assert [(b["chunk"], b["chunkCount"], len(b["events"])) for b in bodies] == [
        *((1, 3, 3), (2, 3, 3), (3, 3, 2)),
    ]
    assert len({b["idempotencyKey"] for b in bodies}) == 1
    assert (await scene.ledger())[2:] == ["sheet.row"] * 8


async def test_each_piece_follows_a_renewal_of_its_own(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.functions.set_setting("delivery_piece_max_events", 3)
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    done: list[str] = []
    renew = DeliveryFunctions.renew_delivery

    async def renewing(*arguments: Any) -> Renewal:
        done.append("freeze" if arguments[-1] else "renew")
        return await renew(*arguments)

    async def sending(*arguments: Any, **more: Any) -> None:
        done.append("send")
        await send_piece(*arguments, **more)

    monkeypatch.setattr(DeliveryFunctions, "renew_delivery", renewing)
    monkeypatch.setattr(delivery, "send_piece", sending)
    await scene.ingress("e1", count=8)
    async with scene.dispatching():
        await scene.all_delivered()
    assert done == ["freeze", *["freeze", "send"] * 3]


async def test_started_carries_the_full_launch(scene: Scene) -> None:
    await scene.start(input={"rows": [1, 2]})
    async with scene.dispatching():
        await scene.all_delivered()
    [started] = [r.json() for r in scene.between.requests if r.path.endswith("/started")]
    assert started["launch"]["input"] == {"rows": [1, 2]}


async def test_the_terminal_is_carried_through_by_continuation(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.progress("p1")
    await scene.finish(attempt)
    async with scene.dispatching():
        await scene.all_delivered()
    owners = {report.event_ids: report for report in scene.reports}
    assert len(owners) == len(scene.reports) == 3
    deliveries = await scene.rows("select distinct lease_owner from counterfoil.deliveries")
    assert len(deliveries) == 1


async def test_a_failure_says_where_its_time_went_too(scene: Scene) -> None:
    """A receiver that is waited for in vain costs time of the append, not of the settling."""
    await scene.launch()
    gate = asyncio.Event()
    scene.between.fault("/created", hold=gate)
    async with scene.dispatching(append_timeout=0.5):
        report = await scene.reported("retrying")
        gate.set()
    assert report.error_code == "receiver_timeout"
    assert report.milliseconds["append"] >= 500
    assert report.milliseconds["settle"] < report.milliseconds["append"]


async def test_reports_say_where_the_time_went(scene: Scene) -> None:
    await scene.launch()
    async with scene.dispatching():
        await scene.all_delivered()
    [report] = scene.reports
    assert report.outcome == "delivered"
    assert report.events == report.pieces == 1
    assert {"claim", "authority", "append", "acknowledge"} <= report.milliseconds.keys()
    assert report.to_log()["claim_ms"] == round(report.milliseconds["claim"], 2)
    assert "stored token" not in str(report.to_log())


async def test_a_failing_observer_fails_no_delivery(scene: Scene) -> None:
    def observer(report: DeliveryReport) -> None:
        raise ZeroDivisionError

    await scene.start()
    await scene.append("q1", "runner.logs", {"searchOnly": True})
    await scene.progress("p1")
    dispatcher = scene.dispatcher(observer=observer)
    result = await dispatcher.dispatch_through_event(ORG, "run", "p1")
    await dispatcher.close()
    assert (result.delivered, result.attempted) == (True, 3)
    assert await SearchLane(scene.functions, "search", observer).work()
    assert await scene.lanes() == []


async def test_facts_without_ledger_events_are_acknowledged_without_http(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
        before = len(scene.between.requests)
        await scene.append("w1", "run.waiting", {"kind": "detached_runner"})
        await scene.all_delivered()
    assert len(scene.between.requests) == before
    assert await scene.functions.delivery_status(ORG, "run", "w1") == "delivered"


@pytest.mark.parametrize("listen", [True, False])
async def test_it_wakes_by_notification_or_by_polling(scene: Scene, listen: bool) -> None:
    async with scene.dispatching(listen=listen, poll_seconds=30.0 if listen else 0.1):
        if listen:
            await scene.eventually(
                lambda: scene.rows("select * from counterfoil.listeners where queue = 'lifecycle'"),
                len,
            )
        await scene.launch()
        await scene.all_delivered()


async def test_a_backoff_that_ends_is_no_matter_of_polling(scene: Scene) -> None:
    await scene.launch()
    scene.between.fault("/created", status=503)
    async with scene.dispatching(listen=False, poll_seconds=30.0):
        await scene.reported("retrying")
        await scene.all_delivered()


async def released(scene: Scene) -> None:
    await scene.functions.release_delivery(ORG, "run", ["p1", "p2"], "another")


async def replayed(scene: Scene) -> None:
    await scene.functions.replay_blocked(ORG, "run", "p1", "mended")


async def skipped(scene: Scene) -> None:
    await scene.functions.skip_blocked(ORG, "run", "p1", "nonsense")


@pytest.mark.parametrize("freed", [released, replayed, skipped])
async def test_what_is_given_back_wakes_a_sleeper(
    scene: Scene, connect: Connect, freed: Callable[[Scene], Awaitable[None]]
) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.progress("p1")
    await scene.progress("p2")
    await scene.functions.claim_deliveries("another", 300, 64, 1)
    if freed is not released:
        no = {"message": "no", "retryable": False, "eventId": "p1"}
        await scene.functions.settle_delivery_failure(ORG, "run", ["p1", "p2"], "another", no)
    channel = await scene.functions.start_listening("sleeper", "lifecycle", 60)
    sleeper = await connect(scene.dsn)
    await sleeper.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
    await freed(scene)
    assert [heard async for heard in sleeper.notifies(timeout=PATIENCE, stop_after=1)]
    async with scene.dispatching():
        await scene.all_delivered()


async def test_a_run_without_end_does_not_keep_others_waiting(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.dispatcher.RUN_BUDGET", 3)
    for name in ("long", "short"):
        await scene.start(name)
    async with scene.dispatching():
        for name in ("long", "short"):
            await scene.all_delivered(name)
    for n in range(9):
        await scene.ingress(f"long{n}", "long")
    await scene.progress("short0", "short")
    before = len(scene.between.requests)
    async with scene.dispatching(concurrency=1):
        for name in ("long", "short"):
            await scene.all_delivered(name)
    sent = [
        r.json()["events"][0]["eventId"]
        for r in scene.between.requests[before:]
        if r.path.endswith("/events")
    ]
    assert sent.index("short0") == 3
    assert len(sent) == 10


@pytest.mark.parametrize("places", [1, 2])
async def test_a_large_org_does_not_keep_a_small_one_waiting(
    scene: Scene, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs: list[str] = []
    claim = Functions.claim_deliveries

    async def claiming(functions: Functions, *values: Any, **named: Any) -> list[ClaimedFact]:
        facts = await claim(functions, *values, **named)
        runs.extend(fact.run_id for fact in facts)
        return facts

    monkeypatch.setattr(Functions, "claim_deliveries", claiming)
    # With more places than a claim may take lanes, no claim takes all the places.
    await scene.functions.set_setting("claim_batch_max", 1)
    for n in range(12):
        await scene.launch(f"run{n}")
    await scene.launch("small", orgId="small")
    async with scene.dispatching(concurrency=places):
        await scene.all_delivered("small")
        for n in range(12):
            await scene.all_delivered(f"run{n}")
    assert runs.index("small") == 3, "every second claim is for one org, each in turn"
    assert [run for run in runs if run != "small"] == [f"run{n}" for n in range(12)]


async def test_one_org_alone_is_asked_for_no_turns(scene: Scene) -> None:
    turns = Turns(scene.functions)
    await scene.launch("a")
    turns.claimed(took_all=True)
    assert [await turns.next() for _ in range(4)] == [None] * 4
    await scene.launch("b", orgId="b")
    assert [await turns.next() for _ in range(8)] == [None, "b", None, ORG] * 2
    turns.claimed(took_all=False)
    assert [await turns.next() for _ in range(4)] == [None] * 4


async def test_a_dispatcher_takes_what_claim_batch_max_lets_it_have(scene: Scene) -> None:
    await scene.functions.set_setting("claim_batch_max", 1)
    for n in range(3):
        await scene.launch(f"run{n}")
    async with scene.dispatching(concurrency=8):
        for n in range(3):
            await scene.all_delivered(f"run{n}")


async def test_all_goes_through_a_transaction_pooler(installed: str) -> None:
    """Two dispatchers and the gateway have fewer connections than deliveries in flight."""
    with transaction_pooler(installed, 2) as dsn:
        async with open_scene(dsn, listen=False, poll_seconds=0.1) as scene:
            attempts = [await scene.start(f"run{n}") for n in range(6)]
            for attempt in attempts:
                await scene.ingress(f"{attempt.run_id}/e", attempt.run_id, count=2)
                logs = {"lines": ["l"], "lineContexts": [None], "searchOnly": True}
                await scene.append(
                    f"{attempt.run_id}/l",
                    "runner.logs",
                    logs | {"deferredProjection": True, "producerAttempt": 1},
                    attempt.run_id,
                )
                await scene.finish(attempt)
            async with scene.dispatching(), scene.dispatching():
                for attempt in attempts:
                    await scene.all_delivered(attempt.run_id)
            for attempt in attempts:
                assert await scene.ledger(attempt.run_id) == [
                    *("run.created", "run.started", "sheet.row", "sheet.row", "run.completed"),
                ]
            assert {report.outcome for report in scene.reports} == {"delivered"}
