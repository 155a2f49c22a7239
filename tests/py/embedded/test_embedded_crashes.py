"""What an embedded server and its starters survive, and how it stops."""

from __future__ import annotations

import fcntl
import os
import signal
import threading
from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
import pytest

from counterfoil.embedded import EmbeddedServer, EmbeddedServerError
from tests.py.embedded.callers import (
    Adopted,
    Caller,
    become,
    executes,
    kill_hard,
    wait_until,
)


def started(caller: Caller, **options: object) -> tuple[EmbeddedServer, int]:
    """A running server with a committed row, and its postmaster's pid."""
    server = caller.server(**options).ensure()
    with psycopg.connect(server.dsn()) as connection:
        connection.execute("create table if not exists kept as select 7 as n")
    return server, pid_of(server)


def pid_of(server: EmbeddedServer) -> int:
    pid = server.pid()
    assert pid is not None
    return pid


def kept(server: EmbeddedServer) -> object:
    with psycopg.connect(server.dsn()) as connection:
        return connection.execute("select n from kept").fetchone()


def pid_file(server: EmbeddedServer) -> Path:
    return server.data_dir / "postmaster.pid"


def listing(folder: Path) -> dict[str, tuple[int, int]]:
    found = {}
    for path in folder.rglob("*"):
        state = path.lstat()
        found[str(path)] = (state.st_size, state.st_mtime_ns)
    return found


def test_kill_9_of_the_postmaster(caller: Caller) -> None:
    def work() -> None:
        server, first = started(caller)
        kill_hard(first)
        assert not server.is_running()
        assert server.pid() is None
        assert pid_file(server).read_text().startswith(f"{first}\n")
        server.stop()
        assert pid_file(server).exists()
        server.start()
        assert pid_of(server) != first
        assert kept(server) == (7,)

    caller.run(work)


def test_a_session_in_the_middle_of_a_computation_outlives_its_postmaster(caller: Caller) -> None:
    """It holds the shared memory of the folder: a second server beside it would be refused."""

    def work() -> None:
        server, first = started(caller)
        connection = psycopg.connect(server.dsn())
        connection.execute("update kept set n = 8")
        backend = connection.info.backend_pid
        busy = "do $$ begin loop perform 1; end loop; end $$"
        thread = threading.Thread(target=_ends_badly, args=(connection, busy))
        thread.start()
        cpu = psutil.Process(backend)
        wait_until(lambda: cpu.cpu_times().user > 0.05)
        kill_hard(first)
        assert executes(backend)
        server.start()
        assert not executes(backend)
        thread.join()
        assert kept(server) == (7,)

    caller.run(work)


def _ends_badly(connection: psycopg.Connection, statement: str) -> None:
    with pytest.raises(psycopg.OperationalError):
        connection.execute(statement)


def test_stop_also_ends_what_a_dead_postmaster_left(caller: Caller) -> None:
    def work() -> None:
        server, first = started(caller)
        connection = psycopg.connect(server.dsn())
        backend = connection.info.backend_pid
        busy = "do $$ begin loop perform 1; end loop; end $$"
        thread = threading.Thread(target=_ends_badly, args=(connection, busy))
        thread.start()
        cpu = psutil.Process(backend)
        wait_until(lambda: cpu.cpu_times().user > 0.05)
        kill_hard(first)
        server.stop()
        assert not executes(backend)
        thread.join()

    caller.run(work)


def test_an_orphan_that_does_not_end_is_named(caller: Caller) -> None:
    def work() -> None:
        server, first = started(caller)
        hasty = caller.server(timeout=1.0)
        with psycopg.connect(server.dsn()) as connection:
            backend = connection.info.backend_pid
            os.kill(backend, signal.SIGSTOP)
            kill_hard(first)
            with pytest.raises(EmbeddedServerError, match=rf"still running.*{backend}"):
                hasty.start()
            os.kill(backend, signal.SIGCONT)
            connection.close()
        server.start()
        assert kept(server) == (7,)

    caller.run(work)


def test_a_server_that_can_not_be_seen_keeps_a_second_one_away(caller: Caller) -> None:
    """As from another container on the same disk: no process to find, but its lock."""

    def work() -> None:
        server, first = started(caller)
        lock = server.data_dir.parent / "in-use"
        with lock.open("r+") as file, pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        kill_hard(first)
        with lock.open("r+") as file:
            wait_until(lambda: _taken(file.fileno()))
            with pytest.raises(EmbeddedServerError, match="can't be seen from here"):
                caller.server(timeout=1.0).start()
        server.start()
        assert kept(server) == (7,)

    caller.run(work)


def _taken(handle: int) -> bool:
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def test_a_stale_pid_that_a_stranger_has_now(caller: Caller) -> None:
    """After a restart of a container the old number often belongs to another process."""

    def work() -> None:
        server, first = started(caller)
        kill_hard(first)
        owner = server.data_dir.stat()
        sleeper = os.fork()
        if sleeper == 0:
            become(owner.st_uid, owner.st_gid)
            os.execv("/bin/sleep", ["sleep", "600"])
        try:
            # Both lock files of a dead server carry its number.
            socket_lock = server.data_dir.parent / "run" / ".s.PGSQL.5432.lock"
            for path in (pid_file(server), socket_lock):
                path.write_text(path.read_text().replace(f"{first}\n", f"{sleeper}\n", 1))
            assert not server.is_running()
            assert server.pid() is None
            server.stop()
            assert executes(sleeper)
            server.start()
            assert pid_of(server) not in (first, sleeper)
            assert executes(sleeper)
            assert kept(server) == (7,)
        finally:
            os.kill(sleeper, signal.SIGKILL)
            os.waitpid(sleeper, 0)

    caller.run(work)


