"""The dead letter queue on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest

from tests.py.cli.test_commands import Cli
from tests.py.properties import lock_scene


@pytest.fixture
def cli(installed: str, tmp_path: Path) -> Cli:
    """On a database where the search lane of run `run` is blocked by its fact `bad`."""
    with psycopg.connect(installed, autocommit=True) as connection:
        lock_scene.build(connection)
    return Cli(installed, tmp_path)


def test_what_is_blocked_is_listed_with_what_waits_behind_it(cli: Cli) -> None:
    table = cli("blocked").splitlines()
    assert len(table) == 2
    assert table[1].split()[:5] == ["org", "run", "search", "bad", "runner.logs"]
    assert "0 wait" in table[1]
    [document] = [json.loads(line) for line in cli("blocked", "--json").splitlines()]
    assert document["eventId"] == "bad"
    assert document["blocksLane"] is True
    assert document["lastError"]["message"] == "no"
    assert cli("blocked", "--org", "other") == "nothing is blocked\n"


def test_a_blocked_fact_is_replayed_or_skipped_for_a_reason(cli: Cli) -> None:
    assert "reason" in cli("replay", "org", "run", "bad", code=2)
    assert cli("replay", "org", "run", "bad", "--reason", "mended") == "bad is tried again\n"
    assert cli("blocked") == "nothing is blocked\n"
    assert "fact_not_blocked" in cli("skip", "org", "run", "bad", "--reason", "no", code=1)


def test_a_skipped_fact_blocks_no_more(cli: Cli) -> None:
    assert cli("skip", "org", "run", "bad", "--reason", "no") == "bad is passed over\n"
    assert cli("blocked") == "nothing is blocked\n"


def test_the_audit_trail_tells_who_did_what_and_why(cli: Cli) -> None:
    assert cli("audit", "--org", "other") == "nothing was done by hand\n"
    cli("replay", "org", "run", "bad", "--reason", "mended [at last]")
    table = cli("audit", "--org", "org", "--limit", "1").splitlines()
    assert len(table) == 2
    assert "replay_blocked" in table[1]
    assert "run" in table[1]
    assert "bad" in table[1]
    assert table[1].rstrip().endswith("mended [at last]")
    whole = [json.loads(line) for line in cli("audit", "--org", "org", "--json").splitlines()]
    assert whole[0]["reason"] == "mended [at last]"
    assert whole[0]["target"]["eventId"] == "bad"
    times = [entry["recordedAt"] for entry in whole]
    assert times == sorted(times, reverse=True)


def test_all_that_an_outage_blocked_is_replayed_at_once(cli: Cli, installed: str) -> None:
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(lock_scene.HELPERS.encode())
        # A frozen delivery of two facts, and one of another run; their receiver was away.
        connection.execute(
            "select count(*) from counterfoil.widen_delivery('org', 'run', 'e1', 'd', 300)"
        )
        for run, owner, events in (
            ("run", "d", "array['e1', 'e2']"),
            ("lost", "s", "array[pg_temp.id('lost', 'run.started')]"),
        ):
            connection.execute(
                f"select count(*) from counterfoil.renew_delivery('org', '{run}', {events},"
                f" '{owner}', 300, true)".encode()
            )
            connection.execute(
                "select count(*) from counterfoil.settle_delivery_failure("
                f"'org', '{run}', {events}, '{owner}',"
                """ '{"message": "away", "code": "http_503", "retryable": false}')""".encode()
            )
    assert "reason" in cli("replay-all", code=2)
    assert cli("replay-all", "--org", "other", "--reason", "r") == "0 facts are tried again\n"
    only = ("--code", "http_503", "--reason", "it is back")
    assert cli("replay-all", *only) == "3 facts are tried again\n"
    [left] = [json.loads(line) for line in cli("blocked", "--json").splitlines()]
    assert left["eventId"] == "bad"
    assert cli("replay-all", "--reason", "all of it") == "1 fact is tried again\n"
    assert cli("blocked") == "nothing is blocked\n"
