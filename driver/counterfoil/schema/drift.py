"""`verify`: every difference between a schema and what the package means it to be, by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, replace

from counterfoil.schema.grants import ROLES
from counterfoil.schema.shape import Key, Shape, expected_shape, read_shape
from counterfoil.schema.sql_tree import SqlTree
from counterfoil.schema.state import Connection, SchemaState, read_state
from counterfoil.schema.steps import edited_migrations, expected_grants, pending_migrations


@dataclass(frozen=True)
class Finding:
    """One difference. `kind` is what sort of thing `name` is; `problem` and `remedy` are for
    people."""

    kind: str
    name: str
    problem: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}: {self.problem}\n    what to do: {self.remedy}"


@dataclass(frozen=True)
class VerifyReport:
    """What `verify` found; `ok` when nothing."""

    schema: str
    version: int | None
    findings: tuple[Finding, ...]
    checked: int

    @property
    def ok(self) -> bool:
        """Whether the schema is exactly what the package ships."""
        return not self.findings

    def __str__(self) -> str:
        if self.ok:
            return (
                f"schema {self.schema}: version {self.version}, "
                f"{self.checked} objects as shipped, grants as in the matrix"
            )
        count = len(self.findings)
        lines = [f"schema {self.schema}: {count} difference{'s' if count > 1 else ''}"]
        return "\n".join(lines + [f"  {finding}" for finding in self.findings])


def check(conn: Connection, tree: SqlTree, schema: str) -> VerifyReport:
    """Compare `schema` with `tree`. Changes nothing; needs CREATE on the database."""
    with conn.transaction(force_rollback=True):
        conn.execute("set transaction isolation level repeatable read")
        state = read_state(conn, schema)
        if not state.has_ledger:
            problem = "no Counterfoil is installed here"
            finding = Finding("schema", schema, problem, "run counterfoil migrate")
            return VerifyReport(schema, None, (finding,), 0)
        present = read_shape(conn, schema)
        findings = [*_migrations(tree, state), *_functions(tree, state), *_matrix(tree)]
        expected = Shape({}, {})
        if (state.version or 0) <= tree.version:
            expected = _expected(conn, tree, state)
            findings += _differences(tree, state, expected, present)
        findings += [*_roles(state), *_grants(tree, state), *_owners(conn, state)]
    return VerifyReport(schema, state.version, tuple(findings), len(expected.objects))


def _migrations(tree: SqlTree, state: SchemaState) -> Iterator[Finding]:
    if (state.version or 0) > tree.version:
        yield Finding(
            "schema",
            state.schema,
            f"is at version {state.version}, this package knows up to {tree.version} [RL009]",
            "upgrade the counterfoil package",
        )
    for migration, problem in edited_migrations(tree, state):
        remedy = "restore the file as it was applied; put the change into a new migration"
        yield Finding("migration", migration.file.path, problem, remedy)
    for migration in pending_migrations(tree, state):
        yield Finding("migration", migration.file.path, "not applied", "run counterfoil migrate")


def _functions(tree: SqlTree, state: SchemaState) -> Iterator[Finding]:
    shipped = {function.file.path: function.file.checksum for function in tree.functions}
    for function in state.functions.values():
        if function.present_checksum is None:
            problem = "was dropped or given other arguments"
        elif shipped.get(function.source) != function.checksum and function.edited:
            problem = "edited in place, and not this package's version either"
        elif shipped.get(function.source) != function.checksum:
            problem = f"not this package's version of {function.source}"
        else:
            continue
        yield Finding("function", function.signature, problem, "run counterfoil migrate")
    installed = {function.source for function in state.functions.values()}
    for path in sorted(set(shipped) - installed):
        yield Finding("function", path, "not installed", "run counterfoil migrate")


def _matrix(tree: SqlTree) -> Iterator[Finding]:
    for name, problem in matrix_problems(tree):
        yield Finding("matrix", name, problem, "correct sql/grants.toml and migrate")


def matrix_problems(tree: SqlTree) -> list[tuple[str, str]]:
    """Function names that have a file but no row in the matrix, a row but no file, or a row
    under another room than their file's."""
    files = {function.name: function.room for function in tree.functions}
    problems = [(name, "no row in grants.toml") for name in files if name not in tree.grants.rows]
    for name, room in tree.grants.rooms.items():
        if name not in files:
            problems.append((name, f"a row in grants.toml [{room}], but no file"))
        elif files[name] != room:
            problems.append((name, f"a row in grants.toml [{room}], a file in {files[name]}/"))
    return sorted(problems)


