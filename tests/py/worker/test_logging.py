"""Python's logging of a play in the run's log, and no line lost at SIGTERM."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from counterfoil import AsyncRun, Run, RunLogHandler
from counterfoil.playing import base_run, outgoing
from counterfoil.stack import Stack
from tests.py.worker.bench import Bench

ours = logging.getLogger("ours")

PROGRAM = """
import logging, pathlib
from counterfoil import RunLogHandler, Worker

worker = Worker()
logging.getLogger("ours").setLevel("INFO")
logging.getLogger().addHandler(RunLogHandler())
said = pathlib.Path(__file__).with_name("said")

@worker.play("talks")
def talks(run, given):
    number = 0
    while True:
        number += 1
        logging.getLogger("ours").info("handler %s", number)
        run.log(f"run {number}")
        said.write_text(str(number))
"""


@pytest.fixture(autouse=True)
def _handled() -> Iterator[None]:
    handler = RunLogHandler()
    ours.addHandler(handler)
    ours.setLevel("INFO")
    yield
    ours.removeHandler(handler)


async def test_logging_of_plays_and_their_steps_becomes_their_runs_log(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("plain")
    def plain(run: Run) -> None:
        ours.warning("in %s", "the play")
        run.step("step", lambda: ours.info("in a step"))
        run.map("each", lambda n: ours.info("in map"), [1, 2])
        logging.getLogger("counterfoil.x").warning("not the play's")
        ours.debug("below the level")

    @worker.play("coroutine")
    async def coroutine(run: AsyncRun) -> None:
        ours.info("in a coroutine")
        await asyncio.gather(asyncio.to_thread(ours.info, "in a thread"))

    await bench.launch("plain", "plain")
    await bench.launch("coroutine", "coroutine")
    ours.info("in no play")
    async with bench.working(worker):
        await bench.ended("plain")
        await bench.ended("coroutine")
    assert await bench.lines("plain") == ["in the play", "in a step", "in map", "in map"]
    assert await bench.lines("coroutine") == ["in a coroutine", "in a thread"]
    (first, *_) = [p["events"][0] for k, p in await bench.facts("plain") if k == "run.events"]
    assert first["lineContexts"][0] == {"level": "warning", "logger": "ours"}


async def test_a_play_that_says_much_waits_but_not_for_long(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker = bench.worker()
    monkeypatch.setattr(base_run, "MAX_WAITING", 5)
    monkeypatch.setattr(Run, "_pressure_seconds", 0.02)
    begun, locked, said = threading.Event(), threading.Event(), threading.Event()
    spent: list[float] = []

    @worker.play("talks")
    def talks(run: Run) -> None:
        begun.set()
        assert locked.wait(20)
        for number in range(20):
            began = time.monotonic()
            ours.info("line %s", number)
            spent.append(time.monotonic() - began)
        said.set()

    await bench.launch("talks")
    async with bench.working(worker):
        assert await asyncio.to_thread(begun.wait, 20)
        connection = await psycopg.AsyncConnection.connect(bench.dsn)
        await connection.execute("select 1 from counterfoil.runs for update")
        locked.set()
        # Nothing can be stored, and still the play comes to the end of what it says.
        assert await asyncio.to_thread(said.wait, 20)
        await connection.close()
        await bench.ended()
    assert await bench.lines() == [f"line {number}" for number in range(20)]
    assert sorted(spent)[-10] >= 0.02


async def test_lines_taken_up_when_the_worker_stops_are_sent(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(outgoing, "_LINES_PER_EVENT", 1)
    monkeypatch.setattr(outgoing, "_FACTS_PER_CALL", 1)
    worker = bench.worker(drain_seconds=0)
    begun, locked, said = threading.Event(), threading.Event(), threading.Event()

    @worker.play("talks")
    def talks(run: Run) -> None:
        begun.set()
        assert locked.wait(20)
        run.log("one")
        run.log("two")
        said.set()
        run.sleep(60)

    await bench.launch("talks")
    async with bench.working(worker):
        assert await asyncio.to_thread(begun.wait, 20)
        connection = await psycopg.AsyncConnection.connect(bench.dsn)
        await connection.execute("select 1 from counterfoil.runs for update")
        locked.set()
        assert await asyncio.to_thread(said.wait, 20)
        await bench.eventually(
            lambda: bench.rows("select 1 from pg_stat_activity where wait_event_type = 'Lock'"),
            bool,
        )
        # The first line is on its way, the second one comes up when the run is given back.
        worker.stop()
        await connection.close()
    assert await bench.lines() == ["one", "two"]


async def test_no_line_is_lost_at_sigterm(bench: Bench, tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    await bench.launch("talks")
    with Stack(tmp_path, {"COUNTERFOIL_DSN": bench.dsn}) as stack:
        member = stack.start("w", "worker", str(program), "--drain-seconds", "0")

        async def has_said_much() -> bool:
            said = tmp_path / "said"
            text = said.read_text() if said.exists() else ""
            return bool(text) and int(text) > 500

        await bench.eventually(has_said_much, bool)
        os.kill(member.process.pid, signal.SIGTERM)
        assert member.process.wait(20) == 0
    lines = await bench.lines()
    said = int((tmp_path / "said").read_text())
    for who in ("handler", "run"):
        stored = [line for line in lines if line.startswith(who)]
        assert stored == [f"{who} {number + 1}" for number in range(len(stored))]
        assert len(stored) >= said
