"""Which operating system processes belong to an embedded server's data folder.

The pid in `postmaster.pid` says little by itself: after a crash or a container's restart it may
be a zombie or a stranger. A process counts as the postmaster only if it is alive, runs under the
server's account and was started on the very folder that the pid file names.
"""

from __future__ import annotations

import hashlib
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from counterfoil.server.account import Account, EmbeddedServerError

_PAUSE = 0.02


@dataclass(frozen=True)
class PidFile:
    """The first two lines of a `postmaster.pid`."""

    pid: int
    data: str


def read_small(path: Path) -> str | None:
    """A small text file of the server's account, or None; never follows a link or waits."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        return file.read(65536).decode(errors="replace")


def pid_file(data: Path) -> PidFile | None:
    """What `postmaster.pid` says; None when there is none or it is not written in full."""
    lines = (read_small(data / "postmaster.pid") or "").splitlines()
    try:
        # A server in single-user mode writes its pid with a minus sign.
        return PidFile(abs(int(lines[0])), lines[1])
    except (IndexError, ValueError):
        return None


def cluster_name(data: Path | str) -> str:
    """The name that every process of this data folder's server carries in its title."""
    return "counterfoil-" + hashlib.sha256(os.fsencode(data)).hexdigest()[:12]


def is_alive(pid: int) -> bool:
    """Whether a process exists and still executes: a zombie does not."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def living_postmaster(data: Path, account: Account) -> psutil.Process | None:
    """The postmaster of a data folder, or None when its pid file is missing or stale."""
    recorded = pid_file(data)
    return _postmaster(recorded, account) if recorded else None


def stale_pid(data: Path, account: Account) -> int | None:
    """The number in a pid file that no living postmaster stands behind, or None."""
    recorded = pid_file(data)
    return recorded.pid if recorded and _postmaster(recorded, account) is None else None


def end_orphans(data: Path, account: Account, deadline: float) -> None:
    """Wait for what a dead postmaster left behind; it holds the shared memory of the folder.

    Most of it leaves by itself at once. A session in the middle of a computation does not
    notice: it is asked to (SIGTERM rolls its transaction back). Call it only under the lock and
    without a living postmaster. Raises EmbeddedServerError when some remain at the deadline.
    """
    asked = False
    while left := list(_orphans(data, account)):
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                "sessions of the previous server, which died, are still running",
                f"pid {', '.join(str(process.pid) for process in left)} on {data}",
                "Starting beside them would damage the data. End them (kill, not kill -9), "
                "then start again.",
            )
        if not asked:
            for process in left:
                try:
                    process.send_signal(signal.SIGTERM)
                except psutil.NoSuchProcess:
                    continue
            asked = True
        time.sleep(_PAUSE)


def end_initialisers(fresh: Path, account: Account, deadline: float) -> None:
    """End the programs that still fill a data folder which a killed starter left behind.

    Raises EmbeddedServerError when some remain at the deadline.
    """
    while left := list(_initialisers(fresh, account)):
        if time.monotonic() > deadline:
            raise EmbeddedServerError(
                "programs of an earlier start, which was killed, are still running",
                f"pid {', '.join(str(process.pid) for process in left)} on {fresh}",
                "End them (kill -9), then start again.",
            )
        for process in left:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        time.sleep(_PAUSE)


def wait_for_end(process: psutil.Process, deadline: float) -> bool:
    """Wait until a process no longer executes; False when it still does at the deadline."""
    while process.is_running() and is_alive(process.pid):
        if time.monotonic() > deadline:
            return False
        time.sleep(_PAUSE)
    return True


def _postmaster(recorded: PidFile, account: Account) -> psutil.Process | None:
    try:
        process = psutil.Process(recorded.pid)
        if _is_postgres(process, account) and recorded.data in process.cmdline():
            return process
    except psutil.Error:
        pass
    return None


def _orphans(data: Path, account: Account) -> Iterator[psutil.Process]:
    recorded = pid_file(data)
    folder = recorded.data if recorded else str(data)
    title = f"postgres: {cluster_name(folder)}: "
    for process in psutil.process_iter():
        try:
            if not _is_postgres(process, account):
                continue
            command = process.cmdline()
        except psutil.Error:
            continue
        # Between fork and its first title a child still shows the postmaster's command line.
        # A title is one string, which psutil may have split at its blanks.
        if folder in command or " ".join(command).startswith(title):
            yield process


def _initialisers(fresh: Path, account: Account) -> Iterator[psutil.Process]:
    # initdb names the folder; the servers that it starts have moved into it.
    for process in psutil.process_iter():
        try:
            if (
                process.name() in ("initdb", "postgres")
                and process.uids().real == account.uid
                and process.status() != psutil.STATUS_ZOMBIE
                and (process.cwd() == str(fresh) or str(fresh) in " ".join(process.cmdline()))
            ):
                yield process
        except psutil.Error:
            continue


def _is_postgres(process: psutil.Process, account: Account) -> bool:
    return bool(
        process.name() == "postgres"
        and process.uids().real == account.uid
        and process.status() != psutil.STATUS_ZOMBIE
    )
