"""Forwarding a runner's requests to the runtime API that its launch pinned.

The gateway is the only hop that holds the protection bypass. It forwards to the pinned base and
nowhere else, follows no redirect, and never to itself: not to a host that it knows as its own, and
not what a gateway has forwarded before, whatever name or balancer lies in between.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable
from functools import partial

from starlette.requests import Request
from starlette.responses import Response

from counterfoil.errors import ReceiverError
from counterfoil.functions import Functions
from counterfoil.receiving.bodies import Intake
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import refusal
from counterfoil.receiving.paths import quoted, segment
from counterfoil.settings import Settings
from counterfoil.tokens import Scope
from counterfoil.upstream import (
    BYPASS_HEADER,
    Bypass,
    Upstream,
    base_of,
    host_of,
    read_bounded,
    refuse_self_proxy,
)

HOP_HEADER = "x-counterfoil-forwarded"
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")

log = logging.getLogger(__name__)

_HOP_BY_HOP = frozenset(
    {
        *(
            "connection",
            "keep-alive",
            "proxy-authenticate",
            "proxy-authorization",
            "proxy-connection",
        ),
        *("te", "trailer", "transfer-encoding", "upgrade", "host", "content-length", "expect"),
    }
)
# A gateway asks for no cookie, brings none along, and chooses the bypass itself.
_NOT_SENT = _HOP_BY_HOP | {"cookie", "x-vercel-set-bypass-cookie", BYPASS_HEADER}
_NOT_ANSWERED = _HOP_BY_HOP | {"set-cookie", "location"}
# Status and hint of what keeps a request from its answer.
_FAILURES = {
    "self_proxy": (508, "launch runs with the base URL of their own runtime API"),
    "receiver_timeout": (504, "try again, or make the runtime API answer sooner"),
    "receiver_unreachable": (502, "try again once the runtime API of the launch can be reached"),
    "receiver_answer_too_large": (502, "ask the runtime API for less at once"),
    "redirect_refused": (502, "launch runs with the base URL that the runtime API redirects to"),
    "upstream_address_refused": (403, "set allow_private_upstreams, or launch with a public URL"),
    "base_url_invalid": (409, "launch runs with a base URL such as https://api.example.com"),
}


def refuse_forwarded(request: Request) -> None:
    """Raise RequestError (508) for what a gateway has forwarded: no name of it is an upstream."""
    if HOP_HEADER in request.headers:
        raise RequestError(
            508, "self_proxy", "the upstream is the gateway itself", _FAILURES["self_proxy"][1]
        )


class Proxy:
    """Forwards requests. Keeps its connections until the process ends or `close`."""

    def __init__(self, functions: Functions, intake: Intake, settings: Settings) -> None:
        self._functions = functions
        self._intake = intake
        self._settings = settings
        self._upstream = Upstream(
            timeout_seconds=settings.append_timeout,
            # A client's connection forwards one request at a time: none waits for another org's.
            connections=settings.max_connections,
            allow_private=settings.allow_private_upstreams,
        )
        self._forwarding: Counter[str] = Counter()

    async def close(self) -> None:
        """Close every connection."""
        await self._upstream.close()

    async def forward(self, request: Request, scope: Scope) -> Response:
        """The upstream's answer to the request, which the token of ``scope`` opened."""
        path = _safe_path(request.path_params["path"])
        body = await self._intake.read(request)
        if self._forwarding[scope.org_id] >= self._settings.org_forwards:
            raise RequestError(
                503,
                "gateway_busy",
                "the org's runtime API has too many requests to answer",
                "try again after retry_after_ms milliseconds",
                retry_after_ms=1000,
            )
        self._forwarding[scope.org_id] += 1
        try:
            return await self._pass_on(request, scope, path, body)
        finally:
            self._forwarding[scope.org_id] -= 1
            self._forwarding += Counter()  # lets go of the orgs that have none

    async def _pass_on(
        self, request: Request, scope: Scope, path: str, body: bytearray
    ) -> Response:
        route = await self._functions.runner_route(scope.org_id, scope.run_id)
        bypass = Bypass.choose(route.protection_bypass_token, self._settings.protection_bypass)
        query = f"?{request.url.query}" if request.url.query else ""
        try:
            base = base_of(route.base_url)
            for own in self._own_hosts(request):
                refuse_self_proxy(base, own)
            await self._upstream.open()
            async with self._upstream.request(
                request.method,
                f"{base}/{path}{query}",
                body,
                _kept(request.headers.raw, _NOT_SENT, "utf-8") | {HOP_HEADER: "1"},
                bypass,
            ) as answer:
                if 300 <= answer.status < 400:
                    raise ReceiverError(
                        "the runtime API redirected; redirects are not followed",
                        code="redirect_refused",
                        status=answer.status,
                    )
                if not 200 <= answer.status < 600:
                    raise ReceiverError(
                        f"the runtime API answered {answer.status}, with which no request ends",
                        code="receiver_answer_invalid",
                        status=answer.status,
                    )
                content = await read_bounded(
                    answer, self._settings.body_max_bytes, partial(self._intake.hold, request)
                )
                headers = _kept(answer.raw_headers, _NOT_ANSWERED)
                response = Response(content, answer.status, headers)
        except ReceiverError as error:
            response = _failure(error)
        log.info(
            "forwarded",
            extra={
                "org_id": scope.org_id,
                "run_id": scope.run_id,
                "status": response.status_code,
                "bypass_source": bypass.source,
            },
        )
        return response

    def _own_hosts(self, request: Request) -> list[str]:
        """What the gateway goes by: as the client called it, as configured, as it was reached."""
        server = request.scope.get("server") or ("", None)
        return [
            request.headers.get("host", ""),
            host_of(self._settings.base_url),
            f"[{server[0]}]:{server[1]}" if ":" in server[0] else f"{server[0]}:{server[1]}",
        ]


def _safe_path(path: str) -> str:
    """The path below the pinned base, quoted. Raises RequestError when it would leave it."""
    segments = segment(path).split("/")
    empty = any(segment == "" for segment in segments[:-1])
    # Some servers take "..;x" for "..".
    names = {part.partition(";")[0] for part in segments}
    if not path or empty or "\\" in path or names & {".", ".."}:
        raise RequestError(
            400,
            "invalid_argument",
            "the path leaves the runtime API",
            "send a path of segments that are not empty, without . and ..",
            "path",
        )
    return quoted(path, "/!$&'()*+,;=:@~")


def _kept(
    headers: Iterable[tuple[bytes, bytes]], dropped: frozenset[str], encoding: str = "latin-1"
) -> dict[str, str]:
    """End-to-end headers: without those of one hop, and without what Connection names.

    What comes more than once becomes one list, as HTTP has it. ``encoding`` is the one in which
    they will be written again.
    """
    found: dict[str, str] = {}
    for given, raw in headers:
        name = given.decode("latin-1").lower()
        try:
            value = raw.decode(encoding)
        except UnicodeDecodeError:
            value = raw.decode("latin-1")
        found[name] = f"{found[name]}, {value}" if name in found else value
    named = {part.strip().lower() for part in found.get("connection", "").split(",")}
    return {k: v for k, v in found.items() if k not in dropped and k not in named}


def _failure(error: ReceiverError) -> Response:
    status, hint = _FAILURES.get(error.code, (502, "look at the runtime API of the launch"))
    return refusal(status, error.code, error.message, hint, retryable=bool(error.retryable))
