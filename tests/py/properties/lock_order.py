"""Which rows a call has locked when it comes to wait for another one."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import psycopg

MODES = {"K": "update", "N": "no key update", "U": "key share"}
"""Strength of a row lock, and the weakest lock that it does not tolerate beside it.

K: for key share, N: for no key update, U: for update.
"""
CONFLICTS = {"UU", "UN", "UK", "NU", "NN", "KU"}
PATIENCE = 20.0

FREE_ROWS = """
create function pg_temp.free_rows(p_mode text) returns setof text language plpgsql
set lock_timeout = '5ms' as $$
declare
    v_table regclass;
begin
    for v_table in
        select c.oid from pg_class as c
        where c.relnamespace = 'counterfoil'::regnamespace and c.relkind = 'r'
    loop
        begin
            return query execute format(
                'select %L || t.ctid || concat(to_jsonb(t) -> ''run_id'', to_jsonb(t) -> ''lane'')'
                ' from %s as t for %s skip locked', v_table::text, v_table, p_mode);
        exception when lock_not_available then  -- the whole table is locked
        end;
    end loop;
end $$
"""


@dataclass(frozen=True)
class Stop:
    """A point at which a call waits for a row, and the rows that it has locked by then."""

    call: str
    row: str
    mode: str
    held: Mapping[str, str]
    """Row and mode; also the awaited row where the call has it already, but not as strongly."""

    def against(self, other: Stop) -> bool:
        """Whether two calls can come to these two points, and then wait for each other."""
        return (
            self.held.get(other.row, "") + other.mode in CONFLICTS
            and other.held.get(self.row, "") + self.mode in CONFLICTS
            and not any(
                mode + other.held.get(row, "") in CONFLICTS for row, mode in self.held.items()
            )
        )

    def __str__(self) -> str:
        return f"{self.call} waits for {self.row} and has {', '.join(self.held)}"


class LockOrder:
    """Finds the stops of calls, with three sessions: the call's, a gate's and a watcher's."""

    def __init__(
        self, call: psycopg.Connection, gate: psycopg.Connection, watcher: psycopg.Connection
    ) -> None:
        self._call, self._gate, self._watcher = call, gate, watcher
        self._watcher.execute(FREE_ROWS.encode())
        self._all = self._free("key share")

    def locked_by(self, statement: str) -> dict[str, str]:
        """The rows that are locked when the statement has ended: row and mode."""
        with self._call.transaction(force_rollback=True):
            self._call.execute(statement.encode())
            return self._locked()

    def stops(self, statement: str) -> Iterator[Stop]:
        """Every row that the statement can be made to wait for, with what it holds there."""
        for row in self.locked_by(statement):
            # Gates that let more and more pass: the first stops the statement where it first
            # comes to the row, a later one further on if it comes again for a stronger lock.
            waits: list[tuple[str, dict[str, str]]] = []
            for mode, gate in MODES.items():
                held = self._stopped_at(row, gate, statement)
                if held is None:
                    break
                if waits and waits[-1][1] == held:
                    waits.pop()
                waits.append((mode, held))
            weaker: dict[str, str] = {}
            for mode, held in waits:
                yield Stop(statement, row, mode, held | weaker)
                weaker = {row: mode}

    def _stopped_at(self, row: str, gate: str, statement: str) -> dict[str, str] | None:
        """What is locked while the statement waits at a gate; None when it does not wait."""
        table, _, ctid = row.partition(")")[0].partition("(")
        with self._gate.transaction(force_rollback=True):
            self._gate.execute(
                f"select from {table} where ctid = '({ctid})'::tid for {gate}".encode()
            )
            call = self._call.pgconn
            call.send_query(f"begin; {statement}".encode())
            held = self._locked() if self._waits() else None
            if held is not None:
                held.pop(row, None)
        while call.get_result() is not None:
            pass
        self._call.execute("rollback")
        return held

    def _waits(self) -> bool:
        call, until = self._call.pgconn, time.monotonic() + PATIENCE
        while time.monotonic() < until:
            call.consume_input()
            if not call.is_busy():
                return False
            [(waits,)] = self._watcher.execute(
                "select cardinality(pg_blocking_pids(%s)) > 0", [call.backend_pid]
            ).fetchall()
            if waits:
                return True
        raise TimeoutError

    def _free(self, asked: str) -> set[str]:
        rows = self._watcher.execute("select r from pg_temp.free_rows(%s) as r", [asked])
        return {row for (row,) in rows.fetchall()}

    def _locked(self) -> dict[str, str]:
        modes: dict[str, str] = {}
        for mode, asked in MODES.items():
            modes |= dict.fromkeys(self._all - self._free(asked), mode)
        return modes
