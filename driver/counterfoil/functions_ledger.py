"""Stored functions of the rooms *ledger* and *delivery* that a gateway calls."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonText, JsonValue, encode


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """What an HTTP endpoint answers: status, headers, and the body as JSON text."""

    status: int
    headers: dict[str, str]
    body: str | None


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
                "p_body": encode(body, "p_body"),
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
        self, org_id: str, run_id: str, event_id: str, lease_owner: str
    ) -> JsonText | None:
        """The narrow authority of a run, under a live lease on a pending fact."""
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
