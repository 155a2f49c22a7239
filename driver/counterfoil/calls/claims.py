"""Stored functions of the room *delivery* that lease facts: claims, and what they answer.

Ledger events stay JSON text from the database to the wire: no number goes through a Python float.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import LiteralString

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue

# How every claim's rows are read; the function's name and arguments follow.
_COLUMNS: LiteralString = (
    "c.org_id, c.run_id, c.lane, c.seq, c.event_id, c.event_type, c.deferred,"
    " c.events::text as events,"
    " coalesce(pg_catalog.jsonb_array_length(c.events), 0) as event_count,"
    " c.created_at, c.lease_expires_at, c.frozen, c.idempotency_key, c.dispatch_authority"
    " from {schema}."
)
_FACTS_OF: LiteralString = "select " + _COLUMNS
_MARKED_FACTS_OF: LiteralString = "select c.marks, c.filled, " + _COLUMNS
_ANSWERS_OF: LiteralString = "select c.kind, " + _COLUMNS


@dataclass(frozen=True, slots=True)
class ClaimedFact:
    """One fact of a claimed prefix.

    ``events`` is the JSON text of the array of its ``event_count`` ledger events, None while the
    fact is deferred. ``idempotency_key`` is the whole prefix's. ``dispatch_authority`` comes with
    the first fact of each run; it carries credentials, so it is never shown. ``marks`` are the due
    times, by priority, that a claim of whatever run has come to; ``filled``: it found as many lanes
    as it was to find, so that more may wait.
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
    marks: list[datetime | None] | None = None
    filled: bool = False

    def __repr__(self) -> str:
        return f"ClaimedFact({self.org_id!r}, {self.run_id!r}, {self.seq}, {self.event_id!r})"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """What became of each fact, and the successor prefix claimed in the same transaction."""

    acknowledged: tuple[str, ...]
    not_owned: tuple[str, ...]
    claimed: tuple[ClaimedFact, ...]


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
        of_a_claim = ("marks", "filled")
        names = (name for name in ClaimedFact.__slots__ if name not in of_a_claim)
        return ClaimedFact(**{name: getattr(self, name) for name in names})


class ClaimFunctions:
    """Claims of deliveries."""

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
        marks: Sequence[datetime | None] | None = None,
    ) -> list[ClaimedFact]:
        """Claim the prefixes of up to ``max_runs`` runs, ``limit`` facts each, in order.

        ``marks``: the due times, by priority, from which lanes are looked at; None looks at all.
        """
        return await self._executor.rows(
            ClaimedFact,
            _MARKED_FACTS_OF + "claim_deliveries(p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer, p_limit => %(p_limit)s::integer,"
            " p_max_runs => %(p_max_runs)s::integer, p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_lane => %(p_lane)s::text,"
            " p_head_priority => %(p_head_priority)s::text,"
            " p_allow_ingress_prefix => %(p_allow_ingress_prefix)s::boolean,"
            " p_marks => %(p_marks)s::timestamptz[]) as c",
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
                "p_marks": None if marks is None else list(marks),
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
            _FACTS_OF + "widen_delivery(p_org_id => %(p_org_id)s::text,"
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

    async def take_over_delivery(
        self,
        org_id: str,
        run_id: str,
        lease_owner: str | None = None,
        lease_seconds: int = 150,
        limit: int = 64,
        allow_ingress_prefix: bool = False,
    ) -> list[ClaimedFact]:
        """Take the pending facts of a cancelled run from whoever holds them."""
        return await self._executor.rows(
            ClaimedFact,
            _FACTS_OF + "take_over_delivery("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text,"
            " p_lease_seconds => %(p_lease_seconds)s::integer, p_limit => %(p_limit)s::integer,"
            " p_allow_ingress_prefix => %(p_allow_ingress_prefix)s::boolean) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_lease_owner": lease_owner,
                "p_lease_seconds": lease_seconds,
                "p_limit": limit,
                "p_allow_ingress_prefix": allow_ingress_prefix,
            },
        )

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
            _ANSWERS_OF + "acknowledge_delivery(p_org_id => %(p_org_id)s::text,"
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
