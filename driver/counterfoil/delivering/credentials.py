"""The authority that a held run is delivered by: read, kept through its continuations, renewed."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from counterfoil.append import Destination
from counterfoil.authority import Authority, TokenAuthority
from counterfoil.delivering.deliveries import HeldRun
from counterfoil.functions import Functions
from counterfoil.settings import NO_SECRET, Secret
from counterfoil.upstream import Bypass, refuse_changed_route


class Credentials:
    """Gives held runs authority and token. A base URL that changes within a run is an error."""

    def __init__(
        self,
        functions: Functions,
        tokens: TokenAuthority,
        *,
        environment_bypass: Secret = NO_SECRET,
        margin_seconds: float = 20.0,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``margin_seconds``: a token that expires sooner than that is replaced before its use."""
        self._functions = functions
        self._tokens = tokens
        self._environment_bypass = environment_bypass
        self._margin = margin_seconds
        self._clock = clock

    @property
    def known_to_batch(self) -> bool:
        """Whether receivers are known to take combined prefixes before a token is asked for."""
        return self._tokens.knows_prefix_batching

    async def route(self, held: HeldRun) -> None:
        """The authority of the claim, or the run's own of before."""
        first = held.facts[0]
        if first.dispatch_authority is not None:
            authority = Authority.read(held.org_id, held.run_id, first.dispatch_authority)
            self._adopt(held, authority)
        elif held.authority is None:
            await self._read(held)

    async def authorise(self, held: HeldRun) -> None:
        """A token, unless the run still has one."""
        if held.token is None:
            held.token = await self._tokens.token(
                authority_of(held), held.facts[0].event_id, held.lease_owner
            )
            held.token_served = held.token.reused

    async def renew_if_expiring(self, held: HeldRun) -> None:
        """Replace a token that would expire under the next request."""
        expires_at = held.token.expires_at if held.token else None
        if expires_at is None or expires_at - self._clock() > self._margin:
            return
        await self._read(held)
        await self.refresh(held)

    async def refresh(self, held: HeldRun) -> None:
        """A new token, through the live lease."""
        held.token = await self._tokens.token(
            authority_of(held), held.facts[0].event_id, held.lease_owner, fresh=True
        )

    def drop(self, held: HeldRun) -> None:
        """Forget the run's token, here and in the cache."""
        held.token = None
        if held.authority is not None:
            self._tokens.drop(held.authority)

    def destination(self, held: HeldRun) -> Destination:
        """Where the run's facts go, with the credentials for it."""
        authority = authority_of(held)
        bypass = Bypass.choose(authority.bypass_token, self._environment_bypass)
        token = held.token.token if held.token else NO_SECRET
        return Destination(authority.base_url, token, bypass)

    async def _read(self, held: HeldRun) -> None:
        text = await self._functions.dispatch_authority_for_lease(
            held.org_id, held.run_id, held.facts[0].event_id, held.lease_owner
        )
        self._adopt(held, Authority.read(held.org_id, held.run_id, json.loads(text or "{}")))

    def _adopt(self, held: HeldRun, authority: Authority) -> None:
        if held.authority is not None:
            refuse_changed_route(held.authority.base_url, authority.base_url)
        held.authority = authority


def authority_of(held: HeldRun) -> Authority:
    """The authority of a run that was authorised."""
    if held.authority is None:
        raise RuntimeError("the run was not authorised")
    return held.authority
