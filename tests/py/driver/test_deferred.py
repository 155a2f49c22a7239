"""Deferred facts: handed to the projector, materialised before any HTTP, or quarantined alone."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from counterfoil.authority import LocalMint
from counterfoil.calls.delivery import DeliveryFunctions, LaneDue
from counterfoil.delivering.credentials import Credentials
from counterfoil.delivering.deliveries import DeliveryOptions, HeldRun
from counterfoil.delivering.delivery import Deliverer
from counterfoil.delivering.search_lane import SearchLane
from counterfoil.errors import PoolExhaustedError
from counterfoil.upstream import Upstream
from tests.py.driver.scene import ORG, Scene

LOGS = {
    "deferredProjection": True,
    "lines": ["first", "second"],
    "lineContexts": [None, None],
    "producerAttempt": 1,
}


async def test_a_plain_dispatcher_hands_off_without_charge(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.append("d1", "run.progress", {"deferredProjection": True, "done": 1})
    before = len(scene.between.requests)
    async with scene.dispatching(projector=False):
        report = await scene.reported("handed_off")
    assert report.event_ids == ("d1",)
    assert len(scene.between.requests) == before
    [lane] = await scene.lanes()
    assert (lane["lease_owner"], lane["failures"]) == (None, 0)


async def test_a_hand_off_wakes_the_projector(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str | None, ...]] = []
    look = DeliveryFunctions.look_for_deliveries

    async def looked(
        self: DeliveryFunctions, lanes: Sequence[str], listeners: Sequence[str | None]
    ) -> list[LaneDue]:
        answer = await look(self, lanes, listeners)
        asked.append(tuple(listeners))
        return answer

    async def asleep() -> bool:
        return any(len(listeners) == 2 and None not in listeners for listeners in asked)

    monkeypatch.setattr(DeliveryFunctions, "look_for_deliveries", looked)
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.append("d1", "run.progress", {"deferredProjection": True, "done": 1})
    facts = await scene.functions.claim_deliveries("plain", 300, 64, 1)
    plain = Deliverer(
        scene.functions,
        Upstream(),
        Credentials(scene.functions, LocalMint(scene.signer)),
        DeliveryOptions(projector=False),
    )
    asked.clear()
    async with scene.dispatching(poll_seconds=3600.0):
        # It has been told that the lease is good for minutes, and nothing else would wake it.
        await scene.eventually(asleep, bool)
        report = await plain.deliver(HeldRun(ORG, "run", "plain", facts))
        assert report.outcome == "handed_off"
        await scene.all_delivered()


async def test_the_projector_materialises_before_it_delivers(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.append("d1", "run.progress", {"deferredProjection": True, "done": 1})
    await scene.append("l1", "runner.logs", LOGS)
    await scene.finish(attempt)
    async with scene.dispatching():
        await scene.all_delivered()
    assert (await scene.ledger())[2:] == ["run.progress", "run.completed"]
    rows = await scene.rows("select line from counterfoil.run_journal where channel = 'log'")
    assert {row["line"] for row in rows} == {"first", "second"}


async def test_the_search_lane_is_drained_without_http(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
        before = len(scene.between.requests)
        await scene.append("s1", "runner.logs", LOGS | {"searchOnly": True})
        await scene.append("s2", "run.progress", {"searchOnly": True, "note": "x"})
        await scene.all_delivered()
    assert len(scene.between.requests) == before
    rows = await scene.rows("select line from counterfoil.run_journal where channel = 'log'")
    assert {row["line"] for row in rows} == {"first", "second"}
    assert "search" in {report.lane for report in scene.reports}


async def test_an_invalid_fact_is_blocked_alone(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.progress("p1")
    await scene.append("bad", "runner.logs", LOGS | {"lines": ["one"]})
    await scene.progress("p2")
    async with scene.dispatching():
        report = await scene.reported("blocked")
        assert report.blocked == ("bad",)
        await scene.eventually(
            lambda: scene.functions.delivery_status(ORG, "run", "p1"),
            lambda status: status == "delivered",
        )
    assert await scene.functions.delivery_status(ORG, "run", "bad") == "blocked"
    assert (await scene.ledger())[2:] == ["run.progress"]


async def test_an_invalid_search_fact_is_blocked_alone(scene: Scene) -> None:
    await scene.start()
    search = {"searchOnly": True}
    await scene.append("good", "runner.logs", LOGS | search)
    await scene.append("bad", "runner.logs", LOGS | search | {"lines": ["one"]})
    async with scene.dispatching():
        await scene.reported("blocked")
        await scene.eventually(
            lambda: scene.functions.delivery_status(ORG, "run", "good"),
            lambda status: status == "delivered",
        )
    assert await scene.functions.delivery_status(ORG, "run", "bad") == "blocked"


async def test_a_database_without_a_free_connection_charges_no_search_fact(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    await scene.start()
    await scene.append("s1", "runner.logs", LOGS | {"searchOnly": True})
    lane = SearchLane(scene.functions, "search")

    async def full(*_: object) -> None:
        raise PoolExhaustedError("no database connection came free in time")

    monkeypatch.setattr(scene.functions, "materialize_runtime_outbox_event", full)
    with pytest.raises(PoolExhaustedError):
        await lane.work()
    assert await scene.failures() == []
