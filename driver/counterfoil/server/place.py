"""Where an embedded server keeps its things, and making those folders.

    <home>/lock                 held while somebody starts or stops the server
    <home>/server               the place: a folder, or (root only) a link to one elsewhere
      in-use                    locked by every process of the server for as long as it lives
      data/   0700              the data folder, of the server's account
      run/    0700              the socket, of that account (a link when its path is too long)
      log/    0700              the server's log, of that account
      conf/                     configuration, the caller's: the server can't edit who may enter
      binaries/                 root only: a copy, if the account can't read the installed ones

Only folders made here get an owner or a mode. No folder above them is ever changed.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
import stat
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from counterfoil.server.account import Account, EmbeddedServerError, server_account
from counterfoil.server.processes import read_small

STATE_VARIABLE = "COUNTERFOIL_STATE"
_STATE = Path("/var/lib/counterfoil")
_SOCKET = ".s.PGSQL.5432"
_SOCKET_PATH_LIMIT = 103 if sys.platform == "darwin" else 107


@dataclass(frozen=True)
class Place:
    """The folder of one server, and the account that runs it."""

    home: Path
    root: Path
    account: Account

    @property
    def data(self) -> Path:
        return self.root / "data"

    @property
    def conf(self) -> Path:
        return self.root / "conf"

    @property
    def log(self) -> Path:
        return self.root / "log" / "server.log"

    @property
    def socket_dir(self) -> Path:
        run = self.root / "run"
        return Path(run.readlink()) if run.is_symlink() else run


@contextmanager
def locked(home: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of a home folder, which must exist; other starters and stoppers wait.

    Raises EmbeddedServerError when the lock isn't free within `timeout` s.
    """
    _require_own(home)
    with _flock(
        home / "lock",
        timeout,
        f"another process has been starting or stopping this server for {timeout:g} s",
        "Wait for it, or find it with fuser or lsof and end it.",
    ):
        yield


@contextmanager
def in_use(place: Place, timeout: float) -> Iterator[int]:
    """An open lock for a server to inherit: it stays taken until the last of its processes ends.

    So even a process that can't be seen from here (another container on the same disk) keeps a
    second server away. Raises EmbeddedServerError when it isn't free within `timeout` s.
    """
    with _flock(
        place.root / "in-use",
        timeout,
        "processes of an earlier server still use its data, and can't be seen from here",
        "Find them with fuser or lsof (another container?) and end them (kill, not kill -9).",
    ) as handle:
        yield handle


@contextmanager
def _flock(path: Path, timeout: float, problem: str, remedy: str) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while True:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise EmbeddedServerError(problem, path, remedy) from None
                time.sleep(0.02)
        yield handle
    finally:
        os.close(handle)


def make_home(home: Path) -> None:
    """Create a home folder unless it exists: 0700, or 0711 for root, whose server must pass."""
    if any(ord(letter) < 32 for letter in str(home)):
        raise EmbeddedServerError(
            "the folder's name has a control character", repr(str(home)), "Choose another folder."
        )
    home.parent.mkdir(parents=True, exist_ok=True)
    try:
        home.mkdir(mode=0o700)
    except FileExistsError:
        return
    if os.geteuid() == 0:
        home.chmod(0o711)


def find_place(home: Path) -> Place | None:
    """The place of the server of a home folder, or None when none was made. Writes nothing."""
    link = home / "server"
    if not link.is_symlink() and not link.exists():
        return None
    _require_own(home)
    root = Path(os.path.realpath(link))
    if not root.is_dir():
        raise EmbeddedServerError(
            "the folder with this server's data is gone",
            f"{link} -> {root}",
            f"Bring it back, or give its data up: remove the link {link} and start again.",
        )
    _require_own(root)
    return Place(home, root, server_account(_owner(root / "data")))


def make_place(home: Path) -> Place:
    """The place of a home folder, made if need be. Call it under the lock."""
    place = find_place(home)
    if place is None:
        account = server_account(None)
        link = home / "server"
        if not account.foreign or account.can_enter(home):
            link.mkdir(mode=0o700)
            root = Path(os.path.realpath(link))
        else:
            root = _make_outside(home)
            link.symlink_to(root)
        place = Place(home, root, account)
    if (home / "server").is_symlink():
        _claim_outside(home, place.root)
    account = place.account
    if account.foreign:
        # The account may pass through, everybody else may not even look.
        _own(place.root, 0o710, 0, account.gid)
        folder(place.conf, 0o710, 0, account.gid)
    else:
        folder(place.conf, 0o700, account.uid, account.gid)
    folder(place.log.parent, 0o700, account.uid, account.gid)
    _make_socket_dir(place)
    if not account.can_enter(place.log.parent):
        raise EmbeddedServerError(
            f"the account {account.name!r}, which runs the server, can't reach its folder",
            place.root,
            "Set COUNTERFOIL_HOME to a folder whose parents that account may enter.",
        )
    return place


