"""Stored functions of the room *delivery*: claim, renew, acknowledge, settle.

Ledger events stay JSON text from the database to the wire: no number goes through a Python float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class ClaimedFact:
    """One fact of a claimed prefix.

    ``events`` is the JSON text of the array of its ``event_count`` ledger events, None while the
    fact is deferred. ``idempotency_key`` is the whole prefix's. ``dispatch_authority`` comes with
    the first fact of each run; it carries credentials, so it is never shown.
    """

    org_id: str
    run_id: str
    lane: str
    seq: int
    event_id: str
    event_type: str
    deferred: bool
    events: str | None
    event_count: int
    created_at: datetime
    lease_expires_at: datetime
    frozen: bool
    idempotency_key: str
    dispatch_authority: dict[str, JsonValue] | None

    def __repr__(self) -> str:
        return f"ClaimedFact({self.org_id!r}, {self.run_id!r}, {self.seq}, {self.event_id!r})"


@dataclass(frozen=True, slots=True)
class Renewal:
    """A renewed lease and, once the receipt is frozen, its key and first freeze."""

    lease_expires_at: datetime
    idempotency_key: str
    frozen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What became of each fact, and the successor prefix claimed in the same transaction."""

    acknowledged: tuple[str, ...]
    not_owned: tuple[str, ...]
    claimed: tuple[ClaimedFact, ...]


@dataclass(frozen=True, slots=True)
class AcknowledgedLane:
    """Whether a lane was acknowledged; False when its lease was lost or its row was busy."""

    org_id: str
    run_id: str
    acknowledged: bool


@dataclass(frozen=True, slots=True)
class SettledFact:
    """``outcome``: retrying (due at ``next_attempt_at``), blocked or not_owned."""

    event_id: str
    outcome: str
    next_attempt_at: datetime | None


@dataclass(frozen=True, slots=True)
class DeliveryDue:
    """When something is due, and in how many seconds by the database's clock; None for nothing."""

    due_at: datetime | None
    in_seconds: float | None


@dataclass(frozen=True, slots=True)
class _EventId:
    event_id: str


@dataclass(frozen=True, slots=True)
class _Text:
    value: str


@dataclass(frozen=True, slots=True)
class _AcknowledgeRow:
    kind: str
    org_id: str | None
    run_id: str | None
    lane: str | None
    seq: int | None
    event_id: str
    event_type: str | None
    deferred: bool | None
    events: str | None
    event_count: int
    created_at: datetime | None
    lease_expires_at: datetime | None
    frozen: bool | None
    idempotency_key: str | None
    dispatch_authority: dict[str, JsonValue] | None

    def fact(self) -> ClaimedFact:
        values = {name: getattr(self, name) for name in ClaimedFact.__slots__}
        return ClaimedFact(**values)


