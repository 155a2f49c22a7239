"""A reader's token on the command line."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from counterfoil.cli import app
from counterfoil.settings import Secret
from counterfoil.tokens import TokenSigner

KEY = "a signing key for this test that is long enough"


def test_a_readers_token_is_printed_and_good_for_its_org(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COUNTERFOIL_SIGNING_KEYS", f"k:{KEY}")
    said = CliRunner().invoke(app, ["token", "--org", "acme", "--seconds", "60"])
    assert said.exit_code == 0, said.output
    signer = TokenSigner([("k", Secret(KEY))], "counterfoil")
    scope = signer.check(said.stdout.strip(), frozenset({"reader"}))
    assert (scope.org_id, scope.run_id, scope.play_name) == ("acme", "", "")


def test_without_a_signing_key_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COUNTERFOIL_SIGNING_KEYS", raising=False)
    said = CliRunner().invoke(app, ["token"])
    assert said.exit_code == 1
    assert "signing_keys" in said.output
