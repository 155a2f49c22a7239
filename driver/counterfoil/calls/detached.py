"""Stored functions of the room *attempts* for detached runners, which record their own end."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from counterfoil.calls.runs import AttemptEnd
from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class Parking:
    """``outcome``: parked, runner_ended (go on with ``runner_terminal``) or cancelled."""

    outcome: str
    runner_terminal: dict[str, JsonValue] | None


@dataclass(frozen=True, slots=True)
class RunnerTerminal:
    """``outcome``: recorded or replayed; ``accepted_at`` is the database's time of the first."""

    outcome: str
    run_status: str
    accepted_at: datetime


@dataclass(frozen=True, slots=True)
class RunnerRoute:
    """Where a gateway forwards a runner's requests; the token is a credential, never shown."""

    base_url: str
    protection_bypass_token: str | None = field(repr=False)


class DetachedFunctions:
    """Detached runners."""

    _executor: Executor

    async def park_attempt(
        self,
        org_id: str,
        run_id: str,
        attempt: int,
        lease_id: str,
        wake_after: timedelta | None = None,
    ) -> Parking:
        """Let a run wait behind its detached runner; ``wake_after`` is the hard ceiling."""
        found = await self._executor.rows(
            Parking,
            "select p.outcome, p.runner_terminal from {schema}.park_attempt("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_attempt => %(p_attempt)s::integer, p_lease_id => %(p_lease_id)s::text,"
            " p_wake_after => %(p_wake_after)s::interval) as p",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_wake_after": wake_after,
            },
        )
        return found[0]

    async def record_runner_terminal(
        self, org_id: str, run_id: str, attempt: int, lease_id: str, terminal: JsonValue
    ) -> RunnerTerminal:
        """Keep how the runner ended: ``{status: completed | failed | suspended, …}``."""
        found = await self._executor.rows(
            RunnerTerminal,
            "select r.outcome, r.run_status, r.accepted_at"
            " from {schema}.record_runner_terminal(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text, p_terminal => %(p_terminal)s::jsonb) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_terminal": encode(terminal, "p_terminal"),
            },
        )
        return found[0]

    async def direct_complete_runner_terminal(
        self, org_id: str, run_id: str, attempt: int, lease_id: str, terminal: JsonValue
    ) -> AttemptEnd:
        """Keep how the runner ended and end the run with it."""
        found = await self._executor.rows(
            AttemptEnd,
            "select d.run_status, d.outcome, d.event_id, d.replayed"
            " from {schema}.direct_complete_runner_terminal(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text, p_terminal => %(p_terminal)s::jsonb) as d",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_terminal": encode(terminal, "p_terminal"),
            },
        )
        return found[0]

    async def runner_route(self, org_id: str, run_id: str) -> RunnerRoute:
        """The base URL that the run's launch pinned, while the run has not ended."""
        found = await self._executor.rows(
            RunnerRoute,
            "select r.base_url, r.protection_bypass_token from {schema}.runner_route("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text) as r",
            {"p_org_id": org_id, "p_run_id": run_id},
        )
        return found[0]
