"""Installing and upgrading."""

from __future__ import annotations

import hashlib
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from counterfoil.migrations import Timeouts, migrate, status, verify
from counterfoil.schema.errors import (
    ConnectionFailedError,
    EditedMigrationError,
    SchemaNewerError,
    SchemaOccupiedError,
    StepFailedError,
)
from tests.py.migrations.trees import Tree, execute, function, rows
from tests.servers.databases import drop_database

STEPS = [
    "create the ledger of schema counterfoil",
    "migration 0001_things",
    "functions and grants",
]

SNAPSHOT = """
select 'm', version::text, checksum, applied_at::text from counterfoil.schema_migrations
union all
select 'f', signature, definition_checksum, installed_at::text from counterfoil.schema_functions
union all
select 'p', oid::text, proacl::text, xmin::text from pg_proc
where pronamespace = 'counterfoil'::regnamespace
order by 1, 2
"""


def schemas(dsn: str) -> set[str]:
    return {name for (name,) in rows(dsn, "select nspname from pg_namespace")}


def test_a_fresh_install_is_as_shipped(database: str, tree: Tree) -> None:
    report = migrate(database, source=tree.root)
    assert [step for step in report.steps if step != "roles"] == STEPS
    assert report.version == 1
    assert rows(database, "select counterfoil.count_things('o')") == [(1,)]
    ledger = rows(
        database,
        "select version, name, applied_by = session_user, duration_ms >= 0, checksum"
        " from counterfoil.schema_migrations order by 1",
    )
    assert [row[:4] for row in ledger] == [(0, "bootstrap", True, True), (1, "things", True, True)]
    assert rows(database, "select signature, since_version from counterfoil.schema_functions"
                          " order by 1") == [
        ("count_things(text)", "1"), ("note_of(text)", "1"), ("plain(text)", "1"),
    ]  # fmt: skip
    assert verify(database, source=tree.root).ok


