"""The SQL of one step: preamble, ledger rows, files in the chosen schema, functions, grants."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal

from counterfoil.schema.grants import ROLES
from counterfoil.schema.sql import SHIPPED_SCHEMA, literal, with_schema
from counterfoil.schema.sql_tree import FunctionFile, Migration, SqlFile, SqlTree
from counterfoil.schema.state import PACKAGE_VERSION, SchemaState

PREREQUISITE_STATE = "55000"


@dataclass(frozen=True)
class Timeouts:
    """Seconds. `wait`: for another migrator to finish; `lock`: for a lock on a table;
    `statement`: for one statement. 0 means no limit."""

    wait: float = 600
    lock: float = 5
    statement: float = 300


@dataclass(frozen=True)
class Part:
    """A piece of a step's SQL. `path` is the shipped file it came from, None if made here."""

    sql: str
    path: str | None = None


@dataclass(frozen=True)
class Step:
    """One transaction. The preamble opens nothing: BEGIN and COMMIT belong to who runs it."""

    kind: Literal["roles", "bootstrap", "migration", "functions"]
    title: str
    preamble: str
    parts: tuple[Part, ...]
    version: int | None = None

    def script(self) -> str:
        """The step as a psql script, with its BEGIN and COMMIT."""
        body = "\n".join(
            (f"-- {part.path}\n" if part.path else "") + part.sql.rstrip() + "\n"
            for part in self.parts
        )
        return f"-- {self.title}\n\nbegin;\n{self.preamble}\n{body}\ncommit;\n"


def terminated(text: str) -> str:
    """The text, ending in a semicolon and a line end."""
    stripped = text.rstrip()
    return stripped + ("\n" if stripped.endswith(";") else "\n;\n")


def milliseconds(seconds: float) -> str:
    """A timeout as the server's settings take it."""
    return f"'{round(seconds * 1000)}ms'"


def settings_sql(timeouts: Timeouts) -> str:
    """Session settings of a step, local to its transaction."""
    return (
        "set local search_path = pg_catalog, pg_temp;\n"
        "set local client_min_messages = warning;\n"
        f"set local lock_timeout = {milliseconds(timeouts.lock)};\n"
        f"set local statement_timeout = {milliseconds(timeouts.statement)};\n"
    )


