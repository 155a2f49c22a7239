"""The gateway: the HTTP service in front of the functions, an ASGI app that can be mounted.

Each request is a token checked, a body read, one stored function called, its answer sent. Bodies
and answers pass as JSON text, so that numbers arrive as they were sent.
"""

from __future__ import annotations

import json
import logging
import re
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial

import psycopg
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from counterfoil.authority import INTERNAL_PATH
from counterfoil.database import Database
from counterfoil.errors import CounterfoilError
from counterfoil.functions import Functions
from counterfoil.names import as_sent
from counterfoil.receiving.access import DISPATCH, EXECUTOR, Access
from counterfoil.receiving.bodies import Body, Intake, one_header
from counterfoil.receiving.deadline import Deadline
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import (
    AGAIN,
    ERROR_CODE_HEADER,
    SEE_LOG,
    Failures,
    answer_response,
    json_response,
    refusal,
)
from counterfoil.receiving.issuing import Issuing
from counterfoil.receiving.metrics import Metrics
from counterfoil.receiving.openapi import document
from counterfoil.receiving.paths import WholeSegments
from counterfoil.receiving.proxy import METHODS, Proxy, refuse_forwarded
from counterfoil.receiving.reads import Reads
from counterfoil.receiving.searches import Searches
from counterfoil.settings import Settings

WIRE_FORMAT_HEADER = "x-counterfoil-receipt-wire-format"
NEWEST_WIRE_FORMAT = 3
CONTROL_PATH = "/api/v2/play-runtime/control"

log = logging.getLogger(__name__)

_ACTION = re.compile("[a-z_]{1,64}")

Handler = Callable[[Request], Awaitable[Response]]


class Gateway:
    """The endpoints. One object serves all requests of an app."""

    def __init__(self, database: Database, settings: Settings, metrics: Metrics) -> None:
        self._database = database
        self._functions = Functions(Deadline(database, settings.call_timeout))
        self._settings = settings
        self._access = Access(settings)
        self._failures = Failures(self._functions)
        self._metrics = metrics
        self._intake = Intake(
            max_bytes=settings.body_max_bytes,
            most_values=settings.body_max_values,
            seconds=settings.body_timeout,
            most_held=settings.bodies_max_bytes,
        )
        metrics.gauge("body_bytes_held", lambda: self._intake.held)
        self._reads = Reads(self._functions, self._access)
        self._searches = Searches(self._functions, self._access)
        self._proxy = Proxy(self._functions, self._intake, settings)
        self._issuing = Issuing(self._functions, self._access, self._body, settings)
        self._description = document()

    def routes(self) -> list[Route]:
        """Every route, with its operation for metrics and failures."""
        table: list[tuple[str | Sequence[str], str, str, Handler]] = [
            ("POST", "/api/v2/play-runtime/run-ledger/{action}", "ledger", self._ledger),
            ("POST", "/api/v2/play-runtime/receipts", "receipt", self._receipts),
            ("POST", f"{INTERNAL_PATH}/run-ledger-dispatch-token", "token", self._issuing.ledger),
            (
                "POST",
                f"{INTERNAL_PATH}/compute-billing-dispatch-token",
                "token",
                self._issuing.billing,
            ),
            ("GET", "/api/v2/runs", "read", self._searches.runs),
            ("GET", "/api/v2/journal", "read", self._searches.journal),
            ("GET", "/api/v2/runs/{run_id}", "read", self._reads.snapshot),
            ("GET", "/api/v2/runs/{run_id}/state", "read", self._reads.state),
            ("GET", "/api/v2/runs/{run_id}/events", "read", self._reads.events),
            ("GET", "/api/v2/runs/{run_id}/journal", "read", self._reads.journal),
            (METHODS, f"{CONTROL_PATH}/{{path:path}}", "proxy", self._control),
            ("GET", "/healthz", "health", self._healthz),
            ("GET", "/readyz", "health", self._readyz),
            ("GET", "/metrics", "health", self._show_metrics),
            ("GET", "/openapi.json", "health", self._describe),
        ]
        return [
            Route(
                path,
                self._guarded(path, operation, handler),
                methods=[methods] if isinstance(methods, str) else list(methods),
            )
            for methods, path, operation, handler in table
        ]

    def _guarded(self, path: str, operation: str, handler: Handler) -> Handler:
        async def endpoint(request: Request) -> Response:
            began = time.monotonic()
            try:
                refuse_forwarded(request)
                response = await handler(request)
            except Exception as error:  # noqa: BLE001 - every failure becomes an answer
                response = await self._failures.answer(
                    error,
                    action=_action(request),
                    operation=operation,
                    renamed=partial(
                        as_sent, members=_members(request), is_read=operation == "read"
                    ),
                )
            finally:
                self._intake.release(request)
            if operation == "receipt":
                response.headers.setdefault(WIRE_FORMAT_HEADER, str(NEWEST_WIRE_FORMAT))
            seconds = time.monotonic() - began
            self._metrics.count(path, response.status_code, seconds)
            loud = response.status_code >= 400 and response.status_code != 404
            log.log(
                logging.WARNING if loud else logging.DEBUG,
                "request",
                extra={
                    "route": path,
                    "status": response.status_code,
                    "ms": round(seconds * 1000, 1),
                    "error_code": response.headers.get(ERROR_CODE_HEADER, ""),
                    "action": _action(request),
                    **getattr(request.state, "scope_ids", {}),
                },
            )
            return response

        return endpoint

    async def _body(self, request: Request, *, or_array: bool = False) -> Body:
        body = await self._intake.read_json(request, or_array=or_array)
        request.state.members = body.members
        return body

    async def _ledger(self, request: Request) -> Response:
        scope = self._access.scope(request, DISPATCH)
        body = await self._body(request)
        header = one_header(request, "idempotency-key")
        sent = body.members.get("idempotencyKey")
        if header is not None and header not in (sent, json.dumps(sent)[1:-1]):
            raise RequestError(
                400,
                "invalid_argument",
                "the Idempotency-Key header and idempotencyKey differ",
                "send the same in both, or leave the header out",
                "idempotencyKey",
            )
        answer = await self._functions.dispatch_ledger_action(
            scope.to_json(), request.path_params["action"], body.json
        )
        return answer_response(answer)

    async def _receipts(self, request: Request) -> Response:
        scope = self._access.scope(request, EXECUTOR)
        # What an array is to this endpoint, the function says: it names no play.
        body = await self._body(request, or_array=True)
        asked = one_header(request, WIRE_FORMAT_HEADER, str(NEWEST_WIRE_FORMAT)) or ""
        if not re.fullmatch("[1-9][0-9]{0,3}", asked.strip()):
            raise RequestError(
                400,
                "invalid_argument",
                "the wire format is no number",
                f"send a number from 1, or leave it out for {NEWEST_WIRE_FORMAT}",
                WIRE_FORMAT_HEADER,
            )
        answer = await self._functions.dispatch_receipt_action(
            scope.to_json(), body.json, int(asked)
        )
        if answer.status == 403:
            # The log names both runs, the token's and this one.
            request.state.scope_ids["asked_run_id"] = str(body.members.get("runId") or "")[:200]
        return answer_response(answer)

    async def _control(self, request: Request) -> Response:
        return await self._proxy.forward(request, self._access.scope(request, EXECUTOR))

    async def close(self) -> None:
        """Close connections to runtime APIs."""
        await self._proxy.close()

    async def _healthz(self, request: Request) -> Response:
        return json_response(200, {"status": "ok"})

    async def _readyz(self, request: Request) -> Response:
        if getattr(request.app.state, "draining", False):
            return refusal(
                503,
                "draining",
                "The gateway stops.",
                "Ask another gateway, or this one once it has started again.",
                retryable=True,
                retry_after_ms=1000,
            )
        try:
            version = await self._database.check_version()
        except CounterfoilError as error:
            return refusal(
                503,
                error.name,
                error.message,
                error.hint or SEE_LOG,
                error.reason,
                retryable=True,
                retry_after_ms=1000,
            )
        except psycopg.Error:
            return refusal(
                503,
                "upstream_service_unavailable",
                "The database is away just now.",
                AGAIN,
                retryable=True,
                retry_after_ms=1000,
            )
        return json_response(200, {"status": "ready", "schemaVersion": version})

    async def _describe(self, request: Request) -> Response:
        servers = [{"url": request.scope.get("root_path") or "/"}]
        return json_response(200, json.dumps({**self._description, "servers": servers}))

    async def _show_metrics(self, request: Request) -> Response:
        return PlainTextResponse(self._metrics.text(), media_type="text/plain; version=0.0.4")


