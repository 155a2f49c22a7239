"""Steps of the run's own through the database: one call each, under the attempt's lease."""

from __future__ import annotations

import threading
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest

from counterfoil import Database, Functions, Run
from tests.py.worker.bench import ORG, Bench


async def test_a_long_step_of_the_runs_own_shows_as_running(bench: Bench) -> None:
    worker = bench.worker()
    go_on = threading.Event()
    calls: list[int] = []

    @worker.play("long")
    def long(run: Run) -> Any:
        def compute() -> str:
            calls.append(run.attempt)
            go_on.wait(30)
            return "done"

        return [run.step("wait", compute), run.step("wait", lambda: "again")]

    await bench.launch("long")
    query = "select status, claims, run_attempt as by, output from counterfoil.step_receipts"
    async with bench.working(worker):
        found = await bench.eventually(lambda: bench.rows(query), bool)
        assert found == [{"status": "running", "claims": 1, "by": 1, "output": None}]
        go_on.set()
        assert (await bench.ended())["result"] == ["done", "again"]
    assert calls == [1]
    done = {"status": "completed", "claims": 1, "by": 1}
    assert await bench.rows(query + " order by key") == [
        {**done, "output": "done"},
        {**done, "output": "again"},
    ]


async def test_more_steps_than_are_read_at_once_are_found_one_by_one(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.playing.receipts._RECALLED_RECEIPTS", 2)
    worker = bench.worker()
    calls: Counter[int] = Counter()

    def work(n: int) -> int:
        calls[n] += 1
        return n

    @worker.play("many")
    def many(run: Run) -> Any:
        found = [*run.map("work", work, range(5)), run.step("one", work, 5)]
        if run.attempt == 1:
            raise ConnectionError
        return [*found, run.step("two", work, 6)]

    await bench.launch("many")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == list(range(7))
    assert set(calls.values()) == {1}


async def test_the_longest_names_make_keys_that_can_be_stored(bench: Bench) -> None:
    worker = bench.worker()
    # Letters of four bytes that do not compress: as ids may be, by their length.
    play, run_id, name = (
        "".join(chr(0x20000 + n * 7919 % 40000) for n in range(start, start + 200))
        for start in (0, 200, 400)
    )

    @worker.play(play)
    def long(run: Run) -> Any:
        names = [name, name[:-1], name[:-1] + "x"]
        found = [run.step(step, lambda _, n=n: n, "same") for n, step in enumerate(names)]
        if run.attempt == 1:
            raise ConnectionError
        return found

    await bench.launch(play, run_id)
    async with bench.working(worker):
        assert (await bench.ended(run_id))["result"] == [0, 1, 2]
    (found,) = await bench.rows(
        "select sum(r.claims) as claims from counterfoil.step_receipts as r"
    )
    assert found == {"claims": 3}


async def test_a_step_of_the_runs_own_may_have_a_time(bench: Bench) -> None:
    worker = bench.worker()
    count = iter(range(100))

    @worker.play("rate")
    def rate(run: Run) -> Any:
        found = run.step("rate", lambda: next(count), ttl=3600)
        run.wait_for("go")
        return found

    async with bench.working(worker):
        for run_id, expected in (("kept", 0), ("forgotten", 2)):
            await bench.launch("rate", run_id)
            await bench.until(run_id, lambda run: run["status"] == "waiting")
            if run_id == "forgotten":
                await bench.rows("update counterfoil.step_receipts set expires_at = now()")
            await bench.functions.resume_run(ORG, run_id, "go", None, "signal")
            assert (await bench.ended(run_id))["result"] == expected


async def test_steps_go_on_when_no_connection_is_free_for_them(bench: Bench) -> None:
    worker = bench.worker(concurrency=1)
    worker.configure(replace(worker.settings, pool_max=1, pool_min=1))

    @worker.play("play")
    def play(run: Run) -> Any:
        return [run.step("s", lambda: 1), run.map("m", lambda n: n, range(3))]

    await bench.launch("play")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == [1, [0, 1, 2]]


async def test_claiming_a_step_leaves_no_later_commit_relaxed(installed: str) -> None:
    async with Database(installed, min_size=1, max_size=1) as database:
        bench = Bench(installed, Functions(database))
        await bench.launch("play")
        await bench.functions.claim_attempts("w", 1, 60, ["play"], "default")
        options = {"leaseAware": True, "leaseSeconds": 60}
        for key, relaxed in (("a", True), ("b", False)):
            (claim,) = await bench.functions.claim_receipts(
                ORG, "run", 1, [key], [key], options, relaxed=relaxed
            )
            assert claim.claimed
            assert await database.rows(
                dict, "select current_setting('synchronous_commit') as kept", {}
            ) == [{"kept": "on"}]
