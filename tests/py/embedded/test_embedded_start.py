"""Starting, sharing, configuring and reaching an embedded server."""

from __future__ import annotations

import contextlib
import subprocess
from pathlib import Path

import psutil
import psycopg
import pytest

from counterfoil.embedded import EmbeddedServer, EmbeddedServerError
from counterfoil.server.processes import cluster_name
from tests.py.embedded.callers import Caller, executes, run_all

# What does not depend on the account is shown for one.
whoever = pytest.mark.parametrize("bare", ["ordinary"], indirect=True)


def one(dsn: str, query: str) -> object:
    with psycopg.connect(dsn) as connection:
        row = connection.execute(query).fetchone()
    assert row is not None
    return row[0] if len(row) == 1 else row


def test_first_start_makes_the_database(bare: Caller) -> None:
    def work() -> None:
        server = bare.server()
        assert not server.is_running()
        server.start()
        assert server.is_running()
        assert one(server.dsn(), "select current_database(), current_user") == (
            "counterfoil",
            "postgres",
        )
        assert one(
            server.dsn(),
            "select pg_encoding_to_char(d.encoding), d.datlocprovider, d.datlocale"
            " from pg_database d where d.datname = 'counterfoil'",
        ) == ("UTF8", "b", "C.UTF-8")

    bare.run(work)


def test_start_is_idempotent(caller: Caller) -> None:
    def work() -> None:
        server = caller.server()
        server.start()
        first = server.pid()
        server.start()
        assert caller.server().ensure().pid() == first

    caller.run(work)


def test_three_starters_at_once_share_one_server(bare: Caller) -> None:
    def work() -> tuple[int | None, object]:
        server = bare.server().ensure()
        return server.pid(), one(server.dsn(), "select pg_postmaster_start_time()::text")

    answers = run_all(bare.uid, bare.gid, [work] * 3)
    assert len(set(answers)) == 1
    pid = answers[0][0]
    assert pid is not None
    assert executes(pid)
    data = bare.run(lambda: bare.server().data_dir)
    on_it = [p.pid for p in psutil.process_iter() if str(data) in _command(p)]
    assert on_it == [pid]


def _command(process: psutil.Process) -> list[str]:
    try:
        return list(process.cmdline())
    except psutil.Error:
        return []


