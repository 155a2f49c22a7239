"""Searches of the gateway through all of an org: its journal and its runs, page by page."""

from __future__ import annotations

import json
import re
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from counterfoil.functions import Functions
from counterfoil.json_text import JsonText
from counterfoil.receiving.access import Access
from counterfoil.receiving.documents import NumberText, parse
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import json_response
from counterfoil.receiving.reads import (
    CHANNELS,
    JOURNAL_PAGE,
    MODES,
    PAGE_MAX,
    entry_text,
    given_choice,
    given_number,
    given_text,
    given_time,
    is_time,
    refuse,
)

STATUSES = ("queued", "running", "waiting", "completed", "failed", "cancelled")


class Searches:
    """What those who hold a reader's token of an org, or the internal one, may find in it."""

    def __init__(self, functions: Functions, access: Access) -> None:
        self._functions = functions
        self._access = access

    async def journal(self, request: Request) -> Response:
        """Entries that match, the latest first; `cursor` continues while `next` is more."""
        org_id = self._access.search_scope(request)
        rows = await self._functions.search_journal(
            org_id,
            given_text(request, "query"),
            None,
            given_choice(request, "channel", CHANNELS, None),
            _cursor(request, ("at", "runId", "channel"), with_position=True),
            given_number(request, "limit", JOURNAL_PAGE, least=1, most=PAGE_MAX),
            level=given_text(request, "level"),
            since=given_time(request, "since"),
            until=given_time(request, "until"),
            mode=given_choice(request, "mode", MODES, MODES[0]) or "",
        )
        listed = ",".join(
            f'{{"runId":{json.dumps(row.run_id, ensure_ascii=False)},{entry_text(row)[1:]}'
            for row in rows[:-1]
        )
        cursor = json.dumps(rows[-1].cursor, ensure_ascii=False)
        return json_response(
            200, f'{{"entries":[{listed}],"next":"{rows[-1].kind}","cursor":{cursor}}}'
        )

    async def runs(self, request: Request) -> Response:
        """Runs that match, the latest first; `cursor` continues while `next` is more."""
        org_id = self._access.search_scope(request)
        rows = await self._functions.search_runs(
            org_id,
            given_choice(request, "status", STATUSES, None),
            given_text(request, "playName"),
            given_text(request, "query"),
            given_text(request, "error"),
            since=given_time(request, "since"),
            until=given_time(request, "until"),
            before=_cursor(request, ("at", "runId"), with_position=False),
            limit=given_number(request, "limit", JOURNAL_PAGE, least=1, most=PAGE_MAX),
        )
        listed = ",".join(row.run_text or "null" for row in rows[:-1])
        cursor = json.dumps(rows[-1].cursor, ensure_ascii=False)
        return json_response(
            200, f'{{"runs":[{listed}],"next":"{rows[-1].kind}","cursor":{cursor}}}'
        )


def _cursor(request: Request, texts: tuple[str, ...], *, with_position: bool) -> JsonText | None:
    """A cursor of an earlier page, as its text."""
    given = given_text(request, "cursor")
    if given is None:
        return None
    members: dict[str, Any] = {}
    try:
        members = parse(given)
    except RequestError:
        raise refuse("cursor", "the cursor that a page answered") from None
    found = [members.get(name) for name in texts]
    position = members.get("position")
    if (
        not all(isinstance(text, str) and not isinstance(text, NumberText) for text in found)
        or not is_time(str(found[0]))
        or (
            with_position
            and not (isinstance(position, NumberText) and re.fullmatch("-?[0-9]{1,18}", position))
        )
    ):
        raise refuse("cursor", "the cursor that a page answered")
    return JsonText(given)
