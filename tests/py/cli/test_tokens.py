"""Tokens on the command line: a reader's, and that of a run's own runner."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from counterfoil.cli import app
from counterfoil.kept_secrets import keep_secrets
from counterfoil.settings import Secret
from counterfoil.tokens import TokenSigner
from tests.py.driver.scene import KEY as SCENES_KEY
from tests.py.gateway.client import RECEIPTS, Client
from tests.py.gateway.conftest import client, scene

__all__ = ["client", "scene"]

KEY = "a signing key for this test that is long enough"


def test_a_readers_token_is_printed_and_good_for_its_org(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_SIGNING_KEYS", f"k:{KEY}")
    said = CliRunner().invoke(app, ["token", "--org", "acme", "--seconds", "60"])
    assert said.exit_code == 0, said.output
    signer = TokenSigner([("k", Secret(KEY))], "counterfoil")
    scope = signer.check(said.stdout.strip(), frozenset({"reader"}))
    assert (scope.org_id, scope.run_id, scope.play_name) == ("acme", "", "")


def test_a_runs_token_is_good_for_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_SIGNING_KEYS", f"k:{KEY}")
    said = CliRunner().invoke(app, ["token", "--org", "acme", "--run", "r", "--play", "p"])
    scope = TokenSigner([("k", Secret(KEY))], "counterfoil").check(
        said.stdout.strip(), frozenset({"executor"})
    )
    assert (scope.org_id, scope.run_id, scope.play_name) == ("acme", "r", "p")
    for alone in (["--run", "r"], ["--play", "p"]):
        said = CliRunner().invoke(app, ["token", *alone])
        assert said.exit_code == 1
        assert "--run and --play come together" in said.output


def test_the_key_of_this_machines_stack_signs_where_no_other_is_given(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("COUNTERFOIL_SIGNING_KEYS", raising=False)
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path))
    (tmp_path / "secrets.json").write_text(
        json.dumps({"COUNTERFOIL_SIGNING_KEYS": f"local:{KEY}", "COUNTERFOIL_INTERNAL_TOKEN": "i"})
    )
    said = CliRunner().invoke(app, ["token"])
    assert said.exit_code == 0, said.output
    signer = TokenSigner([("local", Secret(KEY))], "counterfoil")
    assert signer.check(said.stdout.strip(), frozenset({"reader"})).org_id == "default"


@pytest.mark.parametrize(
    ("dsn", "is_the_stacks"),
    [
        ("", True),
        ("postgresql://me:secret@db.example:6432/app", True),
        ("host=db.example port=6432 dbname=app user=another", True),
        ("postgresql://me@db.example:6432/other", False),
        ("postgresql://me@db.example:5432/app", False),
        ("postgresql://me@10.0.0.1:6432/app", False),
        ("host=/run/postgresql port=6432 dbname=app", False),
    ],
)
def test_the_stacks_key_signs_for_the_stacks_database_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, dsn: str, is_the_stacks: bool
) -> None:
    monkeypatch.delenv("COUNTERFOIL_SIGNING_KEYS", raising=False)
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path))
    monkeypatch.setenv("COUNTERFOIL_DSN", dsn)
    first = keep_secrets(tmp_path, "postgresql://db.example/elsewhere")
    kept = keep_secrets(tmp_path, "postgresql://me@db.example:6432/app")
    assert kept == first  # a stack that moves keeps its secrets
    key = kept["COUNTERFOIL_SIGNING_KEYS"].partition(":")[2]
    said = CliRunner().invoke(app, ["token"])
    assert (said.exit_code == 0) is is_the_stacks
    if is_the_stacks:
        signer = TokenSigner([("local", Secret(key))], "counterfoil")
        assert signer.check(said.stdout.strip(), frozenset({"reader"})).org_id == "default"
    else:
        assert "set COUNTERFOIL_SIGNING_KEYS" in said.output
    # A key of one's own is good anywhere.
    monkeypatch.setenv("COUNTERFOIL_SIGNING_KEYS", f"k:{KEY}")
    assert CliRunner().invoke(app, ["token"]).exit_code == 0


async def test_the_receipts_by_hand_work_as_the_page_shows_them(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = (Path(__file__).parents[3] / "docs/gateway.md").read_text()
    [command] = re.findall(r"token=\$\(counterfoil (token .*)\)", page)
    monkeypatch.setenv("COUNTERFOIL_SIGNING_KEYS", f"{SCENES_KEY[0]}:{SCENES_KEY[1].reveal()}")
    bearer = CliRunner().invoke(app, command.split()).stdout.strip()
    assert f"http://127.0.0.1:8765{RECEIPTS}" in page
    answers = [
        await client.call("POST", RECEIPTS, sent.encode(), bearer=bearer)
        for sent in re.findall(r"^    ask '(.*)'$", page, re.M)
    ]
    assert [answer.status for answer in answers] == [200] * 3
    assert [answer.body["status"] for answer in answers] == ["running", "completed", "completed"]
    assert answers[0].body["claimed"] is True
    assert answers[2].body["output"] == 24


def test_without_a_signing_key_it_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("COUNTERFOIL_SIGNING_KEYS", raising=False)
    monkeypatch.setenv("COUNTERFOIL_HOME", str(tmp_path))
    said = CliRunner().invoke(app, ["token"])
    assert said.exit_code == 1
    assert "signing_keys" in said.output