def test_twice_is_once(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    before = rows(database, SNAPSHOT)
    report = migrate(database, source=tree.root)
    assert report.steps == []
    assert "nothing to do" in str(report)
    assert rows(database, SNAPSHOT) == before


def test_a_database_in_another_encoding_is_refused(admin_dsn: str) -> None:
    execute(admin_dsn, "drop database if exists latin")
    execute(admin_dsn, "create database latin encoding 'LATIN1' locale 'C' template template0")
    dsn = make_conninfo(admin_dsn, dbname="latin")
    try:
        with pytest.raises(
            StepFailedError, match="needs a database in UTF8; this one is in LATIN1"
        ):
            migrate(dsn)
        assert rows(dsn, "select to_regclass('counterfoil.settings')") == [(None,)]
    finally:
        drop_database(admin_dsn, dsn)


def test_a_failing_migration_leaves_nothing(database: str, tree: Tree) -> None:
    tree.migration(2, "bad", "create table counterfoil.half ();\n\nselect counterfoil.nothing();\n")
    tree.migration(3, "never", "create table counterfoil.never ();")
    with pytest.raises(StepFailedError) as error:
        migrate(database, source=tree.root)
    assert error.value.sqlstate == "42883"
    assert error.value.where == "migrations/0002_bad.sql:3"
    assert "0002_bad was rolled back whole" in error.value.hint
    assert rows(database, "select max(version) from counterfoil.schema_migrations") == [(1,)]
    assert rows(database, "select to_regclass('counterfoil.half')") == [(None,)]
    tree.migration(2, "bad", "create table counterfoil.whole ();")
    migrate(database, source=tree.root)
    assert rows(database, "select max(version) from counterfoil.schema_migrations") == [(3,)]


def test_functions_follow_a_migration_that_was_left_without_them(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    tree.migration(2, "more", "select 1;")
    # Fails on this database's rows, not on a fresh install.
    execute(database, "insert into counterfoil.things values ('o', '2', 'first')")
    tree.migration(3, "bad", "create unique index once_idx on counterfoil.things (note);")
    with pytest.raises(StepFailedError):
        migrate(database, source=tree.root)
    (tree.root / "migrations/0003_bad.sql").unlink()
    assert not status(database, source=tree.root).current
    assert migrate(database, source=tree.root).steps == ["functions and grants"]


def test_a_failing_function_leaves_the_old_ones(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    before = rows(database, SNAPSHOT)
    tree.function("count_things", "p_org_id text", "bigint", "select 2")
    tree.function("zz_bad", "p_x no_such_type", "text", "null")
    with pytest.raises(StepFailedError) as error:
        migrate(database, source=tree.root)
    assert "no_such_type" in error.value.what
    assert rows(database, SNAPSHOT) == before
    assert rows(database, "select counterfoil.count_things('o')") == [(1,)]


def test_a_failing_first_install_leaves_no_function(database: str, tree: Tree) -> None:
    tree.function("zz_bad", "p_x no_such_type", "text", "null")
    with pytest.raises(StepFailedError) as error:
        migrate(database, source=tree.root)
    assert error.value.where.startswith("functions/facts/zz_bad.sql")
    assert rows(database, "select count(*) from counterfoil.schema_functions") == [(0,)]
    assert rows(
        database, "select count(*) from pg_proc where pronamespace = 'counterfoil'::regnamespace"
    ) == [(0,)]


def test_upgraded_equals_fresh(
    database: str, second_database: str, tree: Tree, tmp_path: Path
) -> None:
    newer = tree.copy(tmp_path / "newer")
    newer.migration(2, "more", "alter table counterfoil.things add extra integer;")
    # Another result, other argument names, one more overload, one gone, one new.
    newer.function("count_things", "p_org_id text", "text", "select 'many'")
    note = function("note_of", "p_note_id text", "text", "select 'a'")
    overload = function("note_of", "p_a integer, p_b text[]", "integer", "select 2")
    newer.write("functions/facts/note_of.sql", note + overload)
    (newer.root / "functions/common/plain.sql").unlink()
    newer.function("fresh", "p_x counterfoil.things", "text", "select p_x.note")
    newer.grants("[facts]\ncount_things = ['operator']\nfresh = ['reader']\nnote_of = ['worker']\n")

    migrate(database, source=tree.root)
    report = migrate(database, source=newer.root)
    assert report.steps == ["migration 0002_more", "functions and grants"]
    migrate(second_database, source=newer.root)

    for dsn in (database, second_database):
        found = verify(dsn, source=newer.root)
        assert found.ok, str(found)
    what = "select signature, checksum, definition_checksum from counterfoil.schema_functions"
    assert rows(database, what + " order by 1") == rows(second_database, what + " order by 1")
    assert [row[0] for row in rows(database, what + " order by 1")] == [
        "count_things(text)",
        "fresh(counterfoil.things)",
        "note_of(integer, text[])",
        "note_of(text)",
    ]
    assert rows(database, "select counterfoil.count_things('o')") == [("many",)]


def test_what_stands_on_a_vanished_function_is_not_taken_along(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    execute(database, "create view public.report as select counterfoil.plain(' a ')")
    (tree.root / "functions/common/plain.sql").unlink()
    with pytest.raises(StepFailedError) as error:
        migrate(database, source=tree.root)
    assert "view public.report depends on function counterfoil.plain(text)" in error.value.what
    assert rows(database, "select * from public.report") == [("a",)]


def test_a_strangers_overload_is_left_alone(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    execute(
        database,
        "create function counterfoil.count_things(integer) returns integer"
        " language sql as 'select 1'",
        "revoke all on function counterfoil.count_things(integer) from public",
    )
    tree.function("count_things", "p_org_id text", "bigint", "select 5")
    assert migrate(database, source=tree.root).steps == ["functions and grants"]
    assert rows(database, "select count(*) from counterfoil.schema_functions") == [(3,)]
    assert rows(
        database,
        "select has_function_privilege('counterfoil_worker',"
        " 'counterfoil.count_things(integer)', 'execute')",
    ) == [(False,)]
    findings = verify(database, source=tree.root).findings
    assert [(f.kind, f.name) for f in findings] == [("function", "count_things(integer)")]


def test_many_migrators_at_once_are_one(database: str, tree: Tree) -> None:
    for number in range(2, 8):
        tree.migration(number, f"t{number}", f"create table counterfoil.t{number} ();")
    start = threading.Barrier(6)

    def run(_: int) -> list[str]:
        start.wait()
        return migrate(database, source=tree.root).steps

    with ThreadPoolExecutor(6) as pool:
        steps = [step for done in pool.map(run, range(6)) for step in done if step != "roles"]
    assert len([s for s in steps if s.startswith("migration")]) == 7
    assert len({s for s in steps if s.startswith("migration")}) == 7
    assert steps.count(STEPS[0]) == steps.count(STEPS[2]) == 1
    assert verify(database, source=tree.root).ok


def test_a_migrator_waits_for_another_then_looks_again(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    tree.migration(2, "more", "create table counterfoil.more ();")
    with psycopg.connect(database) as other, ThreadPoolExecutor(1) as pool:
        other.execute(
            "select pg_advisory_xact_lock(hashtextextended("
            "'counterfoil migrations of counterfoil', 0))"
        )
        waiting = pool.submit(migrate, database, source=tree.root)
        blocked = "select count(*) from pg_locks where locktype = 'advisory' and not granted"
        while rows(database, blocked) == [(0,)]:
            assert not waiting.done()
        # The other migrator does the same migration, and commits.
        other.execute(
            "insert into counterfoil.schema_migrations"
            " select 2, 'more', %s, '0', 'other', '2000-01-01', 0",
            [_checksum(tree, "migrations/0002_more.sql")],
        )
        other.execute("create table counterfoil.more ()")
        other.commit()
        assert waiting.result(60).steps == []
    ledger = "select applied_by from counterfoil.schema_migrations where version = 2"
    assert rows(database, ledger) == [("other",)]


def _checksum(tree: Tree, path: str) -> str:
    return hashlib.sha256((tree.root / path).read_bytes()).hexdigest()


def test_a_repeatable_read_default_does_not_blind_it(database: str, tree: Tree) -> None:
    execute(
        database,
        "do $$ begin execute format('alter database %I set default_transaction_isolation ="
        " ''serializable''', current_database()); end $$",
    )
    test_a_migrator_waits_for_another_then_looks_again(database, tree)


def test_a_table_lock_is_not_waited_for_for_ever(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    tree.migration(2, "more", "alter table counterfoil.things add extra integer;")
    with psycopg.connect(database) as reader:
        reader.execute("select * from counterfoil.things")
        with pytest.raises(StepFailedError) as error:
            migrate(database, source=tree.root, timeouts=Timeouts(lock=0.05))
    assert error.value.sqlstate == "55P03"
    assert "try again" in error.value.hint
    migrate(database, source=tree.root)
    assert status(database, source=tree.root).current


def test_a_statement_is_not_let_run_for_ever(database: str, tree: Tree) -> None:
    tree.migration(2, "slow", "select pg_sleep(60);")
    with pytest.raises(StepFailedError) as error:
        migrate(database, source=tree.root, timeouts=Timeouts(statement=0.5))
    assert error.value.sqlstate == "57014"
    assert error.value.where.startswith("migrations/0002_slow.sql")


def test_an_edited_migration_is_refused(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    tree.write("migrations/0001_things.sql", "select 1;")
    with pytest.raises(EditedMigrationError) as error:
        migrate(database, source=tree.root)
    assert error.value.where == "migrations/0001_things.sql"


def test_a_renamed_migration_is_refused(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    path = tree.root / "migrations/0001_things.sql"
    path.rename(path.with_name("0001_stuff.sql"))
    with pytest.raises(EditedMigrationError, match="applied under the name things"):
        migrate(database, source=tree.root)


def test_a_newer_database_is_refused(database: str, tree: Tree) -> None:
    tree.migration(2, "more", "select 1;")
    migrate(database, source=tree.root)
    (tree.root / "migrations/0002_more.sql").unlink()
    with pytest.raises(SchemaNewerError) as error:
        migrate(database, source=tree.root)
    assert error.value.sqlstate == "RL009"
    assert "version 2" in error.value.what


def test_an_older_package_does_not_put_its_functions_over_newer_ones(
    database: str, tree: Tree
) -> None:
    migrate(database, source=tree.root)
    execute(database, "update counterfoil.schema_functions set package_version = '10.0.0rc1'")
    tree.function("plain", "p_value text", "text", "select 'old'", room="common")
    with pytest.raises(SchemaNewerError, match="functions are of package 10"):
        migrate(database, source=tree.root)


def test_a_schema_that_is_someone_elses_is_refused(database: str, tree: Tree) -> None:
    execute(database, "create schema counterfoil", "create table counterfoil.mine ()")
    with pytest.raises(SchemaOccupiedError):
        migrate(database, source=tree.root)
    assert rows(database, "select to_regclass('counterfoil.schema_migrations')") == [(None,)]


def test_an_edit_in_place_is_put_back(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    execute(
        database,
        "create or replace function counterfoil.count_things(p_org_id text) returns bigint"
        " language sql as 'select 99::bigint'",
        "drop function counterfoil.plain(text)",
    )
    assert migrate(database, source=tree.root).steps == ["functions and grants"]
    assert rows(database, "select counterfoil.count_things('o')") == [(1,)]
    assert verify(database, source=tree.root).ok


def test_a_migration_may_require_a_function(database: str, tree: Tree) -> None:
    tree.write(
        "functions/common/tidy.sql",
        "create or replace function counterfoil.tidy(p_value text) returns text"
        " language sql immutable as $function$ select trim(p_value) $function$;\n"
        "revoke all on function counterfoil.tidy(text) from public;",
    )
    tree.grants((tree.root / "grants.toml").read_text().replace("plain", "tidy = []\nplain"))
    tree.migration(
        2,
        "tidy",
        "-- requires-function: tidy\n"
        "create index things_tidy_idx on counterfoil.things (counterfoil.tidy(note));",
    )
    migrate(database, source=tree.root)
    assert verify(database, source=tree.root).ok


def test_hostile_names_in_one_database(database: str, tree: Tree) -> None:
    names = ["counterfoil", 'we"ird; drop', "o'brien", "user", "Ünï", "--", "/*", "a$b", "a" * 48]
    for name in names:
        migrate(database, name, source=tree.root)
    assert set(names) <= schemas(database)
    execute(database, "insert into \"o'brien\".things values ('o', '2')")
    for name in names:
        report = verify(database, name, source=tree.root)
        assert report.ok, str(report)
        expected = 2 if name == "o'brien" else 1
        quoted = '"' + name.replace('"', '""') + '"'
        assert rows(database, f"select {quoted}.count_things('o')") == [(expected,)]


def test_a_server_that_does_not_answer_is_named(tmp_path: Path, tree: Tree) -> None:
    with pytest.raises(ConnectionFailedError) as error:
        migrate(f"host={tmp_path} user=x password=secret", source=tree.root)
    assert str(tmp_path) in error.value.what
    assert "secret" not in str(error.value)


def test_status_tells_what_is_applied_and_what_is_not(database: str, tree: Tree) -> None:
    before = status(database, source=tree.root)
    assert (before.version, before.latest, before.current) == (None, 1, False)
    migrate(database, source=tree.root)
    tree.migration(2, "more", "select 1;")
    report = status(database, source=tree.root)
    assert [row.name for row in report.applied] == ["bootstrap", "things"]
    assert [migration.name for migration in report.pending] == ["more"]
    assert not report.current
    assert "0002_more  pending" in str(report)
    migrate(database, source=tree.root)
    assert status(database, source=tree.root).current
