"""Which statements and branches of the functions the pgTAP files reach: ``make coverage``.

plpgsql_check's profiler counts them on PostgreSQL 15. What only pytest or the isolation specs reach
is not seen, so a low figure is a question, not a verdict.
"""

from __future__ import annotations

from pathlib import Path

import psycopg

from counterfoil import pgtap
from tests.servers.databases import SCHEMA, install, temporary_database
from tests.servers.throwaway import ThrowawayServer

_FILES = Path(__file__).parents[1] / "pgtap"
_REACHED = """
select
    p.oid::regprocedure::text,
    plpgsql_coverage_statements(p.oid),
    plpgsql_coverage_branches(p.oid)
from pg_catalog.pg_proc as p
inner join pg_catalog.pg_language as l on l.oid = p.prolang
where p.pronamespace = %s::regnamespace and l.lanname = 'plpgsql'
order by 2, 3, 1
"""


def measure() -> list[tuple[str, float, float]]:
    """(function, statements reached, branches reached), from 0 to 1, the least reached first."""
    profiler = {"plpgsql_check.profiler": "on"}
    with ThrowawayServer("15", **profiler) as server, temporary_database(server.dsn()) as dsn:
        install(dsn, "pgtap", "plpgsql_check")
        with psycopg.connect(dsn, autocommit=True) as connection:
            for path in pgtap.find_files([_FILES]):
                pgtap.run_files(dsn, [path], print)  # figures stand though a test may fail
                # The next file asserts on plans, and must not find this one's dead rows.
                connection.execute("vacuum")
            return connection.execute(_REACHED, [SCHEMA]).fetchall()


def main() -> None:
    """Print what was reached."""
    reached = measure()
    print("\nstatements  branches")
    for function, statements, branches in reached:
        print(f"{statements:>10.0%} {branches:>9.0%}  {function}")
    mean = [sum(figures) / len(reached) for figures in list(zip(*reached, strict=True))[1:]]
    print(f"{mean[0]:>10.0%} {mean[1]:>9.0%}  mean of {len(reached)} functions")


if __name__ == "__main__":
    main()
