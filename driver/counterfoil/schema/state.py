"""What a database has: its ledger, its installed functions, its roles. Reads only."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version as installed_version
from typing import Any

import psycopg

from counterfoil.schema.errors import NotOwnerError
from counterfoil.schema.grants import ROLES

Connection = psycopg.Connection[Any]
PACKAGE_VERSION = installed_version("counterfoil")


@dataclass(frozen=True)
class AppliedMigration:
    """A row of `schema_migrations`."""

    version: int
    name: str
    checksum: str
    package_version: str
    applied_by: str
    applied_at: datetime
    duration_ms: int | None


@dataclass(frozen=True)
class InstalledFunction:
    """A row of `schema_functions`, and the checksum of what is there now (None: gone)."""

    signature: str
    name: str
    source: str
    package_version: str
    checksum: str
    definition_checksum: str
    installed_at: datetime
    present_checksum: str | None

    @property
    def edited(self) -> bool:
        """Someone replaced it in place since it was installed."""
        return self.present_checksum not in (None, self.definition_checksum)


@dataclass(frozen=True)
class Grant:
    """One privilege that a role other than the owner holds ("PUBLIC" is everyone)."""

    kind: str
    name: str
    grantee: str
    privilege: str


@dataclass(frozen=True)
class SchemaState:
    """Everything the installer must know about a schema before it decides what to do."""

    schema: str
    identifier: str
    owner: str | None
    current_user: str
    may_create_roles: bool
    has_objects: bool
    has_ledger: bool
    applied: dict[int, AppliedMigration] = field(default_factory=dict)
    functions: dict[str, InstalledFunction] = field(default_factory=dict)
    roles: frozenset[str] = frozenset()
    grants: frozenset[Grant] = frozenset()

    @property
    def version(self) -> int | None:
        """The schema's version, None where nothing is installed."""
        return max(self.applied, default=None)


_WHO = """
select quote_ident(%(schema)s) as identifier,
       n.oid as namespace,
       pg_get_userbyid(n.nspowner)::text as owner,
       current_user::text as current_user,
       u.rolsuper or u.rolcreaterole as may_create_roles,
       coalesce(pg_has_role(current_user, n.nspowner, 'usage'), true) as may_act_as_owner,
       exists (select from pg_class as c where c.relnamespace = n.oid)
         or exists (select from pg_proc as p where p.pronamespace = n.oid) as has_objects,
       exists (select from pg_class as c where c.relnamespace = n.oid
               and c.relname = 'schema_migrations') as has_ledger,
       array(select r.rolname::text from pg_roles as r where r.rolname = any(%(roles)s)) as roles
from pg_roles as u
left join pg_namespace as n on n.nspname = %(schema)s
where u.rolname = current_user
"""

_APPLIED = """
select m.version, m.name, m.checksum, m.package_version, m.applied_by,
       m.applied_at, m.duration_ms
from {id}.schema_migrations as m order by m.version
"""

# Signatures and definitions are spelt with only pg_catalog in the search path, as at install.
_FUNCTIONS = """
select f.signature, f.name, f.source, f.package_version, f.checksum,
       f.definition_checksum, f.installed_at,
       encode(sha256(convert_to(pg_get_functiondef(p.oid), 'UTF8')), 'hex') as present_checksum
from {id}.schema_functions as f
left join (
  pg_proc as p join pg_namespace as n on n.oid = p.pronamespace and n.nspname = %(schema)s
) on quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')' = f.signature
  and p.prokind <> 'a'
order by f.signature
"""

_GRANTS = """
select g.kind, g.name, coalesce(r.rolname::text, 'PUBLIC') as grantee, g.privilege
from (
  select 'schema' as kind, '' as name, n.nspowner as owner, a.grantee, a.privilege_type as privilege
  from pg_namespace as n, aclexplode(n.nspacl) as a
  where n.nspname = %(schema)s
  union all
  select 'function', quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',
         p.proowner, a.grantee, a.privilege_type
  from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace,
       aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) as a
  where n.nspname = %(schema)s
  union all
  select case c.relkind when 'S' then 'sequence' else 'table' end, quote_ident(c.relname),
         c.relowner, a.grantee, a.privilege_type
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace, aclexplode(c.relacl) as a
  where n.nspname = %(schema)s
  union all
  select 'column', quote_ident(c.relname) || '.' || quote_ident(t.attname),
         c.relowner, a.grantee, a.privilege_type
  from pg_class as c join pg_namespace as n on n.oid = c.relnamespace
  join pg_attribute as t on t.attrelid = c.oid, aclexplode(t.attacl) as a
  where n.nspname = %(schema)s
) as g
left join pg_roles as r on r.oid = g.grantee
where g.grantee <> g.owner
"""


def pin_search_path(conn: Connection) -> None:
    """Make the server spell names the way the installer compares them. Inside a transaction."""
    conn.execute("set local search_path = pg_catalog, pg_temp")


def read_state(conn: Connection, schema: str) -> SchemaState:
    """Read the state of `schema`, inside the caller's transaction.

    Raises `NotOwnerError` unless the login is the schema's owner or inherits from it.
    """
    pin_search_path(conn)
    cursor = conn.cursor(row_factory=psycopg.rows.dict_row)
    who = cursor.execute(_WHO, {"schema": schema, "roles": list(ROLES)}).fetchone()
    assert who is not None  # noqa: S101  (every session has a current user)
    namespace = who.pop("namespace")
    roles = frozenset(who.pop("roles"))
    if not who.pop("may_act_as_owner"):
        raise NotOwnerError(
            f"{who['current_user']} lacks the rights of {who['owner']}, who owns it",
            where=f"schema {schema!r}",
            hint=f"log in as {who['owner']}, or as a role that inherits from it",
        )
    if namespace is None or not who["has_ledger"]:
        return SchemaState(schema=schema, roles=roles, **who)
    identifier = who["identifier"]
    applied = cursor.execute(_APPLIED.format(id=identifier)).fetchall()
    functions = cursor.execute(
        _FUNCTIONS.format(id=identifier),
        {"schema": schema},
    ).fetchall()
    return SchemaState(
        schema=schema,
        roles=roles,
        applied={row["version"]: AppliedMigration(**row) for row in applied},
        functions={row["signature"]: InstalledFunction(**row) for row in functions},
        grants=read_grants(conn, schema),
        **who,
    )


def read_grants(conn: Connection, schema: str) -> frozenset[Grant]:
    """Every privilege on the schema and what is in it that is not its owner's."""
    cursor = conn.cursor(row_factory=psycopg.rows.dict_row)
    rows = cursor.execute(_GRANTS, {"schema": schema}).fetchall()
    return frozenset(Grant(**row) for row in rows)
