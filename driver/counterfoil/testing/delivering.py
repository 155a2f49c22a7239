"""Deliveries to the ledger of the same database, without HTTP between."""

from __future__ import annotations

import json

from counterfoil.append import ENDPOINTS
from counterfoil.delivering.deliveries import PREFIX_MAX_FACTS, HeldRun, held_runs, materialise
from counterfoil.functions import Functions
from counterfoil.json_text import JsonText

_OWNER = "counterfoil.testing"
_LEASE_SECONDS = 60
_RUNS = 64


async def deliver(functions: Functions) -> None:
    """Deliver what is due, every lane, until nothing is."""
    for lane in ("lifecycle", "search"):
        while facts := await functions.claim_deliveries(
            _OWNER, _LEASE_SECONDS, PREFIX_MAX_FACTS, _RUNS, lane=lane, allow_ingress_prefix=True
        ):
            for held in held_runs(facts, _OWNER):
                await _deliver(functions, held, lane)


async def _deliver(functions: Functions, held: HeldRun, lane: str) -> None:
    await materialise(functions, held)
    freeze = lane == "lifecycle"
    key = (
        await functions.renew_delivery(
            held.org_id, held.run_id, held.event_ids, _OWNER, _LEASE_SECONDS, freeze
        )
    ).idempotency_key
    if freeze:
        await _append(functions, held, key)
    await functions.acknowledge_delivery(
        held.org_id, held.run_id, held.event_ids, _OWNER, 0, _LEASE_SECONDS, False
    )


async def _append(functions: Functions, held: HeldRun, key: str) -> None:
    first = held.facts[0]
    members = {
        "runId": json.dumps(held.run_id),
        "idempotencyKey": json.dumps(key),
        "leaseOwner": json.dumps(_OWNER),
    }
    if first.event_type == "run.started":
        launch = await functions.dispatch_launch_for_lease(
            held.org_id, held.run_id, first.event_id, _OWNER
        )
        members["launch"] = launch or "null"
    authority = first.dispatch_authority or {}
    scope = {"orgId": held.org_id, "runId": held.run_id, "playName": authority.get("playName")}
    for piece in await functions.plan_delivery_pieces(
        held.org_id, held.run_id, held.event_ids, _OWNER
    ):
        members |= {
            "chunk": str(piece.chunk),
            "chunkCount": str(piece.chunk_count),
            "events": piece.events,
        }
        body = JsonText("{" + ",".join(f'"{name}":{text}' for name, text in members.items()) + "}")
        answer = await functions.dispatch_ledger_action(
            scope, ENDPOINTS.get(first.event_type, "events"), body
        )
        if answer.status >= 300:
            raise AssertionError(f"the ledger refused a delivery: {answer.status} {answer.body}")
