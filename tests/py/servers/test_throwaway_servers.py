"""The servers and databases that other tests rest on."""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import sys
from pathlib import Path

import psycopg
import pytest

from tests.servers.databases import Connect, create_database, drop_database
from tests.servers.throwaway import (
    Installation,
    MissingServerError,
    ThrowawayServer,
    find_installation,
)


def test_a_database_starts_empty_and_is_its_own(database: str, admin_dsn: str) -> None:
    other = create_database(admin_dsn)
    try:
        with psycopg.connect(database) as one, psycopg.connect(other) as two:
            one.execute("create table only_here (n int)")
            one.commit()
            assert two.execute("select to_regclass('only_here')").fetchone() == (None,)
    finally:
        drop_database(admin_dsn, other)


def test_a_database_is_dropped_though_someone_is_connected(admin_dsn: str) -> None:
    dsn = create_database(admin_dsn)
    with psycopg.connect(dsn, autocommit=True) as still_here:
        drop_database(admin_dsn, dsn)
        with pytest.raises(psycopg.OperationalError):
            still_here.execute("select 1")


async def test_connections_commit_each_statement(database: str, connect: Connect) -> None:
    one, two = await connect(database), await connect(database)
    await one.execute("create table seen (n int)")
    cursor = await two.execute("select count(*) from seen")
    assert await cursor.fetchone() == (0,)


def test_only_the_owner_can_enter_the_server_folder() -> None:
    with ThrowawayServer() as server:
        folder = server.folder
        assert folder.stat().st_mode & 0o077 == 0
    assert not folder.exists()


def test_a_missing_version_is_named_with_its_package() -> None:
    with pytest.raises(MissingServerError, match="postgresql-7"):
        find_installation("7")


def test_the_server_goes_when_its_starter_is_killed() -> None:
    script = (
        "import os, signal\n"
        "from tests.servers.throwaway import ThrowawayServer\n"
        "server = ThrowawayServer(); server.start()\n"
        "print(server.folder, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    folder = Path(killed.stdout.strip())
    pid = int((folder / "data/postmaster.pid").read_text().split()[0])
    try:
        assert _ends(pid), f"server {pid} still runs"
    finally:
        shutil.rmtree(folder)


def _ends(pid: int) -> bool:
    """Whether the process ends within half a minute."""
    try:
        handle = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([handle], [], [], 30)[0])
    finally:
        os.close(handle)


def test_a_server_starts_from_a_checkout_that_its_account_cannot_enter(tmp_path: Path) -> None:
    installation = find_installation("embedded")
    package = installation.bin_dir.parents[1]
    closed = tmp_path / "closed"
    closed.mkdir(mode=0o700)
    shutil.copytree(package, closed / package.name, symlinks=True)
    libraries = package.with_name(f"{package.name}.libs")
    shutil.copytree(libraries, closed / libraries.name, symlinks=True)
    root = closed / package.name / installation.bin_dir.parent.name
    server = ThrowawayServer()
    server.installation = Installation(root / "bin", root / "lib", installation.major)
    with server, psycopg.connect(server.dsn()) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
