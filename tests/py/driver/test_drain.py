"""Draining a run through a named fact, with a budget, and without leaving a lease."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import pytest

from counterfoil.dispatcher import Dispatcher
from counterfoil.errors import InvalidStateError
from tests.py.driver.scene import ORG, PATIENCE, Scene
from tests.servers.databases import Connect


@pytest.fixture
async def dispatcher(scene: Scene) -> AsyncIterator[Dispatcher]:
    """A dispatcher that only drains."""
    found = scene.dispatcher()
    yield found
    await found.close()


async def no_lease_is_left(scene: Scene) -> None:
    for lane in await scene.lanes():
        assert lane["lease_owner"] is None


async def test_everything_up_to_the_target_is_delivered_and_nothing_after(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.start()
    await scene.progress("p1")
    await scene.ingress("target")
    await scene.ingress("after")
    result = await dispatcher.dispatch_through_event(ORG, "run", "target")
    assert (result.delivered, result.blocked, result.attempted) == (True, False, 4)
    assert result.acknowledged[-1] == "target"
    assert (await scene.sources())[-1] == "target"
    await no_lease_is_left(scene)
    [lane] = await scene.lanes()
    assert lane["lease_generation"] == 4, "nor was it claimed"


async def test_the_budget_bounds_the_facts(scene: Scene, dispatcher: Dispatcher) -> None:
    await scene.start()
    for n in range(5):
        await scene.progress(f"p{n}")
    result = await dispatcher.dispatch_through_event(ORG, "run", "p4", max_facts=4)
    assert (result.delivered, result.attempted) == (False, 4)
    assert len(await scene.ledger()) == 4
    await no_lease_is_left(scene)
    again = await dispatcher.dispatch_through_event(ORG, "run", "p4")
    assert again.delivered
    assert again.attempted == 3


async def test_the_budget_bounds_the_first_claim_too(scene: Scene, dispatcher: Dispatcher) -> None:
    await scene.start()
    await dispatcher.dispatch_through_event(ORG, "run", "nothing")
    for n in range(3):
        await scene.progress(f"p{n}")
    result = await dispatcher.dispatch_through_event(ORG, "run", "p2", max_facts=2)
    assert result.acknowledged == ["p0", "p1"]
    await no_lease_is_left(scene)


@pytest.mark.parametrize("take_over", [False, True])
async def test_a_drain_goes_through_the_terminal_in_one_delivery(
    scene: Scene, dispatcher: Dispatcher, take_over: bool
) -> None:
    attempt = await scene.start()
    await dispatcher.dispatch_through_event(ORG, "run", "nothing")
    for n in range(3):
        await scene.ingress(f"e{n}")
    await scene.functions.cancel_run(ORG, "run", "no longer wanted")
    terminal = await scene.functions.fail_attempt(
        *(ORG, "run", attempt.attempt, attempt.lease_id),
        {"error": {"message": "stopped", "code": "cancelled"}},
    )
    assert terminal.event_id is not None
    result = await dispatcher.dispatch_through_event(
        ORG, "run", terminal.event_id, take_over=take_over
    )
    assert result.acknowledged == ["e0", "e1", "e2", terminal.event_id]
    assert len(scene.keys()) == 1


async def test_a_drain_leaves_deferred_facts_to_the_projector(scene: Scene) -> None:
    await scene.start()
    await scene.append("d1", "run.progress", {"deferredProjection": True, "done": 1})
    plain = scene.dispatcher(projector=False)
    async with asyncio.timeout(PATIENCE):
        result = await plain.dispatch_through_event(ORG, "run", "d1")
    assert (result.delivered, result.blocked, len(result.acknowledged)) == (False, False, 2)
    await no_lease_is_left(scene)
    await plain.close()


async def test_a_failed_predecessor_ends_the_drain(scene: Scene, dispatcher: Dispatcher) -> None:
    await scene.start()
    await scene.progress("p1")
    scene.between.fault("/started", status=500)
    result = await dispatcher.dispatch_through_event(ORG, "run", "p1")
    assert (result.delivered, result.blocked) == (False, False)
    assert len(result.retrying_event_ids) == 1
    assert scene.between.counts["started"] == 1
    await no_lease_is_left(scene)


async def test_a_blocked_predecessor_is_told(scene: Scene, dispatcher: Dispatcher) -> None:
    await scene.start()
    await scene.progress("p1")
    scene.between.fault("/created", status=422, body=b'{"retryable": false}')
    result = await dispatcher.dispatch_through_event(ORG, "run", "p1")
    assert (result.delivered, result.blocked) == (False, True)
    assert len(result.blocked_event_ids) == 1


async def test_what_another_dispatcher_delivered_counts(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    facts = await scene.rows("select event_id from counterfoil.outbox order by seq")
    result = await dispatcher.dispatch_through_event(ORG, "run", facts[-1]["event_id"])
    assert (result.delivered, result.attempted) == (True, 0)


async def test_an_aborted_drain_leaves_no_lease(scene: Scene, dispatcher: Dispatcher) -> None:
    await scene.start()
    fault = scene.between.fault("/started", hold=asyncio.Event())
    draining = asyncio.create_task(dispatcher.dispatch_through_event(ORG, "run", "p1"))
    await fault.reached.wait()
    draining.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await draining
    [lane] = await scene.lanes()
    assert (lane["lease_owner"], lane["failures"]) == (None, 0)


async def test_a_drain_that_is_aborted_while_it_claims_leaves_no_lease(
    scene: Scene, dispatcher: Dispatcher, connect: Connect
) -> None:
    await scene.launch()
    writer = await connect(scene.dsn)
    await writer.execute("begin")
    await writer.execute("select from counterfoil.lanes for update")
    draining = asyncio.create_task(dispatcher.dispatch_through_event(ORG, "run", "nothing"))
    waiting = "select pid from pg_stat_activity where %s = any (pg_blocking_pids(pid))"
    await scene.eventually(lambda: scene.rows(waiting, writer.info.backend_pid), bool)
    draining.cancel()
    await asyncio.sleep(0)
    await writer.execute("rollback")
    with pytest.raises(asyncio.CancelledError):
        await draining
    [lane] = await scene.lanes()
    assert (lane["lease_owner"], lane["lease_generation"]) == (None, 1)


async def test_an_unknown_target_delivers_what_there_is(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.start()
    result = await dispatcher.dispatch_through_event(ORG, "run", "nothing")
    assert (result.delivered, result.blocked, result.attempted) == (False, False, 2)


async def test_a_canceller_takes_the_run_over_and_drains_it(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.start()
    await scene.progress("p1")
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    slow = scene.dispatcher()
    running = asyncio.create_task(slow.run())
    await fault.reached.wait()
    slow.stop()
    await scene.functions.cancel_run(ORG, "run", "no longer wanted")
    result = await dispatcher.dispatch_through_event(ORG, "run", "p1", take_over=True)
    assert result.delivered
    gate.set()
    await running
    assert await scene.ledger() == ["run.created", "run.started", "run.progress"]
    assert {report.outcome for report in scene.reports} == {"delivered", "lost"}


async def test_a_canceller_drains_the_run_through_its_terminal(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    attempt = await scene.start()
    await scene.ingress("e1")
    await scene.ingress("e2")
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    slow = scene.dispatcher()
    running = asyncio.create_task(slow.run())
    await fault.reached.wait()
    slow.stop()
    await scene.functions.cancel_run(ORG, "run", "no longer wanted")
    # Its holder learns of it and ends it.
    end = await scene.functions.fail_attempt(
        *(ORG, "run", attempt.attempt, attempt.lease_id),
        {"error": {"message": "stopped", "code": "cancelled"}},
    )
    assert end.event_id is not None
    result = await dispatcher.dispatch_through_event(ORG, "run", end.event_id, take_over=True)
    assert (result.delivered, result.acknowledged[-1]) == (True, end.event_id)
    gate.set()
    await running
    assert await scene.ledger() == [
        *("run.created", "run.started", "sheet.row", "sheet.row", "run.cancelled"),
    ]
    assert await scene.lanes() == []


async def test_a_canceller_drains_a_run_that_never_started(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.launch()
    await scene.functions.claim_deliveries("somebody", 300, 64, 1)
    await scene.functions.cancel_run(ORG, "run", "no longer wanted")
    [terminal] = await scene.rows("select event_id from counterfoil.outbox where seq > 1")
    event_id = terminal["event_id"]
    # Without taking over nothing can be done: somebody holds it.
    waiting = await dispatcher.dispatch_through_event(ORG, "run", event_id)
    assert (waiting.delivered, waiting.attempted) == (False, 0)
    result = await dispatcher.dispatch_through_event(ORG, "run", event_id, take_over=True)
    assert (result.delivered, result.attempted) == (True, 2)
    assert await scene.ledger() == ["run.created", "run.cancelled"]


async def test_a_run_that_is_not_cancelled_is_not_taken_over(
    scene: Scene, dispatcher: Dispatcher
) -> None:
    await scene.start()
    with pytest.raises(InvalidStateError) as refused:
        await dispatcher.dispatch_through_event(ORG, "run", "p1", take_over=True)
    assert refused.value.reason == "run_not_cancelled"
