"""Reads of the gateway: a run, its snapshot, its ledger and its journal, page by page."""

from __future__ import annotations

import json
import re
from datetime import datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from counterfoil.calls.journal import JournalRow
from counterfoil.functions import Functions, LedgerEvent
from counterfoil.json_text import JsonText
from counterfoil.receiving.access import Access
from counterfoil.receiving.documents import NumberText, parse
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import json_response
from counterfoil.receiving.paths import segment

EVENTS_PAGE = 200
JOURNAL_PAGE = 100
PAGE_MAX = 1000
POSITION_MAX = 10**18 - 1
CHANNELS = ("log", "progress", "receipt")
ORDERS = ("position", "newest")
MODES = ("words", "substring")
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)", re.ASCII)


class Reads:
    """What may be read of the run that a token names."""

    def __init__(self, functions: Functions, access: Access) -> None:
        self._functions = functions
        self._access = access

    async def snapshot(self, request: Request) -> Response:
        """The run as its ledger tells it: what has been delivered."""
        org_id, run_id = self._named(request)
        return json_response(200, await self._functions.run_snapshot(org_id, run_id) or "null")

    async def state(self, request: Request) -> Response:
        """The run as it stands in the database that executes it."""
        org_id, run_id = self._named(request)
        return json_response(200, await self._functions.get_run(org_id, run_id, as_text=True))

    async def events(self, request: Request) -> Response:
        """Ledger events behind `after`; `nextAfter` continues, null at the end."""
        org_id, run_id = self._named(request)
        after = given_number(request, "after", 0, least=0, most=POSITION_MAX)
        limit = given_number(request, "limit", EVENTS_PAGE, least=1, most=PAGE_MAX)
        events = await self._functions.read_run_events(org_id, run_id, after, limit)
        listed = ",".join(_event_text(event) for event in events)
        following = events[-1].position if len(events) == limit else "null"
        return json_response(200, f'{{"events":[{listed}],"nextAfter":{following}}}')

    async def journal(self, request: Request) -> Response:
        """Journal entries that match; `cursor` continues while `next` is not end."""
        org_id, run_id = self._named(request)
        rows = await self._functions.search_journal(
            org_id,
            given_text(request, "query"),
            run_id,
            given_choice(request, "channel", CHANNELS, None),
            _cursor(request, "cursor"),
            given_number(request, "limit", JOURNAL_PAGE, least=1, most=PAGE_MAX),
            level=given_text(request, "level"),
            since=given_time(request, "since"),
            until=given_time(request, "until"),
            mode=given_choice(request, "mode", MODES, MODES[0]) or "",
            order=given_choice(request, "order", ORDERS, ORDERS[0]) or "",
        )
        listed = ",".join(entry_text(row) for row in rows if row.kind == "entry")
        # The last row says how to go on: more, pending or end.
        last = rows[-1]
        cursor = json.dumps(last.cursor, ensure_ascii=False)
        return json_response(
            200, f'{{"entries":[{listed}],"next":"{last.kind}","cursor":{cursor}}}'
        )

    def _named(self, request: Request) -> tuple[str, str]:
        run_id = segment(request.path_params["run_id"])
        return self._access.read_scope(request, run_id), run_id


def refuse(name: str, must: str) -> RequestError:
    """400: what a parameter of the query must be."""
    return RequestError(
        400, "invalid_argument", f"{name} is malformed", f"{name} must be {must}", name
    )


def _given(request: Request, name: str) -> str | None:
    given = request.query_params.getlist(name)
    if len(given) > 1:
        raise refuse(name, "given once")
    return given[0] if given else None


def given_text(request: Request, name: str) -> str | None:
    """A parameter of the query; None where it was not given."""
    given = _given(request, name)
    if given is not None and "\0" in given:
        raise refuse(name, "text without U+0000")
    return given


def given_number(request: Request, name: str, default: int, *, least: int, most: int) -> int:
    """A whole number of the query within its bounds."""
    given = _given(request, name)
    if given is None:
        return default
    if not re.fullmatch("[0-9]{1,18}", given) or not least <= int(given) <= most:
        raise refuse(name, f"a number from {least} to {most}")
    return int(given)


def given_choice(
    request: Request, name: str, allowed: tuple[str, ...], default: str | None
) -> str | None:
    """One of a few words."""
    given = _given(request, name)
    if given is None:
        return default
    if given not in allowed:
        raise refuse(name, f"one of {', '.join(allowed)}")
    return given


def given_time(request: Request, name: str) -> datetime | None:
    """A time of the query, with its offset."""
    given = _given(request, name)
    if given is None:
        return None
    found = _parsed_time(given)
    if found is None:
        raise refuse(name, "a time such as 2026-01-31T12:00:00Z")
    return found


def is_time(text: str) -> bool:
    """Whether the text is a time that the database takes."""
    return _parsed_time(text) is not None


def _parsed_time(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text) if _TIME.fullmatch(text) else None
    except ValueError:
        return None


def _cursor(request: Request, name: str) -> JsonText | None:
    """A cursor of an earlier page, as its text."""
    given = _given(request, name)
    if given is None:
        return None
    try:
        members = parse(given)
    except RequestError:
        members = {}
    if not _is_cursor(members):
        raise refuse(name, "the cursor that a page answered")
    return JsonText(given)


def _is_cursor(members: dict[str, Any]) -> bool:
    texts = [members.get(name) for name in ("at", "runId", "channel")]
    position = members.get("position")
    return (
        all(isinstance(text, str) and not isinstance(text, NumberText) for text in texts)
        and _parsed_time(str(texts[0])) is not None
        and isinstance(position, NumberText)
        and re.fullmatch("-?[0-9]{1,18}", position) is not None
    )


def _event_text(event: LedgerEvent) -> str:
    appended = json.dumps(event.appended_at.isoformat())
    return f'{{"position":{event.position},"appendedAt":{appended},"event":{event.event}}}'


def entry_text(row: JournalRow) -> str:
    """A journal entry as JSON text, every number as it was written."""
    members = {
        "channel": row.channel,
        "position": row.position,
        "occurredAt": row.occurred_at.isoformat() if row.occurred_at else None,
        "level": row.level,
        "eventId": row.event_id,
        "line": row.line,
        "highlights": row.highlights,
    }
    head = json.dumps(members, ensure_ascii=False)[:-1]
    context, details = row.context_text or "null", row.details_text or "null"
    return f'{head},"context":{context},"details":{details}}}'
