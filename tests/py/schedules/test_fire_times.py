"""When schedules fire: the database against every minute of the calendar, and against cronsim."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import psycopg
import pytest
from cronsim import CronSim
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from psycopg.types.json import Jsonb

from counterfoil.cron import CronError, parse_cron

ZONES = [
    "UTC",
    "Europe/Berlin",
    "America/New_York",
    "America/Sao_Paulo",
    "America/Havana",
    "Africa/Cairo",
    "Asia/Kathmandu",
    "Asia/Beirut",
    "Australia/Lord_Howe",
    "Pacific/Chatham",
    "Pacific/Apia",
]
# Where clocks change at midnight or by half an hour, cronsim itself loses its way.
PLAIN_ZONES = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu", "Pacific/Chatham"]

NEXT = """
with recursive schedule as (
    select jsonb_populate_record(null::counterfoil.schedules, jsonb_build_object(
        'minutes', c -> 'minutes', 'hours', c -> 'hours', 'days', c -> 'days',
        'months', c -> 'months', 'weekdays', c -> 'weekdays',
        'nth_weekdays', c -> 'nthWeekdays', 'last_day', c -> 'lastDay',
        'last_working_day', c -> 'lastWorkingDay', 'day_and_weekday', c -> 'dayAndWeekday',
        'every_real_hour', c -> 'everyRealHour', 'time_zone', %(zone)s::text
    )) as s
    from (select %(cron)s::jsonb as c) as g
),
fires as (
    select counterfoil.next_fire_at(s, %(after)s) as at, 1 as n from schedule
    union all
    select counterfoil.next_fire_at(s, f.at), f.n + 1 from fires as f, schedule
    where f.at is not null and f.n < %(count)s
)
select at from fires where at is not null order by n
"""


def fires(
    reader: psycopg.Connection, cron: str, zone: str, after: datetime, count: int
) -> list[datetime]:
    """The next firings as the database has them."""
    rows = reader.execute(
        NEXT, {"cron": Jsonb(parse_cron(cron)), "zone": zone, "after": after, "count": count}
    ).fetchall()
    return [row[0].astimezone(UTC) for row in rows]


def minutes(cron: str, zone: str, after: datetime, until: datetime) -> list[datetime]:
    """The firings in between, by looking at every minute of the clock and of the calendar."""
    form = parse_cron(cron)
    place = ZoneInfo(zone)
    wanted_day = CronSim("0 0 " + " ".join(cron.split()[2:]), datetime(2000, 1, 1)).match_day
    found = set()

    def fits(shown: datetime) -> bool:
        return (
            shown.minute in form["minutes"]
            and shown.hour in form["hours"]
            and shown.month in form["months"]
            and wanted_day(shown.date())
        )

    shown_at: dict[datetime, datetime] = {}
    at = (after - timedelta(days=2)).replace(second=0, microsecond=0)
    previous = None
    gaps: list[tuple[datetime, datetime, datetime]] = []
    while at <= until:
        shown = at.astimezone(place).replace(tzinfo=None)
        if form["everyRealHour"]:
            if fits(shown):
                found.add(at)
        elif shown not in shown_at:
            shown_at[shown] = at
            if fits(shown):
                found.add(at)
            if previous is not None and shown - previous > timedelta(minutes=1):
                gaps.append((previous, shown, at))
        previous = shown if previous is None or shown > previous else previous
        at += timedelta(minutes=1)
    for before, behind, at in gaps:
        missing = before + timedelta(minutes=1)
        while missing < behind:
            if fits(missing):
                found.add(at)
            missing += timedelta(minutes=1)
    return sorted(at for at in found if after < at <= until)


def field(lowest: int, highest: int, *more: str) -> st.SearchStrategy[str]:
    """One field of a cron expression."""
    number = st.integers(lowest, highest)
    item = st.one_of(
        number.map(str),
        st.tuples(number, number).map(lambda pair: f"{min(pair)}-{max(pair)}"),
        st.tuples(number, st.integers(1, 20)).map(lambda pair: f"{pair[0]}-{highest}/{pair[1]}"),
    )
    return st.one_of(
        st.just("*"),
        st.integers(1, 30).map(lambda step: f"*/{step}"),
        st.lists(item, min_size=1, max_size=3).map(",".join),
        *(st.just(text) for text in more),
    )


crons = st.tuples(
    field(0, 59),
    field(0, 23),
    st.one_of(st.just("*"), field(1, 31, "L", "LW")),
    st.one_of(st.just("*"), field(1, 12)),
    st.one_of(st.just("*"), field(0, 7, "5L", "MON#2", "SUN,3#5")),
).map(" ".join)
# Near the changes of the clock of 2027 as often as not.
changes = [
    datetime(2027, 3, 14, tzinfo=UTC),
    datetime(2027, 3, 28, tzinfo=UTC),
    datetime(2027, 4, 4, tzinfo=UTC),
    datetime(2027, 10, 3, tzinfo=UTC),
    datetime(2027, 10, 31, tzinfo=UTC),
    datetime(2027, 11, 7, tzinfo=UTC),
]
moments = st.one_of(
    st.tuples(st.sampled_from(changes), st.integers(-2880, 2880)).map(
        lambda pair: pair[0] + timedelta(minutes=pair[1])
    ),
    st.datetimes(datetime(2025, 1, 1), datetime(2037, 1, 1), timezones=st.just(UTC)),
)


def parsed(cron: str) -> bool:
    """Whether the library takes it: days that no month has, it refuses."""
    try:
        parse_cron(cron)
    except CronError:
        return False
    return True


_checks = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_checks
@given(crons.filter(parsed), st.sampled_from(ZONES), moments)
def test_every_minute_agrees(
    reader: psycopg.Connection, cron: str, zone: str, after: datetime
) -> None:
    """The firings of three days are those that looking at every minute finds."""
    until = after + timedelta(days=3)
    expected = minutes(cron, zone, after, until)[:20]
    found = fires(reader, cron, zone, after, 20)
    assert [at for at in found if at <= until] == expected


@_checks
@given(crons.filter(parsed), st.sampled_from(PLAIN_ZONES), moments)
def test_the_library_agrees(
    reader: psycopg.Connection, cron: str, zone: str, after: datetime
) -> None:
    """The next ten firings, however many years they are away, are cronsim's."""
    start = (after - timedelta(days=2)).astimezone(ZoneInfo(zone))
    expected: list[datetime] = []
    for at in CronSim(cron, start):
        if at.astimezone(UTC) > after:
            expected.append(at.astimezone(UTC))
        if len(expected) == 10:
            break
    assert fires(reader, cron, zone, after, 10) == expected


