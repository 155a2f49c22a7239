"""Stored functions of the room *facts*: what is said about a run."""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class RecordedFact:
    """``recorded`` is False for an exact repeat."""

    event_id: str
    recorded: bool
    seq: int


@dataclass(frozen=True, slots=True)
class ProjectedEvent:
    """One ledger event of a fact, as JSON text."""

    item: int
    event: str


class FactFunctions:
    """Facts and their projection."""

    _executor: Executor

    async def append_fact(
        self,
        org_id: str,
        run_id: str,
        event_id: str,
        event_type: str,
        payload: JsonValue,
        attempt: int | None = None,
        lease_id: str | None = None,
    ) -> RecordedFact:
        """Append one fact; with ``attempt`` and ``lease_id`` only while that lease is live."""
        found = await self._executor.rows(
            RecordedFact,
            "select %(p_event_id)s::text as event_id, a.recorded, a.seq"
            " from {schema}.append_fact(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_id => %(p_event_id)s::text,"
            " p_event_type => %(p_event_type)s::text, p_payload => %(p_payload)s::jsonb,"
            " p_attempt => %(p_attempt)s::integer, p_lease_id => %(p_lease_id)s::text) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_id": event_id,
                "p_event_type": event_type,
                "p_payload": encode(payload, "p_payload"),
                "p_attempt": attempt,
                "p_lease_id": lease_id,
            },
        )
        return found[0]

    async def append_facts(
        self,
        org_id: str,
        run_id: str,
        facts: JsonValue,
        attempt: int | None = None,
        lease_id: str | None = None,
    ) -> list[RecordedFact]:
        """Append many facts of one run, in order: ``[{eventId, eventType, payload}, …]``."""
        return await self._executor.rows(
            RecordedFact,
            "select a.event_id, a.recorded, a.seq from {schema}.append_facts("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_facts => %(p_facts)s::jsonb, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_facts": encode(facts, "p_facts"),
                "p_attempt": attempt,
                "p_lease_id": lease_id,
            },
        )

    async def project_fact(self, org_id: str, run_id: str, event_id: str) -> list[ProjectedEvent]:
        """The ledger events of a fact, in order."""
        return await self._executor.rows(
            ProjectedEvent,
            "select p.item, p.event::text as event from {schema}.project_fact("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_event_id => %(p_event_id)s::text) as p",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_id": event_id},
        )
