"""Doing things as one operating system account or another.

A test that runs as root can become any account for a while: a forked child drops root for good,
does the work and sends back what it returned or raised. Without root everything happens as the
one account there is.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import pwd
import signal
import time
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from counterfoil.embedded import EmbeddedServer

T = TypeVar("T")

IS_ROOT = os.geteuid() == 0
_PR_SET_CHILD_SUBREAPER = 36


@dataclass(frozen=True)
class Caller:
    """An account that starts servers, and a folder of its own that every account can reach."""

    uid: int
    gid: int
    base: Path

    @property
    def is_root(self) -> bool:
        return self.uid == 0

    @property
    def home(self) -> Path:
        return self.base / "checkout" / ".counterfoil"

    def run(self, work: Callable[[], T]) -> T:
        """Do the work as this account."""
        return run_as(self.uid, self.gid, work)

    def run_apart(self, work: Callable[[], T]) -> T:
        """Do the work as this account in a process of its own, which is gone afterwards."""
        return run_all(self.uid, self.gid, [work])[0]

    def server(self, **options: object) -> EmbeddedServer:
        return EmbeddedServer(self.home, **options)  # type: ignore[arg-type]


def account(*names: str) -> pwd.struct_passwd:
    """The first of these accounts that this machine has."""
    known = {entry.pw_name: entry for entry in pwd.getpwall()}
    return next(known[name] for name in names if name in known)


def run_as(uid: int, gid: int, work: Callable[[], T]) -> T:
    """Do the work as an account: here, if that is ours already, else in a forked child."""
    if uid == os.geteuid():
        return work()
    return run_all(uid, gid, [work])[0]


def run_all(uid: int, gid: int, works: Sequence[Callable[[], T]]) -> list[T]:
    """Do several pieces of work at once, each in a forked child of its own."""
    gate_read, gate_write = os.pipe()
    children = [_fork(uid, gid, work, gate_read, gate_write) for work in works]
    # Closing the gate lets all of them go at the same moment.
    os.close(gate_read)
    os.close(gate_write)
    return [_collect(pid, answers) for pid, answers in children]


def become(uid: int, gid: int) -> None:
    """Turn this process into another account for good."""
    if uid != os.geteuid():
        os.chdir("/")
        os.setgroups([])
        os.setgid(gid)
        os.setuid(uid)


def _fork(
    uid: int, gid: int, work: Callable[[], T], gate_read: int, gate_write: int
) -> tuple[int, int]:
    read, write = os.pipe()
    pid = os.fork()
    if pid:
        os.close(write)
        return pid, read
    try:
        os.close(gate_write)
        os.read(gate_read, 1)
        become(uid, gid)
        answer = _pickled(work)
        with os.fdopen(write, "wb") as file:
            file.write(answer)
    finally:
        os._exit(0)


def _pickled(work: Callable[[], T]) -> bytes:
    try:
        return pickle.dumps((True, work()))
    except BaseException as error:
        told = traceback.format_exc()
        try:
            return pickle.dumps((False, pickle.loads(pickle.dumps(error))))
        except Exception:
            return pickle.dumps((False, RuntimeError(told)))


def _collect(pid: int, answers: int) -> T:  # type: ignore[type-var]
    with os.fdopen(answers, "rb") as file:
        answer = file.read()
    os.waitpid(pid, 0)
    if not answer:
        raise RuntimeError("the forked child died without an answer")
    done, value = pickle.loads(answer)
    if done:
        return value  # type: ignore[no-any-return]
    raise value


class Adopted:
    """While this is open, processes that lose their parent become children of this one.

    Nobody else reaps them, so that whoever dies stays a zombie until the block ends.
    """

    def __enter__(self) -> Adopted:
        self._set(1)
        return self

    def __exit__(self, *_: object) -> None:
        self._set(0)

    def reap(self, pid: int) -> None:
        os.waitpid(pid, 0)

    def _set(self, value: int) -> None:
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(_PR_SET_CHILD_SUBREAPER, value, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "prctl")


def kill_hard(pid: int) -> None:
    """kill -9, and wait until the process no longer executes."""
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not executes(pid))


def executes(pid: int) -> bool:
    """Whether a process exists and is no zombie, straight from the kernel."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def wait_until(true: Callable[[], bool], seconds: float = 30.0) -> None:
    """Poll until something is true; fail when it never becomes so."""
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, "what was waited for never happened"
        time.sleep(0.01)