def _expected(conn: Connection, tree: SqlTree, state: SchemaState) -> Shape:
    """What a schema at this version should look like."""
    applied = tuple(m for m in tree.migrations if m.version in state.applied)
    if len(applied) == len(tree.migrations):
        return expected_shape(conn, tree, state)
    # Newer functions may need what the missing migrations bring: compare the rest only.
    return expected_shape(conn, replace(tree, migrations=applied, functions=()), state)


def _differences(
    tree: SqlTree, state: SchemaState, expected: Shape, present: Shape
) -> Iterator[Finding]:
    shipped = {function.file.path: function.file.checksum for function in tree.functions}
    named_already = {
        f.signature
        for f in state.functions.values()
        if shipped.get(f.source) != f.checksum or f.present_checksum is None
    }
    behind = bool(pending_migrations(tree, state))
    for key in sorted(expected.objects.keys() | present.objects.keys()):
        kind, name = key
        is_function = kind in ("function", "procedure") or (
            kind == "comment" and name.startswith("function ")
        )
        signature = name.removeprefix("function ")
        known = signature in state.functions or signature in expected.calls
        if is_function and known and (behind or signature in named_already):
            continue
        difference = _difference(key, expected, present)
        if difference is not None:
            yield Finding(kind, name, *difference)


def _difference(key: Key, expected: Shape, present: Shape) -> tuple[str, str] | None:
    kind, _ = key
    wanted, found = expected.objects.get(key), present.objects.get(key)
    if wanted == found:
        return None
    is_function = kind in ("function", "procedure")
    if wanted is None:
        return "not Counterfoil's", "move it to a schema of its own, or drop it"
    if found is None:
        remedy = "run counterfoil migrate" if is_function else "put it back by hand"
        return "missing", remedy
    if is_function:
        return f"edited in place: {_first_change(wanted, found)}", "run counterfoil migrate"
    if kind == "index" and found.startswith(wanted):
        problem = f"not usable ({found.removeprefix(wanted).strip().lower()})"
        return problem, "drop index concurrently, create it again, or reindex concurrently"
    return f"is {found!r}, should be {wanted!r}", "put it back by hand"


def _first_change(wanted: str, found: str) -> str:
    lines = difflib.ndiff(wanted.splitlines(), found.splitlines())
    changed = next((line for line in lines if line[0] in "+-"), "")
    return f"{'has' if changed.startswith('+') else 'lacks'} the line {changed[2:].strip()!r}"


def _roles(state: SchemaState) -> Iterator[Finding]:
    for role in sorted(set(ROLES) - state.roles):
        remedy = "let a role with CREATEROLE run what `counterfoil roles` prints, then migrate"
        yield Finding("role", role, "does not exist, so its grants are missing", remedy)


def _grants(tree: SqlTree, state: SchemaState) -> Iterator[Finding]:
    expected = expected_grants(tree, state)
    for grant in sorted(expected - state.grants, key=str):
        name = f"{grant.privilege} on {grant.kind} {grant.name or state.schema}"
        yield Finding("grant", name, f"missing for {grant.grantee}", "run counterfoil migrate")
    for grant in sorted(state.grants - expected, key=str):
        name = f"{grant.privilege} on {grant.kind} {grant.name or state.schema}"
        remedy = f"revoke it from {grant.grantee}"
        yield Finding("grant", name, f"{grant.grantee} has it, the matrix does not say so", remedy)


_OWNERS = """
select 'relation', quote_ident(c.relname), pg_get_userbyid(c.relowner)::text
from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
where n.nspname = %(schema)s and c.relowner <> n.nspowner and c.relkind not in ('i', 'I')
union all
select 'function', quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',
       pg_get_userbyid(p.proowner)::text
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = %(schema)s and p.proowner <> n.nspowner
order by 1, 2
"""


def _owners(conn: Connection, state: SchemaState) -> Iterator[Finding]:
    for kind, name, owner in conn.execute(_OWNERS, {"schema": state.schema}).fetchall():
        problem = f"belongs to {owner}, the schema to {state.owner}"
        yield Finding("owner", f"{kind} {name}", problem, f"alter it to owner {state.owner}")
