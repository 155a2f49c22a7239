"""Failures as HTTP answers: status, code, whether a repeat can help, and after how long.

How each SQLSTATE looks is the database's (`failure_classes`); the gateway knows it by heart for the
time when there is no database to ask.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Mapping

import psycopg
from starlette.responses import Response

from counterfoil.calls.receipts import FailureClass
from counterfoil.errors import (
    CounterfoilError,
    PoolExhaustedError,
    TokenError,
    is_disconnection,
    retry_after_seconds,
)
from counterfoil.functions import Functions, HttpAnswer
from counterfoil.receiving.errors import RequestError
from counterfoil.tokens import WrongUseError

log = logging.getLogger(__name__)

ERROR_CODE_HEADER = "x-counterfoil-error-code"
_UNAVAILABLE = "upstream_service_unavailable"
_LABELS = {"receipt": "The step receipt's storage", "ledger": "The ledger append"}
_LONGEST_TEXT = 2000
AGAIN = "Try again after retry_after_ms milliseconds."
SEE_LOG = "Look into the gateway's log, or ask its operator to."
# For the time before the database has told.
_UNREACHABLE = FailureClass(
    "08", 503, _UNAVAILABLE, True, 1000, "The database is away just now.", AGAIN
)
_NO_CONNECTION = FailureClass(
    "53",
    503,
    "runtime_postgres_admission_backpressure",
    True,
    1000,
    "%s waits for a connection.",
    AGAIN,
)


def json_response(
    status: int, body: str | Mapping[str, object], headers: Mapping[str, str] | None = None
) -> Response:
    """An answer with a JSON body; text is sent as it is."""
    text = body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)
    kept = {k: v for k, v in (headers or {}).items() if k.lower() != "content-type"}
    return Response(text.encode("utf-8", "replace"), status, kept, media_type="application/json")


def answer_response(answer: HttpAnswer) -> Response:
    """What a stored function answered, as it is."""
    return json_response(answer.status, answer.body or "null", answer.headers)


def refusal(
    status: int,
    code: str,
    message: str,
    hint: str,
    detail: str = "",
    *,
    retryable: bool = False,
    retry_after_ms: int | None = None,
    action: str | None = None,
) -> Response:
    """``{error, code, retryable, hint, retry_after_ms?, detail?, action?}``; texts are cut."""
    body: dict[str, object] = {
        "error": message[:_LONGEST_TEXT],
        "code": code,
        "retryable": retryable,
        "hint": hint[:_LONGEST_TEXT],
    }
    headers = {ERROR_CODE_HEADER: code}
    if retry_after_ms is not None:
        body["retry_after_ms"] = retry_after_ms
        headers["retry-after"] = retry_after_seconds(retry_after_ms)
    if detail:
        body["detail"] = detail[:_LONGEST_TEXT]
    if action:
        body["action"] = action
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return json_response(status, body, headers)


class Failures:
    """Turns exceptions into answers."""

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._classes: list[FailureClass] = []

    async def answer(
        self,
        error: Exception,
        *,
        action: str | None = None,
        operation: str = "receipt",
        renamed: Callable[[str], str] = str,
    ) -> Response:
        """The answer to a request that failed with ``error``.

        ``renamed`` puts the request's own names into what a function said of its arguments.
        """
        if isinstance(error, RequestError):
            return refusal(
                error.status,
                error.code,
                error.message,
                error.hint,
                error.detail,
                retryable=error.status == 408 or error.retry_after_ms is not None,
                retry_after_ms=error.retry_after_ms,
            )
        if isinstance(error, WrongUseError):
            return refusal(403, "scope_mismatch", error.message, error.hint)
        if isinstance(error, TokenError):
            return refusal(401, "unauthorized", error.message, error.hint)
        if isinstance(error, psycopg.Error):
            return await self._database_answer(error, action, operation, renamed)
        log.error("a request failed unexpectedly", exc_info=error)
        return refusal(500, "internal_error", "The request failed.", SEE_LOG)

    async def _database_answer(
        self,
        error: psycopg.Error,
        action: str | None,
        operation: str,
        renamed: Callable[[str], str],
    ) -> Response:
        label = _LABELS.get(operation, "The request")
        found = await self._class_of(error)
        message, detail, hint = map(renamed, _words(error))
        if found is not None:
            if found.error is not None:
                # Of a value that cannot be stored the database says too much.
                detail = message if found.status == 503 else ""
                message = found.error.replace("%s", label)
            wait = error.retry_after_ms if isinstance(error, CounterfoilError) else None
            response = refusal(
                found.status,
                found.code,
                message,
                hint or found.hint,
                detail,
                retryable=found.retryable,
                retry_after_ms=wait or found.retry_after_ms,
                action=action,
            )
            if found.code == _UNAVAILABLE and detail:
                response.headers["x-counterfoil-error-detail"] = _header_text(detail)
            return response
        log.error(
            "a call failed in the database",
            extra={"sqlstate": error.sqlstate, "operation": operation, "action": action},
        )
        try:
            answer = await self._functions.receipt_failure_response(
                error.sqlstate or "XX000", message, detail, action, operation, hint
            )
        except psycopg.Error:
            return refusal(500, "internal_error", f"{label} failed.", SEE_LOG)
        return answer_response(answer)

    async def _class_of(self, error: psycopg.Error) -> FailureClass | None:
        if isinstance(error, PoolExhaustedError):
            return self._known("53300") or _NO_CONNECTION
        if is_disconnection(error):
            return self._known(error.sqlstate or "08") or _UNREACHABLE
        await self._learn()
        return self._known(error.sqlstate or "")

    def _known(self, code: str) -> FailureClass | None:
        fitting = [known for known in self._classes if code.startswith(known.sqlstate_prefix)]
        return max(fitting, key=lambda known: len(known.sqlstate_prefix), default=None)

    async def _learn(self) -> None:
        if not self._classes:
            try:
                self._classes = await self._functions.failure_classes()
            except psycopg.Error as error:
                log.warning("failure classes unknown", extra={"error": type(error).__name__})


def _header_text(text: str) -> str:
    return re.sub("[^ -~]", "?", re.sub(r"[\r\n]+", " ", text))[:500]


def _words(error: psycopg.Error) -> tuple[str, str, str]:
    if isinstance(error, CounterfoilError):
        return error.message, error.reason, error.hint
    # What PostgreSQL itself would have done is for whoever looks after it.
    message = error.diag.message_primary or type(error).__name__
    return message, error.diag.message_detail or "", ""