def remove_place(place: Place) -> None:
    """Delete a stopped server with its data."""
    link = place.home / "server"
    if place.socket_dir.parent != place.root:
        shutil.rmtree(place.socket_dir, ignore_errors=True)
    if link.is_symlink():
        link.unlink()
    shutil.rmtree(place.root)


def folder(path: Path, mode: int, uid: int, gid: int) -> None:
    """A folder of the place with this mode and owner, made if need be."""
    path.mkdir(mode=0o700, exist_ok=True)
    _own(path, mode, uid, gid)


def _own(path: Path, mode: int, uid: int, gid: int) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        found = os.fstat(handle)
        if (found.st_uid, found.st_gid) != (uid, gid) and os.geteuid() == 0:
            os.fchown(handle, uid, gid)
        if stat.S_IMODE(found.st_mode) != mode:
            os.fchmod(handle, mode)
    finally:
        os.close(handle)


def _make_outside(home: Path) -> Path:
    """A place elsewhere, because the server's account can't reach the home folder of root."""
    state = Path(os.environ.get(STATE_VARIABLE) or _STATE)
    try:
        if not state.exists():
            state.mkdir(mode=0o700, parents=True)
            state.chmod(0o711)
        _require_own(state)
        # The name tells people whose it is; the random part keeps it from being foreseen.
        root = state / f"{home.parent.name[:20] or 'root'}-{secrets.token_hex(4)}"
        root.mkdir(mode=0o700)
    except OSError as error:
        raise EmbeddedServerError(
            f"the server's account can't reach {home}, and elsewhere it could get no folder "
            f"({error})",
            state,
            "Set COUNTERFOIL_HOME to a folder whose parents every account may enter, or "
            f"{STATE_VARIABLE} to another folder of root's.",
        ) from error
    return Path(os.path.realpath(root))


def _claim_outside(home: Path, root: Path) -> None:
    """Note whose place it is; refuse it to the copy of a home, which would share the data."""
    note = root / "home"
    before = read_small(note)
    if before == str(home):
        return
    if before is not None and os.path.realpath(Path(before) / "server") == str(root):
        raise EmbeddedServerError(
            f"this folder is a copy of {before}, and both point at the same data",
            home / "server",
            f"Remove the link {home / 'server'}; the next start makes a server of its own.",
        )
    note.write_text(str(home))


def _make_socket_dir(place: Place) -> None:
    run = place.root / "run"
    if run.is_symlink():
        if _is_private(place.socket_dir, place.account):
            return
        run.unlink()  # the temporary folder was cleaned, by a restart of the machine for instance
    elif _fits(run):
        folder(run, 0o700, place.account.uid, place.account.gid)
        return
    elif run.exists():
        shutil.rmtree(run)  # the home was moved to where its path is too long
    short = _short_folder()
    if place.account.foreign:
        os.chown(short, place.account.uid, place.account.gid)
    run.symlink_to(short)


def _short_folder() -> Path:
    """A new folder with a random name and a short path, for a socket."""
    for parent in (tempfile.gettempdir(), "/tmp"):  # noqa: S108 - mkdtemp makes it 0700
        # mkdtemp adds eight letters.
        if _fits(Path(parent) / "counterfoil-XXXXXXXX"):
            return Path(tempfile.mkdtemp(prefix="counterfoil-", dir=parent))
    raise EmbeddedServerError(
        "no temporary folder has a path short enough for a socket",
        tempfile.gettempdir(),
        "Set TMPDIR to a folder with a shorter path.",
    )


def _fits(path: Path) -> bool:
    # libpq reads a comma in a host as the start of the next host.
    whole = str(path / _SOCKET)
    return len(os.fsencode(whole)) <= _SOCKET_PATH_LIMIT and "," not in whole


def _is_private(path: Path, account: Account) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return (
        stat.S_ISDIR(found.st_mode)
        and found.st_uid == account.uid
        and stat.S_IMODE(found.st_mode) == 0o700
    )


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except FileNotFoundError:
        return None


def _require_own(path: Path) -> None:
    """Refuse a folder that another account owns or may write to: it could be swapped."""
    found = path.stat()
    if found.st_uid != os.geteuid():
        raise EmbeddedServerError(
            f"the folder belongs to uid {found.st_uid}, and you are uid {os.geteuid()}",
            path,
            "Run it as its owner, or set COUNTERFOIL_HOME to a folder of your own.",
        )
    if found.st_mode & 0o022:
        raise EmbeddedServerError(
            "other accounts may write to the folder",
            path,
            f"Take that from them (chmod go-w {path}), or set COUNTERFOIL_HOME.",
        )
