"""What an error names, in the words of the request: the functions name their own arguments."""

from __future__ import annotations

import re
from collections.abc import Container

# What is quoted is the caller's own.
_ARGUMENT = re.compile(r"(?<!\w)'[^']*'|\bp_([a-z]+(?:_[a-z]+)*)")
_ITEM = re.compile(r"\breceipts\[(\d+)\](?:\.(\w+))?")
_KEY = re.compile(r"\bkeys\[\d+\]")
_LEASES = re.compile(r"\bleaseIds\b(?:\[\d+\])?")
_OBSERVED = re.compile(r"\b(?:observation|options)\.(\w+)")


def as_sent(text: str, members: Container[str] = (), *, is_read: bool = False) -> str:
    """``text`` with each argument of a function as the request called it.

    ``members`` are the names in the request's body: an action on one key has no list, and a
    heartbeat gives its leases beside its keys.
    """
    if is_read:
        text = text.replace("p_before", "p_cursor")
    named = _ARGUMENT.sub(lambda found: _camel(found[1]) if found[1] else found[0], text)
    if named == text or is_read:
        return named
    if "receipts" not in members:
        named = _ITEM.sub(lambda found: _item(found[1], found[2] or "key", members), named)
    if "keys" not in members:
        named = _KEY.sub("key", named)
    if "leaseIds" not in members:
        named = _LEASES.sub("leaseId", named)
    return _OBSERVED.sub(r"\1", named)


def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.title() for word in rest)


def _item(index: str, field: str, members: Container[str]) -> str:
    listed = {"key": "keys", "leaseId": "leaseIds"}.get(field, "")
    return f"{listed}[{index}]" if listed in members else field
