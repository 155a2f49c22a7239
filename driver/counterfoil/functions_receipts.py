"""Stored functions of the room *receipts*: memoised steps.

A receipt is a dict in the wire's camelCase: ``key``, ``status``, ``runId``, ``leaseId``,
``leaseOwnerAttempt``, ``leaseExpiresAt``, ``output``, ``error``, ``errorPayload``, ``failureKind``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from counterfoil.database import Executor
from counterfoil.functions_ledger import HttpAnswer
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class Receipt:
    """One answer, in the order asked; ``claimed`` says whether the caller now computes it."""

    ordinal: int
    key: str
    receipt: dict[str, JsonValue] | None
    claimed: bool = False


@dataclass(frozen=True, slots=True)
class ReceiptHeartbeat:
    """``outcome`` is ok, or lost when the lease lapsed, was replaced, given back or settled."""

    ordinal: int
    key: str
    outcome: str


class ReceiptFunctions:
    """Step receipts, set-based."""

    _executor: Executor

    async def claim_receipts(
        self,
        org_id: str,
        run_id: str,
        run_attempt: int | None,
        keys: Sequence[str],
        lease_ids: Sequence[str | None],
        options: JsonValue,
    ) -> list[Receipt]:
        """Claim receipts, or get what was computed.

        Options: ``leaseAware``, ``reclaimRunning``, ``forceRefresh``, ``forceFailedRefresh``
        (booleans) and ``leaseSeconds``.
        """
        return await self._executor.rows(
            Receipt,
            "select c.ordinal, c.key, c.receipt, c.claimed from {schema}.claim_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_run_attempt => %(p_run_attempt)s::integer, p_keys => %(p_keys)s::text[],"
            " p_lease_ids => %(p_lease_ids)s::text[], p_options => %(p_options)s::jsonb) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_run_attempt": run_attempt,
                "p_keys": list(keys),
                "p_lease_ids": list(lease_ids),
                "p_options": encode(options, "p_options"),
            },
        )

    async def get_receipts(self, org_id: str, keys: Sequence[str]) -> list[Receipt]:
        """Read receipts; ``receipt`` is None for a key that has none."""
        return await self._executor.rows(
            Receipt,
            "select g.ordinal, g.key, g.receipt from {schema}.get_receipts("
            "p_org_id => %(p_org_id)s::text, p_keys => %(p_keys)s::text[]) as g",
            {"p_org_id": org_id, "p_keys": list(keys)},
        )

    async def complete_receipts(
        self, org_id: str, run_id: str, receipts: JsonValue, return_output: bool
    ) -> list[Receipt]:
        """Complete: ``[{key, leaseId, runAttempt, output}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select c.ordinal, c.key, c.receipt from {schema}.complete_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb,"
            " p_return_output => %(p_return_output)s::boolean) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
                "p_return_output": return_output,
            },
        )

    async def fail_receipts(self, org_id: str, run_id: str, receipts: JsonValue) -> list[Receipt]:
        """Fail: ``[{key, leaseId, runAttempt, error, errorPayload, failureKind}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select f.ordinal, f.key, f.receipt from {schema}.fail_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb) as f",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
            },
        )

    async def heartbeat_receipts(
        self, org_id: str, run_id: str, receipts: JsonValue, lease_seconds: int | None = None
    ) -> list[ReceiptHeartbeat]:
        """Extend leases: ``[{key, leaseId, runAttempt}, …]``; those still held are extended."""
        return await self._executor.rows(
            ReceiptHeartbeat,
            "select h.ordinal, h.key, h.outcome from {schema}.heartbeat_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb,"
            " p_lease_seconds => %(p_lease_seconds)s::integer) as h",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
                "p_lease_seconds": lease_seconds,
            },
        )

    async def dispatch_receipt_action(
        self, scope: JsonValue, body: JsonValue, wire_format: int
    ) -> HttpAnswer:
        """One receipt action of the HTTP wire; ``scope`` {orgId, runId, playName}."""
        found = await self._executor.rows(
            HttpAnswer,
            "select d.status, d.headers, d.body::text as body"
            " from {schema}.dispatch_receipt_action(p_scope => %(p_scope)s::jsonb,"
            " p_body => %(p_body)s::jsonb, p_wire_format => %(p_wire_format)s::integer) as d",
            {
                "p_scope": encode(scope, "p_scope"),
                "p_body": encode(body, "p_body"),
                "p_wire_format": wire_format,
            },
        )
        return found[0]