class DeliveryFunctions:
    """Deliveries, seen from a dispatcher."""

    _executor: Executor

    async def claim_deliveries(
        self,
        lease_owner: str,
        lease_seconds: int,
        limit: int,
        max_runs: int,
        org_id: str | None = None,
        run_id: str | None = None,
        lane: str = "lifecycle",
        head_priority: str = "admission_first",
        allow_ingress_prefix: bool = False,
    ) -> list[ClaimedFact]:
        """Claim the prefixes of up to ``max_runs`` runs, ``limit`` facts each, in order."""
        return await self._executor.rows(
            ClaimedFact,
            "select c.org_id, c.run_id, c.lane, c.seq, c.event_id, c.event_type, c.deferred,"
            " c.events::text as events,"
            " coalesce(pg_catalog.jsonb_array_length(c.events), 0) as event_count,"
            " c.created_at, c.lease_expires_at, c.frozen, c.idempotency_key, c.dispatch_authority"
            " from {schema}.claim_deliveries(p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer, p_limit => %(p_limit)s::integer,"
            " p_max_runs => %(p_max_runs)s::integer, p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_lane => %(p_lane)s::text,"
            " p_head_priority => %(p_head_priority)s::text,"
            " p_allow_ingress_prefix => %(p_allow_ingress_prefix)s::boolean) as c",
            {
                "p_lease_owner": lease_owner,
                "p_lease_seconds": lease_seconds,
                "p_limit": limit,
                "p_max_runs": max_runs,
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_lane": lane,
                "p_head_priority": head_priority,
                "p_allow_ingress_prefix": allow_ingress_prefix,
            },
        )

    async def widen_delivery(
        self,
        org_id: str,
        run_id: str,
        head_event_id: str,
        lease_owner: str,
        lease_seconds: int,
        limit: int,
    ) -> list[ClaimedFact]:
        """Extend an owned single ingress head to the combined prefix; empty when it cannot be."""
        return await self._executor.rows(
            ClaimedFact,
            "select c.org_id, c.run_id, c.lane, c.seq, c.event_id, c.event_type, c.deferred,"
            " c.events::text as events,"
            " coalesce(pg_catalog.jsonb_array_length(c.events), 0) as event_count,"
            " c.created_at, c.lease_expires_at, c.frozen, c.idempotency_key, c.dispatch_authority"
            " from {schema}.widen_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_head_event_id => %(p_head_event_id)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer,"
            " p_limit => %(p_limit)s::integer) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_head_event_id": head_event_id,
                "p_lease_owner": lease_owner,
                "p_lease_seconds": lease_seconds,
                "p_limit": limit,
            },
        )

    async def renew_delivery(
        self,
        org_id: str,
        run_id: str,
        event_ids: Sequence[str],
        lease_owner: str,
        lease_seconds: int,
        freeze: bool,
    ) -> Renewal:
        """Extend a live lease over exactly these facts, and freeze their receipt if asked."""
        found = await self._executor.rows(
            Renewal,
            "select r.lease_expires_at, r.idempotency_key, r.frozen_at"
            " from {schema}.renew_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer,"
            " p_freeze => %(p_freeze)s::boolean) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
                "p_lease_seconds": lease_seconds,
                "p_freeze": freeze,
            },
        )
        return found[0]

    async def delivery_idempotency_key(
        self, org_id: str, run_id: str, event_ids: Sequence[str]
    ) -> str:
        """The idempotency key of a delivery of exactly these facts."""
        found = await self._executor.rows(
            _Text,
            "select k.value from {schema}.delivery_idempotency_key(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text,"
            " p_event_ids => %(p_event_ids)s::text[]) as k (value)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_ids": list(event_ids)},
        )
        return found[0].value

    async def acknowledge_delivery(
        self,
        org_id: str,
        run_id: str,
        event_ids: Sequence[str],
        lease_owner: str,
        continuation_allowance: int = 0,
        lease_seconds: int = 30,
        allow_ingress_prefix: bool = False,
    ) -> Acknowledgement:
        """Mark the owner's facts delivered; claim up to ``continuation_allowance`` successors."""
        rows = await self._executor.rows(
            _AcknowledgeRow,
            "select c.kind, c.org_id, c.run_id, c.lane, c.seq, c.event_id, c.event_type,"
            " c.deferred, c.events::text as events,"
            " coalesce(pg_catalog.jsonb_array_length(c.events), 0) as event_count,"
            " c.created_at, c.lease_expires_at, c.frozen, c.idempotency_key, c.dispatch_authority"
            " from {schema}.acknowledge_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_continuation_allowance => %(p_continuation_allowance)s::integer,"
            " p_lease_seconds => %(p_lease_seconds)s::integer,"
            " p_allow_ingress_prefix => %(p_allow_ingress_prefix)s::boolean) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
                "p_continuation_allowance": continuation_allowance,
                "p_lease_seconds": lease_seconds,
                "p_allow_ingress_prefix": allow_ingress_prefix,
            },
        )
        return Acknowledgement(
            acknowledged=tuple(row.event_id for row in rows if row.kind == "acknowledged"),
            not_owned=tuple(row.event_id for row in rows if row.kind == "not_owned"),
            claimed=tuple(row.fact() for row in rows if row.kind == "claimed"),
        )

    async def acknowledge_deliveries(
        self,
        org_ids: Sequence[str],
        run_ids: Sequence[str],
        lane: str,
        through_seqs: Sequence[int],
        lease_owner: str,
    ) -> list[AcknowledgedLane]:
        """Acknowledge many lanes, each through a position."""
        return await self._executor.rows(
            AcknowledgedLane,
            "select a.org_id, a.run_id, a.acknowledged from {schema}.acknowledge_deliveries("
            "p_org_ids => %(p_org_ids)s::text[], p_run_ids => %(p_run_ids)s::text[],"
            " p_lane => %(p_lane)s::text, p_through_seqs => %(p_through_seqs)s::bigint[],"
            " p_lease_owner => %(p_lease_owner)s::text) as a",
            {
                "p_org_ids": list(org_ids),
                "p_run_ids": list(run_ids),
                "p_lane": lane,
                "p_through_seqs": list(through_seqs),
                "p_lease_owner": lease_owner,
            },
        )

    async def release_delivery(
        self, org_id: str, run_id: str, event_ids: Sequence[str], lease_owner: str
    ) -> list[str]:
        """Give the lease back without charging an attempt; the facts that were still owned."""
        rows = await self._executor.rows(
            _EventId,
            "select r.event_id from {schema}.release_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text) as r (event_id)",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
            },
        )
        return [row.event_id for row in rows]

    async def settle_delivery_failure(
        self,
        org_id: str,
        run_id: str,
        event_ids: Sequence[str],
        lease_owner: str,
        error: JsonValue,
    ) -> list[SettledFact]:
        """Charge a failed delivery: ``{message, code, status, retryable, eventId?}``."""
        return await self._executor.rows(
            SettledFact,
            "select s.event_id, s.outcome, s.next_attempt_at"
            " from {schema}.settle_delivery_failure(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text, p_error => %(p_error)s::jsonb) as s",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
                "p_error": encode(error, "p_error"),
            },
        )

    async def next_delivery_due_at(
        self, lane: str, run_id: str | None = None, org_id: str | None = None
    ) -> DeliveryDue:
        """When a delivery is next due, live leases considered."""
        found = await self._executor.rows(
            DeliveryDue,
            "select n.due_at, extract(epoch from n.due_at - pg_catalog.clock_timestamp())::float8"
            " as in_seconds from {schema}.next_delivery_due_at(p_lane => %(p_lane)s::text,"
            " p_run_id => %(p_run_id)s::text, p_org_id => %(p_org_id)s::text) as n (due_at)",
            {"p_lane": lane, "p_run_id": run_id, "p_org_id": org_id},
        )
        return found[0]

    async def delivery_status(self, org_id: str, run_id: str, event_id: str) -> str:
        """``delivered``, ``blocked``, ``pending`` or ``unknown``."""
        found = await self._executor.rows(
            _Text,
            "select d.value from {schema}.delivery_status(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_id => %(p_event_id)s::text) as d (value)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_id": event_id},
        )
        return found[0].value
