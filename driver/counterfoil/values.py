"""Plain values: what a play may take in and hand out, and how a step's arguments are told apart.

A plain value is what JSON can hold and give back unchanged: ``None``, ``bool``, ``int``, finite
``float``, ``str``, lists (tuples become lists) and dictionaries with string keys. Everything that a
step or a play returns has to be one, since the next attempt reads it back from the database.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from counterfoil.json_text import LONGEST_NUMBER, MAX_DEPTH

_TOO_MUCH = 10**LONGEST_NUMBER
_TOO_LITTLE = -(10 ** (LONGEST_NUMBER - 1))
# Made once: json.dumps() makes an encoder in each call that asks for more than the defaults.
_dumps = json.JSONEncoder(sort_keys=True, separators=(",", ":")).encode
_UNSTORABLE = re.compile("[\x00\ud800-\udfff]")


class NotPlainError(TypeError):
    """A value that JSON cannot hold; ``path`` says where in it, such as ``$.files[3].size``."""

    def __init__(self, what: str, path: str, reason: str) -> None:
        super().__init__(f"{what} is not a plain value: {path} {reason}")
        self.path = path
        self.reason = reason

    def __reduce__(self) -> tuple[Any, ...]:
        return (_restore_error, (str(self), self.path, self.reason))


def _restore_error(text: str, path: str, reason: str) -> NotPlainError:
    error = NotPlainError("", path, reason)
    error.args = (text,)
    return error


def plain(value: Any, what: str) -> Any:
    """A copy of ``value`` as JSON gives it back; ``what`` names it in the error.

    Raises ``NotPlainError`` at the first place that JSON, or PostgreSQL's, cannot hold.
    """
    return _plain(value, what, "$", 0)


def _plain(value: Any, what: str, path: str, depth: int) -> Any:
    if value is None or isinstance(value, bool):
        return value
    kind = type(value)
    if kind is str:
        return _checked_text(value, what, path)
    if kind is int:
        if not _TOO_LITTLE < value < _TOO_MUCH:
            raise NotPlainError(what, path, f"is a number of more than {LONGEST_NUMBER} digits")
        return value
    if kind is float:
        if not math.isfinite(value):
            raise NotPlainError(what, path, f"is {value}, which JSON cannot hold")
        return value
    if depth >= MAX_DEPTH:
        raise NotPlainError(what, path, f"is nested deeper than {MAX_DEPTH} levels")
    if kind is list or kind is tuple:
        return [_plain(item, what, f"{path}[{n}]", depth + 1) for n, item in enumerate(value)]
    if kind is dict:
        return {
            _checked_key(key, what, path): _plain(item, what, _member(path, key), depth + 1)
            for key, item in value.items()
        }
    raise NotPlainError(
        what,
        path,
        f"is {_a_kind(kind)}; use None, bool, int, float, str, list or dict with string keys",
    )


def _a_kind(kind: type) -> str:
    """The name of a type with its article: an object, a UUID."""
    name = kind.__qualname__
    return f"{'an' if name[0] in 'aeioAEIO' else 'a'} {name}"


def _checked_text(value: str, what: str, path: str) -> str:
    if "\x00" in value:
        raise NotPlainError(what, path, "holds the character U+0000, which PostgreSQL cannot store")
    if _UNSTORABLE.search(value):
        raise NotPlainError(what, path, "holds a lone surrogate, which is no text")
    return value


def _checked_key(key: Any, what: str, path: str) -> str:
    if type(key) is not str:
        raise NotPlainError(what, path, f"has the key {key!r}; keys must be strings")
    return _checked_text(key, what, f"{path} (a key)")


def _member(path: str, key: Any) -> str:
    if isinstance(key, str) and key.isidentifier():
        return f"{path}.{key}"
    return f"{path}[{json.dumps(str(key))}]"


def arguments_digest(
    args: tuple[Any, ...], kwargs: Mapping[str, Any], step: str, of: str = ""
) -> str:
    """16 hex digits that are the same for the same arguments ``of`` the same, in any process.

    Plain values count, and so do paths, dates, UUIDs, decimals, bytes, enums, sets and dataclasses.
    Anything else has no identity that survives a restart: ``TypeError`` names it and says what to
    do instead.
    """
    spelled = _dumps(
        [
            [_spell(value, step, f"argument {n}") for n, value in enumerate(args, 1)],
            {name: _spell(value, step, f"argument {name}=") for name, value in kwargs.items()},
        ]
    )
    return hashlib.sha256(f"{of}{spelled}".encode()).hexdigest()[:16]


def _spell(value: Any, step: str, where: str) -> Any:
    """``value`` as something JSON can hold, tagged wherever two kinds could look the same."""
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, Enum):
        return {"enum": [type(value).__qualname__, value.name]}
    if isinstance(value, str | int | float):
        return value
    if isinstance(value, list | tuple):
        return [_spell(item, step, where) for item in value]
    if isinstance(value, Mapping):
        spelled = [
            [_spell(key, step, where), _spell(item, step, where)] for key, item in value.items()
        ]
        return {"map": sorted(spelled, key=_order)}
    if isinstance(value, set | frozenset):
        return {"set": sorted((_spell(item, step, where) for item in value), key=_order)}
    if isinstance(value, bytes | bytearray):
        return {"bytes": hashlib.sha256(value).hexdigest()}
    if isinstance(value, datetime | date | time):
        return {"time": value.isoformat()}
    if isinstance(value, timedelta | Decimal | UUID):
        return {type(value).__name__: str(value)}
    if isinstance(value, os.PathLike):
        return {"path": os.fsdecode(os.fspath(value))}
    if is_dataclass(value) and not isinstance(value, type):
        members = {f.name: _spell(getattr(value, f.name), step, where) for f in fields(value)}
        return {"data": [type(value).__qualname__, members]}
    raise TypeError(
        f"{where} of step {step!r} is {_a_kind(type(value))}, which cannot identify the step "
        "in another process: pass plain values, or give the step a key=, or wrap the call in a "
        "function that takes no argument"
    )


def _order(spelled: Any) -> str:
    return json.dumps(spelled, sort_keys=True)
