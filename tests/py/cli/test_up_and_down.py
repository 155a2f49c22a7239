"""The local stack: started once, left running, stopped whole, its data kept."""

from __future__ import annotations

import json
import os
import shutil
import socket
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest

from counterfoil.stack import Member, Stack, detached, free_port

PROGRAM = """
from counterfoil import Worker
worker = Worker()

@worker.play("double")
def double(run, n):
    return run.step("double", lambda: n * 2)

worker.run()
"""
PATIENCE = 60.0


class Home:
    """A folder with a stack of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        port = str(free_port())
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("COUNTERFOIL_")
        } | {
            "COUNTERFOIL_HOME": str(self.home),
            "COUNTERFOIL_PORT": port,
            "COUNTERFOIL_BASE_URL": f"http://127.0.0.1:{port}",
        }

    def __call__(self, *arguments: str, code: int = 0) -> str:
        answer = subprocess.run(
            [sys.executable, "-m", "counterfoil", *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment,
            timeout=180,
        )
        assert answer.returncode == code, answer.stdout + answer.stderr
        return answer.stdout + answer.stderr

    @contextmanager
    def working(self, *arguments: str) -> Iterator[None]:
        """A worker beside the stack, started by hand."""
        worker = subprocess.Popen(
            [sys.executable, "-m", "counterfoil", "worker", *arguments],
            cwd=self.folder,
            env=self.environment,
            stderr=subprocess.DEVNULL,
        )
        try:
            yield
        finally:
            worker.terminate()
            assert worker.wait(PATIENCE) == 0

    def processes(self) -> list[psutil.Process]:
        """Everything that runs on behalf of this home."""
        found = []
        for process in psutil.process_iter():
            try:
                environment = process.environ()
                if environment.get("COUNTERFOIL_HOME") == str(self.home) or any(
                    str(self.home) in part for part in process.cmdline()
                ):
                    found.append(process)
            except (psutil.NoSuchProcess, psutil.AccessDenied):
                continue
        return [process for process in found if process.status() != "zombie"]

    def run(self, run_id: str) -> dict[str, Any]:
        """The run, with its ledger, once it has ended there."""
        deadline = time.monotonic() + PATIENCE
        while True:
            document, _, events = self("run", run_id, "--events").partition("\n}\n")
            ledger = [json.loads(line) for line in events.splitlines()]
            if ledger and ledger[-1]["type"] == "run.completed":
                return {**json.loads(document + "}"), "ledger": ledger}
            assert time.monotonic() < deadline, (document, ledger)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    home = Home(tmp_path)
    # As root the server's data lie outside the home, where its account can reach them.
    state = Path(tempfile.mkdtemp(prefix="cf-state-", dir="/tmp"))
    state.chmod(0o711)
    home.environment["COUNTERFOIL_STATE"] = str(state)
    yield home
    home("down")
    shutil.rmtree(state)


def test_the_stack_is_started_used_stopped_and_started_again(home: Home) -> None:
    (home.folder / "plays.py").write_text(PROGRAM)
    (home.folder / "rows.jsonl").write_text("21\n")

    said = home("up", "plays.py")
    for name in ("gateway", "dispatcher", "worker-1"):
        assert f"{name} runs" in said
    assert "runs already (gateway, dispatcher, worker-1)" in home("up", code=1)
    assert stat.S_IMODE((home.home / "secrets.json").stat().st_mode) == 0o600
    kept = (home.home / "secrets.json").read_text()
    secret = json.loads(kept)["COUNTERFOIL_SIGNING_KEYS"].partition(":")[2]
    assert not any(secret in part for process in home.processes() for part in process.cmdline()), (
        "a secret stands on a command line"
    )

    home("launch", "--play", "double", "--input", "rows.jsonl", "--batch", "b")
    run = home.run("b-1")
    assert run["result"] == 42
    assert [event["type"] for event in run["ledger"]] == [
        "run.created",
        "run.started",
        "run.completed",
    ]
    assert "stopped worker-1, dispatcher, gateway, server" in home("down")
    assert home.processes() == []
    assert "nothing was running" in home("down")

    home("up")
    assert (home.home / "secrets.json").read_text() == kept
    assert home.run("b-1")["result"] == 42

    with home.working("plays.py", "--receipts", "gateway"):
        home("launch", "--play", "double", "--input", "rows.jsonl", "--batch", "g")
        run = home.run("g-1")
    assert (run["result"], run["attempt"]) == (42, 1)


def test_a_port_that_somebody_else_listens_on_is_refused(home: Home) -> None:
    """He may answer like a gateway, and refuse every delivery."""
    with socket.create_server(("127.0.0.1", int(home.environment["COUNTERFOIL_PORT"]))):
        said = home("up", code=1)
    assert "Address already in use" in said
    assert "COUNTERFOIL_PORT" in said
    assert home.processes() == []


def test_a_worker_that_cannot_start_is_reported_and_nothing_is_left(home: Home) -> None:
    said = home("up", "none.py", code=1)
    assert "none.py: no such file" in said
    home("down")
    assert home.processes() == []


def test_a_member_is_known_again_after_the_clock_was_set(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On Linux psutil reckons a start time back from the clock: it moves when that is set."""
    stack = Stack(tmp_path, {}, detached=True)
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    try:
        stack.members["gateway"] = Member("gateway", process, tmp_path / "gateway.log")
        stack.detach()
        if sys.platform.startswith("linux"):
            monkeypatch.setattr(psutil.Process, "create_time", lambda self: time.time() + 3600)
        assert [found.pid for found in detached(tmp_path).values()] == [process.pid]
        # Another process that has got the id meanwhile is not taken for it.
        known = json.loads((tmp_path / "stack.json").read_text(encoding="utf-8"))
        known[0]["pid"] = os.getpid()
        (tmp_path / "stack.json").write_text(json.dumps(known), encoding="utf-8")
        assert detached(tmp_path) == {}
    finally:
        process.kill()
        process.communicate()
