"""`plan | psql` is `migrate`."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.migrations import migrate, plan, status, verify
from tests.py.migrations.trees import Tree, execute, psql, rows

# Everything that must come out the same, times and transaction numbers left out.
OUTCOME = """
select 'migration', m.version::text, m.name, m.checksum, m.package_version, m.applied_by,
       (m.duration_ms is not null)::text
from {id}.schema_migrations as m
union all
select 'function', f.signature, f.name, f.source, f.since_version, f.checksum, f.definition_checksum
from {id}.schema_functions as f
union all
select 'acl', p.proname, p.proacl::text, '', '', '', ''
from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace where n.nspname = {name}
union all
select 'schema', n.nspacl::text, obj_description(n.oid), '', '', '', ''
from pg_namespace as n where n.nspname = {name}
order by 1, 2, 3
"""


def outcome(dsn: str, schema: str = "counterfoil") -> list[tuple[object, ...]]:
    identifier = '"' + schema.replace('"', '""') + '"'
    literal = "'" + schema.replace("'", "''") + "'"
    return rows(dsn, OUTCOME.format(id=identifier, name=literal))


@pytest.mark.parametrize("schema", ["counterfoil", "we\"ird; drop 'x'", "select"])
def test_a_first_install_by_psql(
    database: str, second_database: str, tree: Tree, schema: str
) -> None:
    migrate(database, schema, source=tree.root)
    script = plan(second_database, schema, source=tree.root)
    done = psql(second_database, script)
    assert done.returncode == 0, done.stderr
    assert done.stdout == "", "it answers nothing, not even with an empty table"
    assert outcome(second_database, schema) == outcome(database, schema)
    assert str(verify(second_database, schema, source=tree.root)) == str(
        verify(database, schema, source=tree.root)
    )
    assert verify(second_database, schema, source=tree.root).ok
    assert status(second_database, schema, source=tree.root).current


def test_an_upgrade_by_psql(
    database: str, second_database: str, tree: Tree, tmp_path: Path
) -> None:
    newer = tree.copy(tmp_path / "newer")
    newer.migration(2, "more", "alter table counterfoil.things add extra integer;")
    newer.function("count_things", "p_org_id text", "text", "select 'many'")
    (newer.root / "functions/common/plain.sql").unlink()
    newer.grants("[facts]\ncount_things = ['operator']\nnote_of = []\n")
    for dsn in (database, second_database):
        migrate(dsn, source=tree.root)
    migrate(database, source=newer.root)
    script = plan(second_database, source=newer.root)
    assert (
        "drop routine if exists\n  counterfoil.count_things(text),\n  counterfoil.plain" in script
    )
    assert psql(second_database, script).returncode == 0
    assert outcome(second_database) == outcome(database)
    assert verify(second_database, source=newer.root).ok


def test_a_plan_changes_nothing(database: str, tree: Tree) -> None:
    assert "create schema counterfoil;" in plan(database, source=tree.root)
    assert rows(database, "select to_regnamespace('counterfoil')") == [(None,)]


def test_a_plan_with_nothing_to_do_says_so(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    script = plan(database, source=tree.root)
    assert script.endswith("-- nothing to do\n")
    assert all(line.startswith("--") for line in script.splitlines())


def test_a_stale_plan_stops_at_the_first_thing_that_was_done(database: str, tree: Tree) -> None:
    script = plan(database, source=tree.root)
    migrate(database, source=tree.root)
    before = outcome(database)
    done = psql(database, script)
    assert done.returncode != 0
    assert "already exists" in done.stderr
    assert outcome(database) == before


def test_a_plan_made_after_a_failure_finishes(database: str, tree: Tree) -> None:
    tree.migration(2, "bad", "select 1 / 0;")
    assert psql(database, plan(database, source=tree.root)).returncode != 0
    assert rows(database, "select max(version) from counterfoil.schema_migrations") == [(1,)]
    tree.migration(2, "bad", "select 1 / 1;")
    assert psql(database, plan(database, source=tree.root)).returncode == 0
    assert verify(database, source=tree.root).ok


def test_a_session_that_rolls_back_to_savepoints_records_the_functions_too(
    database: str, tree: Tree
) -> None:
    script = "\\set ON_ERROR_ROLLBACK on\n" + plan(database, source=tree.root)
    assert psql(database, script).returncode == 0
    execute(database, "select 1 / count(*) from counterfoil.schema_functions")
    assert verify(database, source=tree.root).ok
