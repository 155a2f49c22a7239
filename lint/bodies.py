"""plpgsql_check over every PL/pgSQL function of an installed schema, with all its warnings."""

from __future__ import annotations

import psycopg

from tests.servers.databases import SCHEMA
from tests.servers.throwaway import MissingServerError

_CHECK = """
select p.oid::regprocedure::text, c.lineno, c.level, c.message, c.detail, c.hint
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_language as l on l.oid = p.prolang
cross join lateral plpgsql_check_function_tb(
    p.oid, fatal_errors => false, all_warnings => true
) as c
where
    p.pronamespace = %s::regnamespace
    and l.lanname = 'plpgsql'
    -- To raise is an effect: were these helpers immutable, a planner might raise ahead of time.
    and not (c.level = 'performance' and p.proname ~ '^raise_')
order by 1, 2
"""
_COUNT = """
select count(*)
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_language as l on l.oid = p.prolang
where p.pronamespace = %s::regnamespace and l.lanname = 'plpgsql'
"""


def check(dsn: str) -> list[str]:
    """What plpgsql_check says about the schema in the database of ``dsn``."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        try:
            connection.execute("create extension plpgsql_check")
        except psycopg.errors.UndefinedFile:
            raise MissingServerError(
                "the server lacks the extension plpgsql_check; on Debian the package is "
                "postgresql-15-plpgsql-check"
            ) from None
        return check_schema(connection, SCHEMA)


def check_schema(connection: psycopg.Connection, schema: str) -> list[str]:
    """What plpgsql_check, installed already, says about the functions of ``schema``."""
    counted = connection.execute(_COUNT, [schema]).fetchone()
    if counted is None or counted[0] == 0:
        return [f"the schema {schema} has no PL/pgSQL function to check"]
    return [
        f"{function}:{line or 0}: {level}: {' '.join(part for part in said if part)}"
        for function, line, level, *said in connection.execute(_CHECK, [schema])
    ]
