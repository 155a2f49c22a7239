"""Stored functions of the room *delivery*: renew, acknowledge, release, settle.

Ledger events stay JSON text from the database to the wire: no number goes through a Python float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class Renewal:
    """A renewed lease and, once the receipt is frozen, its key and first freeze."""

    lease_expires_at: datetime
    idempotency_key: str
    frozen_at: datetime | None


@dataclass(frozen=True, slots=True)
class RenewedLane:
    """Whether a lane was renewed; False when its lease was lost or its row was busy."""

    org_id: str
    run_id: str
    renewed: bool
    idempotency_key: str | None
    frozen_at: datetime | None


@dataclass(frozen=True, slots=True)
class Piece:
    """One HTTP request's part of a delivery: ``events`` is the text of a JSON array."""

    chunk: int
    chunk_count: int
    events: str


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
class LaneDue:
    """In how many seconds, by the database's clock, a lane has something due; None: not known."""

    lane: str
    in_seconds: float | None


@dataclass(frozen=True, slots=True)
class _EventId:
    event_id: str


@dataclass(frozen=True, slots=True)
class _Text:
    value: str


class DeliveryFunctions:
    """Deliveries, seen from a dispatcher."""

    _executor: Executor

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

    async def renew_deliveries(
        self,
        org_ids: Sequence[str],
        run_ids: Sequence[str],
        lane: str,
        through_seqs: Sequence[int],
        lease_owner: str,
        lease_seconds: int = 30,
        freeze: bool = False,
    ) -> list[RenewedLane]:
        """Extend, and freeze, many lanes at once, each through the end of what is leased."""
        return await self._executor.rows(
            RenewedLane,
            "select r.org_id, r.run_id, r.renewed, r.idempotency_key, r.frozen_at"
            " from {schema}.renew_deliveries(p_org_ids => %(p_org_ids)s::text[],"
            " p_run_ids => %(p_run_ids)s::text[], p_lane => %(p_lane)s::text,"
            " p_through_seqs => %(p_through_seqs)s::bigint[],"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer,"
            " p_freeze => %(p_freeze)s::boolean) as r",
            {
                "p_org_ids": list(org_ids),
                "p_run_ids": list(run_ids),
                "p_lane": lane,
                "p_through_seqs": list(through_seqs),
                "p_lease_owner": lease_owner,
                "p_lease_seconds": lease_seconds,
                "p_freeze": freeze,
            },
        )

    async def plan_delivery_pieces(
        self, org_id: str, run_id: str, event_ids: Sequence[str], lease_owner: str
    ) -> list[Piece]:
        """The pieces in which a frozen delivery travels; none when it has no events."""
        return await self._executor.rows(
            Piece,
            "select p.chunk, p.chunk_count, p.events::text as events"
            " from {schema}.plan_delivery_pieces(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text) as p",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
            },
        )

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
        self,
        org_id: str,
        run_id: str,
        event_ids: Sequence[str],
        lease_owner: str,
        later: bool = False,
    ) -> list[str]:
        """Give the lease back without charging an attempt; the facts that were still owned.

        ``later``: they are due again after a pause.
        """
        rows = await self._executor.rows(
            _EventId,
            "select r.event_id from {schema}.release_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_ids => %(p_event_ids)s::text[],"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_later => %(p_later)s::boolean) as r (event_id)",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_ids": list(event_ids),
                "p_lease_owner": lease_owner,
                "p_later": later,
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

    async def list_pending_orgs(self) -> list[str]:
        """Orgs with pending facts, each once."""
        found = await self._executor.rows(
            _Text, "select o.value from {schema}.list_pending_orgs() as o (value)", {}
        )
        return [org.value for org in found]

    async def look_for_deliveries(
        self, lanes: Sequence[str], listeners: Sequence[str | None]
    ) -> list[LaneDue]:
        """When something is due in each lane; keeps the ``listeners``, one a lane, registered."""
        return await self._executor.rows(
            LaneDue,
            "select l.lane,"
            " extract(epoch from l.due_at - pg_catalog.clock_timestamp())::float8 as in_seconds"
            " from {schema}.look_for_deliveries(p_lanes => %(p_lanes)s::text[],"
            " p_listeners => %(p_listeners)s::text[]) as l",
            {"p_lanes": list(lanes), "p_listeners": list(listeners)},
        )

    async def delivery_status(self, org_id: str, run_id: str, event_id: str) -> str:
        """``delivered``, ``blocked``, ``pending`` or ``unknown``."""
        found = await self._executor.rows(
            _Text,
            "select d.value from {schema}.delivery_status(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_id => %(p_event_id)s::text) as d (value)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_id": event_id},
        )
        return found[0].value