@pytest.mark.parametrize(
    ("cron", "zone", "after", "expected"),
    [
        # 02:30 does not exist on 28 March: once, right after the gap.
        ("30 2 * * *", "Europe/Berlin", "2027-03-27T12:00", "03-28T01:00 03-29T00:30"),
        ("0,30 2 * * *", "Europe/Berlin", "2027-03-27T12:00", "03-28T01:00 03-29T00:00"),
        # 02:30 exists twice on 31 October: once, the first time.
        ("30 2 * * *", "Europe/Berlin", "2027-10-30T12:00", "10-31T00:30 11-01T01:30"),
        ("30 2 * * *", "Europe/Berlin", "2027-10-31T00:30", "11-01T01:30"),
        # Every hour and every n minutes: each real hour.
        ("0 * * * *", "Europe/Berlin", "2027-03-28T00:30", "03-28T01:00 03-28T02:00"),
        ("0 * * * *", "Europe/Berlin", "2027-10-30T23:30", "10-31T00:00 10-31T01:00 10-31T02:00"),
        ("*/30 2 * * *", "America/New_York", "2027-03-14T06:00", "03-15T06:00"),
        # Midnight that does not exist, and half an hour of change.
        ("0 0 * * *", "America/Havana", "2027-03-13T12:00", "03-14T05:00 03-15T04:00"),
        ("15 2 * * *", "Australia/Lord_Howe", "2027-10-02T00:00", "10-02T15:30"),
        # cronsim goes astray at these: it fires after the gap also for what follows each real hour,
        ("*/20 0 28 * *", "Asia/Beirut", "2027-03-27T12:00", "04-27T21:00 04-27T21:20"),
        ("30 0 28 * *", "Asia/Beirut", "2027-03-27T12:00", "03-27T22:00"),
        # leaves out minutes that are shown again,
        ("*/27 */2 * * *", "Australia/Lord_Howe", "2028-04-01T14:43", "04-01T15:30 04-01T15:57"),
        # and asked in the hour that comes twice, answers with a time before it.
        ("50 0-3 * * *", "America/New_York", "2026-11-01T06:35", "11-01T07:50 11-01T08:50"),
        # The rare and the absent.
        ("0 12 29 2 *", "UTC", "2027-01-01T00:00", "02-29T12:00 02-29T12:00"),
        ("0 0 LW * *", "UTC", "2027-01-01T00:00", "01-29T00:00 02-26T00:00"),
    ],
)
def test_firings_by_hand(
    reader: psycopg.Connection, cron: str, zone: str, after: str, expected: str
) -> None:
    """What cron users expect, written out (all times in UTC)."""
    start = datetime.fromisoformat(after + "+00:00")
    found = fires(reader, cron, zone, start, len(expected.split()))
    assert " ".join(at.strftime("%m-%dT%H:%M") for at in found) == expected


@pytest.mark.parametrize(
    "cron", ["", "* * * *", "60 * * * *", "* * * * * *", "0 0 30 2 *", "@never", "a * * * *"]
)
def test_what_is_no_cron_is_refused(cron: str) -> None:
    """Refused where it is parsed, before the database is asked; the message quotes it."""
    with pytest.raises(CronError, match=re.escape(repr(cron))):
        parse_cron(cron)


def test_an_endless_expression_is_refused_before_it_is_read() -> None:
    """Python itself refuses to read a number of five thousand digits, in other words."""
    with pytest.raises(CronError, match="at most 1000 characters"):
        parse_cron("0" * 5000 + " * * * *")


@pytest.mark.parametrize(
    ("cron", "said"),
    [
        ("61 * * * *", "bad minute: minutes are 0 to 59"),
        ("0 24 * * *", "bad hour: hours are 0 to 23"),
        ("0 0 30 2 *", "bad day-of-month: days are 1 to 31 and in one of the months, L or LW"),
        ("0 0 1 13 *", "bad month: months are 1 to 12 or JAN to DEC"),
        ("0 0 * * 8", "bad day-of-week: weekdays are 0 to 7 or SUN to SAT, 5L or MON#2"),
    ],
)
def test_a_bad_field_is_named_with_what_it_may_be(cron: str, said: str) -> None:
    with pytest.raises(CronError) as refused:
        parse_cron(cron)
    assert str(refused.value) == f"{cron!r}: {said}"
