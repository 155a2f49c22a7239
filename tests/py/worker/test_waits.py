"""Runs that wait: for an event, for a time, across workers and attempts."""

from __future__ import annotations

from collections import Counter
from typing import Any

from counterfoil import AsyncRun, Run, Worker
from counterfoil.errors import InvalidArgumentError
from counterfoil.settings import Settings
from tests.py.worker.bench import ORG, Bench


def waiting(run: dict[str, Any]) -> bool:
    return run["status"] == "waiting" and run["waitKind"] == "public"


async def test_a_wait_ends_with_the_event_on_any_worker(bench: Bench) -> None:
    calls: Counter[str] = Counter()
    workers = [bench.worker(name="first"), bench.worker(name="second")]

    def count(name: str) -> str:
        calls[name] += 1
        return name

    for worker in workers:

        @worker.play("approve")
        def approve(run: Run) -> Any:
            before = run.step("before", count, "before")
            run.log("asks")
            first = run.wait_for("approved")
            second = run.wait_for("approved")
            return [before, first, second, run.step("after", count, "after"), run.attempt]

    await bench.launch("approve")
    async with bench.working(workers[0]):
        run = await bench.until("run", waiting)
    assert run["waitEvent"] == "approved"
    await bench.functions.resume_run(ORG, "run", "approved", {"by": "Ada"}, "signal-1")
    await bench.functions.resume_run(ORG, "run", "approved", {"by": "Ada"}, "signal-1")
    async with bench.working(workers[1]):
        await bench.eventually(
            bench.facts, lambda facts: [kind for kind, _ in facts].count("run.waiting") == 2
        )
        await bench.functions.resume_run(ORG, "run", "approved", [1], "signal-2")
        run = await bench.ended()
    assert run["result"] == ["before", {"by": "Ada"}, [1], "after", 1]
    assert calls == {"before": 1, "after": 1}
    kinds = [kind for kind, _ in await bench.facts()]
    assert kinds.count("run.waiting") == kinds.count("run.resumed") == 2
    assert (await bench.lines())[0] == "asks"


async def test_an_event_before_its_wait_is_kept(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("early")
    async def early(run: AsyncRun) -> Any:
        return await run.wait_for("go", timeout=3600)

    await bench.launch("early")
    await bench.functions.resume_run(ORG, "run", "go", "now", "signal")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == "now"
    assert "run.waiting" not in [kind for kind, _ in await bench.facts()]


async def test_a_wait_times_out_and_a_sleep_ends(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("patient")
    async def patient(run: AsyncRun) -> str:
        await run.sleep(3600)
        try:
            await run.wait_for("never", timeout=3600)
        except TimeoutError as error:
            return str(error)
        return "?"

    await bench.launch("patient")
    async with bench.working(worker):
        for event in (None, "never"):
            await bench.until(
                "run", lambda run, event=event: waiting(run) and run["waitEvent"] == event
            )
            await bench.rows("update counterfoil.runs set wake_at = now()")
            await bench.rows("update counterfoil.run_queue set ready_at = now()")
        run = await bench.ended()
    assert run["result"] == "no event 'never' came in time"
    assert len(run["attempts"]) == 1


async def test_a_sleep_and_a_retry_end_at_their_time_not_at_the_next_poll(bench: Bench) -> None:
    settings = Settings(dsn=bench.dsn, poll_seconds=600, recover_seconds=600, listen=False)
    worker = Worker(settings=settings)

    @worker.play("short")
    def short(run: Run) -> str:
        run.sleep(0.3)
        if run.attempt == 1:
            raise ValueError("again")
        return "awake"

    await bench.launch("short", retryPolicy={"backoffBaseMs": 300})
    async with bench.working(worker):
        run = await bench.ended()
    assert (run["result"], run["attempt"]) == ("awake", 2)


async def test_a_later_attempt_gets_the_answer_of_an_earlier_wait(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("again")
    def again(run: Run) -> Any:
        answer = run.wait_for("go")
        if run.attempt == 1:
            raise ConnectionError
        return [answer, run.attempt]

    await bench.launch("again")
    async with bench.working(worker):
        await bench.until("run", waiting)
        await bench.functions.resume_run(ORG, "run", "go", "answer", "signal")
        run = await bench.ended()
    assert run["result"] == ["answer", 2]


async def test_a_waiting_run_can_be_cancelled(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("wait")
    def wait(run: Run) -> Any:
        return run.wait_for("go")

    await bench.launch("wait")
    async with bench.working(worker):
        await bench.until("run", waiting)
        await bench.functions.cancel_run(ORG, "run", "no more")
        assert (await bench.ended())["status"] == "cancelled"


async def test_a_step_cannot_wait(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("inside")
    def inside(run: Run) -> Any:
        try:
            run.step("s", lambda: run.wait_for("go"))
        except RuntimeError as error:
            return str(error)

    await bench.launch("inside")
    async with bench.working(worker):
        assert "a step cannot wait" in (await bench.ended())["result"]


async def test_a_duration_that_is_none_is_refused_by_name(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("hostile")
    def hostile(run: Run) -> list[str]:
        said = []
        for call in (
            lambda: run.sleep(float("nan")),
            lambda: run.sleep(float("inf")),
            lambda: run.wait_for("go", timeout=1e15),
            lambda: run.wait_for("go", timeout="soon"),  # type: ignore[arg-type]
            lambda: run.step("s", int, ttl=float("nan")),
        ):
            try:
                call()
            except ValueError as error:
                said.append(str(error))
        try:
            run.sleep(1e12)
        except InvalidArgumentError as error:
            said.append(error.reason)
        return said

    await bench.launch("hostile")
    async with bench.working(worker):
        said = (await bench.ended())["result"]
    assert [text.partition(";")[0] for text in said] == [
        "the duration of run.sleep() is nan",
        "the duration of run.sleep() is inf",
        "the timeout of run.wait_for() is 1000000000000000.0",
        "the timeout of run.wait_for() is 'soon'",
        "the ttl of run.step() is nan",
        "p_wake_after",
    ]
