"""Stored functions that find: journal entries and runs, page by page."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class FoundEntry:
    """A journal entry that was found; ``cursor`` continues behind it."""

    kind: str
    run_id: str | None
    channel: str | None
    position: int | None
    occurred_at: datetime | None
    level: str | None
    producer_attempt: int | None
    event_id: str | None
    line: str | None
    context: JsonValue
    details: JsonValue
    highlights: JsonValue
    cursor: JsonValue


@dataclass(frozen=True, slots=True)
class FoundRun:
    """A run that was found; ``cursor`` continues behind it."""

    kind: str
    run_id: str | None
    created_at: datetime | None
    status: str | None
    run: JsonValue
    cursor: JsonValue


def _optional(value: JsonValue, where: str) -> str | None:
    return None if value is None else encode(value, where)


class SearchFunctions:
    """Search, with keyset pages: pass the last row's ``cursor`` as ``before``."""

    _executor: Executor

    async def search_journal(
        self,
        org_id: str,
        query: str | None = None,
        run_id: str | None = None,
        channel: str | None = None,
        before: JsonValue = None,
        limit: int = 50,
        level: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        mode: str = "words",
        order: str = "newest",
    ) -> list[FoundEntry]:
        """Journal entries of an org. ``channel``: log, progress or receipt."""
        return await self._executor.rows(
            FoundEntry,
            "select s.kind, s.run_id, s.channel, s.position, s.occurred_at, s.level,"
            " s.producer_attempt, s.event_id, s.line, s.context, s.details, s.highlights, s.cursor"
            " from {schema}.search_journal(p_org_id => %(p_org_id)s::text,"
            " p_query => %(p_query)s::text, p_run_id => %(p_run_id)s::text,"
            " p_channel => %(p_channel)s::text, p_before => %(p_before)s::jsonb,"
            " p_limit => %(p_limit)s::integer, p_level => %(p_level)s::text,"
            " p_since => %(p_since)s::timestamptz, p_until => %(p_until)s::timestamptz,"
            " p_mode => %(p_mode)s::text, p_order => %(p_order)s::text) as s",
            {
                "p_org_id": org_id,
                "p_query": query,
                "p_run_id": run_id,
                "p_channel": channel,
                "p_before": _optional(before, "p_before"),
                "p_limit": limit,
                "p_level": level,
                "p_since": since,
                "p_until": until,
                "p_mode": mode,
                "p_order": order,
            },
        )

    async def search_runs(
        self,
        org_id: str,
        status: str | None = None,
        play_name: str | None = None,
        query: str | None = None,
        error: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        before: JsonValue = None,
        limit: int = 50,
    ) -> list[FoundRun]:
        """Runs of an org, latest first."""
        return await self._executor.rows(
            FoundRun,
            "select s.kind, s.run_id, s.created_at, s.status, s.run, s.cursor"
            " from {schema}.search_runs(p_org_id => %(p_org_id)s::text,"
            " p_status => %(p_status)s::text, p_play_name => %(p_play_name)s::text,"
            " p_query => %(p_query)s::text, p_error => %(p_error)s::text,"
            " p_since => %(p_since)s::timestamptz, p_until => %(p_until)s::timestamptz,"
            " p_before => %(p_before)s::jsonb, p_limit => %(p_limit)s::integer) as s",
            {
                "p_org_id": org_id,
                "p_status": status,
                "p_play_name": play_name,
                "p_query": query,
                "p_error": error,
                "p_since": since,
                "p_until": until,
                "p_before": _optional(before, "p_before"),
                "p_limit": limit,
            },
        )
