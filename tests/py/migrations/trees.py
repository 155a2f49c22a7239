"""Small SQL trees in the shipped layout, to install, break and upgrade."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import psycopg

from tests.servers.throwaway import find_installation

SHIPPED = Path(__file__).parents[3] / "sql"

THINGS = """\
create table counterfoil.things (
  org_id text not null, thing_id text not null, note text default 'none',
  constraint things_pkey primary key (org_id, thing_id),
  constraint things_note_check check (note <> '')
) with (fillfactor = 80);
create index things_note_idx on counterfoil.things (org_id, note);
comment on table counterfoil.things is 'Rows that counterfoil.count_things counts.';
comment on column counterfoil.things.note is 'A note.';
insert into counterfoil.things values ('o', '1', 'first');
"""


class Tree:
    """A folder of SQL that a test fills; `root` goes to the installer as `source`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        for folder in ("migrations", "functions", "indexes"):
            (root / folder).mkdir(parents=True)
        for name in ("bootstrap.sql", "roles.sql"):
            shutil.copy(SHIPPED / name, root / name)
        self.grants("")

    def copy(self, root: Path) -> Tree:
        """The same tree in another folder, to be changed."""
        shutil.copytree(self.root, root)
        other = object.__new__(Tree)
        other.root = root
        return other

    def write(self, path: str, text: str) -> None:
        """Write any file below the root."""
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def migration(self, number: int, name: str, text: str) -> None:
        """Add or replace a migration."""
        self.write(f"migrations/{number:04d}_{name}.sql", text)

    def function(
        self, name: str, arguments: str, returns: str, query: str, room: str = "facts"
    ) -> None:
        """Write a function file with one overload."""
        self.write(f"functions/{room}/{name}.sql", function(name, arguments, returns, query))

    def grants(self, rows: str) -> None:
        """Write the matrix."""
        self.write("grants.toml", rows)


def function(name: str, arguments: str, returns: str, query: str) -> str:
    """One function in the house style. `arguments` are `p_name type`, with commas between."""
    types = ", ".join(argument.split(None, 1)[1] for argument in arguments.split(", ") if argument)
    return f"""\
-- {name}: for tests.
-- Since:    1
create or replace function counterfoil.{name}({arguments})
returns {returns}
language plpgsql
stable
parallel safe
called on null input
security definer
set search_path = pg_catalog, pg_temp
as $function$
begin
  return ({query});
end
$function$;

comment on function counterfoil.{name}({types}) is 'Made for tests.';
revoke all on function counterfoil.{name}({types}) from public;
"""


def small_tree(root: Path) -> Tree:
    """One table, two functions, two rows in the matrix."""
    tree = Tree(root)
    tree.migration(1, "things", THINGS)
    tree.function(
        "count_things",
        "p_org_id text",
        "bigint",
        "select count(*) from counterfoil.things as t where t.org_id = p_org_id",
    )
    tree.function("note_of", "p_thing_id text", "text", "select counterfoil.plain(p_thing_id)")
    tree.function("plain", "p_value text", "text", "select trim(p_value)", room="common")
    tree.grants(
        "[common]\nplain = []\n"
        "[facts]\ncount_things = ['worker', 'reader']\nnote_of = ['gateway']\n"
    )
    return tree


def execute(dsn: str, *statements: str) -> None:
    """Run statements, each in its own transaction."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def rows(dsn: str, query: str) -> list[tuple[Any, ...]]:
    """All rows of a query."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        return connection.execute(query.encode()).fetchall()


def psql(dsn: str, script: str) -> subprocess.CompletedProcess[str]:
    """Feed a script to psql as a DBA would."""
    installation = find_installation("embedded")
    return subprocess.run(
        [installation.bin_dir / "psql", "-X", "-q", "-v", "ON_ERROR_STOP=1", "-d", dsn],
        input=script,
        text=True,
        capture_output=True,
        check=False,
        timeout=120,
    )
