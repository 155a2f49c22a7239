"""Stored functions of the room *receipts*: memoised steps.

A receipt is a dict in the wire's camelCase: ``key``, ``status``, ``runId``, ``leaseId``,
``leaseOwnerAttempt``, ``leaseExpiresAt``, ``output``, ``error``, ``errorPayload``, ``failureKind``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, LiteralString

from counterfoil.calls.ledger import HttpAnswer
from counterfoil.database import Executor
from counterfoil.json_text import JsonBytes, JsonValue, encode

_CLAIM_OF: LiteralString = (
    "select c.ordinal, c.key, c.receipt, c.claimed from {schema}.claim_receipts("
)
_RELAXED_CLAIM_OF: LiteralString = (
    "select c.ordinal, c.key, c.receipt, c.claimed from"
    " (select pg_catalog.set_config('synchronous_commit', 'off', true)) as s"
    " cross join lateral {schema}.claim_receipts("
)


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


@dataclass(frozen=True, slots=True)
class FailureClass:
    """How a failure looks over HTTP; ``error`` may hold ``%s`` for what was attempted.

    ``hint`` says what to do where the failure itself does not.
    """

    sqlstate_prefix: str
    status: int
    code: str
    retryable: bool
    retry_after_ms: int | None
    error: str | None
    hint: str


@dataclass(frozen=True, slots=True)
class _Boolean:
    value: bool


@dataclass(frozen=True, slots=True)
class _Document:
    value: Any


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
        *,
        relaxed: bool = False,
    ) -> list[Receipt]:
        """Claim receipts, or get what was computed.

        Options: ``leaseAware``, ``reclaimRunning``, ``forceRefresh``, ``forceFailedRefresh``
        (booleans), ``leaseSeconds``, and ``ttlSeconds`` as the completion will give it, so that a
        wrong one is refused first. ``relaxed`` does not wait until the transaction is on disk:
        a claim that a crash of the server undoes is as one whose lease lapsed. It goes for the
        whole transaction, so leave it out where that does more.
        """
        return await self._executor.rows(
            Receipt,
            (_RELAXED_CLAIM_OF if relaxed else _CLAIM_OF)
            + "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
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

    async def recall_receipts(
        self, org_id: str, run_id: str, prefix: str, limit: int, max_bytes: int
    ) -> list[dict[str, JsonValue]] | None:
        """Settled receipts of the run whose keys begin with ``prefix``; None for too many.

        Its locks need not outlast a crash, so the transaction does not wait until it is on disk.
        """
        found = await self._executor.rows(
            _Document,
            "select r.value from"
            " (select pg_catalog.set_config('synchronous_commit', 'off', true)) as s"
            " cross join lateral {schema}.recall_receipts(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_prefix => %(p_prefix)s::text,"
            " p_limit => %(p_limit)s::integer, p_max_bytes => %(p_max_bytes)s::integer)"
            " as r (value)",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_prefix": prefix,
                "p_limit": limit,
                "p_max_bytes": max_bytes,
            },
        )
        answer: list[dict[str, JsonValue]] | None = found[0].value
        return answer

    async def record_receipt(
        self, org_id: str, run_id: str, attempt: int, lease_id: str, key: str, output: JsonValue
    ) -> dict[str, JsonValue]:
        """Complete a receipt of the run's own that was not claimed, under the attempt's lease.

        ``status`` and ``output`` as stored; of one settled before, what it was settled with.
        """
        found = await self._executor.rows(
            _Document,
            "select {schema}.record_receipt(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text, p_key => %(p_key)s::text,"
            " p_output => %(p_output)s::jsonb) as value",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_key": key,
                "p_output": encode(output, "p_output"),
            },
        )
        answer: dict[str, JsonValue] = found[0].value
        return answer

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

    async def mark_receipts_queued(
        self, org_id: str, run_id: str, receipts: JsonValue
    ) -> list[Receipt]:
        """Leased work that waits for a place elsewhere: ``[{key, leaseId, runAttempt}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select r.ordinal, r.key, r.receipt from {schema}.mark_receipts_queued("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
            },
        )

    async def mark_receipts_running(
        self, org_id: str, run_id: str, receipts: JsonValue, lease_seconds: int | None = None
    ) -> list[Receipt]:
        """Leased work that computes again: ``[{key, leaseId, runAttempt}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select r.ordinal, r.key, r.receipt from {schema}.mark_receipts_running("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb,"
            " p_lease_seconds => %(p_lease_seconds)s::integer) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
                "p_lease_seconds": lease_seconds,
            },
        )

    async def release_receipts(
        self, org_id: str, run_id: str, receipts: JsonValue
    ) -> list[Receipt]:
        """Give claims back: ``[{key, leaseId, runAttempt}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select r.ordinal, r.key, r.receipt from {schema}.release_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
            },
        )

    async def skip_receipts(self, org_id: str, run_id: str, receipts: JsonValue) -> list[Receipt]:
        """Settle steps that need no computing: ``[{key, leaseId, runAttempt, output}, …]``."""
        return await self._executor.rows(
            Receipt,
            "select r.ordinal, r.key, r.receipt from {schema}.skip_receipts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_receipts => %(p_receipts)s::jsonb) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_receipts": encode(receipts, "p_receipts"),
            },
        )

    async def observe_docflow_node(self, org_id: str, run_id: str, observation: JsonValue) -> bool:
        """Note what a node did, best effort; False when a later status is known already."""
        found = await self._executor.rows(
            _Boolean,
            "select o.value from {schema}.observe_docflow_node(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text,"
            " p_observation => %(p_observation)s::jsonb) as o (value)",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_observation": encode(observation, "p_observation"),
            },
        )
        return found[0].value

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
                "p_body": body if isinstance(body, JsonBytes) else encode(body, "p_body"),
                "p_wire_format": wire_format,
            },
        )
        return found[0]

    async def failure_classes(self) -> list[FailureClass]:
        """How failures look over HTTP, by the beginning of their SQLSTATE."""
        return await self._executor.rows(
            FailureClass,
            "select f.sqlstate_prefix, f.status, f.code, f.retryable, f.retry_after_ms, f.error,"
            " f.hint from {schema}.failure_classes() as f",
            {},
        )

    async def receipt_failure_response(
        self,
        sqlstate: str,
        message: str,
        detail: str | None,
        action: str | None,
        operation: str,
        hint: str,
    ) -> HttpAnswer:
        """The HTTP answer for a call that failed in the database, redacted."""
        found = await self._executor.rows(
            HttpAnswer,
            "select r.status, r.headers, r.body::text as body"
            " from {schema}.receipt_failure_response(p_sqlstate => %(p_sqlstate)s::text,"
            " p_message => %(p_message)s::text, p_detail => %(p_detail)s::text,"
            " p_action => %(p_action)s::text, p_operation => %(p_operation)s::text,"
            " p_hint => %(p_hint)s::text) as r",
            {
                "p_sqlstate": sqlstate,
                "p_message": message,
                "p_detail": detail,
                "p_action": action,
                "p_operation": operation,
                "p_hint": hint,
            },
        )
        return found[0]
