"""Tokens: signing and checking them, and the two authorities that a dispatcher gets them from.

A token is a JWT (HS256) with a key id, an audience, an expiry and a scope: org, play, run, schema
and one use. A runner's token (`executor`) opens receipts and reads; only a `dispatch` token, given
for a live delivery lease, opens the ledger. A `reader` token reads and searches all of one org, and
names no play and no run.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import jwt

from counterfoil.errors import SettingsError, TokenError
from counterfoil.settings import Secret

AUDIENCE = "counterfoil-gateway"
ISSUER = "counterfoil"
LEEWAY_SECONDS = 5
"""How far the clocks of issuer and checker may be apart."""

Use = Literal["executor", "dispatch", "compute_billing", "reader"]
USES: frozenset[str] = frozenset(get_args(Use))
ORG_WIDE = frozenset({"reader"})

_GET_ANOTHER = "get a new token from whoever issued this one"


@dataclass(frozen=True)
class Scope:
    """What a checked token is good for."""

    org_id: str
    play_name: str
    run_id: str
    schema: str
    use: str
    expires_at: float

    def to_json(self) -> dict[str, str]:
        """The ``p_scope`` of the gateway's functions."""
        return {"orgId": self.org_id, "playName": self.play_name, "runId": self.run_id}


class TokenSigner:
    """Signs and checks tokens of one installation. The first key signs; every key checks."""

    def __init__(
        self,
        keys: Sequence[tuple[str, Secret]],
        schema: str,
        *,
        clock: Callable[[], float] = time.time,
    ) -> None:
        if not keys:
            raise SettingsError(
                "signing_keys is empty: set COUNTERFOIL_SIGNING_KEYS=id:secret, or signing_keys in "
                "the settings file, to what the installation signs its tokens with"
            )
        self._keys: Mapping[str, Secret] = dict(keys)
        self._signing_id = keys[0][0]
        self._schema = schema
        self._clock = clock

    def __repr__(self) -> str:
        return f"TokenSigner(keys={list(self._keys)!r}, schema={self._schema!r})"

    def mint(
        self,
        *,
        org_id: str,
        play_name: str = "",
        run_id: str = "",
        use: Use = "executor",
        lifetime_seconds: int = 300,
    ) -> Secret:
        """A token for one run and one use; a `reader` token is for an org and names no run."""
        now = int(self._clock())
        claims = {
            "iss": ISSUER,
            "aud": AUDIENCE,
            "sub": run_id or org_id,
            "iat": now,
            "exp": now + lifetime_seconds,
            "org": org_id,
            "play": play_name,
            "run": run_id,
            "schema": self._schema,
            "use": use,
        }
        key = self._keys[self._signing_id].reveal()
        return Secret(jwt.encode(claims, key, "HS256", headers={"kid": self._signing_id}))

    def check(self, token: str, uses: frozenset[str]) -> Scope:
        """The token's scope. Raises TokenError; its message says why, and holds no token."""
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise TokenError("the token is malformed", _GET_ANOTHER) from None
        key = self._keys.get(key_id) if isinstance(key_id, str) else None
        if key is None:
            raise TokenError(
                "the token is signed with an unknown key",
                "sign with a key that is among the gateway's signing_keys",
            )
        claims = self._decode(token, key)
        values = [claims.get(name) for name in ("org", "schema", "use", "play", "run")]
        if not all(isinstance(value, str) for value in values):
            raise TokenError("the token has no scope", _GET_ANOTHER)
        org_id, schema, use, play_name, run_id = (str(value) for value in values)
        # A run's token that names no run would be good for all; one for an org names none.
        if not org_id or {bool(play_name), bool(run_id)} != {use not in ORG_WIDE}:
            raise TokenError("the token has no scope", _GET_ANOTHER)
        if schema != self._schema:
            raise TokenError(
                "the token is for another installation",
                "use a token of this gateway's installation and schema",
            )
        if use not in uses:
            raise WrongUseError(
                "the token is for another use", f"send a token of use {' or '.join(sorted(uses))}"
            )
        return Scope(org_id, play_name, run_id, schema, use, float(claims["exp"]))

    def _decode(self, token: str, key: Secret) -> dict[str, Any]:
        try:
            claims = jwt.decode(
                token,
                key.reveal(),
                algorithms=["HS256"],
                audience=AUDIENCE,
                issuer=ISSUER,
                # Times are checked below, by the clock that this signer was given.
                options={
                    "require": ["exp", "iat", "aud", "iss"],
                    "verify_exp": False,
                    "verify_iat": False,
                    "verify_nbf": False,
                },
            )
        except jwt.InvalidAudienceError:
            raise TokenError("the token is for another audience", _GET_ANOTHER) from None
        except jwt.InvalidSignatureError:
            raise TokenError(
                "the token's signature is wrong", "sign with the key that the token's key id names"
            ) from None
        except (jwt.InvalidTokenError, ValueError, RecursionError):
            raise TokenError("the token is malformed", _GET_ANOTHER) from None
        now = self._clock()
        times = [claims["exp"], claims["iat"], claims.get("nbf", claims["iat"])]
        # Not a number compares with nothing: such a token would never expire.
        if not all(type(value) in (int, float) and abs(value) < 1e15 for value in times):
            raise TokenError("the token is malformed", _GET_ANOTHER)
        if claims["exp"] + LEEWAY_SECONDS <= now:
            raise TokenError("the token has expired", _GET_ANOTHER)
        if max(times[1:]) - LEEWAY_SECONDS > now:
            raise TokenError(
                "the token is not valid yet",
                f"set the clocks: those of issuer and gateway may be {LEEWAY_SECONDS} s apart",
            )
        return dict(claims)


class WrongUseError(TokenError):
    """The token is genuine but good for something else."""


def read_expiry(token: str) -> float | None:
    """The ``exp`` of a token in seconds since 1970, None where it has none that can be read.

    Nothing is verified: this only tells how long a token is worth keeping.
    """
    try:
        claims = jwt.decode(token, options={"verify_signature": False, "verify_exp": False})
    except (jwt.InvalidTokenError, ValueError, RecursionError):
        return None
    expiry = claims.get("exp")
    if isinstance(expiry, bool) or not isinstance(expiry, int | float):
        return None
    return float(expiry) if abs(expiry) < 1e15 else None
