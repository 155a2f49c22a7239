"""What the documents show works as they show it."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any

import pytest

from counterfoil import Database, Functions, Settings, Worker
from counterfoil.launching import admit_all
from counterfoil.playing.loading import load_worker
from tests.py.worker.bench import ORG, Bench

ROOT = Path(__file__).parents[3]


def first_program(document: str) -> str:
    """The first Python block of a document that makes a worker."""
    text = (ROOT / document).read_text()
    blocks: list[str] = re.findall(r"^```python\n(.*?)^```", text, re.M | re.S)
    return next(block for block in blocks if "worker = Worker()" in block)


async def result_of(
    dsn: str, program: str, play: str, given: Any, tmp_path: Path, name: str
) -> Any:
    """What the program's play returns for an input."""
    (tmp_path / f"{name}.py").write_text(program)
    worker: Worker = load_worker(str(tmp_path / f"{name}.py"))
    worker.configure(Settings(dsn=dsn, poll_seconds=0.2))
    async with Database(dsn, max_size=2) as database:
        bench = Bench(dsn, Functions(database))
        await bench.launch(play, input=given)
        async with bench.working(worker):
            return (await bench.ended())["result"]


async def test_the_play_of_the_readme(installed: str, tmp_path: Path) -> None:
    program = first_program("README.md")
    assert len(program.strip().splitlines()) <= 24
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_text("ink")
    found = await result_of(
        installed, program, "fingerprint", str(tmp_path / "folder"), tmp_path, "readme_plays"
    )
    expected = {str(tmp_path / "folder" / "a"): hashlib.sha256(b"ink").hexdigest()}
    assert found == expected


async def test_the_play_of_getting_started(installed: str, tmp_path: Path) -> None:
    given = {"customer": "Ada", "items": ["ink", "paper"]}
    program = first_program("docs/getting-started.md")
    found = await result_of(installed, program, "quote", given, tmp_path, "started_plays")
    assert found == {"customer": "Ada", "total": 24}


async def test_the_package_audit_of_the_examples(installed: str, tmp_path: Path) -> None:
    program = (ROOT / "examples/audit.py").read_text()
    found = await result_of(installed, program, "audit-package", "typer", tmp_path, "audit_plays")
    assert found["bad"] == []
    assert found["files"] > 3


async def test_all_rows_are_launched_or_none(
    installed: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("counterfoil.launching.LAUNCHES_PER_CALL", 2)
    launches = [
        {
            "orgId": ORG,
            "runId": f"run-{n}",
            "playId": "p",
            "playName": "p",
            "executorToken": "t",
            "baseUrl": "http://x",
            "priority": 5,
        }
        for n in range(5)
    ]
    async with Database(installed, max_size=1) as database:
        functions = Functions(database)
        bad = [*launches[:4], {**launches[4], "priority": 10}]
        with pytest.raises(Exception, match="priority") as caught:
            await admit_all(installed, "counterfoil", bad)
        assert caught.value.__notes__ == ["4"]
        assert await functions.list_runs(ORG) == []
        answers = await admit_all(installed, "counterfoil", launches)
        assert [answer.run_id for answer in answers] == [f"run-{n}" for n in range(5)]
        assert {answer.outcome for answer in answers} == {"admitted"}
