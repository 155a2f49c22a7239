"""The direction of calls between rooms of ``sql/functions``.

A launch is admitted, attempted, leaves facts, which are delivered to the ledger, indexed in the
journal; its steps keep receipts; operations looks after it all. A room calls only rooms before it
in that sentence, or private helpers of its own. Everyone may call ``common``; it calls only itself.
Calls are read from the files, and once more from the catalog of an installed schema, where the
server resolves the names.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psycopg

from lint.findings import Finding
from lint.queries import called
from lint.sources import COMMON, ROOMS, Source, Tree, read_tree

_CALLS = """
select distinct p.proname, d.name
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_language as l on l.oid = p.prolang
cross join lateral plpgsql_show_dependency_tb(p.oid) as d
where
    p.pronamespace = %s::regnamespace and l.lanname = 'plpgsql'
    and d.type = 'FUNCTION' and d.schema = %s
order by 1, 2
"""
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


def check_catalog(connection: psycopg.Connection, schema: str, tree: Tree) -> list[str]:
    """Calls between the installed PL/pgSQL functions of ``schema`` that go the wrong way.

    Needs plpgsql_check, which knows what a function depends on.
    """
    sources = {function.name: source for source in tree.sources for function in source.functions}
    said = set()
    for name, callee in connection.execute(_CALLS, [schema, schema]):
        source = sources.get(name)
        message = _judge(source, callee, tree) if source is not None else "no file creates it"
        if message is not None and (source is None or "room" not in source.allowed):
            said.add(f"{name}(): {message}")
    return sorted(said)


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
