"""Tokens: what a signed one must hold, and what is refused."""

from __future__ import annotations

import base64
import json
from typing import Any

import jwt
import pytest

from counterfoil.errors import SettingsError, TokenError
from counterfoil.settings import Secret
from counterfoil.tokens import LEEWAY_SECONDS, TokenSigner, WrongUseError, read_expiry

NOW = 1_800_000_000.0
OLD = ("old", Secret("the old secret of this installation"))
NEW = ("new", Secret("the new secret of this installation, a longer one"))
DISPATCH = frozenset({"dispatch"})


class Clock:
    """A clock that a test moves."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def mint(signer: TokenSigner, **changes: Any) -> str:
    scope: dict[str, Any] = {"org_id": "o", "play_name": "p", "run_id": "r", "use": "dispatch"}
    return signer.mint(**scope | changes).reveal()


def claims(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        **{"iss": "counterfoil", "aud": "counterfoil-gateway", "iat": NOW, "exp": NOW + 60},
        **{"org": "o", "play": "p", "run": "r", "schema": "s", "use": "dispatch"},
    }
    return {key: value for key, value in (whole | changes).items() if value is not None}


def sign(document: dict[str, Any], **header: Any) -> str:
    return jwt.encode(document, NEW[1].reveal(), "HS256", headers={"kid": "new"} | header)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def signer(clock: Clock) -> TokenSigner:
    return TokenSigner([NEW], "s", clock=clock)


def test_a_minted_token_gives_its_scope_back(signer: TokenSigner) -> None:
    scope = signer.check(mint(signer, lifetime_seconds=60), DISPATCH)
    assert (scope.org_id, scope.play_name, scope.run_id, scope.schema) == ("o", "p", "r", "s")
    assert scope.expires_at == NOW + 60
    assert scope.to_json() == {"orgId": "o", "playName": "p", "runId": "r"}


def test_keys_rotate_with_overlap(clock: Clock) -> None:
    before = TokenSigner([OLD], "s", clock=clock)
    during = TokenSigner([NEW, OLD], "s", clock=clock)
    after = TokenSigner([NEW], "s", clock=clock)
    old, new = mint(before), mint(during)
    assert during.check(old, DISPATCH)
    assert after.check(new, DISPATCH)
    with pytest.raises(TokenError, match="unknown key"):
        after.check(old, DISPATCH)


def test_a_token_expires_after_the_stated_leeway(signer: TokenSigner, clock: Clock) -> None:
    token = mint(signer, lifetime_seconds=60)
    clock.now = NOW + 60 + LEEWAY_SECONDS - 0.5
    assert signer.check(token, DISPATCH)
    clock.now = NOW + 60 + LEEWAY_SECONDS
    with pytest.raises(TokenError, match="expired"):
        signer.check(token, DISPATCH)


@pytest.mark.parametrize("name", ["iat", "nbf"])
def test_the_leeway_is_the_same_for_a_token_from_ahead(signer: TokenSigner, name: str) -> None:
    assert signer.check(sign(claims(**{name: NOW + LEEWAY_SECONDS})), DISPATCH)
    with pytest.raises(TokenError, match="not valid yet"):
        signer.check(sign(claims(**{name: NOW + LEEWAY_SECONDS + 0.1})), DISPATCH)


@pytest.mark.parametrize(
    ("document", "words"),
    [
        (claims(aud="somebody"), "another audience"),
        (claims(iss="somebody"), "malformed"),
        (claims(exp=None), "malformed"),
        (claims(exp="soon"), "malformed"),
        (claims(exp=True), "malformed"),
        (claims(exp=float("nan")), "malformed"),
        (claims(exp=float("inf")), "malformed"),
        (claims(exp=10**400), "malformed"),
        (claims(iat=float("nan")), "malformed"),
        (claims(iat=NOW + 600), "not valid yet"),
        (claims(nbf=NOW + 600), "not valid yet"),
        (claims(iat=NOW + 600, nbf=NOW - 600), "not valid yet"),
        (claims(schema="other"), "another installation"),
        (claims(run=None), "no scope"),
        (claims(org=""), "no scope"),
        (claims(play=7), "no scope"),
        (claims(run="", play=""), "no scope"),
        (claims(use="reader"), "no scope"),
        (claims(use="reader", play=""), "no scope"),
    ],
)
def test_a_token_with_wrong_claims_is_refused(
    signer: TokenSigner, document: dict[str, Any], words: str
) -> None:
    with pytest.raises(TokenError, match=words):
        signer.check(sign(document), DISPATCH)


def test_a_genuine_token_for_another_use_is_told_apart(signer: TokenSigner) -> None:
    with pytest.raises(WrongUseError):
        signer.check(mint(signer, use="executor"), DISPATCH)


def test_forged_tokens_are_refused(signer: TokenSigner) -> None:
    good = sign(claims())
    head, body, tail = good.split(".")
    other = jwt.encode(claims(), "another secret that is long enough", "HS256", {"kid": "new"})
    unsigned = jwt.encode(claims(), None, "none", {"kid": "new"})
    changed = base64.urlsafe_b64encode(json.dumps(claims(org="x")).encode()).decode().rstrip("=")
    for token in (
        *(other, unsigned, f"{head}.{changed}.{tail}", f"{head}.{body}.", "a.b.c", "", "…"),
        *(sign(claims(), kid="unknown"), jwt.encode(claims(), NEW[1].reveal()), good + "x"),
        jwt.encode(claims(), NEW[1].reveal(), "HS384", {"kid": "new"}),
    ):
        with pytest.raises(TokenError) as refused:
            signer.check(token, DISPATCH)
        assert not token or token not in str(refused.value)


def test_a_signer_without_keys_says_so() -> None:
    with pytest.raises(SettingsError, match="signing_keys"):
        TokenSigner([], "s")


def test_nothing_secret_is_shown(signer: TokenSigner) -> None:
    assert NEW[1].reveal() not in repr(signer)
    assert repr(signer.mint(org_id="o", play_name="p", run_id="r")) == "Secret(***)"


@pytest.mark.parametrize(
    ("token", "expiry"),
    [
        (sign(claims(exp=NOW)), NOW),
        (sign(claims(exp=None)), None),
        (sign({"exp": "x"}), None),
        (sign({"exp": True}), None),
        (sign({"exp": 1e300}), None),
        ("opaque", None),
        ("a.b.c", None),
        ("", None),
    ],
)
def test_the_expiry_is_read_without_any_trust(token: str, expiry: float | None) -> None:
    assert read_expiry(token) == expiry
