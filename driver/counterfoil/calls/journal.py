"""Stored functions for deferred facts and for retention."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, clean_log_line, encode

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
    """What one batch of retention removed; ``more`` says whether another one would do something."""

    receipts: int
    observations: int
    more: bool


@dataclass(frozen=True, slots=True)
class PurgedJournal:
    """What one batch of retention removed; ``more`` says whether another one would do something."""

    entries: int
    more: bool


@dataclass(frozen=True, slots=True)
class PurgedLedgers:
    """What one batch of retention removed; ``more`` says whether another one would do something."""

    ledgers: int
    events: int
    more: bool


@dataclass(frozen=True, slots=True)
class OrgRetention:
    """A retention that an org has of its own, in ``seconds``, instead of the setting ``name``."""

    org_id: str
    name: str
    seconds: int
    changed_at: datetime
    changed_by: str


@dataclass(frozen=True, slots=True)
class _Seconds:
    seconds: int


@dataclass(frozen=True, slots=True)
class _Done:
    done: bool


@dataclass(frozen=True, slots=True)
class _Json:
    value: JsonValue


@dataclass(frozen=True, slots=True)
class JournalRow:
    """A row of a search: an entry, or the last row, which says how to go on.

    ``kind`` is entry, more, pending or end; of the last three only ``cursor`` is filled.
    ``highlights`` are (start, length) pairs in characters from 0. The two texts are ``context`` and
    ``details`` as JSON text, for those who pass them on with every number as it was written.
    """

    kind: str
    run_id: str | None
    channel: str | None
    position: int | None
    occurred_at: datetime | None
    level: str | None
    event_id: str | None
    line: str | None
    context: JsonValue
    details: JsonValue
    context_text: str | None
    details_text: str | None
    highlights: list[list[int]] | None
    cursor: JsonValue


@dataclass(frozen=True, slots=True)
class RunRow:
    """A row of a search for runs: a run, or the last row (more or end) with its cursor.

    ``run_text`` is the run as JSON text, with every number as it was written.
    """

    kind: str
    run_id: str | None
    created_at: datetime | None
    status: str | None
    run: JsonValue
    run_text: str | None
    cursor: JsonValue


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
        The commit waits for no disk: what a crash takes is done again, for the freeze or the
        acknowledgement that follows is on the disk only together with all before it.
        """
        await self._executor.rows(
            _Done,
            "select m.payload is not null as done"
            " from {schema}.materialize_runtime_outbox_event(p_org_id => %(p_org_id)s::text,"
            " p_event_id => %(p_event_id)s::text,"
            " p_lease_owner => %(p_lease_owner)s::text) as m (payload),"
            " pg_catalog.set_config('synchronous_commit', 'off', true)",
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
            "select p.receipts, p.observations, p.more"
            " from {schema}.purge_receipts(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]

    async def purge_journal(self, limit: int = 1000) -> PurgedJournal:
        """Remove old journal entries of ended runs; one batch."""
        found = await self._executor.rows(
            PurgedJournal,
            "select p.entries, p.more"
            " from {schema}.purge_journal(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]

    async def purge_ledgers(self, limit: int = 1000) -> PurgedLedgers:
        """Remove the ledgers of runs that ended long ago; about ``limit`` events."""
        found = await self._executor.rows(
            PurgedLedgers,
            "select p.ledgers, p.events, p.more"
            " from {schema}.purge_ledgers(p_limit => %(p_limit)s::integer) as p",
            {"p_limit": limit},
        )
        return found[0]

    async def set_org_retention(self, org_id: str, name: str, seconds: int | None) -> int:
        """Let an org keep things for a time of its own; None: as the setting says. What applies."""
        found = await self._executor.rows(
            _Seconds,
            "select s.seconds from {schema}.set_org_retention(p_org_id => %(p_org_id)s::text,"
            " p_name => %(p_name)s::text, p_seconds => %(p_seconds)s::bigint) as s (seconds)",
            {"p_org_id": org_id, "p_name": name, "p_seconds": seconds},
        )
        return found[0].seconds

    async def list_org_retention(
        self,
        org_id: str | None = None,
        after_org_id: str | None = None,
        after_name: str | None = None,
        limit: int = 1000,
    ) -> list[OrgRetention]:
        """Retention that orgs have of their own; continue with the last one's org and name."""
        return await self._executor.rows(
            OrgRetention,
            "select r.org_id, r.name, r.seconds, r.changed_at, r.changed_by"
            " from {schema}.list_org_retention(p_org_id => %(p_org_id)s::text,"
            " p_after_org_id => %(p_after_org_id)s::text, p_after_name => %(p_after_name)s::text,"
            " p_limit => %(p_limit)s::integer) as r",
            {
                "p_org_id": org_id,
                "p_after_org_id": after_org_id,
                "p_after_name": after_name,
                "p_limit": limit,
            },
        )

    async def search_journal(
        self,
        org_id: str,
        query: str | None = None,
        run_id: str | None = None,
        channel: str | None = None,
        before: JsonValue = None,
        limit: int = 50,
        *,
        level: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        mode: str = "words",
        order: str = "newest",
    ) -> list[JournalRow]:
        """One page of journal entries that match; go on with the last row's cursor as ``before``.

        ``mode`` is words or substring, ``order`` newest or position (of one run). Any text is a
        valid query. The last row is of kind more, pending (position only: more is to be indexed)
        or end.
        """
        return await self._executor.rows(
            JournalRow,
            "select s.kind, s.run_id, s.channel, s.position, s.occurred_at, s.level,"
            " s.event_id, s.line, s.context, s.details, s.context::text as context_text,"
            " s.details::text as details_text, s.highlights, s.cursor"
            " from {schema}.search_journal("
            "p_org_id => %(p_org_id)s::text, p_query => %(p_query)s::text,"
            " p_run_id => %(p_run_id)s::text, p_channel => %(p_channel)s::text,"
            " p_before => %(p_before)s::jsonb, p_limit => %(p_limit)s::integer,"
            " p_level => %(p_level)s::text, p_since => %(p_since)s::timestamptz,"
            " p_until => %(p_until)s::timestamptz, p_mode => %(p_mode)s::text,"
            " p_order => %(p_order)s::text) as s",
            {
                "p_org_id": org_id,
                "p_query": _findable(query),
                "p_run_id": run_id,
                "p_channel": channel,
                "p_before": None if before is None else encode(before, "p_before"),
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
        *,
        since: datetime | None = None,
        until: datetime | None = None,
        before: JsonValue = None,
        limit: int = 50,
    ) -> list[RunRow]:
        """One page of runs that match, the latest first; go on with the last row's cursor."""
        return await self._executor.rows(
            RunRow,
            "select s.kind, s.run_id, s.created_at, s.status, s.run, s.run::text as run_text,"
            " s.cursor"
            " from {schema}.search_runs("
            "p_org_id => %(p_org_id)s::text, p_status => %(p_status)s::text,"
            " p_play_name => %(p_play_name)s::text, p_query => %(p_query)s::text,"
            " p_error => %(p_error)s::text, p_since => %(p_since)s::timestamptz,"
            " p_until => %(p_until)s::timestamptz, p_before => %(p_before)s::jsonb,"
            " p_limit => %(p_limit)s::integer) as s",
            {
                "p_org_id": org_id,
                "p_status": status,
                "p_play_name": play_name,
                "p_query": _findable(query),
                "p_error": _findable(error),
                "p_since": since,
                "p_until": until,
                "p_before": None if before is None else encode(before, "p_before"),
                "p_limit": limit,
            },
        )

    async def maintain(self, limit: int = 1000) -> dict[str, JsonValue]:
        """Recovery and one batch of every retention; ``more`` while a batch was full."""
        found = await self._executor.rows(
            _Json,
            "select m.value from {schema}.maintain(p_limit => %(p_limit)s::integer) as m (value)",
            {"p_limit": limit},
        )
        value: dict[str, JsonValue] = found[0].value
        return value


def _findable(text: str | None) -> str | None:
    """What stands in the journal where a line held this text: any text can be looked for."""
    return None if text is None else clean_log_line(text)
