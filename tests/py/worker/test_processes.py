"""Worker processes: signals, and the rights that they need."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from counterfoil.stack import Stack
from tests.py.worker.bench import ORG, Bench

PROGRAM = """
import pathlib, time
from counterfoil import Worker

worker = Worker()
folder = pathlib.Path(__file__).parent

def wait_until_told(attempt):
    (folder / f"stuck-{attempt}").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return attempt

@worker.play("slow")
def slow(run, given):
    run.log("begins")
    found = run.step("wait", wait_until_told, run.attempt)
    run.log("ends")
    return found

@worker.play("everything")
async def everything(run, given):
    run.progress({"at": 1})
    await run.map("double", lambda n: n * 2, [1, 2, 3])
    await run.step("shared", lambda: 1, key="shared", ttl=60)
    if run.attempt == 1:
        raise ConnectionError("again")
    return await run.wait_for("go")

if __name__ == "__main__":
    worker.run()
"""


@pytest.fixture
def stack(bench: Bench, tmp_path: Path) -> Stack:
    (tmp_path / "program.py").write_text(PROGRAM)
    return Stack(
        tmp_path,
        {
            "COUNTERFOIL_DSN": bench.dsn,
            "COUNTERFOIL_ATTEMPT_LEASE": "5",
            "COUNTERFOIL_RECOVER_SECONDS": "0.3",
            "COUNTERFOIL_POLL_SECONDS": "0.3",
        },
    )


def start(stack: Stack, name: str, *options: str) -> int:
    member = stack.start(name, "worker", str(stack.folder / "program.py"), "--name", name, *options)
    stack.wait_for_message(name, "worker started")
    return member.process.pid


async def seen(path: Path) -> bool:
    return await asyncio.to_thread(path.exists)


async def test_sigterm_lets_plays_end_and_the_process_exit_with_0(
    bench: Bench, stack: Stack, tmp_path: Path
) -> None:
    await bench.launch("slow")
    with stack:
        pid = start(stack, "worker")
        await bench.eventually(lambda: seen(tmp_path / "stuck-1"), bool)
        os.kill(pid, signal.SIGTERM)
        member = stack.members["worker"]

        async def draining() -> bool:
            return '"message": "draining"' in member.said()

        await bench.eventually(draining, bool)
        (tmp_path / "go").touch()
        assert member.process.wait(20) == 0
    run = await bench.run()
    assert run["status"] == "completed"
    assert await bench.lines() == ["begins", "ends"]


@pytest.mark.parametrize("own", [False, True], ids=["by-default", "its-own"])
def test_a_program_run_by_itself_says_what_it_does(
    bench: Bench, stack: Stack, tmp_path: Path, own: bool
) -> None:
    program = tmp_path / "program.py"
    if own:
        setup = 'import logging; logging.basicConfig(format="own: %(message)s", level="INFO")\n'
        program.write_text(setup + PROGRAM)
    process = subprocess.Popen(
        [sys.executable, program],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | dict(stack.environment) | {"COUNTERFOIL_WORKER_NAME": "it"},
    )
    assert process.stderr is not None
    first = process.stderr.readline()
    process.send_signal(signal.SIGTERM)
    rest = process.communicate(timeout=30)[1]
    assert process.returncode == 0
    if own:
        assert (first, rest.splitlines()[-1]) == ("own: worker started\n", "own: worker stopped")
    else:
        said = json.loads(first)
        assert (said["message"], said["worker"]) == ("worker started", "it")


async def test_a_second_sigterm_stops_at_once_and_loses_nothing(
    bench: Bench, stack: Stack, tmp_path: Path
) -> None:
    await bench.launch("slow")
    with stack:
        pid = start(stack, "first", "--drain-seconds", "600")
        await bench.eventually(lambda: seen(tmp_path / "stuck-1"), bool)
        member = stack.members.pop("first")
        os.kill(pid, signal.SIGTERM)

        async def draining() -> bool:
            return '"message": "draining"' in member.said()

        await bench.eventually(draining, bool)
        os.kill(pid, signal.SIGTERM)
        assert member.process.wait(10) == 128 + signal.SIGTERM
        assert (await bench.run())["status"] == "running"
        await bench.expire()
        (tmp_path / "go").touch()
        start(stack, "second")
        run = await bench.ended()
    assert run["status"] == "completed"
    assert [attempt["worker"] for attempt in run["attempts"]] == ["first", "second"]


async def test_sigterm_gives_back_what_takes_too_long(
    bench: Bench, stack: Stack, tmp_path: Path
) -> None:
    await bench.launch("slow")
    with stack:
        pid = start(stack, "first", "--drain-seconds", "0")
        await bench.eventually(lambda: seen(tmp_path / "stuck-1"), bool)
        member = stack.members.pop("first")
        os.kill(pid, signal.SIGTERM)
        assert member.process.wait(10) == 0, "does not wait for the play's thread"
        run = await bench.run()
        assert (run["status"], run["waitKind"]) == ("waiting", "retry")
        (tmp_path / "go").touch()
        start(stack, "second")
        assert (await bench.ended())["result"] == 2


async def test_a_worker_needs_the_role_of_a_worker_and_no_more(
    bench: Bench, stack: Stack, admin_dsn: str
) -> None:
    login = "cf_test_worker_login"
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute(f"drop role if exists {login}".encode())
        connection.execute(
            f"create role {login} login password 'x' in role counterfoil_worker".encode()
        )
    stack.environment = {
        **stack.environment,
        "COUNTERFOIL_DSN": make_conninfo(bench.dsn, user=login, password="x"),
    }
    try:
        await bench.launch("everything", maxAttempts=2)
        with stack:
            start(stack, "worker")
            await bench.until("run", lambda run: run["waitKind"] == "public")
            await bench.functions.resume_run(ORG, "run", "go", "gone", "signal")
            run = await bench.ended()
            said = stack.members["worker"].said()
        assert run["result"] == "gone"
        assert "permission denied" not in said
        assert "InsufficientPrivilege" not in said
    finally:
        with psycopg.connect(admin_dsn, autocommit=True) as connection:
            connection.execute(f"drop role {login}".encode())
