"""Log lines from a play, or a runner, through outbox, projector and journal to who reads them."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import psycopg
import pytest

from counterfoil import Run, Worker
from counterfoil.commands.journal import entries
from counterfoil.playing.outgoing import Outgoing
from tests.py.driver.scene import ORG, Scene


async def journal(scene: Scene, **options: Any) -> list[tuple[str | None, str | None]]:
    """(level, line) of the run's entries by position."""
    page = await scene.functions.search_journal(ORG, None, "run", order="position", limit=1000)
    assert page[-1].kind == "end"
    return [(row.level, row.line) for row in page[:-1]]


async def test_what_a_play_logs_is_in_the_journal_and_in_the_ledger(scene: Scene) -> None:
    worker = Worker(settings=replace(scene.settings, poll_seconds=0.1))

    @worker.play("play")
    def play(run: Run, given: object) -> str:
        run.log("one\ntwo", level="warning")
        run.log("three")
        return "done"

    await scene.launch()
    working = asyncio.create_task(worker.serve())
    async with scene.dispatching():
        await scene.eventually(
            lambda: scene.functions.get_run(ORG, "run"), lambda run: run["status"] == "completed"
        )
        await scene.all_delivered()
    worker.stop()
    await working
    assert await journal(scene) == [("warning", "one"), ("warning", "two"), (None, "three")]
    assert (await scene.ledger())[2:] == ["log.appended", "run.completed"]


async def test_terminal_lines_that_came_before_are_not_there_twice(scene: Scene) -> None:
    attempt = await scene.start(runtimeLogIdentity="origin")
    outgoing = Outgoing(attempt.attempt, attempt.lease_id, with_line_ids=True)
    outgoing.add_log("first\nsecond", {"level": "info"})
    [fact] = outgoing.take()
    [event] = fact["payload"]["events"]
    await scene.functions.append_facts(ORG, "run", [fact], attempt.attempt, attempt.lease_id)
    await scene.finish(
        attempt,
        terminalLogLines=["second", "third"],
        terminalLogContexts=[{"level": "info"}, None],
        terminalLogIds=[event["lineIds"][1], "another"],
    )
    async with scene.dispatching():
        await scene.all_delivered()
    assert await journal(scene) == [("info", "first"), ("info", "second"), (None, "third")]


async def test_following_shows_every_line_and_ends_with_the_run(scene: Scene) -> None:
    attempt = await scene.start()
    seen: list[str | None] = []

    async def follow() -> None:
        async for entry in entries(scene.functions, ORG, "run", follow=True):
            seen.append(entry.line)

    async def append(name: str, **flags: Any) -> None:
        payload = {"deferredProjection": True, "lines": [name], "lineContexts": [None]}
        await scene.append(name, "runner.logs", payload | flags)

    following = asyncio.create_task(follow())
    # The search lane's line is written first and may be indexed last.
    await append("a", searchOnly=True)
    await append("b")
    async with scene.dispatching():
        await scene.eventually(lambda: asyncio.sleep(0, list(seen)), lambda lines: len(lines) == 2)
        assert not following.done()
        await append("c")
        await scene.finish(attempt)
        await asyncio.wait_for(following, 20)
    assert seen == ["a", "b", "c"]


async def test_a_materialisation_ends_at_its_own_time_and_is_tried_again(scene: Scene) -> None:
    await scene.start()
    lines = [f"line {n} of many" for n in range(10_000)]
    await scene.append(
        "f", "runner.logs", {"searchOnly": True, "deferredProjection": True, "lines": lines}
    )
    [fact] = await scene.functions.claim_deliveries("me", 60, 64, 1, lane="search")
    with pytest.raises(psycopg.errors.QueryCanceled):
        await scene.functions.materialize_runtime_outbox_event(ORG, "f", "me", timeout_ms=5)
    assert await scene.rows("select 1 from counterfoil.run_journal") == []
    await scene.functions.release_delivery(ORG, "run", [fact.event_id], "me")
    async with scene.dispatching():
        await scene.eventually(
            lambda: scene.functions.delivery_status(ORG, "run", "f"),
            lambda status: status == "delivered",
        )
    [found] = await scene.rows("select count(*) as entries from counterfoil.run_journal")
    assert found["entries"] == 10_000


async def test_a_blocked_search_lane_delays_no_lifecycle_fact_nor_the_other_way_round(
    scene: Scene,
) -> None:
    attempt = await scene.start()
    flags = {"searchOnly": True, "deferredProjection": True}
    await scene.append("bad", "runner.logs", flags | {"lines": 7})
    await scene.append("behind", "runner.logs", flags | {"lines": ["behind"]})
    await scene.progress("p")
    await scene.finish(attempt)
    async with scene.dispatching():
        await scene.reported("blocked")
        await scene.eventually(scene.ledger, lambda types: types[-1:] == ["run.completed"])
        failures = await scene.failures()
        assert [(fact["event_id"], fact["state"]) for fact in failures] == [("bad", "blocked")]

        attempt = await scene.start("other")
        await scene.append(
            "stuck", "runner.logs", {"deferredProjection": True, "lines": 7}, "other"
        )
        await scene.append("found", "runner.logs", flags | {"lines": ["found"]}, "other")
        await scene.eventually(
            lambda: scene.functions.delivery_status(ORG, "other", "found"),
            lambda status: status == "delivered",
        )
        await scene.eventually(
            lambda: scene.functions.delivery_status(ORG, "other", "stuck"),
            lambda status: status == "blocked",
        )


async def test_maintenance_by_several_at_once_takes_each_thing_once(scene: Scene) -> None:
    await scene.rows(
        "insert into counterfoil.run_journal (org_id, run_id, identity, channel, position,"
        " producer_attempt, occurred_at, line, content_digest, event_id, recorded_at, terms)"
        " select 'org', 'gone', n::text, 'log', n, 1, now(), 'x', sha256(''), 'e',"
        " now() - interval '91 days', '{}' from generate_series(1, 1000) as n"
    )
    removed = 0
    while True:
        done = await asyncio.gather(*(scene.functions.maintain(100) for _ in range(4)))
        removed += sum(int(str(one["journalEntriesRemoved"])) for one in done)
        if not any(one["more"] for one in done):
            break
    assert removed == 1000
    assert await scene.rows("select 1 from counterfoil.run_journal") == []


async def test_no_text_is_an_error_to_look_for(scene: Scene) -> None:
    attempt = await scene.start()
    outgoing = Outgoing(attempt.attempt, attempt.lease_id, with_line_ids=False)
    outgoing.add_log("half a \ud800 surrogate and a nul\0byte", {})
    await scene.functions.append_facts(ORG, "run", outgoing.take())
    async with scene.dispatching():
        await scene.all_delivered()
    for query in ("\ud800", "nul\0byte", "l\0b"):
        page = await scene.functions.search_journal(ORG, query, mode="substring")
        assert [row.kind for row in page] == ["entry", "end"], query
    for query in ("\0", "\udfff" * 1000, "x\0" * 1000):
        page = await scene.functions.search_journal(ORG, query + "?")
        assert [row.kind for row in page] == ["end"]
    assert [row.kind for row in await scene.functions.search_runs(ORG, query="\0")] == ["end"]
    assert [row.kind for row in await scene.functions.search_runs(ORG, error="\ud800")] == ["end"]
