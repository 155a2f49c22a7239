"""A tree that is not in order is refused, naming the file and what to do."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from counterfoil.schema.errors import SqlTreeError
from counterfoil.schema.sql_tree import load_tree
from tests.py.migrations.trees import Tree

INDEX = "create index concurrently big_idx on counterfoil.things (org_id);"

BROKEN: dict[str, tuple[Callable[[Tree], None], str, str]] = {
    "gap": (lambda t: t.migration(3, "late", "select 1;"), "0003_late.sql", "missing 0002"),
    "duplicate": (lambda t: t.migration(1, "zwei", "select 1;"), "0001_zwei.sql", "twice"),
    "name": (
        lambda t: t.write("migrations/2_x.sql", "select 1;"),
        "migrations/2_x.sql",
        "not a migration's name",
    ),
    "commit": (
        lambda t: t.migration(2, "x", "select 1; -- so far\n commit;"),
        "0002_x.sql",
        "transaction control",
    ),
    "psql command": (lambda t: t.migration(2, "x", "\\i other.sql"), "0002_x.sql", "control"),
    "concurrently": (lambda t: t.migration(2, "x", INDEX), "0002_x.sql", "inside a transaction"),
    "unknown index": (
        lambda t: t.migration(2, "x", "-- requires-index: nope\nselect 1;"),
        "0002_x.sql",
        "indexes/nope.sql",
    ),
    "unknown function": (
        lambda t: t.migration(2, "x", "-- requires-function: nope\nselect 1;"),
        "0002_x.sql",
        "nope",
    ),
    "idle index": (
        lambda t: t.write("indexes/big_idx.sql", INDEX),
        "indexes/big_idx.sql",
        "no migration requires",
    ),
    "misnamed index": (
        lambda t: t.write("indexes/other.sql", INDEX),
        "indexes/other.sql",
        "one statement",
    ),
    "other function": (
        lambda t: t.write("functions/facts/a.sql", "create function counterfoil.b() …;"),
        "functions/facts/a.sql",
        "creates b",
    ),
    "no function": (
        lambda t: t.write("functions/facts/a.sql", "select 1;"),
        "functions/facts/a.sql",
        "does not create",
    ),
    "two files": (
        lambda t: t.function("plain", "", "text", "null", room="ledger"),
        "functions/ledger/plain.sql",
        "taken by functions/common/plain.sql",
    ),
    "role": (lambda t: t.grants("[facts]\na = ['boss']"), "grants.toml: [facts] a", "list of"),
    "two rows": (lambda t: t.grants("[a]\nx = []\n[b]\nx = []"), "[b] x", "also in [a]"),
    "no room": (lambda t: t.grants("a = []"), "grants.toml", "outside a room"),
    "no toml": (lambda t: t.grants("[facts"), "grants.toml", "not TOML"),
    "no bootstrap": (lambda t: (t.root / "bootstrap.sql").unlink(), "bootstrap.sql", "missing"),
    "not utf-8": (
        lambda t: (t.root / "roles.sql").write_bytes(b"-- \xff") and None,
        "roles.sql",
        "UTF-8",
    ),
}


@pytest.mark.parametrize("fault", BROKEN)
def test_a_broken_tree_is_refused(tree: Tree, fault: str) -> None:
    load_tree(tree.root)
    break_it, where, what = BROKEN[fault]
    break_it(tree)
    with pytest.raises(SqlTreeError) as error:
        load_tree(tree.root)
    assert where in error.value.where
    assert what in error.value.what
    assert error.value.hint


def test_line_ends_do_not_change_a_checksum(tree: Tree) -> None:
    before = load_tree(tree.root).migrations[0].file.checksum
    path = tree.root / "migrations/0001_things.sql"
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert load_tree(tree.root).migrations[0].file.checksum == before


def test_rooms_come_in_the_order_of_the_sentence(tree: Tree) -> None:
    tree.function("aaa", "", "text", "null", room="operations")
    rooms = [function.room for function in load_tree(tree.root).functions]
    assert rooms == ["common", "facts", "facts", "operations"]
