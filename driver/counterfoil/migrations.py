"""Installing and upgrading the schema: `migrate`, `plan`, `status`, `prepare_indexes`, `verify`.

Each migration is one transaction with its ledger row first; all functions, their rows and the
grants are one more. Nothing depends on the session, so a transaction pooler may stand between.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable

import psycopg

from counterfoil.grants import ROLES
from counterfoil.migration_errors import (
    ConnectionFailedError,
    IndexNotReadyError,
    MigrationError,
    StepFailedError,
)
from counterfoil.schema_sql import SHIPPED_SCHEMA, check_schema_name
from counterfoil.schema_state import Connection, read_state
from counterfoil.schema_steps import (
    PREREQUISITE_STATE,
    Part,
    Step,
    Timeouts,
    check_state,
    next_steps,
    roles_step,
)
from counterfoil.sql_tree import SqlTree, load_tree

__all__ = ["MigrateReport", "MigrationError", "Timeouts", "migrate"]

log = logging.getLogger(__name__)


@dataclass
class MigrateReport:
    """What `migrate` did: the titles of its steps in order, the version reached, and the roles
    that do not exist and that the login may not create."""

    schema: str
    version: int
    steps: list[str] = field(default_factory=list)
    missing_roles: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        lines = [f"  {step}" for step in self.steps] or ["  nothing to do"]
        if self.missing_roles:
            lines.append(missing_roles_text(self.missing_roles))
        return "\n".join([f"schema {self.schema}: version {self.version}", *lines])


def missing_roles_text(roles: list[str]) -> str:
    """What to tell a DBA whose server lacks `roles`."""
    return (
        f"  no such role, so nothing was granted to: {', '.join(roles)}\n"
        "  what to do: let a role with CREATEROLE run the SQL that `counterfoil roles` prints,\n"
        "  then migrate again"
    )


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
    check_schema_name(schema)
    tree = load_tree(source)
    limits = timeouts or Timeouts()
    with connection(dsn) as conn:
        report = MigrateReport(schema, tree.version)
        _create_roles(conn, tree, schema, report)
        touched = False
        while True:
            step = _run_next(conn, tree, schema, limits, touched)
            if step is None:
                break
            touched = step.kind != "functions"
            report.steps.append(step.title)
        with conn.transaction():
            state = read_state(conn, schema)
        report.missing_roles = sorted(set(ROLES) - state.roles)
        return report


def _create_roles(conn: Connection, tree: SqlTree, schema: str, report: MigrateReport) -> None:
    with conn.transaction():
        state = read_state(conn, schema)
        check_state(tree, state)
    step = roles_step(tree, state)
    if step is not None:
        with conn.transaction():
            _execute(conn, step.parts[0], step)
        report.steps.append(step.title)


def _run_next(
    conn: Connection, tree: SqlTree, schema: str, limits: Timeouts, touched: bool
) -> Step | None:
    """Run the first step that is due, in one transaction, and return it; None if none is."""
    with conn.transaction():
        seen = read_state(conn, schema)
    check_state(tree, seen)
    steps = next_steps(tree, seen, limits, (), force_functions=touched)
    if not steps:
        return None
    with conn.transaction():
        _execute(conn, Part(steps[0].preamble), steps[0])
        # Another migrator may have done it while we waited for its lock: look again.
        state = read_state(conn, schema)
        check_state(tree, state)
        steps = next_steps(tree, state, limits, (), force_functions=touched)
        if not steps:
            return None
        step = steps[0]
        log.info("migrating", extra={"schema": schema, "step": step.title})
        for part in step.parts:
            _execute(conn, part, step)
    return step


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
