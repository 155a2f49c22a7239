"""From a database's state to the steps that bring it up to date, each one transaction of SQL."""

from __future__ import annotations

import re

from counterfoil.schema.errors import (
    EditedMigrationError,
    SchemaNewerError,
    SchemaOccupiedError,
)
from counterfoil.schema.grants import ROLES
from counterfoil.schema.sql_tree import Migration, SqlTree
from counterfoil.schema.state import PACKAGE_VERSION, Grant, SchemaState
from counterfoil.schema.step_writer import Part, Step, StepWriter, Timeouts, terminated


def check_state(tree: SqlTree, state: SchemaState) -> None:
    """Refuse a database that this package cannot bring up to date."""
    where = f"schema {state.schema!r}"
    if state.has_objects and not state.has_ledger:
        raise SchemaOccupiedError(
            "the schema exists and holds objects, but no ledger of migrations",
            where=where,
            hint="choose another schema name, or empty this one",
        )
    if (state.version or 0) > tree.version:
        raise SchemaNewerError(
            f"the schema is at version {state.version}, this package knows up to {tree.version}",
            where=where,
            hint="upgrade the counterfoil package",
        )
    newest = max((f.package_version for f in state.functions.values()), key=_order, default="0")
    if _order(newest) > _order(PACKAGE_VERSION):
        raise SchemaNewerError(
            f"its functions are of package {newest}, this is package {PACKAGE_VERSION}",
            where=where,
            hint="upgrade the counterfoil package",
        )
    edited = edited_migrations(tree, state)
    if edited:
        migration, problem = edited[0]
        raise EditedMigrationError(
            problem,
            where=migration.file.path,
            hint="restore the file as it was applied; put the change into a new migration",
        )


def _order(version: str) -> list[int]:
    """A release number, to be compared: 1.10.2rc1 is [1, 10, 2]."""
    match = re.match(r"\d+(\.\d+)*", version)
    return [int(part) for part in match[0].split(".")] if match else []


def edited_migrations(tree: SqlTree, state: SchemaState) -> list[tuple[Migration, str]]:
    """Applied migrations whose file is no longer what was applied, and how they differ."""
    found = []
    for migration in (tree.bootstrap, *tree.migrations):
        applied = state.applied.get(migration.version)
        if applied is None:
            continue
        if applied.name != migration.name:
            found.append((migration, f"applied under the name {applied.name}"))
        elif applied.checksum != migration.file.checksum:
            found.append((migration, f"edited after it was applied on {applied.applied_at}"))
    return found


def pending_migrations(tree: SqlTree, state: SchemaState) -> tuple[Migration, ...]:
    """Migrations that the schema has not had, in order."""
    return tuple(m for m in tree.migrations if m.version not in state.applied)


def expected_grants(tree: SqlTree, state: SchemaState) -> frozenset[Grant]:
    """What the matrix says, for the functions that are installed and the roles that exist."""
    usage = {Grant("schema", "", role, "USAGE") for role in state.roles}
    execute = {
        Grant("function", function.signature, role, "EXECUTE")
        for function in state.functions.values()
        for role in tree.grants.rows.get(function.name, frozenset()) & state.roles
    }
    return frozenset(usage | execute)


def functions_due(tree: SqlTree, state: SchemaState) -> bool:
    """Whether functions and grants must be installed again."""
    shipped = {f.name: f.file.checksum for f in tree.functions}
    recorded = {f.name: f.checksum for f in state.functions.values()}
    damaged = any(f.present_checksum != f.definition_checksum for f in state.functions.values())
    migrated = max((row.applied_at for row in state.applied.values()), default=None)
    before = any(migrated and f.installed_at < migrated for f in state.functions.values())
    ours = frozenset(g for g in state.grants if g.grantee in ROLES or g.grantee == "PUBLIC")
    return shipped != recorded or damaged or before or ours != expected_grants(tree, state)


def next_steps(
    tree: SqlTree,
    state: SchemaState,
    timeouts: Timeouts,
    drops: tuple[str, ...] = (),
) -> list[Step]:
    """Everything to do, in order. `drops`: signatures that must go before the functions come.
    A migration may touch what functions stand on, so functions follow any other step."""
    writer = StepWriter(tree, state, timeouts)
    steps = []
    if not state.has_ledger:
        steps.append(writer.bootstrap())
    pending = pending_migrations(tree, state)
    steps += [writer.migration(migration) for migration in pending]
    if steps or functions_due(tree, state):
        steps.append(writer.functions(drops))
    return steps


def roles_step(tree: SqlTree, state: SchemaState) -> Step | None:
    """The creation of the missing roles, if there are any and the login may."""
    if set(ROLES) <= state.roles or not state.may_create_roles:
        return None
    return Step("roles", "roles", "", (Part(terminated(tree.roles.text), tree.roles.path),))
