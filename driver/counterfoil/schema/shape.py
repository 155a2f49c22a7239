"""The shape of a schema, read from the catalog, and the shape that the package means it to have.

The expected shape needs no snapshot file: the shipped SQL is installed under another name in a
transaction that is rolled back, and read with the same queries on the same server.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, replace

import psycopg

from counterfoil.schema.errors import ExpectedShapeError
from counterfoil.schema.sql_tree import SqlTree
from counterfoil.schema.state import Connection, SchemaState, pin_search_path
from counterfoil.schema.step_writer import Timeouts, settings_sql
from counterfoil.schema.steps import next_steps

Key = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    """`objects`: (kind, name without schema) → definition as text, owners and grants left out.
    `calls`: function signature → what `create or replace` cannot change about it."""

    objects: dict[Key, str]
    calls: dict[str, str]


# Functions are named by their input types, spelt with only pg_catalog in the search path.
_OBJECTS = r"""
with ns as (select n.oid from pg_namespace as n where n.nspname = %(schema)s),
rel as (select c.* from pg_class as c join ns on c.relnamespace = ns.oid),
typ as (select t.* from pg_type as t join ns on t.typnamespace = ns.oid)
select case c.relkind when 'r' then 'table' when 'p' then 'table' when 'v' then 'view'
         when 'm' then 'materialized view' when 'S' then 'sequence' when 'c' then 'type'
         when 'f' then 'foreign table' else 'relation' end as kind,
       quote_ident(c.relname) as name,
       concat_ws(' ', c.relkind, c.relpersistence, c.relreplident,
         case when c.relrowsecurity then 'row security' end,
         case when c.relforcerowsecurity then 'forced' end,
         array(select o from unnest(c.reloptions) as o order by o)::text,
         pg_get_partkeydef(c.oid),
         (select string_agg(i.inhparent::regclass::text, ',' order by i.inhseqno)
          from pg_inherits as i where i.inhrelid = c.oid),
         case when c.relkind in ('v', 'm') then pg_get_viewdef(c.oid) end,
         (select concat_ws(' ', s.seqtypid::regtype, s.seqstart, s.seqincrement, s.seqmin,
            s.seqmax, s.seqcache, s.seqcycle) from pg_sequence as s where s.seqrelid = c.oid)
       ) as definition
from rel as c where c.relkind not in ('i', 'I')
union all
select 'column', quote_ident(c.relname) || '.' || quote_ident(a.attname),
       concat_ws(' ',
         'column ' || rank() over (partition by c.oid order by a.attnum),
         format_type(a.atttypid, a.atttypmod),
         case when a.attcollation <> t.typcollation then a.attcollation::regcollation::text end,
         case when a.attnotnull then 'not null' end,
         'default ' || pg_get_expr(d.adbin, d.adrelid),
         nullif('identity ' || a.attidentity::text, 'identity '),
         nullif('generated ' || a.attgenerated::text, 'generated '),
         'storage ' || a.attstorage::text,
         nullif('compression ' || a.attcompression::text, 'compression '),
         -- Only what DDL can set: a server may keep entries of its own in here (15.20 does).
         (select string_agg(o, ',' order by o) from unnest(a.attoptions) as o
          where o like 'n\_distinct%%'),
         'statistics ' || nullif(a.attstattarget, -1))
from rel as c join pg_attribute as a on a.attrelid = c.oid
join pg_type as t on t.oid = a.atttypid
left join pg_attrdef as d on d.adrelid = c.oid and d.adnum = a.attnum
where a.attnum > 0 and not a.attisdropped and c.relkind not in ('i', 'I', 'S')
union all
select 'constraint',
       coalesce(quote_ident(c.relname), 'domain ' || quote_ident(t.typname))
         || '.' || quote_ident(k.conname),
       concat_ws(' ', pg_get_constraintdef(k.oid),
         case when not k.convalidated then 'not valid' end)
from pg_constraint as k
left join rel as c on c.oid = k.conrelid
left join typ as t on t.oid = k.contypid
where (c.oid is not null or t.oid is not null)
  -- From 18 on a column's NOT NULL is a constraint too; the column says it already.
  and (k.contype <> 'n' or not k.convalidated)
union all
select 'index', quote_ident(c.relname),
       concat_ws(' ', pg_get_indexdef(c.oid),
         case when not i.indisvalid then 'NOT VALID' end,
         case when not i.indisready then 'NOT READY' end,
         case when i.indisclustered then 'clustered' end,
         case when i.indisreplident then 'replica identity' end)
from rel as c join pg_index as i on i.indexrelid = c.oid
union all
select 'trigger', quote_ident(c.relname) || '.' || quote_ident(g.tgname),
       concat_ws(' ', pg_get_triggerdef(g.oid), g.tgenabled)
from rel as c join pg_trigger as g on g.tgrelid = c.oid where not g.tgisinternal
union all
select 'rule', quote_ident(c.relname) || '.' || quote_ident(r.rulename),
       concat_ws(' ', pg_get_ruledef(r.oid), r.ev_enabled)
from rel as c join pg_rewrite as r on r.ev_class = c.oid where r.rulename <> '_RETURN'
union all
select 'policy', quote_ident(c.relname) || '.' || quote_ident(o.polname),
       concat_ws(' ', o.polcmd, o.polpermissive, o.polroles::regrole[]::text,
         pg_get_expr(o.polqual, o.polrelid), pg_get_expr(o.polwithcheck, o.polrelid))
from rel as c join pg_policy as o on o.polrelid = c.oid
union all
select 'type', quote_ident(t.typname),
       concat_ws(' ', t.typtype, nullif(format_type(t.typbasetype, t.typtypmod), '-'),
         case when t.typnotnull then 'not null' end, 'default ' || t.typdefault,
         (select string_agg(quote_literal(e.enumlabel), ', ' order by e.enumsortorder)
          from pg_enum as e where e.enumtypid = t.oid))