def create_app(database: Database, settings: Settings, metrics: Metrics | None = None) -> Starlette:
    """The gateway as an ASGI app. ``database`` is open already and stays the caller's.

    Raises SettingsError when the settings hold no signing key. Where the app is mounted and its
    lifespan is not run, connections to runtime APIs stay open until the process ends. While its
    ``state.draining`` is true, /readyz answers 503.
    """
    counted = metrics or Metrics()
    gateway = Gateway(database, settings, counted)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        yield
        await gateway.close()

    async def unrouted(request: Request, error: Exception) -> Response:
        response = _http_exception(error)
        counted.count("(none)", response.status_code, 0.0)
        return response

    app = Starlette(
        routes=gateway.routes(),
        exception_handlers={HTTPException: unrouted},
        middleware=[Middleware(WholeSegments)],
        lifespan=lifespan,
    )
    # A redirect would go to whatever host the request named.
    app.router.redirect_slashes = False
    return app


def _members(request: Request) -> Mapping[str, object]:
    found: Mapping[str, object] = getattr(request.state, "members", {})
    return found


def _action(request: Request) -> str | None:
    """What the request wanted to do, as far as it looks like an action."""
    action = request.path_params.get("action") or _members(request).get("action")
    return action if isinstance(action, str) and _ACTION.fullmatch(action) else None


def _http_exception(error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 500
    code = {404: "not_found", 405: "method_not_allowed"}.get(status, f"http_{status}")
    text = {404: "There is nothing here.", 405: "Not with this method."}.get(status, "Refused.")
    hint = "Compare path and method with /openapi.json."
    response = refusal(status, code, text, hint)
    if isinstance(error, HTTPException) and error.headers:
        response.headers.update(error.headers)
    return response
