"""JSON documents of requests: checked against all that PostgreSQL, or a reader, could not take.

What is refused is named by its path, as far as there is one.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from functools import lru_cache, reduce
from itertools import accumulate
from typing import Any, NoReturn

from counterfoil.errors import InvalidArgumentError
from counterfoil.json_text import LONGEST_NUMBER, MAX_DEPTH, path_below, refuse_unstorable
from counterfoil.receiving.errors import RequestError

_PART = 64 * 1024
_STRING = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*"')
_PARTS = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?|[^"]++', re.DOTALL)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_ESCAPE = re.compile(r"\\u(?:0000|[dD][89a-fA-F])")


class NumberText(str):
    """A number of a body, as it was written."""

    __slots__ = ()


def parse(text: str, *, or_array: bool = False) -> dict[str, Any]:
    """The members of a JSON object, numbers as text; none of an array. Raises RequestError."""
    unfit = None
    try:
        value = _loaded(text)
    except _UnfitError as error:
        # Where that stands is known once all is parsed, so a second time: refusals may cost more.
        unfit = error.with_traceback(None)
        value = _loaded(text, unfit)
    if text.count("[") + text.count("{") > MAX_DEPTH:
        _check_depth(text)
    if unfit is not None:
        path = reduce(path_below, [*_steps_to(unfit, value), *unfit.below], "body")
        raise RequestError(400, unfit.code, f"{path} {unfit.what}", unfit.hint, path)
    if not isinstance(value, dict | list if or_array else dict):
        raise RequestError(
            400,
            "invalid_argument",
            "the body must be a JSON object",
            "send an object with the members that /openapi.json describes",
            "body",
        )
    if _ESCAPE.search(text):
        try:
            refuse_unstorable(value, "body")
        except InvalidArgumentError as error:
            raise RequestError(400, error.name, error.message, error.hint, error.reason) from None
    return value if isinstance(value, dict) else {}


def check_values(text: str, most: int) -> None:
    """Raise when ``text`` has more values than that: a parser gives no other thread a turn."""
    if _signs(text) <= most:
        return
    found = 0
    for part in _PARTS.finditer(text):
        if not part[0].startswith('"'):
            found += _signs(part[0])
        if found > most:
            raise RequestError(
                413,
                "payload_too_large",
                f"the body has more than {most} values",
                "send it in parts, or have the setting body_max_values raised",
            )


def _signs(text: str) -> int:
    """How many values and names of values there are: before each of them is one sign."""
    return sum(text.count(sign) for sign in ",:[{")


def _check_depth(text: str) -> None:
    """Raise when JSON, which ``text`` is, nests too deep."""
    brackets = _STRING.sub("", text).encode("utf-8", "surrogatepass")
    steps = memoryview(brackets.translate(_STEPS, _NO_BRACKETS)).cast("b")
    depth = 0
    # In parts, so that other threads have their turn.
    for start in range(0, len(steps), _PART):
        depths = list(accumulate(steps[start : start + _PART], initial=depth))
        if max(depths) > MAX_DEPTH:
            _too_deep()
        depth = depths[-1]


class _UnfitError(Exception):
    """A part of a document that no body may have; where it stands is not known yet."""

    def __init__(self, code: str, what: str, hint: str, below: tuple[str, ...] = ()) -> None:
        super().__init__(what)
        self.code = code
        self.what = what
        self.hint = hint
        self.below = below


def _loaded(text: str, mark: _UnfitError | None = None) -> Any:
    """The document. What does not fit raises.

    With a mark, the first of that becomes the mark, all else stays, and objects are lists of pairs.
    """
    left = [mark]

    def hook(check: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def checked(given: Any) -> Any:
            try:
                check(given)
            except _UnfitError:
                return left.pop() if left else given
            return given

        return check if mark is None else checked

    try:
        return json.loads(
            text,
            object_pairs_hook=hook(_unique),
            parse_int=hook(_number),
            parse_float=hook(_number),
            parse_constant=hook(_constant),
        )
    except RecursionError:
        _too_deep()
    except json.JSONDecodeError as error:
        raise RequestError(
            400,
            "invalid_json",
            f"the body is no JSON: {error.msg} at {error.pos}",
            "send one JSON object, written as RFC 8259 has it",
            "body",
        ) from None


def _steps_to(mark: _UnfitError, value: Any) -> list[str | int]:
    """The names and numbers that lead from ``value`` to the mark, which is in it."""
    return (_found(mark, value) or [])[::-1]


def _found(mark: _UnfitError, value: Any) -> list[str | int] | None:
    if value is mark:
        return []
    for number, part in enumerate(value if isinstance(value, list) else ()):
        step, inner = part if isinstance(part, tuple) else (number, part)
        if (found := _found(mark, inner)) is not None:
            return [*found, step]
    return None


def _unique(pairs: Sequence[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise _UnfitError("duplicate_key", "is given twice", "give each key once", (name,))
            seen.add(name)
    return found


@lru_cache(4096)
def _number(text: str) -> NumberText:
    _, _, exponent = text.lower().partition("e")
    # numeric takes far more, but nothing that a run says about itself needs it.
    if len(text) > LONGEST_NUMBER or len(exponent.lstrip("+-0")) > 3:
        raise _UnfitError(
            "invalid_argument",
            "is a number out of range",
            f"send a number of more than {LONGEST_NUMBER} digits as a string",
        )
    return NumberText(text)


def _constant(text: str) -> NoReturn:
    raise _UnfitError("invalid_json", f"is {text}, which is no JSON", "send null or a string")


def _too_deep() -> NoReturn:
    raise RequestError(
        400,
        "invalid_argument",
        f"the body is nested more than {MAX_DEPTH} levels deep",
        "flatten it, or send the deep part as a string",
        "body",
    ) from None