def test_no_network_port(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        assert one(server.dsn(), "show listen_addresses") == ""
        kinds = {c.family for c in psutil.Process(server.pid()).net_connections(kind="inet")}
        assert kinds == set()

    caller.run(work)


@whoever
def test_durability_cannot_be_switched_off(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("alter system set fsync = off")
            connection.execute("alter system set full_page_writes = off")
        server.stop()
        server.start()
        assert one(server.dsn(), "show fsync") == "on"
        assert one(server.dsn(), "show full_page_writes") == "on"
        assert one(server.dsn(), "show synchronous_commit") == "on"
        for name in ("fsync", "FSYNC", "listen_addresses", "hba_file", "cluster_name"):
            with pytest.raises(EmbeddedServerError, match="decides this setting itself"):
                caller.server(settings={name: "off"})

    caller.run(work)


@whoever
def test_settings_apply_and_last(caller: Caller) -> None:
    value = 'it\'s a \\ "test"'

    def work() -> None:
        settings = {"max_connections": 23, "jit": False, "counterfoil.note": value}
        server = caller.server(settings=settings).ensure()
        assert one(server.dsn(), "show max_connections") == "23"
        assert one(server.dsn(), "show jit") == "off"
        assert one(server.dsn(), "show counterfoil.note") == value
        server.stop()
        again = caller.server().ensure()
        assert one(again.dsn(), "show max_connections") == "23"
        again.stop()
        cleared = caller.server(settings={}).ensure()
        assert one(cleared.dsn(), "show max_connections") == "100"

    caller.run(work)


@whoever
def test_a_running_server_is_not_shared_under_other_settings(caller: Caller) -> None:
    def work() -> None:
        caller.server(settings={"max_connections": 23}).start()
        caller.server(settings={"max_connections": 23}).start()
        caller.server().start()
        with pytest.raises(EmbeddedServerError, match=r"other settings.*\n?.*max_connections"):
            caller.server(settings={"max_connections": 24}).start()

    caller.run(work)


@pytest.mark.parametrize(
    "settings", [{"max connections": 1}, {"a;b": 1}, {"jit": "on\nfsync = off"}, {"": 1}]
)
def test_a_malformed_setting_is_refused_at_once(settings: dict[str, object]) -> None:
    with pytest.raises(EmbeddedServerError, match="setting"):
        EmbeddedServer(Path("/nonexistent"), settings=settings)  # type: ignore[arg-type]


@whoever
def test_a_server_that_will_not_start_says_why(caller: Caller) -> None:
    def work() -> None:
        broken = caller.server(settings={"shared_preload_libraries": "no_such_library"})
        with pytest.raises(EmbeddedServerError, match="no_such_library"):
            broken.start()
        assert not broken.is_running()
        caller.server(settings={}).start()

    caller.run(work)


@pytest.mark.parametrize(
    "name", ['it\'s a "home" of ünïcode', "comma,comma", "x" * 200], ids=["odd", "comma", "long"]
)
def test_odd_and_long_paths(caller: Caller, name: str) -> None:
    home = caller.base / "checkout" / name / ".counterfoil"

    def work() -> None:
        home.parent.mkdir()
        caller.home.rename(home)
        server = EmbeddedServer(home)
        for _ in range(2):
            server.start()
            assert one(server.dsn(), "select 1") == 1
            server.stop()
        server.start()
        socket = Path(psycopg.conninfo.conninfo_to_dict(server.dsn())["host"])
        assert socket.stat().st_mode & 0o777 == 0o700
        server.remove()
        assert not socket.exists()

    caller.run(work)


def test_a_socket_folder_that_was_cleaned_away_is_made_again(caller: Caller) -> None:
    home = caller.base / "checkout" / ("x" * 200) / ".counterfoil"

    def work() -> None:
        home.parent.mkdir()
        caller.home.rename(home)
        server = EmbeddedServer(home)
        server.start()
        socket = Path(psycopg.conninfo.conninfo_to_dict(server.dsn())["host"])
        server.stop()
        socket.rmdir()
        server.start()
        assert one(server.dsn(), "select 1") == 1
        server.remove()

    caller.run(work)


@whoever
def test_the_block_stops_what_it_started_and_only_that(caller: Caller) -> None:
    def work() -> None:
        with caller.server() as server:
            pid = server.pid()
            with caller.server():
                pass
            assert server.pid() == pid
        assert not server.is_running()

    caller.run(work)


@whoever
def test_default_home(caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(caller.base)
    assert EmbeddedServer.default().home == caller.base / ".counterfoil"
    monkeypatch.setenv("COUNTERFOIL_HOME", str(caller.base / "elsewhere"))
    assert EmbeddedServer.default().home == caller.base / "elsewhere"
    assert EmbeddedServer.default(caller.home).home == caller.home


def test_before_the_first_start_there_is_nothing(bare: Caller) -> None:
    def work() -> None:
        server = bare.server()
        assert not server.is_running()
        assert server.pid() is None
        server.stop()
        with pytest.raises(EmbeddedServerError, match="no embedded server has been started"):
            server.dsn()
        assert not bare.home.exists()

    bare.run(work)


@whoever
def test_client_programs_reach_it(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        command = [server.bin_dir / "psql", "-XAt", "-d", server.dsn(), "-c", "select 6 * 7"]
        assert subprocess.run(command, capture_output=True, text=True).stdout == "42\n"

    caller.run(work)


@whoever
def test_the_log_keeps_no_row_and_no_statement(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            connection.execute("create table t (secret text check (secret = ''))")
            with pytest.raises(psycopg.errors.CheckViolation):
                connection.execute("insert into t values ('hunter2')")
        log = server.log_file.read_text()
        assert "check constraint" in log
        assert "hunter2" not in log

    caller.run(work)


@whoever
def test_every_process_carries_the_name_of_its_cluster(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        title = f"postgres: {cluster_name(server.data_dir)}: "
        titles = []
        for child in psutil.Process(server.pid()).children():
            # A worker of autovacuum may end meanwhile.
            with contextlib.suppress(psutil.NoSuchProcess):
                titles.append(" ".join(child.cmdline()))
        assert len(titles) > 3
        assert all(shown.startswith(title) for shown in titles)

    caller.run(work)


def test_remove_leaves_nothing_of_the_server(caller: Caller) -> None:
    def work() -> None:
        server = caller.server().ensure()
        pid = server.pid()
        server.remove()
        assert pid is not None
        assert not executes(pid)
        assert [path.name for path in caller.home.iterdir()] == ["lock"]

    caller.run(work)
