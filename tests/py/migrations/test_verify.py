"""Every kind of drift is found and named, and nothing else is."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from counterfoil.migrations import Finding, migrate, verify
from counterfoil.schema.drift import matrix_problems
from counterfoil.schema.sql_tree import load_tree
from tests.py.migrations.trees import SHIPPED, Tree, execute, rows

S = "counterfoil"

# What someone does by hand → kind, name and problem of exactly the findings expected.
DRIFT: dict[str, list[tuple[str, str, str]]] = {
    f"drop table {S}.things cascade": [
        ("column", "things.note", "missing"),
        ("column", "things.org_id", "missing"),
        ("column", "things.thing_id", "missing"),
        ("comment", "column things.note", "missing"),
        ("comment", "relation things", "missing"),
        ("constraint", "things.things_note_check", "missing"),
        ("constraint", "things.things_pkey", "missing"),
        ("index", "things_note_idx", "missing"),
        ("index", "things_pkey", "missing"),
        ("table", "things", "missing"),
    ],
    f"alter table {S}.things add extra integer": [("column", "things.extra", "not Counterfoil's")],
    f"alter table {S}.things alter note type varchar(20)": [
        ("column", "things.note", "character varying(20)"),
        ("constraint", "things.things_note_check", "should be"),
    ],
    f"alter table {S}.things alter note drop default": [
        ("column", "things.note", "default 'none'::text")
    ],
    f"alter table {S}.things alter note set not null": [("column", "things.note", "not null")],
    f"alter table {S}.things alter note set statistics 7": [
        ("column", "things.note", "statistics 7")
    ],
    f"alter table {S}.things alter note set (n_distinct = 5)": [
        ("column", "things.note", "n_distinct=5")
    ],
    f"alter table {S}.things alter note set storage external": [
        ("column", "things.note", "storage e")
    ],
    f"alter table {S}.things drop constraint things_note_check": [
        ("constraint", "things.things_note_check", "missing")
    ],
    f"alter table {S}.things add constraint other check (note <> 'x') not valid": [
        ("constraint", "things.other", "not Counterfoil's")
    ],
    f"alter table {S}.things set (fillfactor = 70)": [("table", "things", "fillfactor=70")],
    f"alter table {S}.things set unlogged": [("table", "things", "r u ")],
    f"alter table {S}.things enable row level security": [("table", "things", "row security")],
    f"drop index {S}.things_note_idx": [("index", "things_note_idx", "missing")],
    f"create index extra on {S}.things (note)": [("index", "extra", "not Counterfoil's")],
    f"comment on column {S}.things.note is 'Other.'": [
        ("comment", "column things.note", "is 'Other.', should be 'A note.'")
    ],
    f"comment on schema {S} is null": [("comment", "schema ", "missing")],
    f"comment on function {S}.plain(text) is null": [
        ("comment", "function plain(text)", "missing")
    ],
    f"alter function {S}.plain(text) volatile": [("function", "plain(text)", "edited in place")],
    f"alter function {S}.plain(text) reset search_path": [
        ("function", "plain(text)", "edited in place")
    ],
    f"drop function {S}.plain(text)": [
        ("function", "plain(text)", "was dropped"),
    ],
    f"create view {S}.peek as select 1 as one": [
        ("column", "peek.one", "not Counterfoil's"),
        ("view", "peek", "not Counterfoil's"),
    ],
    f"create sequence {S}.numbers": [("sequence", "numbers", "not Counterfoil's")],
    f"create type {S}.mood as enum ('good')": [("type", "mood", "not Counterfoil's")],
    f"create statistics {S}.both_ids on org_id, thing_id from {S}.things": [
        ("statistics object", "counterfoil.both_ids", "not Counterfoil's")
    ],
    f"create function {S}.noop() returns trigger language plpgsql as 'begin return new; end';"
    f" revoke all on function {S}.noop() from public;"
    f" create trigger t before insert on {S}.things for each row execute function {S}.noop()": [
        ("function", "noop()", "not Counterfoil's"),
        ("trigger", "things.t", "not Counterfoil's"),
    ],
    f"create rule r as on insert to {S}.things do instead nothing": [
        ("rule", "things.r", "not Counterfoil's")
    ],
    f"create policy p on {S}.things": [("policy", "things.p", "not Counterfoil's")],
    f"grant select on {S}.things to counterfoil_reader": [
        ("grant", "SELECT on table things", "counterfoil_reader has it")
    ],
    f"grant update (note) on {S}.things to public": [
        ("grant", "UPDATE on column things.note", "PUBLIC has it")
    ],
    f"grant execute on function {S}.plain(text) to public": [
        ("grant", "EXECUTE on function plain(text)", "PUBLIC has it")
    ],
    f"grant create on schema {S} to counterfoil_worker": [
        ("grant", "CREATE on schema counterfoil", "counterfoil_worker has it")
    ],
    f"revoke all on function {S}.count_things(text) from counterfoil_worker": [
        ("grant", "EXECUTE on function count_things(text)", "missing for counterfoil_worker")
    ],
    f"revoke usage on schema {S} from counterfoil_reader": [
        ("grant", "USAGE on schema counterfoil", "missing for counterfoil_reader")
    ],
    f"alter table {S}.things owner to counterfoil_worker": [
        ("owner", "relation things", "belongs to counterfoil_worker")
    ],
    f"alter function {S}.plain(text) owner to counterfoil_worker": [
        ("owner", "function plain(text)", "belongs to counterfoil_worker")
    ],
}


@pytest.mark.parametrize("change", DRIFT)
def test_a_change_by_hand_is_named(small_database: str, tree: Tree, change: str) -> None:
    execute(small_database, change)
    findings = verify(small_database, source=tree.root).findings
    found = sorted(findings, key=lambda finding: (finding.kind, finding.name))
    assert [(f.kind, f.name) for f in found] == [(k, n) for k, n, _ in DRIFT[change]]
    for finding, (_, _, problem) in zip(found, DRIFT[change], strict=True):
        assert problem in finding.problem
        assert finding.remedy


def findings_of(database: str, tree: Tree) -> list[Finding]:
    return list(verify(database, source=tree.root).findings)


def test_an_edited_body_is_shown(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    definition = rows(database, "select pg_get_functiondef('counterfoil.plain'::regproc)")[0][0]
    execute(database, definition.replace("trim(", "upper("))
    [finding] = findings_of(database, tree)
    assert (finding.kind, finding.name) == ("function", "plain(text)")
    assert "upper(p_value)" in finding.problem or "trim(p_value)" in finding.problem


def test_an_edited_migration_is_named(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    path = "migrations/0001_things.sql"
    tree.write(path, (tree.root / path).read_text() + "-- a word more\n")
    [finding] = findings_of(database, tree)
    assert (finding.kind, finding.name) == ("migration", path)
    assert "edited after it was applied" in finding.problem


def test_what_is_not_applied_is_named_and_the_rest_compared(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    tree.migration(2, "more", "alter table counterfoil.things add extra integer;")
    tree.function("plain", "p_value text", "text", "select upper(p_value)", room="common")
    tree.function("late", "p_x text", "text", "null")
    tree.grants((tree.root / "grants.toml").read_text() + "late = []\n")
    execute(database, "alter table counterfoil.things alter note set not null")
    assert sorted((f.kind, f.name) for f in findings_of(database, tree)) == [
        ("column", "things.note"),
        ("function", "functions/facts/late.sql"),
        ("function", "plain(text)"),
        ("migration", "migrations/0002_more.sql"),
    ]


def test_an_edit_shows_although_the_package_has_moved_on(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    execute(database, "alter function counterfoil.plain(text) cost 7")
    tree.function("plain", "p_value text", "text", "select upper(p_value)", room="common")
    [finding] = findings_of(database, tree)
    assert finding.name == "plain(text)"
    assert "edited in place, and not this package's version" in finding.problem


def test_a_newer_database_is_named(database: str, tree: Tree) -> None:
    tree.migration(2, "more", "select 1;")
    migrate(database, source=tree.root)
    (tree.root / "migrations/0002_more.sql").unlink()
    [finding] = findings_of(database, tree)
    assert "RL009" in finding.problem


def test_no_install_is_a_finding(database: str, tree: Tree) -> None:
    report = verify(database, source=tree.root)
    assert not report.ok
    assert "no Counterfoil is installed" in str(report)


def test_the_matrix_must_agree_with_the_files(database: str, tree: Tree) -> None:
    tree.grants("[facts]\nplain = []\ncount_things = ['worker']\ngone = []\n")
    migrate(database, source=tree.root)
    assert [(f.name, f.problem) for f in findings_of(database, tree)] == [
        ("gone", "a row in grants.toml [facts], but no file"),
        ("note_of", "no row in grants.toml"),
        ("plain", "a row in grants.toml [facts], a file in common/"),
    ]


def test_verify_leaves_nothing(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    count = "select (select count(*) from pg_class), (select count(*) from pg_namespace)"
    before = rows(database, count)
    assert verify(database, source=tree.root).ok
    assert rows(database, count) == before


@pytest.mark.parametrize("schema", ["counterfoil", 'we"ird; drop', "user"])
def test_the_shipped_schema_is_as_shipped(database: str, tmp_path: Path, schema: str) -> None:
    # A copy, so that the files are the same for both even while someone edits them.
    source = shutil.copytree(SHIPPED, tmp_path / "shipped")
    migrate(database, schema, source=source)
    report = verify(database, schema, source=source)
    assert [str(f) for f in report.findings if f.kind != "matrix"] == []
    assert report.checked > 500


def test_every_shipped_function_has_its_row_and_every_row_its_function() -> None:
    assert matrix_problems(load_tree()) == []


def test_the_shipped_matrix_agrees_with_what_functions_are(installed: str) -> None:
    """A function that a role may call is security definer, any other is a private helper."""
    wrong = rows(
        installed,
        """
        select p.oid::regprocedure::text from pg_proc as p
        where p.pronamespace = 'counterfoil'::regnamespace and p.prosecdef <> exists (
          select from aclexplode(p.proacl) as a where a.grantee <> p.proowner)
        """,
    )
    assert wrong == []
