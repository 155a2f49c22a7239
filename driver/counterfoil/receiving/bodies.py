"""Request bodies of the gateway: read within bounds, checked, and passed on as they came.

Everything a hostile client can send is answered with a 4xx before it reaches the database: too
large, too slow, the wrong type, invalid UTF-8, no JSON, duplicate keys, U+0000, too deep. How much
is held at once is bounded, whoever sends it.
"""

from __future__ import annotations

import asyncio
import gc
import json
import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from counterfoil.errors import InvalidArgumentError
from counterfoil.json_text import MAX_DEPTH, JsonBytes, refuse_unstorable

OFF_LOOP_BYTES = 64 * 1024
"""Bodies above this size are checked on a thread, so that one does not hold up the others."""
LONGEST_NUMBER = 1000
LOOKED_AT = frozenset(
    {"action", "runId", "orgId", "eventId", "leaseOwner", "schedulerSchema", "idempotencyKey"}
) | {"receipts", "key", "keys", "leaseId", "leaseIds"}
"""Members of bodies that the gateway itself looks at. All of a large body's take more than it."""

_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_PARTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^"]++', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class RequestError(Exception):
    """A request that is refused before it means anything."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        detail: str = "",
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms
        self.status = status
        self.code = code
        self.message = message
        self.detail = detail


class NumberText(str):
    """A number of a body, as it was written."""

    __slots__ = ()


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
                400, "invalid_argument", f"{name} must be a string that is not empty", name
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
                408, "body_too_slow", f"the body did not come within {self._seconds:g} s"
            ) from None
        except ClientDisconnect:
            raise RequestError(400, "body_incomplete", "the body ended early") from None

    def hold(self, request: Request, size: int) -> None:
        """Count ``size`` bytes more as held for the request. Raises RequestError (503)."""
        self.held += size
        request.state.body_held = getattr(request.state, "body_held", 0) + size
        if self.held > self._most_held:
            raise RequestError(
                503, "gateway_busy", "the gateway holds too many bodies", retry_after_ms=1000
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
            413, "payload_too_large", f"the body has more than {self._max_bytes} bytes"
        )


def one_header(request: Request, name: str, default: str | None = None) -> str | None:
    """A header that may come once. Raises RequestError (400) for a second one."""
    found = request.headers.getlist(name)
    if len(found) > 1:
        raise RequestError(400, "invalid_argument", f"send one {name} header", name)
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
            _check_values(text, most_values)
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
            400, "invalid_utf8", f"the body is not UTF-8 (byte {error.start})", "body"
        ) from None


def parse(text: str, *, or_array: bool = False) -> dict[str, Any]:
    """The members of a JSON object, numbers as text; none of an array. Raises RequestError."""
    try:
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_number,
            parse_float=_number,
            parse_constant=_constant,
        )
    except RecursionError:
        _too_deep()
    except json.JSONDecodeError as error:
        raise RequestError(
            400, "invalid_json", f"the body is no JSON: {error.msg} at {error.pos}", "body"
        ) from None
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    if not isinstance(value, dict | list if or_array else dict):
        raise RequestError(400, "invalid_argument", "the body must be a JSON object", "body")
    if _ESCAPE.search(text):
        try:
            refuse_unstorable(value, "body")
        except InvalidArgumentError as error:
            raise RequestError(400, error.name, error.message, error.reason) from None
    return value if isinstance(value, dict) else {}


def _check_type(request: Request) -> None:
    kind, _, rest = (one_header(request, "content-type") or "").partition(";")
    charset = rest.strip().lower().removeprefix("charset=").strip('"')
    if kind.strip().lower() != "application/json" or charset not in ("", "utf-8", "utf8"):
        raise RequestError(
            415, "unsupported_media_type", "send application/json in UTF-8", "content-type"
        )
    if (one_header(request, "content-encoding", "identity") or "").lower() != "identity":
        raise RequestError(
            415, "unsupported_media_type", "send the body without encoding", "content-encoding"
        )


def _check_values(text: str, most: int) -> None:
    """Raise when ``text`` has more values than that: a parser gives no other thread a turn."""
    if _signs(text) <= most:
        return
    found = 0
    for part in _PARTS.finditer(text):
        if not part[0].startswith('"'):
            found += _signs(part[0])
        if found > most:
            raise RequestError(413, "payload_too_large", f"the body has more than {most} values")


def _signs(text: str) -> int:
    """How many values and names of values there are: before each of them is one sign."""
    return sum(text.count(sign) for sign in ",:[{")


def _check_depth(text: str) -> None:
    """Raise when JSON, which ``text`` is, nests too deep."""
    brackets = _STRING.sub("", text).encode("utf-8", "surrogatepass")
    steps = memoryview(brackets.translate(_STEPS, _NO_BRACKETS)).cast("b")
    depth = 0
    # In parts, so that other threads have their turn.
    for start in range(0, len(steps), OFF_LOOP_BYTES):
        depths = list(accumulate(steps[start : start + OFF_LOOP_BYTES], initial=depth))
        if max(depths) > MAX_DEPTH:
            _too_deep()
        depth = depths[-1]


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                shown = name[:100].encode("utf-8", "replace").decode()
                raise RequestError(400, "duplicate_key", "an object has the same key twice", shown)
            seen.add(name)
    return found


@lru_cache(4096)
def _number(text: str) -> NumberText:
    _, _, exponent = text.lower().partition("e")
    # numeric takes far more, but nothing that a run says about itself needs it.
    if len(text) > LONGEST_NUMBER or len(exponent.lstrip("+-0")) > 3:
        raise RequestError(400, "invalid_argument", "a number is out of range", "body")
    return NumberText(text)


def _constant(text: str) -> NoReturn:
    raise RequestError(400, "invalid_json", f"the body is no JSON: {text}", "body")


def _too_deep() -> NoReturn:
    raise RequestError(
        400, "invalid_argument", f"the body is nested more than {MAX_DEPTH} levels deep", "body"
    ) from None
