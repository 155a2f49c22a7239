"""A worker executes plays: results, log, progress, errors."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from counterfoil import AsyncRun, InvalidArgumentError, NotPlainError, PermanentError, Run
from tests.py.worker.bench import Bench


async def test_the_play_of_the_contract_works_word_for_word(bench: Bench) -> None:
    worker = bench.worker()

    def list_files(package: str) -> list[str]:
        return [f"{package}/a.py", f"{package}/b.py"]

    def check_hashes(files: list[str]) -> list[str]:
        return files[1:]

    # fmt: off
    @worker.play("audit-package")
    def audit(run, package):  # type: ignore[no-untyped-def]
        files = run.step("inventory", list_files, package)     # memoised: never repeated after success  # noqa: E501
        bad = run.step("hashes", check_hashes, files)
        run.log(f"{len(files)} files checked"); run.progress({"done": len(files)})  # noqa: E702
        return {"files": len(files), "bad": bad}
    # fmt: on

    await bench.launch("audit-package", input="pip")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["status"] == "completed"
    assert run["result"] == {"files": 2, "bad": ["pip/b.py"]}
    facts = await bench.facts()
    assert [kind for kind, _ in facts] == [
        "run.created",
        "run.started",
        "run.events",
        "run.progress",
        "run.completed",
    ]
    assert await bench.lines() == ["2 files checked"]
    assert facts[3][1] == {"done": 2}


async def test_a_coroutine_plays_the_same(bench: Bench) -> None:
    worker = bench.worker()

    async def fetch(name: str) -> str:
        await asyncio.sleep(0)
        return name.upper()

    def measure(text: str) -> int:
        return len(text)

    @worker.play("shout")
    async def shout(run: AsyncRun, name: str) -> dict[str, Any]:
        loud = await run.step("fetch", fetch, name)
        length = await run.step("measure", measure, loud)
        many = await run.map("many", fetch, ["a", "b", "c"], parallel=2)
        run.log("said", level="info")
        await run.flush()
        return {"loud": loud, "length": length, "many": many}

    await bench.launch("shout", input="ada")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["result"] == {"loud": "ADA", "length": 3, "many": ["A", "B", "C"]}
    assert await bench.lines() == ["said"]


async def test_a_plain_play_may_await_steps_that_are_coroutines(bench: Bench) -> None:
    worker = bench.worker()

    async def fetch(name: str) -> str:
        return name.upper()

    @worker.play("mixed")
    def mixed(run: Run, name: str) -> Any:
        return run.map("fetch", fetch, [name, "x"])

    await bench.launch("mixed", input="ada")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == ["ADA", "X"]


async def test_a_play_knows_its_run(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("know")
    def know(run: Run) -> dict[str, Any]:
        assert run.context["maxAttempts"] == 7
        return {
            "id": run.id,
            "org": run.org_id,
            "play": run.play,
            "attempt": run.attempt,
            "input": run.input,
            "cancelled": run.cancelled,
        }

    await bench.launch("know", input={"a": [1]}, maxAttempts=7)
    async with bench.working(worker):
        run = await bench.ended()
    assert run["result"] == {
        "id": "run",
        "org": "org",
        "play": "know",
        "attempt": 1,
        "input": {"a": [1]},
        "cancelled": False,
    }


async def test_log_and_progress_arrive_while_the_play_runs(bench: Bench) -> None:
    worker = bench.worker()
    go_on = threading.Event()

    @worker.play("talk")
    def talk(run: Run) -> None:
        for n in range(450):
            run.log(f"line {n}")
        run.progress({"done": 1})
        run.log("a\x00b\ud800c", level="warning", count=2)
        go_on.wait(30)
        run.log("last")

    await bench.launch("talk")
    async with bench.working(worker):
        await bench.eventually(bench.lines, lambda lines: len(lines) == 451)
        assert (await bench.run())["status"] == "running"
        go_on.set()
        await bench.ended()
    assert await bench.lines() == [*(f"line {n}" for n in range(450)), "a\ufffdb\ufffdc", "last"]
    facts = await bench.facts()
    assert [kind for kind, _ in facts].count("run.events") <= 6, "lines travel together"
    (contexts,) = [
        event["lineContexts"]
        for _, payload in facts
        for event in payload.get("events", [])
        if event["lines"] == ["a\ufffdb\ufffdc"]
    ]
    assert contexts == [{"level": "warning", "count": 2}]


async def test_an_error_is_tried_again_until_the_attempts_are_used_up(bench: Bench) -> None:
    worker = bench.worker()
    attempts = []

    @worker.play("stumble")
    def stumble(run: Run) -> None:
        attempts.append(run.attempt)
        run.log(f"attempt {run.attempt}")
        raise ConnectionError("no\x00 luck")

    await bench.launch("stumble", maxAttempts=2)
    async with bench.working(worker):
        run = await bench.ended()
    assert attempts == [1, 2]
    assert run["status"] == "failed"
    assert run["error"]["message"] == "no\ufffd luck"
    assert run["error"]["type"] == "ConnectionError"
    trace = run["attempts"][0]["error"]["details"]["trace"]
    assert trace[-1].startswith("test_playing.py:")
    assert trace[-1].endswith("in stumble")
    assert await bench.lines() == ["attempt 1", "attempt 2"]


class Mute(PermanentError):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        return str(1 // 0)


@pytest.mark.parametrize("kind", ["permanent", "result", "exit", "size", "mute", "mute step"])
async def test_what_trying_again_cannot_mend_fails_at_once(bench: Bench, kind: str) -> None:
    worker = bench.worker()

    def mute() -> None:
        raise Mute

    @worker.play("hopeless")
    def hopeless(run: Run) -> Any:
        if kind == "permanent":
            raise PermanentError("never")
        if kind == "exit":
            raise SystemExit(3)
        if kind == "mute":
            raise Mute
        if kind == "mute step":
            run.step("mute", mute)
        return object() if kind == "result" else "x" * 1_100_000

    await bench.launch("hopeless", maxAttempts=2)
    async with bench.working(worker):
        run = await bench.ended()
    assert run["status"] == "failed"
    assert len(run["attempts"]) == (2 if kind == "exit" else 1)
    said = {
        "permanent": "never",
        "result": "the play's result is not a plain value: $ is an object",
        "exit": "3",
        "size": "bytes",
        "mute step": "no message: ZeroDivisionError while it was made",
        "mute": "no message: ZeroDivisionError while it was made",
    }
    assert said[kind] in run["error"]["message"]


async def test_coroutines_that_exit_or_fail_end_only_themselves(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("leave")
    async def leave(run: AsyncRun, how: str) -> str:
        if how == "exit":
            raise SystemExit(1)
        if how == "raise":
            raise ValueError("no")
        return "fine"

    for how in ("exit", "raise", "stay"):
        await bench.launch("leave", how, input=how, maxAttempts=1)
    async with bench.working(worker):
        statuses = [(await bench.ended(how))["status"] for how in ("exit", "raise", "stay")]
    assert statuses == ["failed", "failed", "completed"]


async def test_arguments_that_cannot_be_stored_are_refused_where_they_are_given(
    bench: Bench,
) -> None:
    worker = bench.worker()
    refused: list[str] = []

    @worker.play("wrong")
    def wrong(run: Run) -> None:
        for call in (
            lambda: run.step("s", int, object()),
            lambda: run.step("", int),
            lambda: run.step("s", int, key=""),
            lambda: run.progress({"a": object()}),
            lambda: run.progress("half"),  # type: ignore[arg-type]
            lambda: run.map("m", int, [1], parallel=0),
            lambda: run.sleep(-1),
        ):
            try:
                call()
            except (TypeError, ValueError, NotPlainError, InvalidArgumentError) as error:
                refused.append(str(error))
        run.log("x", shape=1)

    await bench.launch("wrong")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["status"] == "completed"
    assert len(refused) == 7


async def test_many_runs_of_several_orgs_share_workers(bench: Bench) -> None:
    workers = [bench.worker(concurrency=3), bench.worker(concurrency=3)]
    running: set[str] = set()
    most = 0

    for worker in workers:

        @worker.play("count")
        def count(run: Run, n: int) -> int:
            nonlocal most
            running.add(run.id)
            most = max(most, len(running))
            run.log(f"{n}")
            running.discard(run.id)
            return n * 2

    for n in range(40):
        await bench.launch("count", f"run-{n}", input=n)
    async with bench.working(*workers):
        found = [await bench.ended(f"run-{n}") for n in range(40)]
    assert [run["result"] for run in found] == [n * 2 for n in range(40)]
    assert {len(run["attempts"]) for run in found} == {1}
    assert most <= 6
