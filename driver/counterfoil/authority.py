"""Dispatch authority: where a run's facts go, and the token that opens the door there.

`LocalMint` signs a token itself. `GatewayTokens` asks the gateway, which proves the delivery lease
in the database, and keeps what it gets for a short time. A launch's stored token is never used.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from counterfoil.errors import ReceiverError
from counterfoil.settings import Secret
from counterfoil.tokens import TokenSigner, read_expiry
from counterfoil.upstream import Answer, Bypass, Upstream, base_of

CACHE_SECONDS = 30.0
CACHE_ENTRIES = 256
EXPIRY_MARGIN_SECONDS = 5.0
INTERNAL_PATH = "/api/v2/internal/play-runtime"

Kind = Literal["run-ledger-dispatch-token", "compute-billing-dispatch-token"]


@dataclass(frozen=True)
class Authority:
    """The narrow projection of a launch that a delivery needs. Its credentials show nowhere."""

    org_id: str
    run_id: str
    play_name: str
    base_url: str
    bypass_token: str | None
    document: Mapping[str, Any]

    @classmethod
    def read(cls, org_id: str, run_id: str, document: Mapping[str, Any]) -> Authority:
        """From a claim's ``dispatch_authority``. Raises ReceiverError for its base URL."""
        base_url = document.get("runtimeApiBaseUrl") or document.get("baseUrl")
        if not isinstance(base_url, str) or not base_url:
            raise ReceiverError(
                "the launch has no base URL", code="base_url_invalid", retryable=False
            )
        bypass = document.get("vercelProtectionBypassToken")
        return cls(
            org_id=org_id,
            run_id=run_id,
            play_name=str(document.get("playName", "")),
            base_url=base_of(base_url),
            bypass_token=bypass if isinstance(bypass, str) else None,
            document=document,
        )

    def __repr__(self) -> str:
        return f"Authority({self.org_id!r}, {self.run_id!r})"

    def fingerprint(self, schema: str, internal_token: Secret) -> str:
        """Digest of the schema, everything but the stored token, and the internal token."""
        rest = {key: value for key, value in self.document.items() if key != "executorToken"}
        rest["orgId"] = self.org_id
        text = json.dumps([schema, rest, internal_token.reveal()], sort_keys=True)
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


@dataclass(frozen=True)
class DispatchToken:
    """A token for one run. ``expires_at`` is None when it cannot be read off the token."""

    token: Secret
    expires_at: float | None
    prefix_batching: bool
    reused: bool = False


class TokenAuthority(Protocol):
    """Gives dispatch tokens."""

    knows_prefix_batching: bool
    """Whether the receiver is known to take combined prefixes before any token is asked for."""

    async def token(
        self, authority: Authority, event_id: str, lease_owner: str, *, fresh: bool = False
    ) -> DispatchToken:
        """A token for the run, under a live lease on ``event_id``; ``fresh`` skips the cache."""
        ...

    def drop(self, authority: Authority) -> None:
        """Forget what is kept for the run."""
        ...


class LocalMint:
    """Signs short-lived tokens in this process, which holds the signing key."""

    def __init__(
        self, signer: TokenSigner, *, lifetime_seconds: int = 300, prefix_batching: bool = True
    ) -> None:
        self._signer = signer
        self._lifetime = lifetime_seconds
        self.knows_prefix_batching = prefix_batching

    async def token(
        self, authority: Authority, event_id: str, lease_owner: str, *, fresh: bool = False
    ) -> DispatchToken:
        """A new token each time."""
        token = self._signer.mint(
            org_id=authority.org_id,
            play_name=authority.play_name,
            run_id=authority.run_id,
            use="dispatch",
            lifetime_seconds=self._lifetime,
        )
        return DispatchToken(token, read_expiry(token.reveal()), self.knows_prefix_batching)

    def drop(self, authority: Authority) -> None:
        """Nothing is kept."""


