"""Cron expressions, parsed: the form that `create_schedule` takes. What fires when, SQL decides."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import cast

from cronsim import CronSim, CronSimError

from counterfoil.json_text import JsonValue

_NAMED = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_LAST_OF_MONTH = 9
_LONGEST = 1000
_ALLOWED = {
    "Bad minute": "minutes are 0 to 59",
    "Bad hour": "hours are 0 to 23",
    "Bad day-of-month": "days are 1 to 31 and in one of the months, L or LW",
    "Bad month": "months are 1 to 12 or JAN to DEC",
    "Bad day-of-week": "weekdays are 0 to 7 or SUN to SAT, 5L or MON#2",
}


class CronError(ValueError):
    """An expression that is no cron expression; the message says what is wrong with it."""


def parse_cron(expression: str) -> dict[str, JsonValue]:
    """The parsed form of ``expression``: five fields as Debian's cron has them, or ``@daily`` …

    ``L`` and ``LW`` as day (last day, last working day), ``5L`` and ``MON#2`` as weekday are known
    too. Raises CronError.
    """
    if len(expression) > _LONGEST:
        raise CronError(f"a cron expression has at most {_LONGEST} characters")
    fields = _NAMED.get(expression.strip().lower(), expression).split()
    if len(fields) != 5:
        raise CronError(
            f"{expression!r}: a cron expression has five fields: minute hour day month weekday"
        )
    try:
        parsed = CronSim(" ".join(fields), datetime(2000, 1, 1, tzinfo=UTC))
    except CronSimError as error:
        bad = str(error)
        said = ": ".join(filter(None, (bad.lower(), _ALLOWED.get(bad))))
        raise CronError(f"{expression!r}: {said}") from None
    weekdays = [day for day in parsed.weekdays if isinstance(day, int)]
    nth = [day for day in parsed.weekdays if isinstance(day, tuple)]
    form = {
        "expression": expression,
        "minutes": sorted(parsed.minutes),
        "hours": sorted(parsed.hours),
        "days": sorted(day for day in parsed.days if day > 0),
        "lastDay": CronSim.LAST in parsed.days,
        "lastWorkingDay": CronSim.LAST_WEEKDAY in parsed.days,
        "months": sorted(parsed.months),
        "weekdays": sorted({day % 7 for day in weekdays}),
        "nthWeekdays": sorted(
            {
                day % 7 * 10 + (_LAST_OF_MONTH if place == CronSim.LAST else place)
                for day, place in nth
            }
        ),
        "dayAndWeekday": parsed.day_and,
        "everyRealHour": fields[0].startswith("*") or fields[1].startswith("*"),
    }
    return cast("dict[str, JsonValue]", form)
