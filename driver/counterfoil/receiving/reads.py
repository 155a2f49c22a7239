"""Reads of the gateway: a run's snapshot, its ledger and its journal, page by page."""

from __future__ import annotations

import json
import re

from starlette.requests import Request
from starlette.responses import Response

from counterfoil.calls.journal import JournalRow
from counterfoil.functions import Functions, LedgerEvent
from counterfoil.json_text import JsonText
from counterfoil.receiving.access import Access
from counterfoil.receiving.bodies import RequestError, parse
from counterfoil.receiving.failures import json_response

EVENTS_PAGE = 200
JOURNAL_PAGE = 100
PAGE_MAX = 1000


class Reads:
    """What may be read of the run that a token names."""

    def __init__(self, functions: Functions, access: Access) -> None:
        self._functions = functions
        self._access = access

    async def snapshot(self, request: Request) -> Response:
        """The run as its ledger tells it."""
        run_id = request.path_params["run_id"]
        org_id = self._access.read_scope(request, run_id)
        return json_response(200, await self._functions.run_snapshot(org_id, run_id) or "null")

    async def events(self, request: Request) -> Response:
        """Ledger events behind `after`; `nextAfter` continues, null at the end."""
        run_id = request.path_params["run_id"]
        org_id = self._access.read_scope(request, run_id)
        after = _number(request, "after", 0, 2**53)
        limit = _number(request, "limit", EVENTS_PAGE, PAGE_MAX)
        events = await self._functions.read_run_events(org_id, run_id, after, max(1, limit))
        listed = ",".join(_event_text(event) for event in events)
        following = events[-1].position if events and len(events) == max(1, limit) else "null"
        return json_response(200, f'{{"events":[{listed}],"nextAfter":{following}}}')

    async def journal(self, request: Request) -> Response:
        """Journal entries that match `query`; `cursor` continues while `next` is not end."""
        run_id = request.path_params["run_id"]
        org_id = self._access.read_scope(request, run_id)
        given = request.query_params.get("cursor")
        rows = await self._functions.search_journal(
            org_id,
            request.query_params.get("query"),
            run_id,
            request.query_params.get("channel"),
            None if given is None else _cursor(given),
            max(1, _number(request, "limit", JOURNAL_PAGE, PAGE_MAX)),
            order=request.query_params.get("order", "position"),
        )
        listed = ",".join(_entry_text(row) for row in rows if row.kind == "entry")
        # The last row says how to go on: more, pending or end.
        last = rows[-1]
        cursor = json.dumps(last.cursor)
        return json_response(
            200, f'{{"entries":[{listed}],"next":"{last.kind}","cursor":{cursor}}}'
        )


def _number(request: Request, name: str, default: int, most: int) -> int:
    given = request.query_params.get(name)
    if given is None:
        return default
    if not re.fullmatch("[0-9]{1,16}", given) or int(given) > most:
        raise RequestError(
            400, "invalid_argument", f"{name} must be a number from 0 to {most}", name
        )
    return int(given)


def _event_text(event: LedgerEvent) -> str:
    appended = json.dumps(event.appended_at.isoformat())
    return f'{{"position":{event.position},"appendedAt":{appended},"event":{event.event}}}'


def _entry_text(row: JournalRow) -> str:
    members = {
        "channel": row.channel,
        "position": row.position,
        "occurredAt": row.occurred_at.isoformat() if row.occurred_at else None,
        "level": row.level,
        "eventId": row.event_id,
        "line": row.line,
    }
    head = json.dumps(members, ensure_ascii=False)[:-1]
    context, details = row.context_text or "null", row.details_text or "null"
    return f'{head},"context":{context},"details":{details}}}'


def _cursor(text: str) -> JsonText:
    """A cursor of an earlier page, checked to be a JSON object."""
    try:
        parse(text)
    except RequestError:
        raise RequestError(
            400, "invalid_argument", "cursor is not one that a page answered", "cursor"
        ) from None
    return JsonText(text)
