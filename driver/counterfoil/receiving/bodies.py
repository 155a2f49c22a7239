"""Request bodies of the gateway: read within bounds, checked, and passed on as they came.

Everything a hostile client can send is answered with a 4xx before it reaches the database: too
large, too slow, the wrong type, invalid UTF-8, no JSON, duplicate keys, U+0000, too deep. How much
is held at once is bounded, whoever sends it.
"""

from __future__ import annotations

import asyncio
import gc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from counterfoil.json_text import JsonBytes
from counterfoil.receiving.documents import NumberText, check_values, parse
from counterfoil.receiving.errors import RequestError

OFF_LOOP_BYTES = 64 * 1024
"""Bodies above this size are checked on a thread, so that one does not hold up the others."""
LOOKED_AT = frozenset(
    {"action", "runId", "orgId", "eventId", "leaseOwner", "schedulerSchema", "idempotencyKey"}
) | {"receipts", "key", "keys", "leaseId", "leaseIds"}
"""Members of bodies that the gateway itself looks at. All of a large body's take more than it."""


@dataclass(frozen=True)
class Body:
    """A JSON object as it came, and the members that the gateway itself looks at.

    Of these, numbers are text, lists and objects empty.
    """

    json: JsonBytes
    members: dict[str, Any]

    def string(self, name: str) -> str:
        """A member that has to be a string that is not empty."""
        value = self.members.get(name)
        if not isinstance(value, str) or isinstance(value, NumberText) or not value:
            raise RequestError(
                400,
                "invalid_argument",
                f"{name} must be a string that is not empty",
                f"give {name} in the body",
                name,
            )
        return value


class Intake:
    """Reads bodies: each within its bounds, and all that are held at once within theirs."""

    def __init__(self, *, max_bytes: int, most_values: int, seconds: float, most_held: int) -> None:
        self._max_bytes = max_bytes
        self._most_values = most_values
        self._seconds = seconds
        self._most_held = max(2 * max_bytes, most_held)
        self.held = 0
        # Parsed, a body may be twenty times as large: one at a time.
        self._parser = ThreadPoolExecutor(1, "counterfoil-parser")

    async def read_json(self, request: Request, *, or_array: bool = False) -> Body:
        """The request's JSON object. Raises RequestError for anything else.

        With ``or_array`` an array passes too, as a body without members.
        """
        _check_type(request)
        # The second copy is that of the connection to the database. A body that waits for its turn
        # is not text yet, for a single letter makes that four times as large.
        raw = await self.read(request, copies=2)
        if len(raw) <= OFF_LOOP_BYTES:
            found = _looked_at(raw, or_array=or_array)
        else:
            found = await asyncio.get_running_loop().run_in_executor(
                self._parser, partial(_large, raw, self._most_values, or_array=or_array)
            )
        if isinstance(found, RequestError):
            del raw
            try:
                raise found
            finally:
                del found  # a frame that its own exception holds stays until the collector comes
        return Body(JsonBytes(raw), found)

    async def read(self, request: Request, *, copies: int = 1) -> bytearray:
        """The request's body, whatever it is. Raises RequestError when it is too large or slow.

        ``copies`` is how many of it there will be at once.
        """
        declared = request.headers.get("content-length", "")
        if declared.isdigit() and int(declared) > self._max_bytes:
            self._too_large()
        try:
            async with asyncio.timeout(self._seconds):
                return await self._chunks(request, copies)
        except TimeoutError:
            raise RequestError(
                408,
                "body_too_slow",
                f"the body did not come within {self._seconds:g} s",
                "send the request again, faster or in smaller parts",
            ) from None
        except ClientDisconnect:
            raise RequestError(
                400, "body_incomplete", "the body ended early", "send all of the body"
            ) from None

    def hold(self, request: Request, size: int) -> None:
        """Count ``size`` bytes more as held for the request. Raises RequestError (503)."""
        self.held += size
        request.state.body_held = getattr(request.state, "body_held", 0) + size
        if self.held > self._most_held:
            raise RequestError(
                503,
                "gateway_busy",
                "the gateway holds too many bodies",
                "try again after retry_after_ms milliseconds",
                retry_after_ms=1000,
            )

    def release(self, request: Request) -> None:
        """Count the request's body as gone; harmless where it had none."""
        self.held -= getattr(request.state, "body_held", 0)
        request.state.body_held = 0

    async def _chunks(self, request: Request, copies: int) -> bytearray:
        found = bytearray()
        async for chunk in request.stream():
            self.hold(request, copies * len(chunk))
            if request.state.body_held > copies * self._max_bytes:
                self._too_large()
            found += chunk
        return found

    def _too_large(self) -> NoReturn:
        raise RequestError(
            413,
            "payload_too_large",
            f"the body has more than {self._max_bytes} bytes",
            "send it in parts, or have the setting body_max_bytes raised",
        )


def one_header(request: Request, name: str, default: str | None = None) -> str | None:
    """A header that may come once. Raises RequestError (400) for a second one."""
    found = request.headers.getlist(name)
    if len(found) > 1:
        raise RequestError(
            400,
            "invalid_argument",
            f"the {name} header comes more than once",
            f"send one {name} header",
            name,
        )
    return found[0] if found else default


def _large(raw: bytearray, most_values: int, *, or_array: bool) -> dict[str, Any] | RequestError:
    # Of so many new objects none is garbage; looking for some takes as long as the parsing.
    collecting = gc.isenabled()
    gc.disable()
    try:
        return _looked_at(raw, most_values, or_array=or_array)
    finally:
        if collecting:
            gc.enable()


def _looked_at(
    raw: bytearray, most_values: int | None = None, *, or_array: bool
) -> dict[str, Any] | RequestError:
    try:
        text = _text(raw)
        if most_values is not None:
            check_values(text, most_values)
        members = parse(text, or_array=or_array)
    except RequestError as error:
        # Where it comes from would hold the text, for as long as the request lives.
        error.__context__ = None
        return error.with_traceback(None)
    return {name: _short(members[name]) for name in LOOKED_AT & members.keys()}


def _short(value: Any) -> Any:
    if isinstance(value, str) and len(value) > OFF_LOOP_BYTES:
        return value[:OFF_LOOP_BYTES]  # longer than whatever it is compared with
    return type(value)() if isinstance(value, dict | list) else value


def _text(raw: bytearray) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise RequestError(
            400,
            "invalid_utf8",
            f"the body is not UTF-8 (byte {error.start})",
            "encode the body as UTF-8",
            "body",
        ) from None


def _check_type(request: Request) -> None:
    kind, _, rest = (one_header(request, "content-type") or "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise RequestError(
            415,
            "unsupported_media_type",
            "the body is not said to be JSON in UTF-8",
            "send application/json in UTF-8, and say so",
            "content-type",
        )
    if (one_header(request, "content-encoding", "identity") or "").lower() != "identity":
        raise RequestError(
            415,
            "unsupported_media_type",
            "the body is encoded",
            "send the body without encoding",
            "content-encoding",
        )
