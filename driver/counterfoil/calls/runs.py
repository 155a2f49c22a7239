"""Stored functions of the rooms *admission* and *attempts*: a run from launch to end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class Admission:
    """One launch admitted; ``outcome`` is admitted or replayed."""

    org_id: str
    run_id: str
    outcome: str
    status: str


@dataclass(frozen=True, slots=True)
class ClaimedAttempt:
    """One attempt this worker holds until ``lease_expires_at``, unless it heartbeats.

    ``launch`` is the whole launch document (it carries a token: never log it), ``context`` the
    runner's context, ``resumed`` what a wait ended with (``eventName``, ``payload``, ``timedOut``).
    """

    org_id: str
    run_id: str
    attempt: int
    lease_id: str
    lease_expires_at: datetime
    play_name: str
    launch: dict[str, JsonValue]
    context: dict[str, JsonValue]
    resumed: dict[str, JsonValue] | None

    def __repr__(self) -> str:
        return f"ClaimedAttempt({self.org_id!r}, {self.run_id!r}, attempt={self.attempt})"


@dataclass(frozen=True, slots=True)
class Heartbeat:
    """``outcome`` is ok, lost or cancel_requested."""

    org_id: str
    run_id: str
    attempt: int
    outcome: str
    lease_expires_at: datetime | None


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """How an attempt ended: completed, failed, retry_scheduled or cancelled."""

    run_status: str
    outcome: str
    event_id: str | None
    replayed: bool
    next_attempt_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ReleasedAttempt:
    """The run's status after its attempt was given back."""

    run_status: str


@dataclass(frozen=True, slots=True)
class Suspension:
    """``outcome`` is suspended, resumed_already with what ended the wait, or cancelled."""

    outcome: str
    resumed: dict[str, JsonValue] | None


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """What a call did to a run, and the run's status after it."""

    outcome: str
    status: str


@dataclass(frozen=True, slots=True)
class CancelledRun:
    """``outcome``: cancelled (ended now), requested (its holder is told) or already_ended."""

    run_id: str
    outcome: str
    status: str


@dataclass(frozen=True, slots=True)
class RecoveredAttempt:
    """``outcome``: requeued, failed, cancelled, timed_out or deadline_exceeded."""

    org_id: str
    run_id: str
    attempt: int
    outcome: str


@dataclass(frozen=True, slots=True)
class _DueIn:
    seconds: float | None


@dataclass(frozen=True, slots=True)
class DueAt:
    """When something is next due; None when nothing is."""

    due_at: datetime | None