class TokenCache:
    """Tokens by fingerprint, each for at most 30 s and never past its expiry less 5 s.

    Holds 256; the one that came first goes first.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.time,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._monotonic = monotonic
        self._entries: OrderedDict[str, tuple[DispatchToken, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: str) -> DispatchToken | None:
        """The token kept under ``key``, None when there is none that is still good."""
        now = self._monotonic()
        for stale in [name for name, (_, until) in self._entries.items() if until <= now]:
            del self._entries[stale]
        found = self._entries.get(key)
        return found[0] if found else None

    def put(self, key: str, token: DispatchToken) -> None:
        """Keep a token whose expiry is known; one that is about to expire is not kept."""
        self.drop(key)
        if token.expires_at is None:
            return
        left = min(CACHE_SECONDS, token.expires_at - EXPIRY_MARGIN_SECONDS - self._clock())
        if left <= 0:
            return
        self._entries[key] = (token, self._monotonic() + left)
        while len(self._entries) > CACHE_ENTRIES:
            self._entries.popitem(last=False)

    def drop(self, key: str) -> None:
        """Forget the token under ``key``."""
        self._entries.pop(key, None)


class GatewayTokens:
    """Asks the gateway for tokens, with the internal bearer token and the delivery lease."""

    knows_prefix_batching = False

    def __init__(
        self,
        upstream: Upstream,
        *,
        schema: str,
        internal_token: Secret,
        environment_bypass: Secret,
        cache: TokenCache | None = None,
    ) -> None:
        self._upstream = upstream
        self._schema = schema
        self._internal_token = internal_token
        self._environment_bypass = environment_bypass
        self._cache = cache or TokenCache()
        self._asking: dict[tuple[str, bool], asyncio.Task[DispatchToken]] = {}

    async def token(
        self, authority: Authority, event_id: str, lease_owner: str, *, fresh: bool = False
    ) -> DispatchToken:
        """A kept token, or a new one. Callers that miss together share one request."""
        key = authority.fingerprint(self._schema, self._internal_token)
        kept = None if fresh else self._cache.get(key)
        if kept is not None:
            return DispatchToken(kept.token, kept.expires_at, kept.prefix_batching, reused=True)
        self._cache.drop(key)
        asking = self._asking.get((key, fresh))
        if asking is None:
            asking = asyncio.create_task(self._ask_and_keep(key, authority, event_id, lease_owner))
            self._asking[key, fresh] = asking
            asking.add_done_callback(lambda task: self._forget((key, fresh), task))
        # One caller's abort must not fail the others that wait for the same answer.
        return await asyncio.shield(asking)

    def drop(self, authority: Authority) -> None:
        """Forget the run's token."""
        self._cache.drop(authority.fingerprint(self._schema, self._internal_token))

    async def compute_billing_token(
        self, authority: Authority, event_id: str, lease_owner: str
    ) -> Secret:
        """A token to report the work counters of a fact that carries a segment; never kept."""
        answer = await self._ask("compute-billing-dispatch-token", authority, event_id, lease_owner)
        return _executor_token(answer)

    def _forget(self, asked: tuple[str, bool], task: asyncio.Task[DispatchToken]) -> None:
        self._asking.pop(asked, None)
        if not task.cancelled():
            task.exception()  # seen, even when every caller has gone

    async def _ask_and_keep(
        self, key: str, authority: Authority, event_id: str, lease_owner: str
    ) -> DispatchToken:
        answer = await self._ask("run-ledger-dispatch-token", authority, event_id, lease_owner)
        token = _executor_token(answer)
        advertised = answer.body.get("runLedgerIngressPrefixBatching")
        found = DispatchToken(token, read_expiry(token.reveal()), advertised is True)
        # What a receiver can take decides the shape of a receipt, so its word is never kept.
        if "runLedgerIngressPrefixBatching" in answer.body:
            self._cache.drop(key)
        else:
            self._cache.put(key, found)
        return found

    async def _ask(
        self, kind: Kind, authority: Authority, event_id: str, lease_owner: str
    ) -> Answer:
        body = {
            "orgId": authority.org_id,
            "runId": authority.run_id,
            "eventId": event_id,
            "leaseOwner": lease_owner,
            "schedulerSchema": self._schema,
        }
        return await self._upstream.post(
            f"{authority.base_url}{INTERNAL_PATH}/{kind}",
            json.dumps(body),
            bearer=self._internal_token,
            bypass=Bypass.choose(authority.bypass_token, self._environment_bypass),
            headers={},
        )


def _executor_token(answer: Answer) -> Secret:
    token = answer.body.get("executorToken")
    if not isinstance(token, str) or not token.strip():
        raise ReceiverError(
            "the gateway's answer has no token",
            code="dispatch_token_missing",
            status=answer.status,
            retryable=True,
        )
    return Secret(token.strip())
