"""Stored functions of the rooms *operations* and *journal*: settings, signs of life, sleepers."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, overload
from uuid import UUID

from counterfoil.database import Executor
from counterfoil.json_text import JsonText, JsonValue, encode


@dataclass(frozen=True, slots=True)
class _Document:
    value: Any
    text: str


@dataclass(frozen=True, slots=True)
class _Json:
    value: JsonValue


@dataclass(frozen=True, slots=True)
class _Text:
    value: str


@dataclass(frozen=True, slots=True)
class _Integer:
    value: int


@dataclass(frozen=True, slots=True)
class _Nothing:
    done: object


@dataclass(frozen=True, slots=True)
class ListedRun:
    """A run in a list; ``run`` is its document, without its result."""

    run_id: str
    created_at: datetime
    status: str
    run: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Setting:
    """A setting of the installation and the value that applies."""

    name: str
    value: JsonValue


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """Something an operator did by hand."""

    audit_id: UUID
    recorded_at: datetime
    actor: str
    action: str
    target: dict[str, JsonValue]
    reason: str | None
    details: dict[str, JsonValue]


class OperationFunctions:
    """Looking after an installation."""

    _executor: Executor

    async def schema_version(self) -> int:
        """The version of the installed schema."""
        found = await self._executor.rows(
            _Integer, "select v.value from {schema}.schema_version() as v (value)", {}
        )
        return found[0].value

    async def health(self) -> dict[str, JsonValue]:
        """Signs of life: pending, blocked and oldest age per lane, leases, admission use, …"""
        found = await self._executor.rows(
            _Json, "select h.value from {schema}.health() as h (value)", {}
        )
        value: dict[str, JsonValue] = found[0].value
        return value

    async def list_runs(
        self,
        org_id: str,
        status: str | None = None,
        before: datetime | None = None,
        before_run_id: str | None = None,
        limit: int = 50,
    ) -> list[ListedRun]:
        """Runs of an org, latest first; continue with the last one's time and id."""
        return await self._executor.rows(
            ListedRun,
            "select l.run_id, l.created_at, l.status, l.run from {schema}.list_runs("
            "p_org_id => %(p_org_id)s::text, p_status => %(p_status)s::text,"
            " p_before => %(p_before)s::timestamptz,"
            " p_before_run_id => %(p_before_run_id)s::text, p_limit => %(p_limit)s::integer) as l",
            {
                "p_org_id": org_id,
                "p_status": status,
                "p_before": before,
                "p_before_run_id": before_run_id,
                "p_limit": limit,
            },
        )

    @overload
    async def get_run(
        self, org_id: str, run_id: str, *, as_text: Literal[False] = False
    ) -> dict[str, JsonValue]: ...

    @overload
    async def get_run(self, org_id: str, run_id: str, *, as_text: Literal[True]) -> JsonText: ...

    async def get_run(
        self, org_id: str, run_id: str, *, as_text: bool = False
    ) -> dict[str, JsonValue] | JsonText:
        """A run with its result and its attempts, as one document.

        ``as_text`` for those who pass it on with every number as it was written.
        """
        found = await self._executor.rows(
            _Document,
            "select g.value, g.value::text as text"
            " from {schema}.get_run(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text) as g (value)",
            {"p_org_id": org_id, "p_run_id": run_id},
        )
        if as_text:
            return JsonText(found[0].text)
        value: dict[str, JsonValue] = found[0].value
        return value

    async def settings_list(self) -> list[Setting]:
        """Every setting of the installation, by name."""
        return await self._executor.rows(
            Setting, "select s.name, s.value from {schema}.settings_list() as s", {}
        )

    async def set_setting(self, name: str, value: JsonValue) -> None:
        """Change a setting; validated in the database."""
        await self._executor.rows(
            _Nothing,
            "select s.done::text as done from {schema}.set_setting(p_name => %(p_name)s::text,"
            " p_value => %(p_value)s::jsonb) as s (done)",
            {"p_name": name, "p_value": encode(value, "p_value")},
        )

    async def set_admission_limits(
        self, org_id: str, scope: str, limits: JsonValue
    ) -> dict[str, JsonValue]:
        """Change limits; ``scope`` is org, default or installation. The limits that apply now."""
        found = await self._executor.rows(
            _Json,
            "select s.value from {schema}.set_admission_limits(p_org_id => %(p_org_id)s::text,"
            " p_scope => %(p_scope)s::text, p_limits => %(p_limits)s::jsonb) as s (value)",
            {"p_org_id": org_id, "p_scope": scope, "p_limits": encode(limits, "p_limits")},
        )
        value: dict[str, JsonValue] = found[0].value
        return value

    async def list_audit(
        self,
        org_id: str | None = None,
        before: datetime | None = None,
        before_id: UUID | None = None,
        limit: int = 50,
    ) -> list[AuditEntry]:
        """What operators did, latest first; continue with the last one's time and id."""
        return await self._executor.rows(
            AuditEntry,
            "select a.audit_id, a.recorded_at, a.actor, a.action, a.target, a.reason, a.details"
            " from {schema}.list_audit(p_org_id => %(p_org_id)s::text,"
            " p_before => %(p_before)s::timestamptz, p_before_id => %(p_before_id)s::uuid,"
            " p_limit => %(p_limit)s::integer) as a",
            {
                "p_org_id": org_id,
                "p_before": before,
                "p_before_id": before_id,
                "p_limit": limit,
            },
        )

    async def start_listening(self, listener: str, queue: str, seconds: int) -> str:
        """Register as asleep on a queue (attempts, lifecycle, search); the channel to LISTEN on."""
        found = await self._executor.rows(
            _Text,
            "select s.value from {schema}.start_listening(p_listener => %(p_listener)s::text,"
            " p_queue => %(p_queue)s::text, p_seconds => %(p_seconds)s::integer) as s (value)",
            {"p_listener": listener, "p_queue": queue, "p_seconds": seconds},
        )
        return found[0].value

    async def stop_listening(self, listener: str) -> None:
        """Strike this listener off, whatever it listened on."""
        await self._executor.rows(
            _Nothing,
            "select s.done::text as done"
            " from {schema}.stop_listening(p_listener => %(p_listener)s::text) as s (done)",
            {"p_listener": listener},
        )