class RunFunctions:
    """Admission and attempts."""

    _executor: Executor

    async def admit_launch(self, launch: JsonValue) -> Admission:
        """Admit one launch; a repeat is ``replayed``. IdentityConflictError names what differs."""
        found = await self._executor.rows(
            Admission,
            "select a.org_id, a.run_id, a.outcome, a.status"
            " from {schema}.admit_launch(p_launch => %(p_launch)s::jsonb) as a",
            {"p_launch": encode(launch, "p_launch")},
        )
        return found[0]

    async def admit_launches(self, launches: JsonValue) -> list[Admission]:
        """Admit many launches in one statement; answers in the order given."""
        return await self._executor.rows(
            Admission,
            "select a.org_id, a.run_id, a.outcome, a.status"
            " from {schema}.admit_launches(p_launches => %(p_launches)s::jsonb) as a",
            {"p_launches": encode(launches, "p_launches")},
        )

    async def claim_attempts(
        self, worker: str, limit: int, lease_seconds: int, plays: Sequence[str], release_lane: str
    ) -> list[ClaimedAttempt]:
        """Claim up to ``limit`` attempts of the named plays (empty: any), fair between orgs."""
        return await self._executor.rows(
            ClaimedAttempt,
            "select c.org_id, c.run_id, c.attempt, c.lease_id, c.lease_expires_at, c.play_name,"
            " c.launch, c.context, c.resumed from {schema}.claim_attempts("
            "p_worker => %(p_worker)s::text, p_limit => %(p_limit)s::integer,"
            " p_lease_seconds => %(p_lease_seconds)s::integer, p_plays => %(p_plays)s::text[],"
            " p_release_lane => %(p_release_lane)s::text) as c",
            {
                "p_worker": worker,
                "p_limit": limit,
                "p_lease_seconds": lease_seconds,
                "p_plays": list(plays),
                "p_release_lane": release_lane,
            },
        )

    async def heartbeat_attempts(
        self,
        org_ids: Sequence[str],
        run_ids: Sequence[str],
        attempts: Sequence[int],
        lease_ids: Sequence[str],
        lease_seconds: int,
    ) -> list[Heartbeat]:
        """Extend the leases of many attempts; answers in the order given."""
        return await self._executor.rows(
            Heartbeat,
            "select h.org_id, h.run_id, h.attempt, h.outcome, h.lease_expires_at"
            " from {schema}.heartbeat_attempts(p_org_ids => %(p_org_ids)s::text[],"
            " p_run_ids => %(p_run_ids)s::text[], p_attempts => %(p_attempts)s::integer[],"
            " p_lease_ids => %(p_lease_ids)s::text[],"
            " p_lease_seconds => %(p_lease_seconds)s::integer) as h",
            {
                "p_org_ids": list(org_ids),
                "p_run_ids": list(run_ids),
                "p_attempts": list(attempts),
                "p_lease_ids": list(lease_ids),
                "p_lease_seconds": lease_seconds,
            },
        )

    async def complete_attempt(
        self, org_id: str, run_id: str, attempt: int, lease_id: str, completion: JsonValue
    ) -> AttemptEnd:
        """End the run with a result, under the attempt's lease; a repeat answers as the first."""
        found = await self._executor.rows(
            AttemptEnd,
            "select c.run_status, c.outcome, c.event_id, c.replayed"
            " from {schema}.complete_attempt(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text, p_completion => %(p_completion)s::jsonb) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_completion": encode(completion, "p_completion"),
            },
        )
        return found[0]

    async def fail_attempt(
        self, org_id: str, run_id: str, attempt: int, lease_id: str, failure: JsonValue
    ) -> AttemptEnd:
        """End the attempt with an error: another one is scheduled, or the run ends."""
        found = await self._executor.rows(
            AttemptEnd,
            "select f.run_status, f.outcome, f.event_id, f.replayed, f.next_attempt_at"
            " from {schema}.fail_attempt(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text, p_failure => %(p_failure)s::jsonb) as f",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_failure": encode(failure, "p_failure"),
            },
        )
        return found[0]

    async def release_attempt(
        self, org_id: str, run_id: str, attempt: int, lease_id: str
    ) -> ReleasedAttempt:
        """Give the run back at once, for another worker."""
        found = await self._executor.rows(
            ReleasedAttempt,
            "select r.run_status from {schema}.release_attempt(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_attempt => %(p_attempt)s::integer,"
            " p_lease_id => %(p_lease_id)s::text) as r (run_status)",
            {"p_org_id": org_id, "p_run_id": run_id, "p_attempt": attempt, "p_lease_id": lease_id},
        )
        return found[0]

    async def suspend_attempt(
        self,
        org_id: str,
        run_id: str,
        attempt: int,
        lease_id: str,
        reason: str,
        event_name: str | None = None,
        wake_after: timedelta | None = None,
        wait_id: str | None = None,
    ) -> Suspension:
        """Wait for an event or for a time to pass; frees the worker.

        ``wait_id`` names the wait within the play, so that every attempt gets the same answer.
        """
        found = await self._executor.rows(
            Suspension,
            "select s.outcome, s.resumed from {schema}.suspend_attempt("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_attempt => %(p_attempt)s::integer, p_lease_id => %(p_lease_id)s::text,"
            " p_reason => %(p_reason)s::text, p_event_name => %(p_event_name)s::text,"
            " p_wake_after => %(p_wake_after)s::interval,"
            " p_wait_id => %(p_wait_id)s::text) as s",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_attempt": attempt,
                "p_lease_id": lease_id,
                "p_reason": reason,
                "p_event_name": event_name,
                "p_wake_after": wake_after,
                "p_wait_id": wait_id,
            },
        )
        return found[0]

    async def resume_run(
        self, org_id: str, run_id: str, event_name: str | None, payload: JsonValue, signal_id: str
    ) -> RunOutcome:
        """Resume a waiting run; kept for its next wait when it does not wait yet."""
        found = await self._executor.rows(
            RunOutcome,
            "select r.outcome, r.status from {schema}.resume_run(p_org_id => %(p_org_id)s::text,"
            " p_run_id => %(p_run_id)s::text, p_event_name => %(p_event_name)s::text,"
            " p_payload => %(p_payload)s::jsonb, p_signal_id => %(p_signal_id)s::text) as r",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_event_name": event_name,
                "p_payload": encode(payload, "p_payload"),
                "p_signal_id": signal_id,
            },
        )
        return found[0]

    async def cancel_run(
        self, org_id: str, run_id: str, reason: str | None, descendants: bool = False
    ) -> list[CancelledRun]:
        """Ask for a run's end, with ``descendants`` also for that of all runs below it.

        One row a run, the run itself first.
        """
        return await self._executor.rows(
            CancelledRun,
            "select c.run_id, c.outcome, c.status from {schema}.cancel_run("
            "p_org_id => %(p_org_id)s::text, p_run_id => %(p_run_id)s::text,"
            " p_reason => %(p_reason)s::text, p_descendants => %(p_descendants)s::boolean) as c",
            {
                "p_org_id": org_id,
                "p_run_id": run_id,
                "p_reason": reason,
                "p_descendants": descendants,
            },
        )

    async def recover_attempts(self, limit: int, release_lane: str) -> list[RecoveredAttempt]:
        """Take expired attempts back and enforce deadlines, for one release lane."""
        return await self._executor.rows(
            RecoveredAttempt,
            "select r.org_id, r.run_id, r.attempt, r.outcome from {schema}.recover_attempts("
            "p_limit => %(p_limit)s::integer, p_release_lane => %(p_release_lane)s::text) as r",
            {"p_limit": limit, "p_release_lane": release_lane},
        )

    async def look_for_work(
        self,
        worker: str,
        plays: Sequence[str],
        release_lane: str,
        limit: int,
        listener: str | None = None,
    ) -> float | None:
        """In how many seconds, by the database's clock, there will be something to do.

        0 or less: there is now; None: not known. Recovers runs and fires schedules on the way.
        """
        found = await self._executor.rows(
            _DueIn,
            "select extract(epoch from l.due_at - pg_catalog.clock_timestamp())::float8 as seconds"
            " from {schema}.look_for_work(p_worker => %(p_worker)s::text,"
            " p_plays => %(p_plays)s::text[], p_release_lane => %(p_release_lane)s::text,"
            " p_limit => %(p_limit)s::integer, p_listener => %(p_listener)s::text) as l (due_at)",
            {
                "p_worker": worker,
                "p_plays": list(plays),
                "p_release_lane": release_lane,
                "p_limit": limit,
                "p_listener": listener,
            },
        )
        return found[0].seconds

    async def next_attempt_due_at(self, plays: Sequence[str], release_lane: str) -> datetime | None:
        """When an attempt of these plays is next claimable; None when none is known."""
        found = await self._executor.rows(
            DueAt,
            "select n.due_at from {schema}.next_attempt_due_at(p_plays => %(p_plays)s::text[],"
            " p_release_lane => %(p_release_lane)s::text) as n (due_at)",
            {"p_plays": list(plays), "p_release_lane": release_lane},
        )
        return found[0].due_at
