"""The command `counterfoil`: schema, processes, runs, demo."""

from __future__ import annotations

from importlib.metadata import version
from typing import Annotated

import typer

from counterfoil.commands import dead_letters, journal, runs, schedules, schema, services
from counterfoil.commands.common import Config, Dsn, err, out, settings_of, told
from counterfoil.demo import run_demo
from counterfoil.stack import StackError

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Durable runs on PostgreSQL, with every fact about them accounted for exactly once.",
)
app.add_typer(schema.app)
app.add_typer(services.app)
app.add_typer(runs.app)
app.add_typer(journal.app)
app.add_typer(dead_letters.app)
app.add_typer(schedules.app, name="schedule")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(version("counterfoil"))
        raise typer.Exit


@app.callback()
def options(
    show_version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Durable runs on PostgreSQL, with every fact about them accounted for exactly once."""


@app.command()
@told
def demo(dsn: Dsn = None, config: Config = None) -> None:
    """Audit every Python distribution installed here, and kill a worker half way."""
    try:
        code = run_demo(out, settings_of(dsn, None, config))
    except StackError as error:
        err.print(str(error), markup=False)
        code = 1
    raise typer.Exit(code)


def main() -> None:
    """Run the command line."""
    app(prog_name="counterfoil")
