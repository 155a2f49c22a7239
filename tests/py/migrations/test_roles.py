"""Who may install, and what happens without the roles. On a server of its own each."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from counterfoil.migrations import migrate, plan, roles_sql, status, verify
from counterfoil.schema.errors import ExpectedShapeError, NotOwnerError, StepFailedError
from counterfoil.schema.grants import ROLES
from tests.py.migrations.trees import Tree, execute, psql, rows

EXISTING = "select count(*) from pg_roles where rolname like 'counterfoil\\_%'"


def owned_database(admin: str, *, create: bool = True) -> str:
    """A database for the login `owner`, who is nobody special. Returns the owner's dsn."""
    execute(admin, "create role owner login", "create database app")
    app = make_conninfo(admin, dbname="app")
    if create:
        execute(app, "grant create on database app to owner")
    else:
        execute(app, "create schema counterfoil authorization owner")
    return make_conninfo(app, user="owner")


def test_an_owner_without_createrole_installs_all_but_the_roles(roleless: str, tree: Tree) -> None:
    dsn = owned_database(roleless)
    report = migrate(dsn, source=tree.root)
    assert report.missing_roles == sorted(ROLES)
    assert "counterfoil roles" in str(report)
    assert rows(dsn, "select counterfoil.count_things('o')") == [(1,)]
    assert migrate(dsn, source=tree.root).steps == []
    stands = status(dsn, source=tree.root)
    assert list(stands.missing_roles) == sorted(ROLES)
    assert "counterfoil roles" in str(stands)

    findings = verify(dsn, source=tree.root).findings
    assert [(f.kind, f.name) for f in findings] == [("role", role) for role in sorted(ROLES)]
    assert all("grants are missing" in f.problem for f in findings)
    script = plan(make_conninfo(dsn), "other", source=tree.root)
    assert "no grants to counterfoil_dispatcher" in script
    assert "create role" not in script

    # The DBA creates the roles with the SQL that `counterfoil roles` prints; then all is granted.
    assert psql(roleless, roles_sql()).returncode == 0
    assert [f.kind for f in verify(dsn, source=tree.root).findings] == ["grant"] * 8
    assert migrate(dsn, source=tree.root).steps == ["functions and grants"]
    assert verify(dsn, source=tree.root).ok

    # A superuser's upgrade leaves everything the owner's.
    tree.migration(2, "more", "create table counterfoil.more ();")
    tree.function("fresh", "p_x text", "text", "null")
    tree.grants((tree.root / "grants.toml").read_text() + "fresh = []\n")
    migrate(make_conninfo(roleless, dbname="app"), source=tree.root)
    assert verify(dsn, source=tree.root).ok

    # Somebody else may not even begin.
    execute(roleless, "create role stranger login")
    with pytest.raises(NotOwnerError) as error:
        migrate(make_conninfo(dsn, user="stranger"), source=tree.root)
    assert "log in as owner" in error.value.hint


def test_an_owner_of_the_schema_alone_installs_but_cannot_verify(roleless: str, tree: Tree) -> None:
    dsn = owned_database(roleless, create=False)
    migrate(dsn, source=tree.root)
    assert status(dsn, source=tree.root).current
    with pytest.raises(ExpectedShapeError, match="grant the login CREATE on the database"):
        verify(dsn, source=tree.root)
    execute(make_conninfo(roleless, dbname="app"), "grant create on database app to owner")
    assert [f.kind for f in verify(dsn, source=tree.root).findings] == ["role"] * 5


def test_what_the_server_refuses_is_our_error(roleless: str, tree: Tree) -> None:
    dsn = owned_database(roleless)
    migrate(dsn, source=tree.root)
    with pytest.raises(ExpectedShapeError, match="takes writes"):
        verify(make_conninfo(dsn, options="-c default_transaction_read_only=on"), source=tree.root)
    execute(dsn, "revoke select on counterfoil.schema_migrations from owner")
    with pytest.raises(StepFailedError) as error:
        status(dsn, source=tree.root)
    assert error.value.sqlstate == "42501"


def test_a_login_that_may_creates_the_roles(roleless: str, tree: Tree) -> None:
    owner = owned_database(roleless)
    execute(roleless, "alter role owner createrole")
    said = str(status(owner, source=tree.root))
    assert f"roles to be created: {', '.join(sorted(ROLES))}" in said
    assert "counterfoil roles" not in said
    script = plan(owner, source=tree.root)
    assert rows(roleless, EXISTING) == [(0,)]
    done = psql(owner, script)
    assert done.returncode == 0, done.stderr
    assert rows(roleless, EXISTING) == [(5,)]
    assert rows(
        roleless,
        "select count(*) from pg_roles where rolname like 'counterfoil\\_%' and (rolcanlogin or"
        " rolsuper or rolcreatedb or rolcreaterole or rolbypassrls or rolreplication)",
    ) == [(0,)]
    assert verify(owner, source=tree.root).ok
    assert migrate(owner, source=tree.root).steps == []


def test_another_database_s_installer_may_create_the_roles_first(roleless: str, tree: Tree) -> None:
    execute(roleless, "create database app")
    blocked = "select count(*) from pg_locks where not granted"
    with psycopg.connect(roleless) as other, ThreadPoolExecutor(1) as pool:
        other.execute(roles_sql().encode())
        app = make_conninfo(roleless, dbname="app")
        # It sees no roles yet, tries to create them, and waits for the other to commit.
        installing = pool.submit(migrate, app, source=tree.root)
        while rows(roleless, blocked) == [(0,)]:
            assert not installing.done()
        other.commit()
        installing.result(60)
    assert verify(app, source=tree.root).ok


def test_the_roles_can_do_what_the_matrix_says_and_no_more(database: str, tree: Tree) -> None:
    migrate(database, source=tree.root)
    denied = [
        ("counterfoil_gateway", "select counterfoil.count_things('o')"),
        ("counterfoil_worker", "select counterfoil.plain('a')"),
        ("counterfoil_worker", "select * from counterfoil.things"),
        ("counterfoil_worker", "select * from counterfoil.schema_migrations"),
        ("counterfoil_worker", "create table counterfoil.mine ()"),
    ]
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute("set role counterfoil_worker")
        assert connection.execute("select counterfoil.count_things('o')").fetchall() == [(1,)]
        for role, statement in denied:
            connection.execute(f"set role {role}".encode())
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(statement.encode())
    execute(database, "drop role if exists counterfoil_test_nobody",
            "create role counterfoil_test_nobody")  # fmt: skip
    try:
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("set role counterfoil_test_nobody")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute("select counterfoil.count_things('o')")
    finally:
        execute(database, "drop role counterfoil_test_nobody")


def test_what_default_privileges_give_is_named(database: str, tree: Tree) -> None:
    execute(database, roles_sql())
    execute(database, "alter default privileges grant select on tables to pg_monitor")
    migrate(database, source=tree.root)
    findings = verify(database, source=tree.root).findings
    assert {f.kind for f in findings} == {"grant"}
    assert "SELECT on table things" in {f.name for f in findings}
    assert {f.problem.split()[0] for f in findings} == {"pg_monitor"}
