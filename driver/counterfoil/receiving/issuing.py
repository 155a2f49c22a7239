"""Dispatch tokens, given to processes without the signing key for a live delivery lease."""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable

from starlette.requests import Request
from starlette.responses import Response

from counterfoil.functions import Functions
from counterfoil.receiving.access import Access
from counterfoil.receiving.bodies import Body
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import json_response
from counterfoil.settings import Settings
from counterfoil.tokens import Use

LIFETIME_KNOWN_SECONDS = 60.0


class Issuing:
    """The two endpoints behind the internal token."""

    def __init__(
        self,
        functions: Functions,
        access: Access,
        body: Callable[[Request], Awaitable[Body]],
        settings: Settings,
    ) -> None:
        self._functions = functions
        self._access = access
        self._body = body
        self._settings = settings
        self._token_seconds = 0
        self._known_until = 0.0

    async def ledger(self, request: Request) -> Response:
        """A token for the ledger, and whether it takes combined prefixes."""
        token = await self._issue(request, "dispatch")
        body: dict[str, object] = {"executorToken": token}
        if self._settings.ingress_prefix_batching:
            body["runLedgerIngressPrefixBatching"] = True
        return json_response(200, body, {"cache-control": "no-store"})

    async def billing(self, request: Request) -> Response:
        """A token to report the work counters of a fact."""
        token = await self._issue(request, "compute_billing")
        return json_response(200, {"executorToken": token}, {"cache-control": "no-store"})

    async def _issue(self, request: Request, use: Use) -> str:
        """A token for the run of a live delivery lease, which the database proves."""
        self._access.require_internal(request)
        body = await self._body(request)
        given = None if body.members.get("orgId") is None else body.string("orgId")
        run_id = body.string("runId")
        event_id, lease_owner = body.string("eventId"), body.string("leaseOwner")
        if body.members.get("schedulerSchema") not in (None, self._settings.schema):
            raise RequestError(
                404,
                "schema_mismatch",
                "this gateway serves another schema",
                "ask the gateway of that schema, or leave schedulerSchema out",
                "schedulerSchema",
            )
        text = await self._functions.dispatch_authority_for_lease(
            given, run_id, event_id, lease_owner
        )
        authority = json.loads(text or "{}")
        org_id = str(authority["orgId"])
        if use == "compute_billing" and not await self._has_work_counters(org_id, run_id, event_id):
            raise RequestError(
                409,
                "invalid_state",
                "the fact carries no work-counter segment",
                "ask only for facts that carry one",
                "eventId",
            )
        token = self._access.signer.mint(
            org_id=org_id,
            play_name=str(authority["playName"]),
            run_id=run_id,
            use=use,
            lifetime_seconds=await self._token_lifetime(),
        )
        return token.reveal()

    async def _has_work_counters(self, org_id: str, run_id: str, event_id: str) -> bool:
        events = await self._functions.project_fact(org_id, run_id, event_id)
        return any("workCounterSegment" in json.loads(row.event)["data"] for row in events)

    async def _token_lifetime(self) -> int:
        """The setting `dispatch_token_seconds`, read once a minute."""
        if time.monotonic() >= self._known_until:
            found = {row.name: row.value for row in await self._functions.settings_list()}
            self._token_seconds = int(found["dispatch_token_seconds"])
            self._known_until = time.monotonic() + LIFETIME_KNOWN_SECONDS
        return self._token_seconds
