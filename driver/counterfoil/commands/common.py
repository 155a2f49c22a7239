"""What the commands share: options, settings, the database, and how errors are told."""

from __future__ import annotations

import asyncio
import functools
import re
import sys
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any, ParamSpec, TypeVar, get_type_hints

import psycopg
import typer
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from typer.models import ArgumentInfo, OptionInfo

from counterfoil.database import Database
from counterfoil.embedded import EmbeddedServer, EmbeddedServerError
from counterfoil.errors import CounterfoilError, SettingsError
from counterfoil.functions import Functions
from counterfoil.launching import RowsError
from counterfoil.migrations import MigrationError
from counterfoil.settings import Settings

P = ParamSpec("P")
R = TypeVar("R")

Dsn = Annotated[
    str | None,
    typer.Option(
        help="Connection string of PostgreSQL. Default: COUNTERFOIL_DSN, the settings "
        "file, or else the embedded server.",
        show_default=False,
    ),
]
Schema = Annotated[
    str | None,
    typer.Option(help="Schema of the installation [default: counterfoil].", show_default=False),
]
Config = Annotated[
    Path | None,
    typer.Option(help="Settings file (TOML) [default: counterfoil.toml].", show_default=False),
]
Org = Annotated[str, typer.Option("--org", help="Org (tenant) that the runs belong to.")]
LogLevel = Annotated[
    str, typer.Option(help="debug, info, warning or error.", envvar="COUNTERFOIL_LOG_LEVEL")
]

_GRANT = (
    "let the owner grant the login what it is to be: counterfoil_worker, counterfoil_dispatcher, "
    "counterfoil_gateway, counterfoil_operator or counterfoil_reader"
)

_ARGUMENT = re.compile(r"(?<![\w-])p_([a-z]+(?:_[a-z]+)*)")

out = Console(highlight=False, soft_wrap=True)
"""Standard output: what was asked for."""
err = Console(stderr=True, highlight=False, soft_wrap=True)
"""Standard error: everything else."""


class CliError(Exception):
    """Something the caller has to put right; the message says what."""


def settings_of(
    dsn: str | None = None, schema: str | None = None, config: Path | None = None, **flags: object
) -> Settings:
    """Settings from flags, environment and file."""
    return Settings.load({"dsn": dsn, "schema": schema, **flags}, file=config)


def started_dsn(settings: Settings) -> str:
    """The database to work on; starts the embedded server where none is named."""
    return settings.dsn or EmbeddedServer.default().ensure().dsn()


def dsn_of(settings: Settings) -> str:
    """The database to work on, for commands about what is there already.

    Raises CliError where none is named and the embedded server does not run.
    """
    if settings.dsn:
        return settings.dsn
    server = EmbeddedServer.default()
    if not server.is_running():
        raise CliError(
            f"no database is named, and no server runs in {server.home}: start it with its "
            "stack (counterfoil up) or alone (counterfoil migrate), or name another database "
            "with --dsn or COUNTERFOIL_DSN"
        )
    return server.dsn()


@asynccontextmanager
async def functions_of(
    settings: Settings, named: Callable[[Settings], str] = dsn_of
) -> AsyncIterator[Functions]:
    """The stored functions, through one connection to the database that ``named`` finds."""
    dsn = await asyncio.to_thread(named, settings)
    async with Database(
        dsn, schema=settings.schema, max_size=1, application_name="counterfoil cli"
    ) as database:
        yield Functions(database)


def told(function: Callable[P, R]) -> Callable[P, R]:
    """Make errors that people can put right into one message on standard error and exit code 1."""

    @functools.wraps(function)
    def command(*args: P.args, **kwargs: P.kwargs) -> R:
        try:
            return function(*args, **kwargs)
        except CounterfoilError as error:
            err.print(f"[red]error:[/] {_plain(_as_typed(error.message, function))}", markup=True)
            for label, text in (("detail", error.reason), ("what to do", error.hint)):
                if text:
                    err.print(f"  {label}: {_plain(_as_typed(text, function))}", markup=True)
        except psycopg.Error as error:
            err.print(f"[red]error:[/] {_plain(_said(error))}", markup=True)
            if _said(error).startswith("permission denied for"):
                err.print(f"  what to do: {_GRANT}", markup=False)
        except (CliError, EmbeddedServerError, MigrationError, RowsError, SettingsError) as error:
            err.print(f"[red]error:[/] {_plain(str(error).strip())}", markup=True)
        except BrokenPipeError:
            sys.stderr.close()
        except OSError as error:
            about = f"{error.filename}: {error.strerror}" if error.filename else str(error)
            err.print(f"[red]error:[/] {_plain(about)}", markup=True)
        raise typer.Exit(1)

    return command


def print_whole(table: Table) -> None:
    """Print a table as wide as it is: an id that was cut could not be copied."""
    needed = Measurement.get(out, out.options.update(max_width=10_000), table).maximum
    Console(highlight=False, width=needed).print(table)


def _as_typed(text: str, command: Callable[..., Any]) -> str:
    """``text`` with each argument of a function as the command line has it."""
    names: dict[str, str] = {}
    for name, hint in get_type_hints(command, include_extras=True).items():
        for said in getattr(hint, "__metadata__", ()):
            if isinstance(said, ArgumentInfo):
                names[name] = name.upper()
            elif isinstance(said, OptionInfo):
                declared = (said.default, *(said.param_decls or ()))
                flags = [flag for flag in declared if isinstance(flag, str) and flag[:2] == "--"]
                names[name] = flags[0] if flags else f"--{name.replace('_', '-')}"

    def typed(argument: re.Match[str]) -> str:
        name = argument[1]
        return names.get(name) or names.get(name.removesuffix("_id")) or name.replace("_", " ")

    return _ARGUMENT.sub(typed, text.replace("list_schedules()", "counterfoil schedule list"))


def _plain(text: str) -> str:
    return text.replace("[", "\\[")


def _said(error: psycopg.Error) -> str:
    """What the server says, without the statement; or why there was no server to say it."""
    return error.diag.message_primary or str(error).strip()


def run_async(coroutine: Coroutine[Any, Any, R]) -> R:
    """Run a command's coroutine to its end."""
    return asyncio.run(coroutine)
