"""Stored functions of the rooms *ledger* and *delivery* that a gateway calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonBytes, JsonText, JsonValue, encode


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What an HTTP endpoint answers: status, headers, and the body as JSON text."""

    status: int
    headers: dict[str, str]
    body: str | None


@dataclass(frozen=True, slots=True)
class Append:
    """What an append did: ``outcome`` appended or replayed, and whether all pieces have come."""

    outcome: str
    first_position: int
    last_position: int
    complete: bool


@dataclass(frozen=True, slots=True)
class Proof:
    """What a proof covers: positions of facts, and of the events within the whole delivery."""

    first_seq: int
    last_seq: int
    first_index: int
    event_total: int


@dataclass(frozen=True, slots=True)
class LedgerEvent:
    """One event of a run's ledger; ``event`` is its JSON text."""

    position: int
    event_type: str
    event_id: str
    item: int
    occurred_at: datetime
    event: str
    appended_at: datetime


@dataclass(frozen=True, slots=True)
class _Json:
    value: str | None


def _text(found: list[_Json]) -> JsonText | None:
    value = found[0].value if found else None
    return None if value is None else JsonText(value)


class LedgerFunctions:
    """The ledger, seen from the gateway and from readers."""

    _executor: Executor

    async def dispatch_ledger_action(
        self, scope: JsonValue, action: str, body: JsonValue
    ) -> HttpAnswer:
        """Append: ``action`` is created, started or events; ``scope`` {orgId, runId, playName}."""
        found = await self._executor.rows(
            HttpAnswer,
            "select d.status, d.headers, d.body::text as body"
            " from {schema}.dispatch_ledger_action(p_scope => %(p_scope)s::jsonb,"
            " p_action => %(p_action)s::text, p_body => %(p_body)s::jsonb) as d",
            {
                "p_scope": encode(scope, "p_scope"),
                "p_action": action,
                "p_body": body if isinstance(body, JsonBytes) else encode(body, "p_body"),
            },
        )
        return found[0]

    async def assert_delivery(
        self,
        org_id: str,
        run_id: str,
        lease_owner: str,
        idempotency_key: str,
        projected_events: JsonValue = None,
        chunk: int | None = None,
        chunk_count: int | None = None,
    ) -> Proof:
        """Prove a delivery; LeaseLostError with the reason otherwise. For receivers of one's own.

        Holds only as long as the transaction that asks, so call it on the connection that appends
        (``Functions(OnConnection(connection))``).
        """
        found = await self._executor.rows(
            Proof,
            "select a.first_seq, a.last_seq, a.first_index, a.event_total"
            " from {schema}.assert_delivery(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_lease_owner => %(p_lease_owner)s::text,"
            " p_idempotency_key => %(p_idempotency_key)s::text,"
            " p_projected_events => %(p_projected_events)s::jsonb,"
            " p_chunk => %(p_chunk)s::integer, p_chunk_count => %(p_chunk_count)s::integer) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_lease_owner": lease_owner,
                "p_idempotency_key": idempotency_key,
                "p_projected_events": None
                if projected_events is None
                else encode(projected_events, "p_projected_events"),
                "p_chunk": chunk,
                "p_chunk_count": chunk_count,
            },
        )
        return found[0]

    async def append_run_created(
        self,
        org_id: str,
        run_id: str,
        idempotency_key: str,
        lease_owner: str,
        events: JsonValue,
    ) -> Append:
        """Prove a delivery and append its run.created."""
        found = await self._executor.rows(
            Append,
            "select a.outcome, a.first_position, a.last_position, a.complete"
            " from {schema}.append_run_created(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_idempotency_key => %(p_idempotency_key)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text, p_events => %(p_events)s::jsonb) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_idempotency_key": idempotency_key,
                "p_lease_owner": lease_owner,
                "p_events": encode(events, "p_events"),
            },
        )
        return found[0]

    async def append_run_started(
        self,
        org_id: str,
        run_id: str,
        idempotency_key: str,
        lease_owner: str,
        events: JsonValue,
        launch: JsonValue,
    ) -> Append:
        """Prove a delivery and append its run.started; keeps the launch without credentials."""
        found = await self._executor.rows(
            Append,
            "select a.outcome, a.first_position, a.last_position, a.complete"
            " from {schema}.append_run_started(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_idempotency_key => %(p_idempotency_key)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text, p_events => %(p_events)s::jsonb,"
            " p_launch => %(p_launch)s::jsonb) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_idempotency_key": idempotency_key,
                "p_lease_owner": lease_owner,
                "p_events": encode(events, "p_events"),
                "p_launch": encode(launch, "p_launch"),
            },
        )
        return found[0]

    async def append_run_events(
        self,
        org_id: str,
        run_id: str,
        idempotency_key: str,
        lease_owner: str,
        events: JsonValue,
        chunk: int = 1,
        chunk_count: int = 1,
    ) -> Append:
        """Prove a delivery, or one piece of it, and append its events."""
        found = await self._executor.rows(
            Append,
            "select a.outcome, a.first_position, a.last_position, a.complete"
            " from {schema}.append_run_events(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_idempotency_key => %(p_idempotency_key)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text, p_events => %(p_events)s::jsonb,"
            " p_chunk => %(p_chunk)s::integer, p_chunk_count => %(p_chunk_count)s::integer) as a",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_idempotency_key": idempotency_key,
                "p_lease_owner": lease_owner,
                "p_events": encode(events, "p_events"),
                "p_chunk": chunk,
                "p_chunk_count": chunk_count,
            },
        )
        return found[0]

    async def read_run_events(
        self, org_id: str, run_id: str, after: int, limit: int
    ) -> list[LedgerEvent]:
        """Events of a run's ledger behind position ``after``, in order."""
        return await self._executor.rows(
            LedgerEvent,
            "select e.position, e.event_type, e.event_id, e.item, e.occurred_at,"
            " e.event::text as event, e.appended_at from {schema}.read_run_events("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_after => %(p_after)s::bigint, p_limit => %(p_limit)s::integer) as e",
            {"p_org_id": org_id, "p_run_id": run_id, "p_after": after, "p_limit": limit},
        )

    async def run_snapshot(self, org_id: str, run_id: str) -> JsonText | None:
        """The run as its ledger tells it, as JSON text."""
        return _text(
            await self._executor.rows(
                _Json,
                "select s.value::text as value from {schema}.run_snapshot("
                "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text) as s (value)",
                {"p_org_id": org_id, "p_run_id": run_id},
            )
        )

    async def dispatch_authority_for_lease(
        self, org_id: str | None, run_id: str, event_id: str, lease_owner: str
    ) -> JsonText | None:
        """The narrow authority of a run, under a live lease on a pending fact.

        Without ``org_id`` the database finds the org, which costs a read for each that has work.
        """
        return _text(
            await self._executor.rows(
                _Json,
                "select a.value::text as value from {schema}.dispatch_authority_for_lease("
                "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
                " p_event_id => %(p_event_id)s::text,"
                " p_lease_owner => %(p_lease_owner)s::text) as a (value)",
                {
                    "p_org_id": org_id,
                    "p_run_id": run_id,
                    "p_event_id": event_id,
                    "p_lease_owner": lease_owner,
                },
            )
        )

    async def dispatch_launch_for_lease(
        self, org_id: str, run_id: str, event_id: str, lease_owner: str
    ) -> JsonText | None:
        """The full launch, under a live lease on a pending fact; JSON text, credentials inside."""
        return _text(
            await self._executor.rows(
                _Json,
                "select a.value::text as value from {schema}.dispatch_launch_for_lease("
                "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
                " p_event_id => %(p_event_id)s::text,"
                " p_lease_owner => %(p_lease_owner)s::text) as a (value)",
                {
                    "p_org_id": org_id,
                    "p_run_id": run_id,
                    "p_event_id": event_id,
                    "p_lease_owner": lease_owner,
                },
            )
        )
