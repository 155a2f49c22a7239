"""`prepare_indexes`: building large indexes without blocking writers, ahead of a migration."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import psycopg

from counterfoil.schema.errors import IndexNotReadyError, StepFailedError
from counterfoil.schema.sql import with_schema
from counterfoil.schema.sql_tree import PreparedIndex, SqlTree
from counterfoil.schema.state import Connection, SchemaState, read_state
from counterfoil.schema.steps import check_state, pending_migrations

Outcome = Literal["ready", "built", "rebuilt", "no table yet"]


@dataclass(frozen=True)
class PreparedReport:
    """One index: `ready` it was before; `built`, `rebuilt` (it had been left invalid) now;
    `no table yet`: a migration that comes first creates its table."""

    index: str
    outcome: Outcome

    def __str__(self) -> str:
        return f"index {self.index}: {self.outcome}"


_LOOK = """
select t.oid is not null as has_table, i.indisvalid and i.indisready as usable,
       (select b.pid from pg_stat_progress_create_index as b where b.index_relid = c.oid) as builder
from (select n.oid from pg_namespace as n where n.nspname = %(schema)s) as n
left join pg_class as t on t.relnamespace = n.oid and t.relname = %(table)s
left join pg_class as c on c.relnamespace = n.oid and c.relname = %(index)s
left join pg_index as i on i.indexrelid = c.oid
"""


def build(conn: Connection, tree: SqlTree, schema: str) -> list[PreparedReport]:
    """Build what the pending migrations require and is not there, valid and ready, yet."""
    with conn.transaction(force_rollback=True):
        state = read_state(conn, schema)
    check_state(tree, state)
    names = dict.fromkeys(n for m in pending_migrations(tree, state) for n in m.indexes)
    with _no_timeouts(conn):
        return [_prepare(conn, tree.indexes[name], state) for name in names]


@contextmanager
def _no_timeouts(conn: Connection) -> Iterator[None]:
    """A build waits for every older transaction, so neither timeout may cut it short."""
    conn.execute("set statement_timeout = 0")
    conn.execute("set lock_timeout = 0")
    try:
        yield
    finally:
        if not conn.broken:
            conn.execute("reset statement_timeout")
            conn.execute("reset lock_timeout")


def _prepare(conn: Connection, index: PreparedIndex, state: SchemaState) -> PreparedReport:
    look = {"schema": state.schema, "table": index.table, "index": index.name}
    row = conn.execute(_LOOK, look).fetchone()
    has_table, usable, builder = row or (False, None, None)
    if not has_table:
        return PreparedReport(index.name, "no table yet")
    if usable:
        return PreparedReport(index.name, "ready")
    if builder is not None:
        raise IndexNotReadyError(
            f"is being built by the server process {builder}",
            where=f"index {index.name}",
            hint="wait for it to end, then run prepare-indexes again",
        )
    try:
        if usable is False:
            drop = f"drop index concurrently {state.identifier}.{index.name}"
            conn.execute(drop.encode())
        conn.execute(with_schema(index.file.text, state.identifier).encode(), prepare=False)
    except psycopg.Error as error:
        raise StepFailedError(
            f"{error.diag.message_primary or error} [{error.sqlstate}]",
            where=index.file.path,
            hint="correct the cause and run prepare-indexes again; it drops and rebuilds what "
            "this run may have left invalid",
            sqlstate=error.sqlstate,
        ) from error
    return PreparedReport(index.name, "built" if usable is None else "rebuilt")
