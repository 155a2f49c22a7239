"""`counterfoil logs`, `counterfoil search` and `counterfoil maintain`."""

from __future__ import annotations

import json

import psycopg
import pytest
from typer.testing import CliRunner

from counterfoil.cli import app


@pytest.fixture
def run(installed: str) -> str:
    """The dsn of a database with a run that has said three things."""
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(
            "select * from counterfoil.admit_launch(jsonb_build_object('orgId', 'default',"
            " 'runId', 'r', 'playId', 'p', 'playName', 'p', 'executorToken', 't',"
            " 'baseUrl', 'https://x.example'))"
        )
        connection.execute(
            "insert into counterfoil.run_journal (org_id, run_id, identity, channel, position,"
            " producer_attempt, level, occurred_at, line, content_digest, event_id, recorded_at,"
            " terms) select 'default', 'r', n::text, 'log', n, 1, l, now(), t, sha256(''), 'e',"
            " now(), counterfoil.journal_terms('default', 'r', 'log', l, now(), t)"
            " from (values (1, 'info', 'it [begins]'), (2, 'error', E'it \\x1b[2J fails'),"
            " (3, 'info', 'it ends')) as e (n, l, t)"
        )
    return installed


def invoke(*arguments: str) -> list[str]:
    """What a command prints, line by line."""
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == 0, result.output
    return result.stdout.splitlines()


def test_logs_are_printed_in_order_and_cannot_move_the_cursor(run: str) -> None:
    lines = invoke("logs", "r", "--dsn", run)
    assert [line.split(" ", 2)[2] for line in lines] == [
        "it [begins]",
        "it \ufffd[2J fails",
        "it ends",
    ]
    [line] = invoke("logs", "r", "--level", "error", "--json", "--dsn", run)
    assert json.loads(line)["line"] == "it \x1b[2J fails"


def test_logs_of_no_run_are_an_error(run: str) -> None:
    result = CliRunner().invoke(app, ["logs", "none", "--dsn", run])
    assert result.exit_code == 1


def test_search_finds_the_latest_first(run: str) -> None:
    found = [json.loads(line) for line in invoke("search", "it", "--json", "--dsn", run)]
    assert [entry["position"] for entry in found] == [3, 2, 1]
    [line] = invoke("search", "egin", "--substring", "--dsn", run)
    assert line.endswith(" r it [begins]")
    assert invoke("search", "it", "--org", "other", "--dsn", run) == []
    assert len(invoke("search", "it", "--limit", "2", "--dsn", run)) == 2


def test_maintain_says_what_it_did(run: str) -> None:
    [line] = invoke("maintain", "--dsn", run)
    assert json.loads(line)["more"] is False


def test_an_org_keeps_things_for_a_time_of_its_own(run: str) -> None:
    settings = invoke("retention", "default", "--dsn", run)
    assert len(settings) == 5
    assert "log_retention 604800 (the setting)" in settings
    assert invoke("retention", "default", "log_retention", "7200", "--dsn", run) == [
        "log_retention 7200"
    ]
    invoke("retention", "default", "journal_retention", "86400", "--dsn", run)
    assert len(invoke("retention", "default", "--dsn", run)) == 2
    assert invoke("retention", "default", "log_retention", "default", "--dsn", run) == [
        "log_retention 604800 (the setting)"
    ]
    assert invoke("retention", "default", "--dsn", run) == ["journal_retention 86400"]
    result = CliRunner().invoke(app, ["retention", "default", "log_retention", "x", "--dsn", run])
    assert result.exit_code == 2
    result = CliRunner().invoke(app, ["retention", "default", "none", "7200", "--dsn", run])
    assert result.exit_code == 1


def test_health_is_one_document(run: str) -> None:
    document = json.loads("\n".join(invoke("health", "--dsn", run)))
    assert document["lanes"]["lifecycle"]["pendingRuns"] == {"count": 1, "atLeast": False}


def test_runs_are_searched_the_latest_first(run: str) -> None:
    [line] = invoke("search-runs", "--dsn", run)
    assert line.split(" ")[2:] == ["queued", "p", "r"]
    [found] = invoke("search-runs", "r", "--status", "queued", "--json", "--dsn", run)
    assert json.loads(found)["runId"] == "r"
    assert invoke("search-runs", "--error", "x", "--dsn", run) == []
    assert invoke("search-runs", "--play", "other", "--dsn", run) == []
    result = CliRunner().invoke(app, ["search-runs", "--status", "done", "--dsn", run])
    assert result.exit_code == 1