class StepWriter:
    """Writes the SQL of steps for one schema."""

    def __init__(self, tree: SqlTree, state: SchemaState, timeouts: Timeouts) -> None:
        self.tree = tree
        self.state = state
        self.id = state.identifier
        wait = milliseconds(timeouts.wait)
        key = literal(f"{SHIPPED_SCHEMA} migrations of {state.schema}")
        # A transaction's lock, not a session's, so that it works behind a transaction pooler.
        # Read committed, so that what we read after waiting for the lock is the present.
        preamble = (
            "set transaction isolation level read committed, read write;\n"
            f"set local lock_timeout = {wait};\n"
            f"set local statement_timeout = {wait};\n"
            # Not selected: psql would print the answer of each step of a plan.
            "do $do$ begin perform pg_catalog.pg_advisory_xact_lock("
            f"pg_catalog.hashtextextended({key}, 0)); end $do$;\n" + settings_sql(timeouts)
        )
        if state.owner is not None and state.owner != state.current_user:
            owner = '"' + state.owner.replace('"', '""') + '"'
            preamble += f"set local role {owner};\n"
        self.preamble = preamble

    def file(self, file: SqlFile) -> Part:
        return Part(with_schema(terminated(file.text), self.id), file.path)

    def bootstrap(self) -> Step:
        parts = [] if self.state.owner else [Part(f"create schema {self.id};\n")]
        migration = self.tree.bootstrap
        parts += [self.file(migration.file), self._begins(migration), self._ends(migration)]
        title = f"create the ledger of schema {self.state.schema}"
        return Step("bootstrap", title, self.preamble, tuple(parts), 0)

    def migration(self, migration: Migration) -> Step:
        functions = [self.tree.functions_by_name[name] for name in migration.functions]
        parts = [
            self._begins(migration),
            *(self._index_guard(name) for name in migration.indexes),
            *(self.file(function.file) for function in functions),
            self.file(migration.file),
            self._ends(migration),
        ]
        if functions:
            parts.insert(1, Part("set local check_function_bodies = off;\n"))
        title = f"migration {migration.version:04d}_{migration.name}"
        return Step("migration", title, self.preamble, tuple(parts), migration.version)

    def functions(self, drops: tuple[str, ...]) -> Step:
        parts = [Part("set local check_function_bodies = off;\n")]
        parts.append(Part(_FORGET_FUNCTIONS.format(id=self.id)))
        if drops:
            listed = ",\n  ".join(f"{self.id}.{signature}" for signature in drops)
            parts.append(Part(f"drop routine if exists\n  {listed};\n"))
        parts += [self.file(function.file) for function in self.tree.functions]
        if self.tree.functions:
            parts.append(Part(self._function_rows(self.tree.functions)))
        roles = frozenset(ROLES) if self.state.may_create_roles else self.state.roles
        missing = sorted(set(ROLES) - roles)
        if missing:
            parts.append(Part(f"-- no grants to {', '.join(missing)}: no such role (roles.sql)\n"))
        grants = self.tree.grants.apply_sql(self.id, roles)
        parts.append(Part(grants))
        return Step("functions", "functions and grants", self.preamble, tuple(parts))

    def _begins(self, migration: Migration) -> Part:
        values = ", ".join(
            [
                str(migration.version),
                literal(migration.name),
                literal(migration.file.checksum),
                literal(PACKAGE_VERSION),
            ]
        )
        return Part(
            f"insert into {self.id}.schema_migrations\n"
            "  (version, name, checksum, package_version, applied_by, applied_at)\n"
            f"values ({values}, session_user, clock_timestamp());\n"
        )

    def _ends(self, migration: Migration) -> Part:
        return Part(_END.format(id=self.id, version=migration.version))

    def _function_rows(self, functions: tuple[FunctionFile, ...]) -> str:
        rows = ",\n".join(
            f"  ({literal(f.name)}, {literal(f.file.path)}, "
            f"{literal(f.since) if f.since else 'null'}, {literal(f.file.checksum)})"
            for f in functions
        )
        # Only what this transaction wrote: a stranger's overload is not ours to record.
        return (
            f"insert into {self.id}.schema_functions\n"
            "  (signature, name, source, since_version, package_version, checksum,"
            " definition_checksum, installed_at)\n"
            "select quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',\n"
            f"  f.name, f.source, f.since_version, {literal(PACKAGE_VERSION)}, f.checksum,\n"
            "  encode(sha256(convert_to(pg_get_functiondef(p.oid), 'UTF8')), 'hex'),\n"
            "  clock_timestamp()\n"
            f"from (values\n{rows}\n) as f (name, source, since_version, checksum)\n"
            "join pg_proc as p on p.proname = f.name\n"
            f"  and p.pronamespace = {literal(self.id)}::regnamespace and age(p.xmin) <= 0;\n"
        )

    def _index_guard(self, name: str) -> Part:
        index = self.tree.indexes[name]
        plain = re.sub(r"(?i)\s+concurrently\b", "", index.file.text, count=1)
        return Part(
            _INDEX_GUARD.format(
                name=literal(name),
                table=literal(f"{self.id}.{index.table}"),
                namespace=literal(self.id),
                ddl=with_schema(terminated(plain), self.id),
                state=PREREQUISITE_STATE,
            ),
            index.file.path,
        )


_FORGET_FUNCTIONS = "delete from {id}.schema_functions;\n"

_END = """\
update {id}.schema_migrations as m
set duration_ms = extract(epoch from clock_timestamp() - m.applied_at) * 1000
where m.version = {version};
"""

# A table below 1 MB needs no preparation: the index is there in milliseconds, so a fresh install,
# whose tables hold no more than what the migrations put there, needs none.
_INDEX_GUARD = """\
do $guard$
declare
  v_usable boolean;
begin
  select i.indisvalid and i.indisready into v_usable
  from pg_index as i join pg_class as c on c.oid = i.indexrelid
  where c.relname = {name} and c.relnamespace = {namespace}::regnamespace;
  if v_usable then
    return;
  end if;
  if v_usable is null and pg_relation_size({table}::regclass) < 1048576 then
    execute $ddl$
{ddl}$ddl$;
    return;
  end if;
  raise exception using
    errcode = '{state}',
    message = 'index ' || {name} || case when v_usable is null
      then ' has not been prepared' else ' is not valid and ready' end,
    detail = 'index_not_ready',
    hint = 'run: counterfoil prepare-indexes (make prepare-indexes), then migrate again';
end
$guard$;
"""