def test_a_zombie_postmaster_is_not_alive(caller: Caller) -> None:
    """Where nobody reaps, as under many a container's first process, a dead one stays listed."""

    def work() -> None:
        with Adopted() as parent:
            server, first = started(caller)
            kill_hard(first)
            assert psutil.Process(first).status() == psutil.STATUS_ZOMBIE
            assert not server.is_running()
            assert server.pid() is None
            server.start()
            assert pid_of(server) != first
            assert kept(server) == (7,)
            assert psutil.Process(first).status() == psutil.STATUS_ZOMBIE
            parent.reap(first)
            second = pid_of(server)
            server.stop()
            assert not executes(second)
            parent.reap(second)

    caller.run(work)


def test_a_hanging_postmaster_gets_no_second_one(caller: Caller) -> None:
    def work() -> None:
        server, first = started(caller)
        os.kill(first, signal.SIGSTOP)
        try:
            assert not server.is_running()
            assert server.pid() == first
            with pytest.raises(EmbeddedServerError, match=f"process {first}"):
                caller.server(timeout=1.0).start()
            with pytest.raises(EmbeddedServerError, match="has not stopped"):
                caller.server(timeout=1.0).stop()
        finally:
            os.kill(first, signal.SIGCONT)
        server.stop()
        assert not executes(first)

    caller.run(work)


def test_a_starter_killed_in_the_middle_of_the_first_start(bare: Caller) -> None:
    starter = os.fork()
    if starter == 0:
        try:
            become(bare.uid, bare.gid)
            bare.server().start()
        finally:
            os._exit(0)
    place = bare.home / "server"
    wait_until(lambda: any(path.name == "PG_VERSION" for path in place.glob("data.new-*/*")))
    [fresh] = place.glob("data.new-*")
    [filling] = [p for p in psutil.process_iter() if f"--pgdata={fresh}" in command_line(p)]
    os.kill(filling.pid, signal.SIGSTOP)
    os.kill(starter, signal.SIGKILL)
    os.waitpid(starter, 0)
    assert not (place / "data").exists()

    def work() -> None:
        server, _ = started(bare)
        assert kept(server) == (7,)
        assert list(server.data_dir.parent.glob("data.new-*")) == []

    try:
        bare.run(work)
        assert not executes(filling.pid)
    finally:
        with suppress(ProcessLookupError):
            os.kill(filling.pid, signal.SIGKILL)


def command_line(process: psutil.Process) -> list[str]:
    """Its arguments; none when it has gone meanwhile."""
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def test_stop_ends_sessions_and_the_process(caller: Caller) -> None:
    def work() -> None:
        server, pid = started(caller)
        with psycopg.connect(server.dsn()) as connection:
            connection.execute("update kept set n = 8")
            backends = [child.pid for child in psutil.Process(pid).children()]
            server.stop()
            assert not any(executes(process) for process in (pid, *backends))
            with pytest.raises(psycopg.OperationalError):
                connection.execute("select 1")
        assert not server.is_running()
        assert not pid_file(server).exists()
        server.stop()
        server.start()
        assert kept(server) == (7,)

    caller.run(work)


def test_stop_says_when_it_can_not(caller: Caller) -> None:
    def work() -> None:
        server, pid = started(caller)
        with psycopg.connect(server.dsn()) as connection:
            backend = connection.info.backend_pid
            os.kill(backend, signal.SIGSTOP)
            with pytest.raises(EmbeddedServerError, match=rf"not stopped after 1 s.*{pid}"):
                caller.server(timeout=1.0).stop()
            assert executes(pid)
            os.kill(backend, signal.SIGCONT)
        server.stop()
        assert not executes(pid)

    caller.run(work)


@pytest.mark.parametrize("version", ["17", "19", ""])
def test_another_major_version_is_refused_and_untouched(caller: Caller, version: str) -> None:
    def work() -> None:
        server = caller.server()
        (server.data_dir / "PG_VERSION").write_text(f"{version}\n")
        before = listing(server.data_dir)
        with pytest.raises(EmbeddedServerError) as caught:
            server.start()
        told = str(caught.value)
        assert f"PostgreSQL {version or 'unknown'} made this data folder" in told
        assert "embedded server is 18." in told
        assert str(server.data_dir) in told
        assert "pg_upgrade" in told
        assert listing(server.data_dir) == before
        assert server.pid() is None

    caller.run(work)


def test_a_lock_that_is_held_too_long_is_named(caller: Caller) -> None:
    def work() -> None:
        with (caller.home / "lock").open("w") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            for action in (caller.server(timeout=0.2).start, caller.server(timeout=0.2).stop):
                with pytest.raises(EmbeddedServerError, match="another process has been starting"):
                    action()
        caller.server().start()

    caller.run(work)


def test_the_server_outlives_who_started_it(caller: Caller) -> None:
    def work() -> int:
        return started(caller)[1]

    pid = caller.run_apart(work)
    assert executes(pid)
    assert caller.run(lambda: caller.server().pid()) == pid
