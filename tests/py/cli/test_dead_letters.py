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
