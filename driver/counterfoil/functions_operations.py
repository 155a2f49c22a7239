"""Stored functions of the rooms *operations* and *journal*: settings, signs of life, sleepers."""

from __future__ import annotations

from dataclasses import dataclass

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


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

    async def set_setting(self, name: str, value: JsonValue) -> None:
        """Change a setting; validated in the database."""
        await self._executor.rows(
            _Nothing,
            "select s.done::text as done from {schema}.set_setting(p_name => %(p_name)s::text,"
            " p_value => %(p_value)s::jsonb) as s (done)",
            {"p_name": name, "p_value": encode(value, "p_value")},
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
