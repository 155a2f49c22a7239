"""Installing and upgrading the schema: `migrate`, `plan`, `status`, `prepare_indexes`, `verify`.

Each migration is one transaction with its ledger row first; all functions, their rows and the
grants are one more. Nothing depends on the session, so a transaction pooler may stand between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources.abc import Traversable

import psycopg

from counterfoil.schema import drift, index_builder
from counterfoil.schema.drift import Finding, VerifyReport
from counterfoil.schema.errors import (
    ConnectionFailedError,
    IndexNotReadyError,
    MigrationError,
    StepFailedError,
)
from counterfoil.schema.grants import ROLES
from counterfoil.schema.index_builder import PreparedReport
from counterfoil.schema.reports import MigrateReport, StatusReport, plan_script
from counterfoil.schema.shape import Shape, expected_shape, functions_to_drop, read_shape
from counterfoil.schema.sql import SHIPPED_SCHEMA, check_schema_name
from counterfoil.schema.sql_tree import SqlTree, load_tree
from counterfoil.schema.state import Connection, SchemaState, read_state
from counterfoil.schema.step_writer import PREREQUISITE_STATE, Part, Step, Timeouts
from counterfoil.schema.steps import check_state, next_steps, roles_step

__all__ = [
    "Finding",
    "MigrateReport",
    "MigrationError",
    "PreparedReport",
    "StatusReport",
    "Timeouts",
    "VerifyReport",
    "migrate",
    "plan",
    "prepare_indexes",
    "roles_sql",
    "status",
    "verify",
]

log = logging.getLogger(__name__)


@contextmanager
def connection(dsn: str) -> Iterator[Connection]:
    """An autocommit connection without prepared statements, safe behind a transaction pooler."""
    try:
        conn = psycopg.connect(
            dsn, autocommit=True, prepare_threshold=None, application_name="counterfoil migrate"
        )
    except psycopg.OperationalError as error:
        raise ConnectionFailedError(
            str(error).strip(), hint="check the DSN (a libpq URI or key=value string)"
        ) from error
    with conn:
        yield conn


def migrate(
    dsn: str,
    schema: str = SHIPPED_SCHEMA,
    *,
    source: Traversable | None = None,
    timeouts: Timeouts | None = None,
) -> MigrateReport:
    """Bring `schema` in the database at `dsn` to this package's version; again is harmless.

    `source` is a folder of SQL in the shipped layout (the shipped SQL when None). Two at once
    are safe: one waits, looks again, and does only what is left. Raises a `MigrationError`; the
    step that failed has left nothing, earlier steps stay.
    """
    with _opened(dsn, schema, source) as (conn, tree):
        return _Migrator(conn, tree, schema, timeouts or Timeouts()).run()


def plan(
    dsn: str,
    schema: str = SHIPPED_SCHEMA,
    *,
    source: Traversable | None = None,
    timeouts: Timeouts | None = None,
) -> str:
    """The SQL that `migrate` would run now, as a script for `psql -X -v ON_ERROR_STOP=1`.

    Changes nothing. Running the script leaves the database as `migrate` would.
    """
    with _opened(dsn, schema, source) as (conn, tree):
        return _Migrator(conn, tree, schema, timeouts or Timeouts()).plan()


def verify(
    dsn: str, schema: str = SHIPPED_SCHEMA, *, source: Traversable | None = None
) -> VerifyReport:
    """Every difference between `schema` and what the package ships, by name. Changes nothing.

    Needs CREATE on the database: the shipped SQL is installed on the side and rolled back.
    """
    with _opened(dsn, schema, source) as (conn, tree):
        return drift.check(conn, tree, schema)


def status(
    dsn: str, schema: str = SHIPPED_SCHEMA, *, source: Traversable | None = None
) -> StatusReport:
    """Which migrations and functions the schema has had and which it lacks. Changes nothing."""
    with _opened(dsn, schema, source) as (conn, tree), conn.transaction(force_rollback=True):
        return StatusReport.of(tree, read_state(conn, schema))


def prepare_indexes(
    dsn: str, schema: str = SHIPPED_SCHEMA, *, source: Traversable | None = None
) -> list[PreparedReport]:
    """Build, with `create index concurrently`, what the migrations still to come require.

    Needs a direct connection: this cannot run inside a transaction. One that an earlier run left
    invalid is dropped and built again. Raises a `MigrationError`; indexes built so far stay.
    """
    with _opened(dsn, schema, source) as (conn, tree):
        return index_builder.build(conn, tree, schema)


def roles_sql(*, source: Traversable | None = None) -> str:
    """The SQL that creates the package's roles, for a DBA with CREATEROLE to run."""
    return load_tree(source).roles.text


