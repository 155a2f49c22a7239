"""The connection pool: one call is one statement is one transaction.

Works behind a transaction pooler: autocommit, no prepared statements, no session state. A
connection is held only while a statement runs, so never across HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import TracebackType
from typing import LiteralString, Protocol, Self, TypeVar

import psycopg
from psycopg import sql
from psycopg.adapt import AdaptersMap, Dumper
from psycopg.rows import class_row
from psycopg_pool import AsyncConnectionPool, PoolTimeout, TooManyRequests

from counterfoil.errors import PoolExhaustedError, SchemaVersionError
from counterfoil.json_text import JsonBytes, check_text

OLDEST_SCHEMA_VERSION = 7
"""Oldest `schema_version()` that this driver can work with."""
NEWEST_SCHEMA_VERSION = 7
"""Newest `schema_version()` that this driver can work with."""
MOST_MEETINGS = 20
"""How often a call is made again after it met another one (SQLSTATE 40001 or 40P01)."""
LARGE_BYTES = 256 * 1024
"""A connection that has sent a document of this size is replaced."""

log = logging.getLogger(__name__)

Row = TypeVar("Row")
Parameters = Mapping[str, object]
# A statement with {schema} for the schema and %(p_name)s for each argument.
Statement = LiteralString


class _JsonBytesDumper(Dumper):
    def dump(self, obj: JsonBytes) -> bytes | bytearray:
        return obj.content


_ADAPTERS = AdaptersMap(psycopg.adapters)
_ADAPTERS.register_dumper(JsonBytes, _JsonBytesDumper)


class Executor(Protocol):
    """Something that runs one statement and gives its rows as ``row`` objects."""

    async def rows(
        self,
        row: type[Row],
        statement: Statement,
        parameters: Parameters,
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]: ...


@dataclass(frozen=True)
class _Version:
    version: int


class Database:
    """A pool of connections to one installation. ``async with Database(dsn) as database: …``"""

    def __init__(
        self,
        dsn: str,
        *,
        schema: str = "counterfoil",
        min_size: int = 1,
        max_size: int = 10,
        acquire_seconds: float = 5.0,
        max_waiting: int = 0,
        application_name: str = "counterfoil",
    ) -> None:
        """Describe the pool; nothing is opened yet.

        ``acquire_seconds`` is how long a call waits for a free connection before
        PoolExhaustedError; ``max_waiting`` how many calls may wait at once (0: any number).
        """
        self.schema = schema
        self._dsn = dsn
        self._arguments = {
            "autocommit": True,
            "prepare_threshold": None,
            "application_name": application_name,
            "context": _ADAPTERS,
        }
        self._statements: dict[str, sql.Composed] = {}
        self._pool = AsyncConnectionPool(
            dsn,
            kwargs=self._arguments,
            min_size=min_size,
            max_size=max_size,
            timeout=acquire_seconds,
            max_waiting=max_waiting,
            open=False,
            name=application_name,
        )

    def __repr__(self) -> str:
        return f"Database(schema={self.schema!r})"

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Open the pool and shake hands. Raises SchemaVersionError (RL009) for a misfit."""
        await self._pool.open()
        try:
            await self.check_version()
        except BaseException:
            await self._pool.close()
            raise

    async def close(self) -> None:
        """Close every connection."""
        await self._pool.close()

    async def check_version(self) -> int:
        """The schema's version; SchemaVersionError when this driver cannot work with it."""
        try:
            found = await self.rows(
                _Version, "select v.version from {schema}.schema_version() as v (version)", {}
            )
        except (psycopg.errors.InvalidSchemaName, psycopg.errors.UndefinedFunction):
            raise SchemaVersionError(
                f"schema {self.schema} is not installed in this database",
                reason="schema_not_installed",
                hint="install it with `counterfoil migrate`, or name another schema",
            ) from None
        version = found[0].version
        if not OLDEST_SCHEMA_VERSION <= version <= NEWEST_SCHEMA_VERSION:
            raise SchemaVersionError(
                f"schema {self.schema} has version {version}; this driver works with "
                f"{OLDEST_SCHEMA_VERSION} to {NEWEST_SCHEMA_VERSION}",
                reason="schema_too_new" if version > NEWEST_SCHEMA_VERSION else "schema_too_old",
                hint="upgrade the driver"
                if version > NEWEST_SCHEMA_VERSION
                else "run `counterfoil migrate`",
            )
        return version

    async def rows(
        self,
        row: type[Row],
        statement: Statement,
        parameters: Parameters,
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]:
        """Run one statement; ``row`` takes its columns as keyword arguments.

        A connection that turns out to be dead is replaced and the statement repeated once: every
        function is safe to repeat. So is one that met another, where transactions are not ``read
        committed``. ``timeout_ms`` is a statement timeout for this call alone.
        """
        for meetings in range(MOST_MEETINGS):
            try:
                return await self._connected(row, statement, parameters, timeout_ms)
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                # Those that met go on at different times.
                await asyncio.sleep(random.uniform(0, 0.005 * (meetings + 1)))  # noqa: S311
        return await self._connected(row, statement, parameters, timeout_ms)

    async def _connected(
        self, row: type[Row], statement: Statement, parameters: Parameters, timeout_ms: int | None
    ) -> list[Row]:
        try:
            return await self._attempt(row, statement, parameters, timeout_ms)
        except _DeadConnectionError as dead:
            log.warning("database connection lost; repeating the call", exc_info=dead.cause)
        await self._pool.check()
        try:
            return await self._attempt(row, statement, parameters, timeout_ms)
        except _DeadConnectionError as dead:
            raise dead.cause from None

    async def _attempt(
        self, row: type[Row], statement: Statement, parameters: Parameters, timeout_ms: int | None
    ) -> list[Row]:
        async with self._connection() as connection:
            try:
                return await _execute(
                    connection, self._compose(statement), row, parameters, timeout_ms
                )
            except psycopg.OperationalError as error:
                if connection.broken:
                    raise _DeadConnectionError(error) from error
                raise
            finally:
                if _is_large(parameters):
                    # libpq's buffer holds a copy of what was sent, and never shrinks.
                    connection._expire_at = 0.0

    @asynccontextmanager
    async def _connection(self) -> AsyncIterator[psycopg.AsyncConnection]:
        try:
            connection = await self._pool.getconn()
        except (PoolTimeout, TooManyRequests):
            raise PoolExhaustedError(
                "no database connection came free in time",
                hint="retry later, or raise the pool's size",
            ) from None
        try:
            yield connection
        finally:
            await asyncio.shield(self._pool.putconn(connection))

    def _compose(self, statement: Statement) -> sql.Composed:
        composed = self._statements.get(statement)
        if composed is None:
            composed = sql.SQL(statement).format(schema=sql.Identifier(self.schema))
            self._statements[statement] = composed
        return composed

    async def connect(self) -> psycopg.AsyncConnection:
        """A connection outside the pool, for LISTEN; the caller closes it."""
        return await psycopg.AsyncConnection.connect(self._dsn, **self._arguments)  # type: ignore[arg-type]


