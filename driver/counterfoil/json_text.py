"""JSON as text on its way to and from PostgreSQL.

jsonb cannot hold U+0000, and UTF-8 cannot hold a lone surrogate. In log lines both become U+FFFD;
anywhere else they are refused with the JSON path. Text that came from the database, or from a
producer, is passed on as it is (`JsonText`), so that no number goes through a Python float.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any, NoReturn, TypeAlias

from counterfoil.errors import InvalidArgumentError

JsonValue: TypeAlias = Any
"""What ``json.loads`` gives: dict, list, str, int, float, bool or None."""

LOG_FIELDS = frozenset({"lines", "terminalLogLines"})
MAX_DEPTH = 200
LONGEST_NUMBER = 1000
"""Digits of a number, with its sign. More is text: no parser takes it as fast as it is written."""

# Made once: json.dumps() makes an encoder in each call that asks for more than the defaults.
_dumps = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")
_LONGEST_ERROR = 4000
_LONGEST_NAME = 100
_REPLACEMENT = "\ufffd"
_PLAIN_NAME = re.compile(r"[A-Za-z_]\w*\Z")


class JsonText(str):
    """JSON that is already text and is not to be parsed on its way."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class JsonBytes:
    """JSON in UTF-8 that has been checked, and goes to the database without another copy."""

    content: bytes | bytearray


def clean_log_line(line: str) -> str:
    """The line with U+0000 and lone surrogates replaced by U+FFFD."""
    return _UNSTORABLE.sub(_REPLACEMENT, line)


def error_text(error: BaseException) -> str:
    """What an error says, at most 4,000 characters, fit to be stored; its type if nothing."""
    try:
        text = str(error)
    except Exception as failure:  # noqa: BLE001 - whatever its __str__ does, the error has to be told
        text = f"no message: {type(failure).__name__} while it was made"
    return clean_log_line(text or type(error).__name__)[:_LONGEST_ERROR]


def encode(value: JsonValue, where: str) -> str:
    """``value`` as JSON text that PostgreSQL can store; ``JsonText`` is returned as it is.

    ``where`` names the argument in errors. Raises InvalidArgumentError (RL001) naming the JSON
    path of what cannot be stored: U+0000 or a lone surrogate outside log lines, NaN or infinity,
    a key that is no string, a value of no JSON type, too much depth.
    """
    if isinstance(value, JsonText):
        return value
    try:
        text = _dumps(value)
    except (TypeError, ValueError, RecursionError):
        _clean(value, where, in_log=False, depth=0)
        raise InvalidArgumentError(
            f"{where} cannot be written as JSON", reason=where, hint="pass plain JSON values"
        ) from None
    if "\\u0000" in text or _UNSTORABLE.search(text):
        cleaned = _clean(value, where, in_log=False, depth=0)
        text = _dumps(cleaned)
    return text


def path_below(path: str, step: str | int) -> str:
    """The JSON path of a member or an element of what stands at ``path``; a long name is cut."""
    if isinstance(step, int):
        return f"{path}[{step}]"
    name = step[:_LONGEST_NAME]
    return f"{path}.{name}" if _PLAIN_NAME.match(name) else f"{path}[{json.dumps(name)}]"


def _clean(value: JsonValue, path: str, *, in_log: bool, depth: int) -> JsonValue:
    if depth > MAX_DEPTH:
        _refuse(path, f"is nested more than {MAX_DEPTH} levels deep", "flatten the value")
    if isinstance(value, str):
        if not _UNSTORABLE.search(value):
            return value
        if in_log:
            return clean_log_line(value)
        _refuse(path, "holds U+0000 or a lone surrogate", "replace or encode the character")
    if isinstance(value, dict):
        cleaned = {}
        for key, item in value.items():
            if not isinstance(key, str | int | float | bool | None):
                _refuse(path, f"has a key of type {type(key).__name__}", "use string keys")
            name = str(key)
            if _UNSTORABLE.search(name):
                _refuse(path, "has a key with U+0000 or a lone surrogate", "rename the key")
            below = path_below(path, name)
            cleaned[key] = _clean(item, below, in_log=name in LOG_FIELDS, depth=depth + 1)
        return cleaned
    if isinstance(value, list | tuple):
        return [
            _clean(item, path_below(path, index), in_log=in_log, depth=depth + 1)
            for index, item in enumerate(value)
        ]
    if isinstance(value, float) and (value != value or value in (float("inf"), float("-inf"))):
        _refuse(path, "is not a finite number", "send null or text")
    if not isinstance(value, int | float | bool | None):
        _refuse(path, f"has type {type(value).__name__}, which JSON lacks", "convert it first")
    return value


def _refuse(path: str, what: str, hint: str) -> NoReturn:
    raise InvalidArgumentError(f"{path} {what}", reason=path, hint=hint)


def refuse_unstorable(value: JsonValue, where: str) -> None:
    """Raise InvalidArgumentError naming the path of text in ``value`` that cannot be stored."""
    _clean(value, where, in_log=False, depth=0)


def check_text(value: str, where: str) -> None:
    """Raise InvalidArgumentError when PostgreSQL cannot hold ``value``."""
    if _UNSTORABLE.search(value):
        _refuse(where, "holds U+0000 or a lone surrogate", "remove the character")
