"""Indexes that are built without blocking writers, before the migration that needs them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest

from counterfoil.migrations import migrate, plan, prepare_indexes, verify
from counterfoil.schema.errors import IndexNotReadyError, StepFailedError
from tests.py.migrations.trees import Tree, execute, psql, rows

UNIQUE = "create unique index concurrently if not exists big_idx on counterfoil.things (note);\n"
STATE = (
    "select i.indisvalid, i.indisready from pg_index as i"
    " where i.indexrelid = to_regclass('counterfoil.big_idx')"
)


@pytest.fixture
def waiting(tree: Tree) -> Tree:
    """The small tree with a second migration that requires an index."""
    tree.write("indexes/big_idx.sql", "-- why\n" + UNIQUE)
    tree.migration(
        2, "big", "-- requires-index: big_idx\ncomment on index counterfoil.big_idx is 'Needed.';"
    )
    return tree


@pytest.fixture
def behind(database: str, waiting: Tree) -> str:
    """A database at version 1, whose table is large, for the waiting tree."""
    later = waiting.root / "migrations/0002_big.sql"
    index = waiting.root / "indexes/big_idx.sql"
    texts = later.read_text(), index.read_text()
    later.unlink()
    index.unlink()
    migrate(database, source=waiting.root)
    later.write_text(texts[0])
    index.write_text(texts[1])
    execute(
        database,
        "insert into counterfoil.things select 'many', g::text, 'note ' || g"
        " from generate_series(1, 30000) as g",
    )
    return database


def test_the_migration_waits_for_the_index(behind: str, waiting: Tree) -> None:
    with pytest.raises(IndexNotReadyError) as error:
        migrate(behind, source=waiting.root)
    assert "big_idx has not been prepared" in error.value.what
    assert "prepare-indexes" in error.value.hint
    assert rows(behind, "select max(version) from counterfoil.schema_migrations") == [(1,)]

    assert [str(r) for r in prepare_indexes(behind, source=waiting.root)] == [
        "index big_idx: built"
    ]
    assert rows(behind, STATE) == [(True, True)]
    assert prepare_indexes(behind, source=waiting.root)[0].outcome == "ready"
    migrate(behind, source=waiting.root)
    assert verify(behind, source=waiting.root).ok
    assert prepare_indexes(behind, source=waiting.root) == []


def test_a_fresh_install_builds_it_itself(database: str, waiting: Tree) -> None:
    assert prepare_indexes(database, source=waiting.root)[0].outcome == "no table yet"
    migrate(database, source=waiting.root)
    assert rows(database, STATE) == [(True, True)]
    assert verify(database, source=waiting.root).ok


def test_a_failed_build_is_refused_then_built_again(behind: str, waiting: Tree) -> None:
    execute(behind, "insert into counterfoil.things values ('o', '2', 'first')")
    with pytest.raises(StepFailedError) as error:
        prepare_indexes(behind, source=waiting.root)
    assert error.value.sqlstate == "23505"
    assert rows(behind, STATE)[0][0] is False
    with pytest.raises(IndexNotReadyError, match="is not valid and ready"):
        migrate(behind, source=waiting.root)
    execute(behind, "delete from counterfoil.things where thing_id = '2'")
    assert prepare_indexes(behind, source=waiting.root)[0].outcome == "rebuilt"
    migrate(behind, source=waiting.root)
    assert verify(behind, source=waiting.root).ok


def test_an_index_that_turned_invalid_is_named(behind: str, waiting: Tree) -> None:
    prepare_indexes(behind, source=waiting.root)
    migrate(behind, source=waiting.root)
    execute(behind, "update pg_index set indisvalid = false where indexrelid ="
                    " 'counterfoil.big_idx'::regclass")  # fmt: skip
    [finding] = verify(behind, source=waiting.root).findings
    assert (finding.kind, finding.name, finding.problem) == (
        "index",
        "big_idx",
        "not usable (not valid)",
    )


def test_a_build_in_progress_is_not_disturbed(behind: str, waiting: Tree) -> None:
    with psycopg.connect(behind) as writer, ThreadPoolExecutor(1) as pool:
        # The builder waits for this transaction, for as long as it is open.
        writer.execute("insert into counterfoil.things values ('o', '3', 'third')")
        building = pool.submit(prepare_indexes, behind, source=waiting.root)
        while rows(behind, STATE) == []:
            assert not building.done()
        while not rows(behind, "select from pg_stat_progress_create_index where index_relid <> 0"):
            assert not building.done()
        with pytest.raises(IndexNotReadyError, match="is being built by the server process"):
            prepare_indexes(behind, source=waiting.root)
        # And writers are not blocked meanwhile.
        execute(behind, "insert into counterfoil.things values ('o', '4', 'fourth')")
        writer.commit()
        assert building.result(60)[0].outcome == "built"


def test_a_role_s_timeouts_do_not_cut_a_build_short(behind: str, waiting: Tree) -> None:
    execute(
        behind,
        "do $$ begin execute format('alter database %I set lock_timeout = ''50ms''',"
        " current_database()); end $$",
    )
    with psycopg.connect(behind) as writer, ThreadPoolExecutor(1) as pool:
        writer.execute("insert into counterfoil.things values ('o', '3', 'third')")
        building = pool.submit(prepare_indexes, behind, source=waiting.root)
        old = (
            "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"
            " and query like '%concurrently%big_idx%' and now() - query_start > '200ms'"
        )
        while rows(behind, old) == [(0,)]:
            assert not building.done()
        writer.commit()
        assert building.result(60)[0].outcome == "built"


def test_the_plan_holds_the_same_guard(behind: str, waiting: Tree) -> None:
    script = plan(behind, source=waiting.root)
    done = psql(behind, script)
    assert done.returncode != 0
    assert "big_idx has not been prepared" in done.stderr
    prepare_indexes(behind, source=waiting.root)
    assert psql(behind, script).returncode == 0
    assert verify(behind, source=waiting.root).ok


def test_another_schema_has_its_own_index(database: str, waiting: Tree) -> None:
    name = "o'b\"x"
    migrate(database, name, source=waiting.root)
    assert verify(database, name, source=waiting.root).ok
