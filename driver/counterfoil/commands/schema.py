"""Commands for DBAs: the schema's installation and its proof."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import psycopg
import typer

from counterfoil import migrations, pgtap
from counterfoil.commands.common import (
    CliError,
    Config,
    Dsn,
    Schema,
    dsn_of,
    err,
    out,
    settings_of,
    started_dsn,
    told,
)

app = typer.Typer()


@app.command()
@told
def migrate(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Install or upgrade the schema. Again is harmless; two at once are safe."""
    settings = settings_of(dsn, schema, config)
    out.print(str(migrations.migrate(started_dsn(settings), settings.schema)), markup=False)


@app.command()
@told
def status(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Which migrations are applied and which are not. Exit code 1 when some are due."""
    settings = settings_of(dsn, schema, config)
    report = migrations.status(dsn_of(settings), settings.schema)
    out.print(str(report), markup=False)
    if not report.current:
        raise typer.Exit(1)


@app.command()
@told
def verify(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Prove the whole shape: tables, indexes, functions, grants. Exit code 1 on any difference."""
    settings = settings_of(dsn, schema, config)
    report = migrations.verify(dsn_of(settings), settings.schema)
    out.print(str(report), markup=False)
    if not report.ok:
        raise typer.Exit(1)


@app.command()
@told
def plan(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Print the SQL that migrate would run, to be reviewed and run with psql."""
    settings = settings_of(dsn, schema, config)
    typer.echo(migrations.plan(dsn_of(settings), settings.schema), nl=False)


@app.command("prepare-indexes")
@told
def prepare_indexes(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Build, concurrently, the indexes that coming migrations need."""
    settings = settings_of(dsn, schema, config)
    reports = migrations.prepare_indexes(dsn_of(settings), settings.schema)
    for report in reports:
        out.print(str(report), markup=False)
    if not reports:
        out.print("no migration to come needs an index of its own")


@app.command()
@told
def roles() -> None:
    """Print the SQL that creates the roles, for a DBA with CREATEROLE."""
    typer.echo(migrations.roles_sql(), nl=False)


@app.command("pgtap")
@told
def run_pgtap(
    paths: Annotated[list[Path], typer.Argument(help="Test files or folders.")],
    dsn: Dsn = None,
    config: Config = None,
) -> None:
    """Run pgTAP files, each in a session of its own."""
    settings = settings_of(dsn, None, config)
    server = dsn_of(settings)
    with psycopg.connect(server, autocommit=True) as connection:
        found = connection.execute("select from pg_extension where extname = 'pgtap'").fetchone()
    if found is None:
        raise CliError(
            "the database has no pgTAP: create extension pgtap (Debian: postgresql-<version>-pgtap)"
        )
    try:
        summary = pgtap.run_files(server, paths, lambda line: out.print(line, markup=False))
    except pgtap.ScriptError as error:
        raise CliError(str(error)) from None
    line = f"{summary.passed} passed, {summary.failed} failed in {len(summary.files)} files"
    (err if summary.failed else out).print(line)
    if summary.failed or not summary.files:
        raise typer.Exit(1)
