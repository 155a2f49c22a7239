"""Stored functions of the room *admission* that are about schedules."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from counterfoil.database import Executor
from counterfoil.json_text import JsonValue, encode


@dataclass(frozen=True, slots=True)
class ScheduleCreated:
    """``outcome`` is created, replayed or replaced."""

    name: str
    outcome: str
    next_fire_at: datetime | None


@dataclass(frozen=True, slots=True)
class ScheduleState:
    """``outcome``: paused, already_paused, active or already_active."""

    outcome: str
    next_fire_at: datetime | None


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """One schedule; ``schedule`` is the document that says all about it."""

    name: str
    next_fire_at: datetime | None
    schedule: dict[str, JsonValue]


@dataclass(frozen=True, slots=True)
class Firing:
    """``outcome``: admitted, skipped, buffered, missed or refused."""

    org_id: str
    name: str
    fire_at: datetime | None
    outcome: str
    run_id: str | None


@dataclass(frozen=True, slots=True)
class _Deleted:
    deleted: bool


@dataclass(frozen=True, slots=True)
class _FireTime:
    fire_at: datetime


class ScheduleFunctions:
    """Schedules."""

    _executor: Executor

    async def create_schedule(
        self,
        org_id: str,
        name: str,
        cron: JsonValue,
        time_zone: str,
        launch: JsonValue,
        overlap: str = "skip",
        catch_up: str = "one",
        catch_up_seconds: int | None = None,
        replace: bool = False,
    ) -> ScheduleCreated:
        """Launch ``launch`` whenever ``cron`` (from `counterfoil.cron.parse_cron`) fits.

        ``overlap``: allow, skip or buffer; ``catch_up``: none, one or all, at most
        ``catch_up_seconds`` late. A repeat is ``replayed``; other contents than before are
        refused, or with ``replace`` they hold from now on.
        """
        found = await self._executor.rows(
            ScheduleCreated,
            "select c.name, c.outcome, c.next_fire_at from {schema}.create_schedule("
            "p_org_id => %(p_org_id)s::text, p_name => %(p_name)s::text,"
            " p_cron => %(p_cron)s::jsonb, p_time_zone => %(p_time_zone)s::text,"
            " p_launch => %(p_launch)s::jsonb, p_overlap => %(p_overlap)s::text,"
            " p_catch_up => %(p_catch_up)s::text,"
            " p_catch_up_seconds => %(p_catch_up_seconds)s::integer,"
            " p_replace => %(p_replace)s::boolean) as c",
            {
                "p_org_id": org_id,
                "p_name": name,
                "p_cron": encode(cron, "p_cron"),
                "p_time_zone": time_zone,
                "p_launch": encode(launch, "p_launch"),
                "p_overlap": overlap,
                "p_catch_up": catch_up,
                "p_catch_up_seconds": catch_up_seconds,
                "p_replace": replace,
            },
        )
        return found[0]

    async def pause_schedule(self, org_id: str, name: str) -> ScheduleState:
        """Let a schedule fire no more until it is resumed."""
        found = await self._executor.rows(
            ScheduleState,
            "select p.outcome, p.next_fire_at from {schema}.pause_schedule("
            "p_org_id => %(p_org_id)s::text, p_name => %(p_name)s::text) as p",
            {"p_org_id": org_id, "p_name": name},
        )
        return found[0]

    async def resume_schedule(self, org_id: str, name: str) -> ScheduleState:
        """Let a paused schedule fire again, from now on."""
        found = await self._executor.rows(
            ScheduleState,
            "select r.outcome, r.next_fire_at from {schema}.resume_schedule("
            "p_org_id => %(p_org_id)s::text, p_name => %(p_name)s::text) as r",
            {"p_org_id": org_id, "p_name": name},
        )
        return found[0]

    async def delete_schedule(self, org_id: str, name: str) -> bool:
        """Forget a schedule; False when there was none. Its runs stay."""
        found = await self._executor.rows(
            _Deleted,
            "select d.deleted from {schema}.delete_schedule(p_org_id => %(p_org_id)s::text,"
            " p_name => %(p_name)s::text) as d (deleted)",
            {"p_org_id": org_id, "p_name": name},
        )
        return found[0].deleted

    async def list_schedules(
        self, org_id: str, after_name: str | None = None, limit: int = 100
    ) -> list[ScheduleEntry]:
        """The schedules of an org by name, ``limit`` after ``after_name``."""
        return await self._executor.rows(
            ScheduleEntry,
            "select s.name, s.next_fire_at, s.schedule from {schema}.list_schedules("
            "p_org_id => %(p_org_id)s::text, p_after_name => %(p_after_name)s::text,"
            " p_limit => %(p_limit)s::integer) as s",
            {"p_org_id": org_id, "p_after_name": after_name, "p_limit": limit},
        )

    async def schedule_fire_times(self, org_id: str, name: str, limit: int = 10) -> list[datetime]:
        """The next ``limit`` moments at which a schedule fires."""
        found = await self._executor.rows(
            _FireTime,
            "select f.fire_at from {schema}.schedule_fire_times(p_org_id => %(p_org_id)s::text,"
            " p_name => %(p_name)s::text, p_limit => %(p_limit)s::integer) as f (fire_at)",
            {"p_org_id": org_id, "p_name": name, "p_limit": limit},
        )
        return [row.fire_at for row in found]

    async def fire_due_schedules(self, limit: int) -> list[Firing]:
        """Fire up to ``limit`` schedules that are due."""
        return await self._executor.rows(
            Firing,
            "select f.org_id, f.name, f.fire_at, f.outcome, f.run_id"
            " from {schema}.fire_due_schedules(p_limit => %(p_limit)s::integer) as f",
            {"p_limit": limit},
        )