from typ as t where t.typtype not in ('c', 'b') or (t.typtype = 'b' and t.typelem = 0)
union all
select case p.prokind when 'p' then 'procedure' when 'a' then 'aggregate' else 'function' end,
       quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',
       case when p.prokind <> 'a' then pg_get_functiondef(p.oid)
         else p.prorettype::regtype::text end
from pg_proc as p join ns on p.pronamespace = ns.oid
union all
select 'comment', kind || ' ' || name, text from (
  select 'schema' as kind, '' as name, obj_description(ns.oid, 'pg_namespace') as text from ns
  union all
  select 'function', quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')',
         obj_description(p.oid, 'pg_proc')
  from pg_proc as p join ns on p.pronamespace = ns.oid
  union all
  select 'relation', quote_ident(c.relname), obj_description(c.oid, 'pg_class') from rel as c
  union all
  select 'column', quote_ident(c.relname) || '.' || quote_ident(a.attname),
         col_description(c.oid, a.attnum)
  from rel as c join pg_attribute as a on a.attrelid = c.oid and a.attnum > 0
  union all
  select 'constraint', quote_ident(c.relname) || '.' || quote_ident(k.conname),
         obj_description(k.oid, 'pg_constraint')
  from rel as c join pg_constraint as k on k.conrelid = c.oid
  union all
  select 'type', quote_ident(t.typname), obj_description(t.oid, 'pg_type') from typ as t
) as comments where text is not null
union all
select other.type, other.identity, 'present'
from ns
join pg_depend as d on d.refclassid = 'pg_namespace'::regclass and d.refobjid = ns.oid
  and d.classid not in ('pg_class'::regclass, 'pg_proc'::regclass, 'pg_type'::regclass,
    'pg_constraint'::regclass, 'pg_default_acl'::regclass)
cross join lateral pg_identify_object(d.classid, d.objid, d.objsubid) as other
"""

_CALLS = """
select quote_ident(p.proname) || '(' || oidvectortypes(p.proargtypes) || ')' as signature,
       concat_ws(' ', p.prokind, p.proretset, format_type(p.prorettype, null),
         p.proargnames::text, p.proargmodes::text,
         (select string_agg(format_type(t.oid, null), ',' order by t.ord)
          from unnest(p.proallargtypes) with ordinality as t (oid, ord)),
         p.pronargdefaults) as call
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
where n.nspname = %(schema)s
"""


def read_shape(conn: Connection, schema: str) -> Shape:
    """The shape that `schema` has, inside the caller's transaction."""
    pin_search_path(conn)
    rows = conn.execute(_OBJECTS, {"schema": schema}).fetchall()
    calls = conn.execute(_CALLS, {"schema": schema}).fetchall()
    return Shape({(kind, name): text for kind, name, text in rows}, dict(calls))


def expected_shape(conn: Connection, tree: SqlTree, state: SchemaState) -> Shape:
    """The shape that a fresh install of `tree` under the name `state.schema` would have.

    Works in a transaction of its own, or in the caller's, and leaves nothing of it. Raises
    `ExpectedShapeError` when the login may not create schemas or the shipped SQL fails.
    """
    mark = f"_x{secrets.token_hex(5)}"
    scratch = state.schema + mark
    with conn.transaction(force_rollback=True):
        conn.execute(settings_sql(Timeouts()).encode())
        row = conn.execute("select quote_ident(%s)", (scratch,)).fetchone()
        identifier = row[0] if row else scratch
        fresh = replace(
            state,
            schema=scratch,
            identifier=identifier,
            owner=None,
            has_ledger=False,
            applied={},
            functions={},
            roles=frozenset(),
            may_create_roles=False,
        )
        _install(conn, tree, fresh)
        shape = read_shape(conn, scratch)
    original = _unmarking(mark, identifier, state.identifier)
    return Shape(
        {(kind, original(name)): original(text) for (kind, name), text in shape.objects.items()},
        {original(signature): original(call) for signature, call in shape.calls.items()},
    )


def _install(conn: Connection, tree: SqlTree, state: SchemaState) -> None:
    for step in next_steps(tree, state, Timeouts()):
        for part in step.parts:
            try:
                conn.execute(part.sql.encode(), prepare=False)
            except psycopg.Error as error:
                hint = _HINTS.get(error.sqlstate or "", "correct the shipped SQL")
                raise ExpectedShapeError(
                    f"{error.diag.message_primary or error} [{error.sqlstate}], while installing "
                    "the shipped SQL on the side, to compare with",
                    where=part.path or step.title,
                    hint=f"{hint}; nothing was changed",
                    sqlstate=error.sqlstate,
                ) from error


_HINTS = {
    "42501": "grant the login CREATE on the database",
    "25006": "connect to a server that takes writes",
}


def _unmarking(mark: str, scratch: str, real: str) -> Callable[[str], str]:
    """Turn texts about the scratch schema into texts about the real one."""
    if real.startswith('"') and not scratch.startswith('"'):
        # A reserved word: only the real name needs quotes.
        return lambda text: text.replace(scratch, real)
    return lambda text: text.replace(mark, "")


def functions_to_drop(expected: Shape, present: Shape, state: SchemaState) -> tuple[str, ...]:
    """Installed functions that the package no longer has, or that must go before they can come
    back because their result or their argument names changed."""
    return tuple(
        signature
        for signature in sorted(state.functions)
        if signature in present.calls and present.calls[signature] != expected.calls.get(signature)
    )