@contextmanager
def _opened(
    dsn: str, schema: str, source: Traversable | None
) -> Iterator[tuple[Connection, SqlTree]]:
    check_schema_name(schema)
    tree = load_tree(source)
    with connection(dsn) as conn:
        try:
            yield conn, tree
        except psycopg.Error as error:
            raise StepFailedError(
                f"{error.diag.message_primary or error} [{error.sqlstate}]",
                where=f"schema {schema!r}",
                hint="check the login's privileges and the server's log, then run it again; "
                "a transaction that was open was rolled back",
                sqlstate=error.sqlstate,
            ) from error


class _Migrator:
    """One call's work on one schema."""

    def __init__(self, conn: Connection, tree: SqlTree, schema: str, timeouts: Timeouts) -> None:
        self.conn = conn
        self.tree = tree
        self.schema = schema
        self.timeouts = timeouts
        self.expected: Shape | None = None

    def run(self) -> MigrateReport:
        report = MigrateReport(self.schema, self.tree.version)
        state = self._look()
        roles = roles_step(self.tree, state)
        if roles is not None:
            with self.conn.transaction():
                self._run(roles, roles.parts)
            report.steps.append(roles.title)
        while step := self._next():
            report.steps.append(step.title)
            # The functions come last. What they could not mend (a stranger's grant, say) is for
            # verify to name, not for us to try for ever.
            if step.kind == "functions":
                break
        report.missing_roles = sorted(set(ROLES) - self._look().roles)
        return report

    def plan(self) -> str:
        state = self._look()
        steps = self._steps(state)
        roles = roles_step(self.tree, state)
        return plan_script(self.tree, state, [roles, *steps] if roles else steps)

    def _look(self) -> SchemaState:
        with self.conn.transaction(force_rollback=True):
            state = read_state(self.conn, self.schema)
        check_state(self.tree, state)
        return state

    def _steps(self, state: SchemaState) -> list[Step]:
        steps = next_steps(self.tree, state, self.timeouts)
        if not state.functions or not steps or steps[-1].kind != "functions":
            return steps
        if self.expected is None:
            self.expected = expected_shape(self.conn, self.tree, state)
        with self.conn.transaction(force_rollback=True):
            present = read_shape(self.conn, self.schema)
        drops = functions_to_drop(self.expected, present, state)
        return next_steps(self.tree, state, self.timeouts, drops)

    def _next(self) -> Step | None:
        """Run the first step that is due, in one transaction, and return it; None if none is."""
        steps = self._steps(self._look())
        if not steps:
            return None
        with self.conn.transaction():
            self._run(steps[0], [Part(steps[0].preamble)])
            # Another migrator may have done it while we waited for its lock: look again.
            state = read_state(self.conn, self.schema)
            check_state(self.tree, state)
            steps = self._steps(state)
            if not steps:
                return None
            log.info("migrating", extra={"schema": self.schema, "step": steps[0].title})
            self._run(steps[0], steps[0].parts)
        return steps[0]

    def _run(self, step: Step, parts: Sequence[Part]) -> None:
        for part in parts:
            _execute(self.conn, part, step)


def _execute(conn: Connection, part: Part, step: Step) -> None:
    if not part.sql.strip():
        return
    try:
        conn.execute(part.sql.encode(), prepare=False)
    except psycopg.Error as error:
        raise _failure(error, part, step) from error


def _failure(error: psycopg.Error, part: Part, step: Step) -> MigrationError:
    where = part.path or step.title
    position = error.diag.statement_position
    if part.path and position:
        line = part.sql.count("\n", 0, int(position) - 1) + 1
        where = f"{part.path}:{line}"
    what = error.diag.message_primary or str(error).strip()
    if error.diag.message_detail:
        what += f" ({error.diag.message_detail})"
    if part.path and part.path.startswith("indexes/") and error.sqlstate == PREREQUISITE_STATE:
        return IndexNotReadyError(what, where=step.title, hint=error.diag.message_hint or "")
    hints = {
        "55P03": "another session holds a lock; try again when it is done, or allow a longer "
        "lock timeout",
        "57014": "allow a longer statement timeout",
        "42501": "run it as the schema's owner, with CREATE on the database",
    }
    hint = hints.get(error.sqlstate or "", error.diag.message_hint or "")
    rolled_back = f"{step.title} was rolled back whole"
    return StepFailedError(
        f"{what} [{error.sqlstate}]",
        where=where,
        hint=f"{hint}; {rolled_back}" if hint else rolled_back,
        sqlstate=error.sqlstate,
    )
