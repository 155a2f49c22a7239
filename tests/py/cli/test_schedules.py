"""`counterfoil schedule`, and a worker that fires what is due without being told."""

from __future__ import annotations

import asyncio

import psycopg
import pytest
from typer.testing import CliRunner

from counterfoil.cli import app
from counterfoil.worker import Worker


class Cli:
    """`counterfoil schedule` in this process: a dozen interpreters would take long to start."""

    def __init__(self, dsn: str) -> None:
        self.dsn = dsn

    def __call__(self, *arguments: str, code: int = 0) -> str:
        """What it prints."""
        answer = CliRunner().invoke(app, ["schedule", *arguments, "--dsn", self.dsn])
        assert answer.exit_code == code, answer.output
        return answer.output


@pytest.fixture
def cli(installed: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    monkeypatch.setenv("COLUMNS", "200")
    return Cli(installed)


def test_a_schedule_is_made_shown_paused_and_deleted(cli: Cli) -> None:
    """Each command once, as docs/schedules.md has it."""
    create = ("create", "nightly", "--cron", "30 2 * * *", "--play", "audit")
    made = cli(*create, "--time-zone", "Europe/Berlin", "--input", '{"depth": 2}')
    assert made.startswith("created, fires next at ")
    assert cli(*create, "--time-zone", "Europe/Berlin", "--input", '{"depth": 2}').startswith(
        "replayed"
    )
    said = cli(*create, "--time-zone", "UTC", "--input", '{"depth": 2}', code=1)
    assert "these differ: --time-zone." in said
    assert "what to do: Give --replace to replace it" in said
    assert cli(*create, "--replace").startswith("replaced, fires next at ")
    said = cli(*create, "--cron", "99 * * * *", code=1)
    assert "--cron: '99 * * * *': bad minute: minutes are 0 to 59" in said
    assert "Look at counterfoil schedule list." in cli("next", "none", code=1)
    assert "30 2 * * *" in cli("list")
    assert len(cli("next", "nightly", "--count", "3").splitlines()) == 3
    assert cli("pause", "nightly").strip() == "paused"
    assert cli(*create, "--input", "1", "--replace").strip() == "replaced, paused"
    assert "paused" in cli("list")
    assert cli("resume", "nightly").startswith("active, fires next at ")
    with psycopg.connect(cli.dsn, autocommit=True) as connection:
        connection.execute(
            "update counterfoil.schedules set last_outcome = 'refused', last_error = 'RL007: full'"
        )
    assert "refused: RL007:" in cli("list")
    assert cli("delete", "nightly").strip() == "deleted"
    assert "no schedules" in cli("list")


def test_a_worker_fires_what_is_due(cli: Cli, installed: str) -> None:
    """It was asleep when the schedule was made; the run is launched once and executed."""
    seen: list[object] = []
    worker = Worker(installed, schema="counterfoil", concurrency=2)

    @worker.play("audit")
    def audit(run: object, given: object) -> None:
        seen.append(given)
        worker.stop()

    cli("create", "often", "--cron", "* * * * *", "--play", "audit", "--input", "7")
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(
            "update counterfoil.schedules"
            " set next_fire_at = date_trunc('minute', now()), look_at = now()"
        )
        asyncio.run(asyncio.wait_for(worker.serve(), 60))
        runs = connection.execute(
            "select r.run_id, r.status from counterfoil.runs as r order by r.created_at"
        ).fetchall()
    assert seen == [7]
    assert runs[0][0].startswith("schedule:often:")
    assert runs[0][1] == "completed"