class OnConnection:
    """Runs statements on a connection that the caller already has, inside its transaction.

    ``Functions(OnConnection(connection))`` lets an application admit a launch or append a fact in
    the same transaction as its own writes.
    """

    def __init__(self, connection: psycopg.AsyncConnection, schema: str = "counterfoil") -> None:
        self._connection = connection
        self._schema = sql.Identifier(schema)

    async def rows(
        self,
        row: type[Row],
        statement: Statement,
        parameters: Parameters,
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]:
        """Run one statement; ``row`` takes its columns as keyword arguments."""
        composed = sql.SQL(statement).format(schema=self._schema)
        return await _execute(self._connection, composed, row, parameters, timeout_ms)


class _DeadConnectionError(Exception):
    def __init__(self, cause: psycopg.OperationalError) -> None:
        super().__init__(str(cause))
        self.cause = cause


async def _execute(
    connection: psycopg.AsyncConnection,
    statement: sql.Composed,
    row: type[Row],
    parameters: Parameters,
    timeout_ms: int | None,
) -> list[Row]:
    try:
        if timeout_ms is None:
            return await _fetch(connection, statement, row, parameters)
        # Local to the transaction, so that a transaction pooler hands on a clean session.
        async with connection.transaction():
            await connection.execute(
                "select pg_catalog.set_config('statement_timeout', %s, true)", [str(timeout_ms)]
            )
            return await _fetch(connection, statement, row, parameters)
    except (UnicodeEncodeError, psycopg.DataError) as error:
        if isinstance(error, UnicodeEncodeError) or error.sqlstate is None:
            _name_bad_text(parameters)
        raise


async def _fetch(
    connection: psycopg.AsyncConnection,
    statement: sql.Composed,
    row: type[Row],
    parameters: Parameters,
) -> list[Row]:
    async with connection.cursor(row_factory=class_row(row)) as cursor:
        await cursor.execute(statement, parameters)
        return await cursor.fetchall()


def _is_large(parameters: Parameters) -> bool:
    return any(
        isinstance(value, JsonBytes) and len(value.content) >= LARGE_BYTES
        for value in parameters.values()
    )


def _name_bad_text(parameters: Parameters) -> None:
    """Raise InvalidArgumentError for the argument that psycopg could not encode."""
    for name, value in parameters.items():
        if isinstance(value, str):
            check_text(value, name)
        elif isinstance(value, Sequence):
            for index, item in enumerate(value):
                if isinstance(item, str):
                    check_text(item, f"{name}[{index}]")
