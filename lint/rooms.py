"""The direction of calls between rooms of ``sql/functions``.

A launch is admitted, attempted, leaves facts, which are delivered to the ledger, indexed in the
journal; its steps keep receipts; operations looks after it all. A room calls only rooms before it
in that sentence, or private helpers of its own. Everyone may call ``common``; it calls only itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from lint.findings import Finding
from lint.queries import called
from lint.sources import COMMON, ROOMS, Source, Tree, read_tree

_ORDER = {room: place for place, room in enumerate((COMMON, *ROOMS))}


def check(root: Path) -> list[Finding]:
    """Calls below ``root`` that go the wrong way."""
    tree = read_tree(root)
    return sorted(finding for source in tree.sources for finding in check_source(source, tree))


def check_source(source: Source, tree: Tree) -> Iterator[Finding]:
    """Calls in one file that go the wrong way, or to nothing."""
    for function in source.functions:
        for query in function.queries:
            for name in sorted(called(query.statements)):
                message = _judge(source, name, tree)
                if message is not None and "room" not in source.allowed:
                    yield Finding(source.path, query.line, "room", message)


def _judge(source: Source, name: str, tree: Tree) -> str | None:
    room = tree.room_of.get(name)
    if room is None:
        return f"calls {name}(), which no file creates"
    if room == source.room:
        if name == source.path.stem or tree.is_private(name):
            return None
        return f"calls {name}(), which is public in its own room: share a private helper"
    if _ORDER[room] > _ORDER[source.room]:
        return f"{source.room} calls {name}() of {room}, a room after it"
    return None
