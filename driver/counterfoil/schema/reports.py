"""What `migrate`, `status` and `plan` tell people."""

from __future__ import annotations

from dataclasses import dataclass, field

from counterfoil.schema.grants import ROLES
from counterfoil.schema.sql_tree import Migration, SqlTree
from counterfoil.schema.state import PACKAGE_VERSION, AppliedMigration, SchemaState
from counterfoil.schema.step_writer import Step
from counterfoil.schema.steps import edited_migrations, functions_due, pending_migrations


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


@dataclass(frozen=True)
class StatusReport:
    """Where a schema stands. `version` is None where nothing is installed; `latest` is what this
    package would bring it to; `edited` names applied files that have changed since."""

    schema: str
    version: int | None
    latest: int
    applied: tuple[AppliedMigration, ...]
    pending: tuple[Migration, ...]
    edited: tuple[str, ...]
    functions: int
    functions_due: bool
    missing_roles: tuple[str, ...]
    may_create_roles: bool

    @classmethod
    def of(cls, tree: SqlTree, state: SchemaState) -> StatusReport:
        """The report of a state that has been read."""
        return cls(
            schema=state.schema,
            version=state.version,
            latest=tree.version,
            applied=tuple(state.applied[version] for version in sorted(state.applied)),
            pending=pending_migrations(tree, state),
            edited=tuple(migration.file.path for migration, _ in edited_migrations(tree, state)),
            functions=len(state.functions),
            functions_due=functions_due(tree, state),
            missing_roles=tuple(sorted(set(ROLES) - state.roles)),
            may_create_roles=state.may_create_roles,
        )

    @property
    def current(self) -> bool:
        """Whether `migrate` would have nothing to do."""
        return self.version == self.latest and not self.functions_due

    def __str__(self) -> str:
        stands = "not installed" if self.version is None else f"version {self.version}"
        lines = [f"schema {self.schema}: {stands}, this package brings version {self.latest}"]
        for row in self.applied:
            at = row.applied_at.isoformat(" ", "seconds")
            lines.append(
                f"  {row.version:04d}_{row.name}  applied {at} by {row.applied_by}"
                f" with {row.package_version} in {row.duration_ms} ms"
            )
        lines += [f"  {m.version:04d}_{m.name}  pending" for m in self.pending]
        lines += [f"  {path} was edited after it was applied" for path in self.edited]
        if self.version is not None:
            due = "to be installed again" if self.functions_due else "as shipped"
            lines.append(f"  {self.functions} functions, {due}")
        if self.missing_roles and self.may_create_roles:
            lines.append(f"  roles to be created: {', '.join(self.missing_roles)}")
        elif self.missing_roles:
            lines.append(missing_roles_text(list(self.missing_roles)))
        return "\n".join(lines)


def plan_script(tree: SqlTree, state: SchemaState, steps: list[Step]) -> str:
    """The steps as one script, with a heading that says what it is for."""
    at = "nothing installed" if state.version is None else f"version {state.version}"
    heading = [
        f"-- counterfoil {PACKAGE_VERSION}: schema {state.schema}, "
        f"{at} -> version {tree.version}, as {state.current_user}",
    ]
    if not steps:
        return "\n".join([*heading, "-- nothing to do", ""])
    heading += [
        "-- Review, then run with: psql -X -v ON_ERROR_STOP=1 -f this-file",
        "-- Each transaction stands alone: after a failure, ask for a new plan.",
        "",
        "set client_encoding = 'UTF8';",
        "",
    ]
    return "\n".join([*heading, *(step.script() for step in steps)])
