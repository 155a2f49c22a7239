"""An own PostgreSQL server for development, tests and small installations.

    server = EmbeddedServer.default()
    server.start()                      # makes the data folder on the first start
    psycopg.connect(server.dsn())
    server.stop()

It has no network port, lets in the account that started it and nobody else, and keeps its
promises on disk (fsync is on). docs/embedded.md says where things lie and why.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil
from psycopg.conninfo import make_conninfo

from counterfoil.server import processes, setup
from counterfoil.server.account import EmbeddedServerError
from counterfoil.server.place import (
    Place,
    find_place,
    in_use,
    locked,
    make_home,
    make_place,
    remove_place,
)
from counterfoil.server.setup import DATABASE, OWNER, PORT, Setting

__all__ = ["EmbeddedServer", "EmbeddedServerError"]

HOME_VARIABLE = "COUNTERFOIL_HOME"
_PAUSE = 0.02
_LOG_LIMIT = 10_000_000

# Starts the server as nobody's child (so that it outlives the caller and is never the caller's
# zombie) with its log opened under the server's account, and says its process id.
_LAUNCH = 'log=$1; shift; "$@" </dev/null >>"$log" 2>&1 & echo $!'


class EmbeddedServer:
    """The server of one home folder. Any number of objects and processes may stand for it.

    `home`: the folder, made at the first start. `settings`: names and values for
    postgresql.conf; None leaves those of the last start. `timeout`: seconds that starting,
    stopping, or waiting for another starter may take.

    Every method raises EmbeddedServerError, and only that, for what is wrong with the server.
    """

    def __init__(
        self,
        home: Path,
        *,
        settings: Mapping[str, Setting] | None = None,
        timeout: float = 60.0,
    ) -> None:
        self.home = Path(os.path.realpath(home))
        self.settings = None if settings is None else dict(settings)
        self.timeout = timeout
        self._leave_running = True
        setup.rendered(self.settings or {})

    @classmethod
    def default(
        cls, home: Path | None = None, *, settings: Mapping[str, Setting] | None = None
    ) -> Self:
        """The server of `home`, else of $COUNTERFOIL_HOME, else of ./.counterfoil."""
        chosen = home or Path(os.environ.get(HOME_VARIABLE) or ".counterfoil")
        return cls(chosen, settings=settings)

    @property
    def bin_dir(self) -> Path:
        """The folder of the PostgreSQL programs for the caller: psql, pg_isready, pg_dump, …"""
        return setup.bin_dir()

    @property
    def data_dir(self) -> Path:
        """The data folder."""
        return self._place().data

    @property
    def log_file(self) -> Path:
        """The server's log."""
        return self._place().log

    def dsn(self, dbname: str = DATABASE, user: str = OWNER) -> str:
        """A libpq connection string; by default for the database `counterfoil` as its owner.

        The owner is a superuser. The server must have been started once.
        """
        return make_conninfo(
            host=str(self._place().socket_dir), port=PORT, dbname=dbname, user=user
        )

    def is_running(self) -> bool:
        """Whether the server accepts connections now (pg_isready)."""
        place = find_place(self.home)
        return place is not None and self._is_ready(place)

    def pid(self) -> int | None:
        """The process id of the living postmaster, or None."""
        place = find_place(self.home)
        process = place and processes.living_postmaster(place.data, place.account)
        return process.pid if process else None

    def start(self) -> None:
        """Start the server unless it runs, and return when it accepts connections.

        Of several callers at once one starts it and the others find it running.
        """
        make_home(self.home)
        with locked(self.home, self.timeout):
            place = find_place(self.home)
            if place is not None and self._is_ready(place):
                self._refuse_other_settings(place)
                return
            self._start(make_place(self.home))

    def ensure(self) -> Self:
        """`start()`, for chaining: `EmbeddedServer.default().ensure().dsn()`."""
        self.start()
        return self

    def stop(self) -> None:
        """Stop the server (fast shutdown: sessions are ended, transactions rolled back).

        Returns when its process has ended; does nothing when none runs.
        """
        if not self.home.is_dir():
            return
        with locked(self.home, self.timeout):
            place = find_place(self.home)
            if place is not None:
                self._stop(place)

    def remove(self) -> None:
        """Stop the server and delete it with all its data."""
        if not self.home.is_dir():
            return
        with locked(self.home, self.timeout):
            place = find_place(self.home)
            if place is not None:
                self._stop(place)
                remove_place(place)

    def __enter__(self) -> Self:
        """Start the server; at the end of the block it stops, unless it ran before."""
        self._leave_running = self.is_running()
        return self.ensure()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if not self._leave_running:
            self.stop()

    def _place(self) -> Place:
        place = find_place(self.home)
        if place is None:
            raise EmbeddedServerError(
                "no embedded server has been started here", self.home, "Start it (counterfoil up)."
            )
        return place

    def _is_ready(self, place: Place) -> bool:
        patience = max(1, min(3, int(self.timeout)))
        command = [str(self.bin_dir / "pg_isready"), "--quiet", f"--timeout={patience}"]
        command += [f"--host={place.socket_dir}", f"--port={PORT}"]
        command += [f"--username={OWNER}", f"--dbname={OWNER}"]
        answer = subprocess.run(  # noqa: S603 - a program of the wheel, a path of ours
            command, check=False, capture_output=True, env={"PATH": os.defpath, "LC_ALL": "C"}
        )
        return answer.returncode == 0

    def _start(self, place: Place) -> None:
        programs = setup.server_programs(place)
        if place.data.exists():
            setup.refuse_other_major(place, programs)
        else:
            setup.initialise(place, programs, time.monotonic() + self.timeout)
        deadline = time.monotonic() + self.timeout
        launched: int | None = None
        log_start = 0
        while not self._is_ready(place):
            alive = processes.living_postmaster(place.data, place.account)
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"the server does not accept connections after {self.timeout:g} s",
                    f"{place.data}, process {alive.pid if alive else launched}",
                    f"It may still be recovering from a crash: {place.log} says so. "
                    "Start again to wait longer; it was left running.",
                )
            if alive is None and (launched is None or not processes.is_alive(launched)):
                if launched is not None:
                    raise EmbeddedServerError(
                        f"the server did not start ({_tail(place.log, log_start)})",
                        place.data,
                        f"Put right what it says; the whole log is {place.log}.",
                    )
                processes.end_orphans(place.data, place.account, deadline)
                setup.write_configuration(place, self.settings)
                log_start = _turn_log(place.log)
                launched = self._launch(place, programs, deadline)
            time.sleep(_PAUSE)

    def _launch(self, place: Place, programs: Path, deadline: float) -> int:
        environment = {}
        stale = processes.stale_pid(place.data, place.account)
        if stale is not None:
            # The pid file is PostgreSQL's to replace, and its check of the shared memory stays.
            # But it takes any living process with that number for a server, a zombie or a
            # stranger too. This variable names a number that it must not be misled by.
            environment["PG_GRANDPARENT_PID"] = str(stale)
        command = setup.server_command(place, programs)
        with in_use(place, max(0.0, deadline - time.monotonic())) as lock:
            answer = place.account.run(
                ["/bin/sh", "-c", _LAUNCH, "sh", place.log, *command],
                environment=environment,
                pass_fds=[lock],
            )
        if answer.returncode != 0 or not answer.stdout.strip().isdigit():
            raise EmbeddedServerError(
                f"the server could not be launched ({answer.stderr.strip() or 'no answer'})",
                place.log,
                f"The account {place.account.name!r} must be able to write this log.",
            )
        return int(answer.stdout)

    def _stop(self, place: Place) -> None:
        process = processes.living_postmaster(place.data, place.account)
        if process is None:
            if self._is_ready(place):
                raise EmbeddedServerError(
                    "a server answers, but its process can't be found (another container?)",
                    place.data,
                    "Stop it where it was started.",
                )
            processes.end_orphans(place.data, place.account, time.monotonic() + self.timeout)
            return
        try:
            process.send_signal(signal.SIGINT)
        except psutil.NoSuchProcess:
            return
        if not processes.wait_for_end(process, time.monotonic() + self.timeout):
            raise EmbeddedServerError(
                f"the server has not stopped after {self.timeout:g} s",
                f"process {process.pid}, {place.data}",
                f"It is still shutting down; {place.log} may say what it waits for. Call stop "
                f"again to wait longer. Last resort: kill -QUIT {process.pid}, after which the "
                "next start recovers from the log.",
            )

    def _refuse_other_settings(self, place: Place) -> None:
        if self.settings is None:
            return
        present = (place.conf / "settings.conf").read_text(encoding="utf-8")
        if present != setup.rendered(self.settings):
            names = ", ".join(re.findall(r"^(\S+) =", present, re.M)) or "none"
            raise EmbeddedServerError(
                "the server already runs with other settings than these",
                f"{place.conf / 'settings.conf'} (sets: {names})",
                "Stop it first (counterfoil down), or leave the settings out to share it.",
            )


def _turn_log(log: Path) -> int:
    """Put a large log aside, and say at which byte the next start's lines begin."""
    try:
        size = log.lstat().st_size
    except FileNotFoundError:
        return 0
    if size < _LOG_LIMIT:
        return size
    log.replace(log.with_suffix(".log.1"))
    return 0


def _tail(log: Path, start: int) -> str:
    """The last lines that one start wrote to the log."""
    try:
        handle = os.open(log, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        return str(error)
    with os.fdopen(handle, "rb") as file:
        file.seek(start)
        lines = file.read(65536).decode(errors="replace").strip().splitlines()
    return "\n".join(lines[-8:]) or "it wrote no reason"
