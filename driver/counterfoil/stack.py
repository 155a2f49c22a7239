"""The processes of a local stack: gateway, dispatcher, workers, each a `counterfoil` command.

`Stack` starts them as children that end with their parent (`counterfoil demo`, tests); `detach`
leaves them running and remembers them in a file (`counterfoil up`), `stop_detached` ends those.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

STOP_SECONDS = 10.0
READY_SECONDS = 30.0
_PAUSE = 0.05
_PR_SET_PDEATHSIG = 1
_STATE = "stack.json"


class StackError(Exception):
    """A process of the stack did not start, or died; the message ends with its last log lines."""


@dataclass
class Member:
    """One process of the stack and the file it logs to."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path
    log_start: int = 0
    """Where in the file this process's lines begin."""

    @property
    def is_alive(self) -> bool:
        """Whether the process still runs."""
        return self.process.poll() is None

    def last_lines(self, count: int = 5) -> str:
        """The end of its log."""
        return "\n".join(self.said().splitlines()[-count:]) or "(it logged nothing)"

    def said(self) -> str:
        """What it has logged."""
        return self.log.read_bytes()[self.log_start :].decode("utf-8", "replace")


@dataclass
class Stack:
    """Children running `counterfoil` commands, with their logs in ``folder``."""

    folder: Path
    environment: Mapping[str, str]
    detached: bool = False
    """Whether the children may outlive this process."""
    members: dict[str, Member] = field(default_factory=dict)

    def start(self, name: str, *arguments: str) -> Member:
        """Start ``counterfoil <arguments>``; it logs to ``<name>.log``."""
        self.folder.mkdir(parents=True, exist_ok=True)
        log = self.folder / f"{name}.log"
        log_start = log.stat().st_size if log.exists() else 0
        with log.open("ab") as output:
            process = subprocess.Popen(  # noqa: S603 - this interpreter, arguments of ours
                [sys.executable, "-m", "counterfoil", *arguments],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **self.environment},
                start_new_session=True,
                preexec_fn=None if self.detached else _end_with_parent(),
            )
        member = Member(name, process, log, log_start)
        self.members[name] = member
        return member

    def freeze(self, name: str) -> None:
        """Stop a member in its tracks (SIGSTOP)."""
        self.members[name].process.send_signal(signal.SIGSTOP)

    def thaw(self, name: str) -> None:
        """Let a frozen member go on (SIGCONT)."""
        self.members[name].process.send_signal(signal.SIGCONT)

    def kill(self, name: str) -> None:
        """End a member with SIGKILL, as a crash would."""
        member = self.members.pop(name)
        member.process.kill()
        member.process.wait()

    def check(self) -> None:
        """Raise StackError when a member has died."""
        for member in self.members.values():
            if not member.is_alive:
                raise StackError(
                    f"{member.name} ended with code {member.process.returncode}:\n"
                    f"{member.last_lines()}"
                )

    def wait_for_url(self, url: str) -> None:
        """Return when ``url`` answers 200. Raises StackError when a member dies meanwhile."""
        self._wait(lambda: _answers(url), f"no answer from {url}")

    def wait_for_message(self, name: str, message: str) -> None:
        """Return when the member has logged ``message``. Raises StackError when one dies."""
        member = self.members[name]
        self._wait(lambda: f'"message": "{message}"' in member.said(), f"{name} is not at work")

    def _wait(self, condition: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + READY_SECONDS
        while not condition():
            self.check()
            if time.monotonic() > deadline:
                raise StackError(f"{otherwise} after {READY_SECONDS:g} s")
            time.sleep(_PAUSE)

    def stop(self) -> None:
        """End every member: SIGTERM first, SIGKILL for those that take too long."""
        members = list(self.members.values())
        self.members.clear()
        # Workers first: what they say last is still delivered.
        for member in reversed(members):
            with contextlib.suppress(ProcessLookupError):
                member.process.terminate()
        deadline = time.monotonic() + STOP_SECONDS
        for member in members:
            try:
                member.process.wait(max(0.1, deadline - time.monotonic()))
            except subprocess.TimeoutExpired:
                member.process.kill()
                member.process.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def detach(self) -> None:
        """Leave the members running and remember them for `stop_detached`."""
        known = [
            {"name": m.name, "pid": m.process.pid, "started": _started(m.process.pid)}
            for m in self.members.values()
        ]
        (self.folder / _STATE).write_text(json.dumps(known), encoding="utf-8")
        self.members.clear()


def detached(folder: Path) -> dict[str, psutil.Process]:
    """Members that an earlier `detach` left and that still run, by name."""
    try:
        known = json.loads((folder / _STATE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    found = {}
    for entry in known:
        with contextlib.suppress(psutil.NoSuchProcess):
            process = psutil.Process(entry["pid"])
            if _started(entry["pid"]) == entry["started"] and process.status() != "zombie":
                found[entry["name"]] = process
    return found


def stop_detached(folder: Path) -> Sequence[str]:
    """End what `detach` left; the names of what was still running, workers first."""
    found = dict(reversed(detached(folder).items()))
    for process in found.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            process.send_signal(signal.SIGTERM)
    _, late = psutil.wait_procs(list(found.values()), timeout=STOP_SECONDS)
    for process in late:
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    (folder / _STATE).unlink(missing_ok=True)
    return list(found)


def free_port() -> int:
    """A TCP port of the loopback interface that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def check_free(host: str, port: int) -> None:
    """Refuse an address that somebody listens on: whoever asks there would take him for ours."""
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        raise StackError(f"nobody can listen on {host}:{port}: {error.strerror}") from None


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:  # noqa: S310 - a URL of ours
            return bool(answer.status == 200)
    except (urllib.error.URLError, OSError):
        return False


def _started(pid: int) -> str:
    """What tells a process from a later one with its id. Raises psutil.NoSuchProcess.

    On Linux a time of day will not do: it is reckoned back from the clock, and moves when that is
    set. There it is which boot, and how many ticks after it.
    """
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return str(psutil.Process(pid).create_time())
    # The second field is the program's name in brackets, and may hold anything.
    return f"{boot}:{fields.rpartition(')')[2].split()[19]}"


def _end_with_parent() -> Callable[[], None] | None:
    """Ask the kernel to end the child should its parent be killed (Linux)."""
    if not sys.platform.startswith("linux"):
        return None
    libc = ctypes.CDLL(None)
    return lambda: libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
