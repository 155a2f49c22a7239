"""Commands that run processes: gateway, dispatch, worker, and the local stack of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from counterfoil import logs, migrations
from counterfoil.commands.common import (
    CliError,
    Config,
    Dsn,
    LogLevel,
    Org,
    Schema,
    err,
    out,
    settings_of,
    started_dsn,
    told,
)
from counterfoil.embedded import EmbeddedServer
from counterfoil.kept_secrets import keep_secrets, signing_keys
from counterfoil.playing.loading import LoadError, load_worker
from counterfoil.services import run_dispatcher, run_gateway
from counterfoil.settings import Settings
from counterfoil.stack import Stack, StackError, check_free, detached, stop_detached
from counterfoil.tokens import TokenSigner

app = typer.Typer()


@app.command()
@told
def gateway(
    host: Annotated[str | None, typer.Option(help="Address to listen on.")] = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on.")] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
    log_level: LogLevel = "info",
) -> None:
    """Serve the ledger, receipts, dispatch tokens and reads over HTTP."""
    logs.configure(log_level)
    run_gateway(settings_of(dsn, schema, config, host=host, port=port))


@app.command()
@told
def token(
    org: Org = "default",
    run_id: Annotated[str, typer.Option("--run", help="Run whose own token it is to be.")] = "",
    play: Annotated[str, typer.Option(help="The run's play; with --run.")] = "",
    seconds: Annotated[int, typer.Option(min=1, help="How long it is good.")] = 3600,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Print a token for the gateway: one that reads and searches all of an org and changes nothing,
    or with --run and --play one for the receipts of that run."""
    if bool(run_id) != bool(play):
        raise CliError("--run and --play come together: a run's token names both")
    settings = settings_of(None, schema, config)
    minted = TokenSigner(signing_keys(settings), settings.schema).mint(
        org_id=org,
        run_id=run_id,
        play_name=play,
        use="executor" if run_id else "reader",
        lifetime_seconds=seconds,
    )
    typer.echo(minted.reveal())


@app.command()
@told
def dispatch(
    concurrency: Annotated[int | None, typer.Option(help="Runs in flight at once.")] = None,
    slow_places: Annotated[
        int | None, typer.Option(help="Of these, to receivers that keep requests waiting.")
    ] = None,
    projector: Annotated[
        bool | None,
        typer.Option(
            "--projector/--no-projector", help="Materialise deferred facts, drain the search lane."
        ),
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
    log_level: LogLevel = "info",
) -> None:
    """Deliver facts to the ledger."""
    logs.configure(log_level)
    flags = {"concurrency": concurrency, "slow_places": slow_places, "projector": projector}
    run_dispatcher(settings_of(dsn, schema, config, **flags))


@app.command()
@told
def worker(
    program: Annotated[
        str, typer.Argument(help="plays.py or package.plays, either with :attribute.")
    ],
    name: Annotated[str | None, typer.Option(help="What the worker calls itself.")] = None,
    concurrency: Annotated[int | None, typer.Option(help="Plays at once.")] = None,
    lease_seconds: Annotated[
        int | None, typer.Option(help="How long a run stays this worker's without a sign of life.")
    ] = None,
    drain_seconds: Annotated[
        float | None, typer.Option(help="How long a stopping worker waits for its plays.")
    ] = None,
    release_lane: Annotated[str | None, typer.Option(help="Which release's runs it takes.")] = None,
    receipts: Annotated[
        str | None, typer.Option(help="Who keeps its steps' receipts: database or gateway.")
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
    log_level: LogLevel = "info",
) -> None:
    """Execute the plays of a program. SIGTERM drains, a second one stops at once."""
    logs.configure(log_level)
    try:
        found = load_worker(program)
    except LoadError as error:
        raise CliError(str(error)) from None
    try:
        found.configure(
            settings_of(dsn, schema, config) if dsn or schema or config else None,
            name=name,
            concurrency=concurrency,
            lease_seconds=lease_seconds,
            drain_seconds=drain_seconds,
            release_lane=release_lane,
        )
        if receipts is not None:
            found.configure(replace(found.settings, receipts=receipts))
        _ = found.options  # what the settings say may be out of range too
        if not len(found.plays):
            raise CliError(f"{program}: its worker has no play; register one with @worker.play()")
    except ValueError as error:
        raise CliError(str(error)) from None
    found.run()


@app.command()
@told
def up(
    programs: Annotated[
        list[str] | None, typer.Argument(help="Programs with plays; each gets a worker.")
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Start the local stack and leave it running: server, schema, gateway, dispatcher, workers."""
    settings = settings_of(dsn, schema, config)
    folder = _folder()
    running = detached(folder)
    if running:
        raise CliError(f"the stack runs already ({', '.join(running)}); counterfoil down stops it")
    try:
        check_free(settings.host, settings.port)
    except StackError as error:
        raise CliError(
            f"{error}; say another port with COUNTERFOIL_PORT, and the same in COUNTERFOIL_BASE_URL"
        ) from None
    server = started_dsn(settings)
    out.print(str(migrations.migrate(server, settings.schema)), markup=False)
    environment = {
        "COUNTERFOIL_DSN": server,
        "COUNTERFOIL_SCHEMA": settings.schema,
        **({} if settings.signing_keys else keep_secrets(folder, server)),
    }
    if config is not None:
        environment["COUNTERFOIL_CONFIG"] = str(config.resolve())
    with Stack(folder, environment, detached=True) as stack:
        try:
            _start_all(stack, settings, programs or [])
        except StackError as error:
            raise CliError(str(error)) from None
        for member in stack.members.values():
            out.print(f"{member.name} runs (process {member.process.pid}, log {member.log})")
        stack.detach()
    out.print(f"gateway at {settings.base_url}; counterfoil down stops everything")


def _start_all(stack: Stack, settings: Settings, programs: list[str]) -> None:
    stack.start("gateway", "gateway")
    stack.wait_for_url(f"http://{settings.host}:{settings.port}/readyz")
    stack.start("dispatcher", "dispatch")
    workers = {f"worker-{number}": program for number, program in enumerate(programs, 1)}
    for name, program in workers.items():
        stack.start(name, "worker", program)
    stack.wait_for_message("dispatcher", "dispatching")
    for name in workers:
        stack.wait_for_message(name, "worker started")


def _folder() -> Path:
    return EmbeddedServer.default().home


@app.command()
@told
def down() -> None:
    """Stop what `up` started, and the embedded server. The data stays."""
    stopped = stop_detached(_folder())
    server = EmbeddedServer.default()
    if server.pid() is not None:
        server.stop()
        stopped = [*stopped, "server"]
    (out if stopped else err).print(
        f"stopped {', '.join(stopped)}" if stopped else "nothing was running"
    )
