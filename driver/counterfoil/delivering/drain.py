"""Draining a run through a named fact: for whoever must know that it reached the ledger."""

from __future__ import annotations

import time
import uuid
from dataclasses import dataclass, field

from counterfoil.delivering.deliveries import PREFIX_MAX_FACTS, HeldRun
from counterfoil.delivering.delivery import Deliverer, to_its_end
from counterfoil.functions import ClaimedFact, Functions


@dataclass
class DrainResult:
    """What a drain did. ``delivered`` and ``blocked`` are the target's durable state after it."""

    target_event_id: str
    attempted: int = 0
    acknowledged: list[str] = field(default_factory=list)
    blocked_event_ids: list[str] = field(default_factory=list)
    retrying_event_ids: list[str] = field(default_factory=list)
    delivered: bool = False
    blocked: bool = False


async def dispatch_through_event(
    functions: Functions,
    deliverer: Deliverer,
    org_id: str,
    run_id: str,
    event_id: str,
    *,
    max_facts: int | None = None,
    take_over: bool = False,
    lease_seconds: int = 30,
) -> DrainResult:
    """Deliver a run's facts until ``event_id`` is acknowledged, at most ``max_facts`` of them.

    Stops at a delivery that fails: the policy of its retry owns the next try. Whatever happens, no
    lease is left behind. ``take_over``: the run was cancelled, and its pending facts are taken from
    whoever holds them, with a cancellation lease.
    """
    result = DrainResult(event_id)
    began = 0.0
    kind = "cancellation" if take_over else "drain"
    held = HeldRun(org_id, run_id, f"{kind}:{uuid.uuid4()}", [])

    def keep(facts: list[ClaimedFact]) -> None:
        held.facts = facts
        held.claim_milliseconds = (time.monotonic() - began) * 1000

    try:
        while max_facts is None or result.attempted < max_facts:
            left = None if max_facts is None else max_facts - result.attempted
            if not held.facts:
                began = time.monotonic()
                limit = PREFIX_MAX_FACTS if left is None else min(PREFIX_MAX_FACTS, left)
                batching = deliverer.known_to_batch
                if take_over:
                    claim = functions.take_over_delivery(
                        org_id, run_id, held.lease_owner, lease_seconds, limit, batching
                    )
                else:
                    claim = functions.claim_deliveries(
                        held.lease_owner,
                        lease_seconds,
                        limit,
                        1,
                        org_id=org_id,
                        run_id=run_id,
                        allow_ingress_prefix=batching,
                    )
                await to_its_end(claim, keep)
            if not held.facts:
                break
            # Nothing behind the target is wanted.
            last = event_id in held.event_ids
            report = await deliverer.deliver(held, len(held.facts) if last else left)
            result.attempted += len(report.event_ids)
            result.acknowledged += report.acknowledged
            result.blocked_event_ids += report.blocked
            result.retrying_event_ids += report.retrying
            if event_id in report.acknowledged or not report.acknowledged:
                break
    finally:
        await deliverer.release(held)
    # Another dispatcher may have delivered the target meanwhile: the durable state says.
    status = await functions.delivery_status(org_id, run_id, event_id)
    result.delivered, result.blocked = status == "delivered", status == "blocked"
    return result
