"""Statements from a thread that may block, without a detour over an event loop.

The pool of `Database` lives on one loop. A play that is a plain function has a thread of its own,
and asking the loop costs more there than the statement does.
"""

from __future__ import annotations

import re
import threading
import uuid
from collections.abc import Coroutine, Sequence
from typing import Any, TypeVar

import psycopg
from psycopg import sql
from psycopg.adapt import PyFormat, Transformer
from psycopg.errors import (
    DuplicatePreparedStatement,
    InvalidSqlStatementName,
    error_from_result,
)
from psycopg.pq import ExecStatus, TransactionStatus
from psycopg.pq.abc import PGresult

from counterfoil.database import Parameters, Row, Statement

Answer = TypeVar("Answer")

_NAMED = re.compile(r"%\((\w+)\)s")


class AllBusyError(Exception):
    """Every connection is in use, or there are to be none any more."""


class _Line:
    """One connection. It keeps what it learnt of adapting values, which is dear to learn again."""

    def __init__(self, connection: psycopg.Connection) -> None:
        self.connection = connection
        self._adapted = Transformer(connection)
        self._prepared: dict[bytes, bytes] = {}

    @property
    def is_usable(self) -> bool:
        return self.connection.pgconn.transaction_status == TransactionStatus.IDLE

    def execute(
        self, query: bytes, values: Sequence[object], row: type[Row], *, prepare: bool
    ) -> list[Row]:
        # libpq waits by itself here: a cursor's own waiting costs as much as a short statement.
        adapted, pgconn = self._adapted, self.connection.pgconn
        given = adapted.dump_sequence(values, [PyFormat.TEXT] * len(values))
        if prepare:
            result = pgconn.exec_prepared(self._name_of(query), given)  # type: ignore[arg-type]  # None goes
        else:
            result = pgconn.exec_params(query, given)
        if result.status != ExecStatus.TUPLES_OK:
            raise self._error(result)
        adapted.set_pgresult(result)
        columns = [(result.fname(index) or b"").decode() for index in range(result.nfields)]
        return adapted.load_rows(
            0, result.ntuples, lambda found: row(**dict(zip(columns, found, strict=True)))
        )

    def _name_of(self, query: bytes) -> bytes:
        name = self._prepared.get(query)
        if name is None:
            # Nobody else's, should a pooler hand the session to others after all.
            name = f"counterfoil_{uuid.uuid4().hex}".encode()
            result = self.connection.pgconn.prepare(name, query)
            if result.status != ExecStatus.COMMAND_OK:
                raise self._error(result)
            self._prepared[query] = name
        return name

    def _error(self, result: PGresult) -> psycopg.Error:
        error = error_from_result(result)
        return psycopg.OperationalError(str(error)) if self.connection.broken else error


class BlockingConnections:
    """Up to ``most`` connections, opened when first needed; safe from any thread.

    It is an `Executor` whose ``rows`` never waits for a loop: ``now(Functions(it).some_call(…))``.
    ``prepare`` has statements prepared: not for sessions behind a transaction pooler. Where one is
    there all the same, one call fails, and no further statement is prepared.
    """

    def __init__(
        self, dsn: str, *, schema: str, most: int, application_name: str, prepare: bool = False
    ) -> None:
        self._dsn = dsn
        self._schema = sql.Identifier(schema)
        self._application_name = application_name
        self._prepare = prepare
        self._statements: dict[str, tuple[bytes, list[str]]] = {}
        self._lock = threading.Lock()
        self._unopened = most
        self._free: list[_Line] = []
        self._closed = False

    async def rows(
        self,
        row: type[Row],
        statement: Statement,
        parameters: Parameters,
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]:
        """Run one statement. Raises AllBusyError, or whatever psycopg does; nothing is repeated."""
        if timeout_ms is not None:
            raise ValueError("there is no statement timeout here")
        query, names = self._numbered(statement)
        line = self._take()
        try:
            values = [parameters[name] for name in names]
            return line.execute(query, values, row, prepare=self._prepare)
        except (InvalidSqlStatementName, DuplicatePreparedStatement):
            self._prepare = False
            raise
        finally:
            self._give_back(line)

    def close(self) -> None:
        """Close what is free now, and the rest when it comes back."""
        with self._lock:
            self._closed = True
            free, self._free = self._free, []
        for line in free:
            line.connection.close()

    def _numbered(self, statement: Statement) -> tuple[bytes, list[str]]:
        """The statement with $1, $2, … in place of names, and the names in that order."""
        known = self._statements.get(statement)
        if known is None:
            text = sql.SQL(statement).format(schema=self._schema).as_string()
            names: list[str] = []

            def number(found: re.Match[str]) -> str:
                names.append(found[1])
                return f"${len(names)}"

            known = _NAMED.sub(number, text).encode(), names
            self._statements[statement] = known
        return known

    def _take(self) -> _Line:
        with self._lock:
            if self._free:
                return self._free.pop()
            if self._closed or self._unopened == 0:
                raise AllBusyError
            self._unopened -= 1
        try:
            return _Line(
                psycopg.connect(
                    self._dsn,
                    autocommit=True,
                    prepare_threshold=None,
                    application_name=self._application_name,
                )
            )
        except BaseException:
            with self._lock:
                self._unopened += 1
            raise

    def _give_back(self, line: _Line) -> None:
        with self._lock:
            if line.is_usable and not self._closed:
                self._free.append(line)
                return
            self._unopened += 1
        line.connection.close()


def now(call: Coroutine[Any, Any, Answer]) -> Answer:
    """The answer of a call that never waits for a loop."""
    try:
        call.send(None)
    except StopIteration as end:
        answer: Answer = end.value
        return answer
    call.close()
    raise RuntimeError("the call waits for an event loop")
