"""Stored functions of the room *journal*: deferred facts, and retention."""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.database import Executor

MATERIALISE_TIMEOUT_MS = 60_000
"""Statement timeout of a materialisation; the lease it runs under is longer."""


@dataclass(frozen=True, slots=True)
class _Done:
    done: bool


class JournalFunctions:
    """The journal, seen from a projector."""

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
