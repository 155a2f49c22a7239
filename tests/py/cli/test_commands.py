"""The command line as people use it: processes, exit codes, what is said where."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from typer.testing import CliRunner

from counterfoil.cli import app
from counterfoil.kept_secrets import keep_secrets
from counterfoil.launching import admit_all
from tests.servers.databases import create_database, drop_database


class Cli:
    """Runs `counterfoil` in a folder of its own against one database."""

    def __init__(self, dsn: str, folder: Path) -> None:
        self.folder = folder
        self.environment = {
            key: value for key, value in os.environ.items() if not key.startswith("COUNTERFOIL_")
        } | {"COUNTERFOIL_DSN": dsn, "COLUMNS": "200"}

    def __call__(self, *arguments: str, code: int = 0, **environment: str) -> str:
        """Standard output, or standard error where the exit code is not 0."""
        answer = subprocess.run(
            [sys.executable, "-m", "counterfoil", *arguments],
            capture_output=True,
            text=True,
            cwd=self.folder,
            env=self.environment | environment,
            timeout=120,
        )
        assert answer.returncode == code, answer.stdout + answer.stderr
        assert "Traceback" not in answer.stderr
        return answer.stdout if code == 0 else answer.stderr + answer.stdout

    def write(self, name: str, text: str) -> str:
        """A file in the folder; its name."""
        (self.folder / name).write_text(text)
        return name

    def document(self, run_id: str, *options: str) -> dict[str, Any]:
        """What `counterfoil run` shows."""
        found: dict[str, Any] = json.loads(self("run", run_id, *options))
        return found


@pytest.fixture
def cli(installed: str, tmp_path: Path) -> Cli:
    return Cli(installed, tmp_path)


def test_the_schema_is_planned_installed_shown_and_proved(
    database: str, admin_dsn: str, tmp_path: Path
) -> None:
    cli = Cli(database, tmp_path)
    assert "not installed" in cli("status", code=1)
    plan = cli("plan")
    assert "create table counterfoil.runs" in plan
    assert "schema counterfoil: version" in cli("migrate")
    assert "nothing to do" in cli("migrate")
    assert "pending" not in cli("status")
    cli("verify")
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("drop index counterfoil.runs_recent_idx")
    assert "runs_recent_idx" in cli("verify", code=1)
    assert "create role" in cli("roles")
    assert "no migration to come" in cli("prepare-indexes")

    other = create_database(admin_dsn)
    try:
        assert "version" in cli("migrate", "--dsn", other, "--schema", "billing")
        cli("verify", "--dsn", other, "--schema", "billing")
    finally:
        drop_database(admin_dsn, other)


def test_errors_are_told_in_a_sentence(cli: Cli, database: str, tmp_path: Path) -> None:
    said = cli("migrate", "--dsn", "host=/nowhere dbname=x", code=1)
    assert said.startswith("error: ")
    assert "what to do:" in said
    assert "dsn is no connection string" in cli("verify", "--dsn", "sesame", code=1)
    assert "counterfoil migrate" in cli("runs", "--dsn", database, code=1)
    assert "pool_max" in cli("runs", code=1, COUNTERFOIL_POOL_MAX="many")
    assert "unknown setting" in cli("runs", "--config", cli.write("c.toml", "x = 1"), code=1)
    assert "no such file" in cli("worker", "none.py", code=1)
    assert "run_not_found" in cli("run", "none", code=1)
    assert "what to do: Check --org and RUN_ID." in cli("cancel", "none", code=1)
    assert "error: --status is no status." in cli("runs", "--status", "x", code=1)
    assert "not JSON" in cli("resume", "none", "go", "--payload", "{", code=1)
    assert "lease_seconds is 5 to 300" in cli(
        "worker", "counterfoil.demonstration.play", "--lease-seconds", "1", code=1
    )
    through_the_gateway = ("worker", "counterfoil.demonstration.play", "--receipts", "gateway")
    for command in (through_the_gateway, ("gateway",), ("dispatch",)):
        said = cli(*command, code=1)
        assert "signing_keys is empty: set COUNTERFOIL_SIGNING_KEYS" in said
    assert "'loud' is none of debug" in cli("dispatch", "--log-level", "loud", code=1)
    cli("nonsense", code=2)


def test_a_login_without_a_role_is_told_which_there_are(cli: Cli) -> None:
    login = f"nobody_{secrets.token_hex(4)}"
    with psycopg.connect(cli.environment["COUNTERFOIL_DSN"], autocommit=True) as connection:
        connection.execute(f"create role {login} login".encode())
        try:
            for command in (("runs",), ("worker", "counterfoil.demonstration.play")):
                said = cli(*command, code=1, PGOPTIONS=f"-c role={login}")
                assert said.startswith("error: permission denied for schema counterfoil\n")
                assert "counterfoil_worker" in said
                assert "LINE 1" not in said
        finally:
            connection.execute(f"drop role {login}".encode())


@pytest.mark.parametrize(
    "command",
    [
        *("status", "verify", "plan", "prepare-indexes", "runs", "run r", "cancel r", "resume r e"),
        *(
            "logs r",
            "search words",
            "search-runs",
            "retention o",
            "health",
            "maintain",
            "blocked",
            "schedule list",
        ),
        *("replay o r e --reason w", "replay-all --reason w", "skip o r e --reason w"),
    ],
)
def test_what_asks_about_a_database_starts_no_server(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("COUNTERFOIL_DSN", raising=False)
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path / "home"))
    said = CliRunner().invoke(app, command.split())
    assert said.exit_code == 1
    assert f"no server runs in {tmp_path / 'home'}: start it" in said.output.replace("\n", " ")
    for way_out in ("(counterfoil up)", "(counterfoil migrate)", "--dsn", "COUNTERFOIL_DSN"):
        assert way_out in said.output
    assert list(tmp_path.iterdir()) == []


def test_a_worker_takes_no_key_of_a_stack_that_has_another_database(cli: Cli) -> None:
    command = ("worker", "counterfoil.demonstration.play", "--receipts", "gateway")
    keep_secrets(cli.folder / ".counterfoil", "host=elsewhere dbname=app")
    assert "set COUNTERFOIL_SIGNING_KEYS" in cli(*command, code=1)


def test_a_folder_that_cannot_be_made_is_named(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / ".counterfoil").write_text("not a folder")
    del cli.environment["COUNTERFOIL_DSN"]
    assert str(tmp_path / ".counterfoil") in cli("migrate", code=1)


def test_rows_are_launched_once_listed_and_cancelled(cli: Cli) -> None:
    rows = cli.write("rows.csv", "name,size\nink,1\npaper,2\n")
    command = ("launch", "--play", "quote", "--input", rows, "--batch", "b", "--priority", "2")
    assert cli(*command) == "batch b\n2 launched\n"
    assert cli(*command) == "batch b\n0 launched, 2 known already\n"
    listed = [json.loads(line) for line in cli("runs", "--json").splitlines()]
    assert {run["runId"]: run["priority"] for run in listed} == {"b-2": 2, "b-3": 2}
    table = cli("runs", "--status", "queued").splitlines()
    assert table[0].split() == ["run", "play", "status", "attempt", "created", "ended"]
    assert [line.split()[:4] for line in table[1:]] == [
        [run_id, "quote", "queued", "0/3"] for run_id in ("b-3", "b-2")
    ]
    ids = cli.write("ids.jsonl", json.dumps({"id": f"[red]{'long-' * 30}"}))
    cli("launch", "--play", "q", "--input", ids, "--run-id-field", "id", "--org", "long")
    assert f"[red]{'long-' * 30}  q  " in cli("runs", "--org", "long", COLUMNS="80")
    assert cli("runs", "--org", "other") == "no runs in org other\n"

    assert cli("cancel", "b-2", "--reason", "typo") == "cancelled, run is cancelled\n"
    run = cli.document("b-2")
    assert (run["status"], run["cancelReason"]) == ("cancelled", "typo")
    assert cli("cancel", "b-2") == "already_ended, run is cancelled\n"
    assert cli("resume", "b-3", "go", "--payload", '{"a": 1}').startswith("stored")


def test_a_run_is_cancelled_with_all_runs_below_it(cli: Cli) -> None:
    place = {"orgId": "default", "playId": "p", "playName": "p", "executorToken": "none"}
    place["baseUrl"] = "https://runtime.example"
    launches: list[dict[str, Any]] = [
        place | {"runId": "[red]"},
        place | {"runId": "b", "parentRunId": "[red]"},
        place | {"runId": "c", "parentRunId": "b"},
        place | {"runId": "other"},
    ]
    asyncio.run(admit_all(cli.environment["COUNTERFOIL_DSN"], "counterfoil", launches))
    assert cli("cancel", "[red]") == "cancelled, run is cancelled\n"
    assert cli.document("b")["status"] == "queued"
    assert cli("cancel", "[red]", "--descendants", "--reason", "all of it") == (
        "[red]: already_ended, run is cancelled\n"
        "b: cancelled, run is cancelled\n"
        "c: cancelled, run is cancelled\n"
    )
    assert cli.document("c")["cancelReason"] == "all of it"
    assert cli.document("other")["status"] == "queued"


def test_a_bad_row_is_named_and_nothing_is_launched(cli: Cli) -> None:
    rows = cli.write("rows.jsonl", '{"a": 1}\n{"a": \n"fine"\n')
    said = cli("launch", "--play", "quote", "--input", rows, code=1)
    assert "rows.jsonl:2: not JSON" in said
    assert "nothing was launched" in said
    ids = cli.write("ids.jsonl", '{"id": "one"}\n{"id": "t\\u0001wo"}\n')
    said = cli(
        "launch", "--play", "quote", "--input", ids, "--run-id-field", "id", "--org", "o", code=1
    )
    assert "ids.jsonl:2:" in said
    assert "nothing was launched" in said
    assert cli("runs", "--org", "o") == "no runs in org o\n"
    assert cli("runs") == "no runs in org default\n"


def test_another_launch_under_the_same_ids_is_refused(cli: Cli) -> None:
    rows = cli.write("rows.jsonl", '"one"\n"two"\n')
    cli("launch", "--play", "quote", "--input", rows, "--batch", "b")
    cli.write("rows.jsonl", '"one"\n"three"\n"four"\n')
    said = cli("launch", "--play", "quote", "--input", rows, "--batch", "b", code=1)
    assert "rows.jsonl:2:" in said
    assert "batch b was launched with other contents: give another --batch" in said
    assert len(cli("runs", "--json").splitlines()) == 2


def test_a_launch_over_a_limit_says_when_and_that_nothing_was_launched(cli: Cli) -> None:
    with psycopg.connect(cli.environment["COUNTERFOIL_DSN"], autocommit=True) as connection:
        connection.execute(
            "select counterfoil.set_admission_limits('default', 'org', '{\"maxQueued\": 1}')"
        )
    rows = cli.write("rows.jsonl", "1\n2\n")
    said = cli("launch", "--play", "quote", "--input", rows, code=1)
    assert "no room for 2 more launches under maxQueued, which is 1." in said
    assert "(Try again in 60 s, or have the limit raised.)\nnothing was launched\n" in said
    assert cli("runs") == "no runs in org default\n"


def test_pgtap_files_are_run_or_what_is_missing_is_said(cli: Cli) -> None:
    with psycopg.connect(cli.environment["COUNTERFOIL_DSN"], autocommit=True) as connection:
        has_pgtap = connection.execute(
            "select from pg_available_extensions where name = 'pgtap'"
        ).rowcount
        if has_pgtap:
            connection.execute("create extension if not exists pgtap")
    good = cli.write("good.sql", "select plan(1); select ok(true);")
    cli.write("bad.sql", "select plan(1); select ok(false);")
    if has_pgtap:
        assert "1 passed, 0 failed in 1 files" in cli("pgtap", good)
        assert "test 1 failed" in cli("pgtap", "good.sql", "bad.sql", code=1)
        assert "no such file" in cli("pgtap", "none.sql", code=1)
    else:
        assert "the database has no pgTAP" in cli("pgtap", good, code=1)


def test_the_examples_run(cli: Cli) -> None:
    examples = Path(__file__).parents[3] / "examples"
    worker = subprocess.Popen(
        [sys.executable, "-m", "counterfoil", "worker", str(examples / "approval.py")],
        env=cli.environment,
        cwd=cli.folder,
        stderr=subprocess.DEVNULL,
    )
    try:
        articles = str(examples / "articles.csv")
        cli("launch", "--play", "publish", "--input", articles, "--batch", "first")
        for line in ("2", "3"):
            cli("resume", f"first-{line}", "approved", "--payload", '{"by": "Ada"}')
        for _ in range(200):
            runs = [json.loads(line) for line in cli("runs", "--json").splitlines()]
            if all(run["status"] == "completed" for run in runs):
                break
        assert [run["status"] for run in runs] == ["completed", "completed"]
        run = cli.document("first-2")
        assert run["result"] == {"approved_by": "Ada", "bytes": len("<h1>On receipts</h1>")}
    finally:
        worker.terminate()
        assert worker.wait(30) == 0
