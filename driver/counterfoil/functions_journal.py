"""Stored functions for deferred facts and for retention."""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.database import Executor

MATERIALISE_TIMEOUT_MS = 60_000
"""Statement timeout of a materialisation; the lease it runs under is longer."""


@dataclass(frozen=True, slots=True)
class Purge:
    """What one batch of retention did; ``more`` says whether another one would do something."""

    logs_purged: int
    facts_removed: int
    more: bool


@dataclass(frozen=True, slots=True)
class PurgedReceipts:
    """What one batch of retention removed."""

    receipts: int
    observations: int


@dataclass(frozen=True, slots=True)
class PurgedRuns:
    """What one batch of retention removed."""

    ledgers: int
    runs: int


@dataclass(frozen=True, slots=True)
class _Done:
    done: bool


class JournalFunctions:
    """The journal seen from a projector, and what grows old."""

    _executor: Executor

    async def materialize_runtime_outbox_event(
        self,
        org_id: str,
        event_id: str,
        lease_owner: str,
        timeout_ms: int = MATERIALISE_TIMEOUT_MS,
    ) -> None:
        """Turn a deferred fact into journal rows; InvalidProjectionError when it never can be.

        The fact's payload stays in the database: ``project_fact`` has its ledger events afterwards.
        """
        await self._executor.rows(
            _Done,
            "select m.payload is not null as done"
            " from {schema}.materialize_runtime_outbox_event(p_org_id => %(p_org_id)s::text,"
            " p_event_id => %(p_event_id)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text) as m (payload)",
            {"p_org_id": org_id, "p_event_id": event_id, "p_lease_owner": lease_owner},
            timeout_ms=timeout_ms,
        )

    async def purge_delivered(self, limit: int = 1000) -> Purge:
        """Take the log text out of old delivered facts, and remove older ones; one batch."""
        found = await self._executor.rows(
            Purge,
            "select p.logs_purged, p.facts_removed, p.more"
            " from {schema}.purge_delivered(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]

    async def purge_receipts(self, limit: int = 1000) -> PurgedReceipts:
        """Remove old settled receipts and observations; one batch."""
        found = await self._executor.rows(
            PurgedReceipts,
            "select p.receipts, p.observations"
            " from {schema}.purge_receipts(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]

    async def purge_runs(self, limit: int = 1000) -> PurgedRuns:
        """Remove old ended runs and their ledgers; one batch."""
        found = await self._executor.rows(
            PurgedRuns,
            "select p.ledgers, p.runs"
            " from {schema}.purge_runs(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]
