"""Stored functions of the room *delivery* for operators: facts whose delivery is blocked."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class BlockedFact:
    """A fact of the dead letter queue; ``cursor`` continues the list behind it."""

    org_id: str
    run_id: str
    lane: str
    seq: int
    event_id: str
    event_type: str
    attempts: int
    blocked_at: datetime
    last_error: dict[str, JsonValue]
    blocks_lane: bool
    waiting_facts: int
    cursor: JsonValue


@dataclass(frozen=True, slots=True)
class ReplayedFact:
    """A fact that is tried again; ``blocked_before`` is for the next call."""

    org_id: str
    run_id: str
    event_id: str
    blocked_before: datetime


@dataclass(frozen=True, slots=True)
class _EventId:
    event_id: str


@dataclass(frozen=True, slots=True)
class _Nothing:
    done: object


class DeadLetterFunctions:
    """The dead letter queue. No call reorders or loses a fact."""

    _executor: Executor

    async def list_blocked(
        self, org_id: str | None = None, after: JsonValue = None, limit: int = 100
    ) -> list[BlockedFact]:
        """Facts that wait for an operator, oldest first; all orgs when none is named."""
        return await self._executor.rows(
            BlockedFact,
            "select b.org_id, b.run_id, b.lane, b.seq, b.event_id, b.event_type, b.attempts,"
            " b.blocked_at, b.last_error, b.blocks_lane, b.waiting_facts, b.cursor"
            " from {schema}.list_blocked(p_org_id => %(p_org_id)s::text,"
            " p_after => %(p_after)s::jsonb, p_limit => %(p_limit)s::integer) as b",
            {
                "p_org_id": org_id,
                "p_after": None if after is None else encode(after, "p_after"),
                "p_limit": limit,
            },
        )

    async def replay_blocked(
        self, org_id: str, run_id: str, event_id: str, reason: str
    ) -> list[str]:
        """Try a blocked fact again, from the start of the policy; the facts that are."""
        rows = await self._executor.rows(
            _EventId,
            "select r.event_id from {schema}.replay_blocked(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_id => %(p_event_id)s::text,"
            " p_reason => %(p_reason)s::text) as r (event_id)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_id": event_id, "p_reason": reason},
        )
        return [row.event_id for row in rows]

    async def replay_all_blocked(
        self,
        reason: str,
        org_id: str | None = None,
        code: str | None = None,
        blocked_before: datetime | None = None,
        limit: int = 1000,
    ) -> list[ReplayedFact]:
        """Try many blocked facts again: of one org or all, with that error code or any.

        Call it with the ``blocked_before`` of its first answer until it answers nothing.
        """
        return await self._executor.rows(
            ReplayedFact,
            "select r.org_id, r.run_id, r.event_id, r.blocked_before"
            " from {schema}.replay_all_blocked(p_reason => %(p_reason)s::text,"
            " p_org_id => %(p_org_id)s::text, p_code => %(p_code)s::text,"
            " p_blocked_before => %(p_blocked_before)s::timestamptz,"
            " p_limit => %(p_limit)s::integer) as r",
            {
                "p_reason": reason,
                "p_org_id": org_id,
                "p_code": code,
                "p_blocked_before": blocked_before,
                "p_limit": limit,
            },
        )

    async def skip_blocked(self, org_id: str, run_id: str, event_id: str, reason: str) -> None:
        """Pass over a blocked fact, for a reason that is kept."""
        await self._executor.rows(
            _Nothing,
            "select s.done::text as done"
            " from {schema}.skip_blocked(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_id => %(p_event_id)s::text,"
            " p_reason => %(p_reason)s::text) as s (done)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_event_id": event_id, "p_reason": reason},
        )
