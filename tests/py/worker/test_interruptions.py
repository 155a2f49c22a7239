"""Plays that are cancelled, lose their lease, or outlive their worker's patience."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from datetime import datetime, tzinfo
from typing import Any

import psycopg
import pytest

from counterfoil import (
    AsyncRun,
    AttemptLost,
    Run,
    RunCancelled,
    Settings,
    Worker,
    WorkerStopping,
)
from counterfoil.playing.engine import RECOVERY_BATCH
from tests.py.worker.bench import ORG, Bench


async def test_a_cancelled_play_is_told_at_its_next_call(bench: Bench) -> None:
    worker = bench.worker()
    told: list[type[BaseException]] = []

    @worker.play("endless")
    def endless(run: Run) -> None:
        run.log("begun")
        run.flush()
        try:
            while not run.cancelled:
                time.sleep(0.02)
                with contextlib.suppress(RunCancelled):
                    run.log("last words")
            run.step("tick", time.sleep, 0.02)
        except Exception:
            told.append(Exception)
        except RunCancelled:
            told.append(RunCancelled)
            with pytest.raises(RunCancelled):
                run.log("too late")
            raise

    await bench.launch("endless")
    async with bench.working(worker):
        await bench.eventually(bench.lines, bool)
        await bench.functions.cancel_run(ORG, "run", "enough")
        run = await bench.ended()
    assert run["status"] == "cancelled"
    assert told == [RunCancelled]
    assert set(await bench.lines()) == {"begun", "last words"}
    assert len(run["attempts"]) == 1


async def test_a_cancelled_coroutine_is_cancelled(bench: Bench) -> None:
    worker = bench.worker()
    cleaned = threading.Event()

    @worker.play("endless")
    async def endless(run: AsyncRun) -> None:
        run.log("begun")
        try:
            await asyncio.sleep(3600)
        finally:
            cleaned.set()

    await bench.launch("endless")
    async with bench.working(worker):
        await bench.eventually(bench.lines, bool)
        await bench.functions.cancel_run(ORG, "run", None)
        run = await bench.ended()
    assert run["status"] == "cancelled"
    assert cleaned.is_set()


@pytest.mark.parametrize("kind", ["plain", "coroutine"])
async def test_a_play_whose_lease_was_lost_writes_nothing_more(bench: Bench, kind: str) -> None:
    """The lease is taken by another worker while the play computes."""
    zombie, heir = bench.worker(name="zombie"), bench.worker(name="heir")
    stuck, go_on = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []

    def compute(run: Any) -> str:
        if run.attempt == 1:
            stuck.set()
            go_on.wait(30)
        return f"by {run.attempt}"

    def plain(run: Run) -> str:
        try:
            return str(run.step("s", lambda: compute(run)))
        except AttemptLost:
            told.append(AttemptLost)
            for call in (
                lambda: run.log("late"),
                lambda: run.progress({"late": True}),
                lambda: run.step("late", lambda: 1),
                run.flush,
            ):
                with pytest.raises(AttemptLost):
                    call()
            raise

    async def coroutine(run: AsyncRun) -> str:
        try:
            return str(await run.step("s", lambda: compute(run)))
        except (asyncio.CancelledError, AttemptLost) as error:
            told.append(type(error))
            with pytest.raises(AttemptLost):
                run.log("late")
            raise

    for worker in (zombie, heir):
        worker.play("lose")(plain if kind == "plain" else coroutine)
    await bench.launch("lose", maxAttempts=2)
    async with bench.working(zombie):
        await asyncio.to_thread(stuck.wait, 20)
        await bench.expire()
        async with bench.working(heir):
            run = await bench.ended()
        go_on.set()
    assert run["status"] == "completed"
    assert run["result"] == "by 2"
    assert [attempt["status"] for attempt in run["attempts"]] == ["lost", "completed"]
    assert len(told) == 1
    assert await bench.lines() == []
    (receipt,) = await bench.rows("select output, run_attempt from counterfoil.step_receipts")
    assert receipt == {"output": "by 2", "run_attempt": 2}


async def test_a_stopping_worker_waits_for_its_plays(bench: Bench) -> None:
    # With its one place taken it has no claim under way that could still find the other run.
    worker = bench.worker(drain_seconds=30, concurrency=1)
    stuck, go_on = threading.Event(), threading.Event()

    @worker.play("slow")
    def slow(run: Run) -> str:
        stuck.set()
        go_on.wait(30)
        run.log("still allowed to talk")
        return run.step("s", lambda: "done")

    await bench.launch("slow")
    async with bench.working(worker):
        await asyncio.to_thread(stuck.wait, 20)
        worker.stop()
        await bench.launch("slow", "other")
        await asyncio.to_thread(go_on.set)
    run = await bench.run()
    assert run["status"] == "completed"
    assert await bench.lines() == ["still allowed to talk"]
    assert (await bench.run("other"))["status"] == "queued", "claims nothing more"


async def test_a_stopping_worker_gives_back_what_takes_too_long(bench: Bench) -> None:
    worker, heir = bench.worker(drain_seconds=0.1, name="first"), bench.worker(name="heir")
    stuck, go_on = threading.Event(), threading.Event()
    told: list[type[BaseException]] = []

    for each in (worker, heir):

        @each.play("slow")
        def slow(run: Run) -> list[str]:
            found = [run.step("one", lambda: f"by {run.attempt}")]
            if run.attempt == 1:
                run.log("said before")
                stuck.set()
                go_on.wait(30)
                try:
                    run.step("late", lambda: "late")
                except WorkerStopping:
                    told.append(WorkerStopping)
                    raise
            return found

    await bench.launch("slow")
    async with bench.working(worker):
        await asyncio.to_thread(stuck.wait, 20)
    async with bench.working(heir):
        run = await bench.ended()
    go_on.set()
    await bench.eventually(lambda: asyncio.sleep(0, told), bool)
    assert run["result"] == ["by 1"]
    assert [attempt["worker"] for attempt in run["attempts"]] == ["first", "heir"]
    assert await bench.lines() == ["said before"]


async def test_a_worker_survives_the_loss_of_every_connection(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("long")
    def long(run: Run) -> int:
        total = 0
        for n in range(60):
            total += run.step("n", lambda n: n, n)
            run.log(f"step {n}")
        return total

    await bench.launch("long", maxAttempts=1)
    connection = await psycopg.AsyncConnection.connect(bench.dsn, autocommit=True)
    async with connection, bench.working(worker):
        while (await bench.run())["endedAt"] is None:
            await connection.execute(
                "select pg_terminate_backend(a.pid) from pg_stat_activity as a"
                " where a.datname = current_database()"
                " and a.application_name like 'counterfoil worker%'"
            )
            await asyncio.sleep(0.3)
        run = await bench.run()
    assert run["status"] == "completed"
    assert run["result"] == sum(range(60))
    assert await bench.lines() == [f"step {n}" for n in range(60)]
    receipts = await bench.rows("select claims from counterfoil.step_receipts")
    assert len(receipts) == 60


async def test_a_wake_up_is_faster_than_the_poll(bench: Bench) -> None:
    worker = Worker(settings=Settings(dsn=bench.dsn, poll_seconds=600, recover_seconds=600))

    @worker.play("quick")
    def quick(run: Run) -> str:
        return "done"

    async with bench.working(worker):
        for n in range(3):
            await bench.eventually(
                lambda: bench.rows("select l.listener from counterfoil.listeners as l"), bool
            )
            await bench.launch("quick", f"run-{n}")
            await bench.ended(f"run-{n}")


@pytest.mark.parametrize("scope", ["org", "installation"])
async def test_a_place_that_comes_free_wakes_who_waits_for_it(bench: Bench, scope: str) -> None:
    """The worker that frees the place knows not the play that waits for it."""
    await bench.functions.set_admission_limits(
        ORG if scope == "org" else None, scope, {"maxActive": 1}
    )
    settings = Settings(dsn=bench.dsn, poll_seconds=600, recover_seconds=600)
    holder, waiter = Worker(settings=settings, concurrency=1), Worker(settings=settings)
    done = threading.Event()
    holder.play("holds")(lambda run: done.wait())
    waiter.play("waits")(lambda run: "done")
    await bench.launch("holds", "first")
    async with bench.working(holder):
        await bench.until("first", lambda run: run["status"] == "running")
        await bench.launch("waits", "second")
        async with bench.working(waiter):
            try:
                # Asleep is who has registered and looked once more.
                await bench.eventually(
                    lambda: bench.rows("select w.worker from counterfoil.workers as w"),
                    lambda workers: len(workers) == 2,
                )
                await bench.eventually(
                    lambda: bench.rows("select l.listener from counterfoil.listeners as l"),
                    lambda listeners: len(listeners) == 1,
                )
            finally:
                done.set()
            assert (await bench.ended("second"))["result"] == "done"


async def test_a_run_that_becomes_due_is_claimed_without_a_wake_up(bench: Bench) -> None:
    settings = Settings(dsn=bench.dsn, poll_seconds=0.3, recover_seconds=600, listen=False)
    worker = Worker(settings=settings)

    @worker.play("later")
    def later(run: Run) -> str:
        return "done"

    (row,) = await bench.rows(
        "select to_char((now() + interval '1 second') at time zone 'UTC',"
        ' \'YYYY-MM-DD"T"HH24:MI:SS.US"Z"\') as at'
    )
    await bench.launch("later", availableAt=row["at"])
    async with bench.working(worker):
        assert (await bench.ended())["result"] == "done"
    assert await bench.rows("select l.listener from counterfoil.listeners as l") == []


async def test_a_busy_worker_takes_back_all_that_was_lost_at_once(bench: Bench) -> None:
    lost = 2 * RECOVERY_BATCH + 1
    for number in range(lost):
        await bench.launch("elsewhere", f"lost-{number}")
    await bench.functions.claim_attempts("gone", lost, 5, ["elsewhere"], "default")
    await bench.rows(
        "update counterfoil.attempts set lease_expires_at = now() - interval '1 second'"
    )
    settings = Settings(dsn=bench.dsn, recover_seconds=2.0, listen=False)
    worker = Worker(settings=settings, concurrency=1)
    done = threading.Event()
    worker.play("busy")(lambda run: done.wait())
    await bench.launch("busy")

    async def taken_back() -> int:
        (row,) = await bench.rows(
            "select count(*) as n from counterfoil.runs where wait_kind = 'retry'"
        )
        return int(row["n"])

    async with bench.working(worker):
        try:
            await bench.until("run", lambda run: run["status"] == "running")
            await bench.eventually(taken_back, bool)
            first_seen_at = time.monotonic()
            await bench.eventually(taken_back, lambda n: n == lost)
            assert time.monotonic() - first_seen_at < 1.5, "not batch by batch"
        finally:
            done.set()


async def test_a_worker_whose_clock_is_slow_claims_what_is_due(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the database's clock counts: a clock of dates in the module, if it has one, lags."""

    class Slow(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Slow:
            return cls.fromtimestamp(time.time() - 3600, tz)

    monkeypatch.setattr("counterfoil.playing.engine.datetime", Slow, raising=False)
    settings = Settings(dsn=bench.dsn, poll_seconds=0.1, recover_seconds=600, listen=False)
    worker = Worker(settings=settings)
    worker.play("quick")(lambda run: "done")
    async with bench.working(worker):
        await bench.eventually(
            lambda: bench.rows("select w.worker from counterfoil.workers as w"), bool
        )
        await bench.launch("quick")
        assert (await bench.ended())["result"] == "done"
