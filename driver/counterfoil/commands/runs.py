"""Commands about runs: launch, list, look, resume, cancel."""

from __future__ import annotations

import json
import secrets
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from counterfoil.commands.common import (
    CliError,
    Config,
    Dsn,
    Org,
    Schema,
    functions_of,
    out,
    print_whole,
    run_async,
    settings_of,
    started_dsn,
    told,
)
from counterfoil.errors import CounterfoilError, IdentityConflictError
from counterfoil.functions import CancelledRun
from counterfoil.kept_secrets import signing_keys
from counterfoil.launching import (
    LaunchPlan,
    RowsError,
    admit_all,
    fault_of,
    launches_of,
    new_batch,
    read_rows,
)
from counterfoil.settings import Settings
from counterfoil.tokens import TokenSigner

app = typer.Typer()

EXECUTOR_TOKEN_SECONDS = 7 * 24 * 3600
_STYLES = {"completed": "green", "failed": "red", "cancelled": "yellow", "running": "cyan"}


@app.command()
@told
def launch(
    play: Annotated[str, typer.Option(help="Name of the play to run.")],
    input_file: Annotated[
        Path, typer.Option("--input", help="Rows: .jsonl (any JSON a line) or .csv (a header).")
    ],
    org: Org = "default",
    batch: Annotated[
        str | None,
        typer.Option(
            help="Name of this launch. The same file and batch again launch nothing twice."
        ),
    ] = None,
    run_id_field: Annotated[
        str | None, typer.Option(help="Column or member of the rows that holds the run id.")
    ] = None,
    priority: Annotated[int | None, typer.Option(help="0 (first) to 9 (last).")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Attempts each run may use.")] = None,
    concurrency_key: Annotated[
        str | None, typer.Option(help="Runs that share it do not execute all at once.")
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Launch one run for each row of a file: all of them, or none."""
    settings = settings_of(dsn, schema, config)
    options = {
        "priority": priority,
        "maxAttempts": max_attempts,
        "concurrencyKey": concurrency_key,
        "releaseLane": settings.release_lane if settings.release_lane != "default" else None,
    }
    plan = LaunchPlan(
        play=play,
        org_id=org,
        base_url=settings.base_url,
        batch=batch or new_batch(play),
        run_id_field=run_id_field,
        options={name: value for name, value in options.items() if value is not None},
    )
    rows = read_rows(input_file)
    launches = launches_of(rows, plan, input_file)
    for document in launches:
        document["executorToken"] = executor_token(settings, org, play, document["runId"])
    if run_id_field is None:
        out.print(f"batch {plan.batch}", markup=False)
    try:
        admitted = run_async(admit_all(started_dsn(settings), settings.schema, launches))
    except CounterfoilError as error:
        faults = [fault_of(error, launches, rows, input_file)]
        if isinstance(error, IdentityConflictError) and run_id_field is None:
            faults.append(
                f"batch {plan.batch} was launched with other contents: give another --batch"
            )
        raise RowsError(faults) from None
    new = sum(1 for answer in admitted if answer.outcome == "admitted")
    known = len(admitted) - new
    out.print(f"{new} launched" + (f", {known} known already" if known else ""))


def executor_token(settings: Settings, org: str, play: str, run_id: str) -> str:
    """The token that the run's runner calls the gateway with, if it cannot sign its own.

    That is "none" where this process has no key to sign it with.
    """
    keys = signing_keys(settings)
    if not keys:
        return "none"
    signer = TokenSigner(keys, settings.schema)
    token = signer.mint(
        org_id=org, play_name=play, run_id=run_id, lifetime_seconds=EXECUTOR_TOKEN_SECONDS
    )
    return token.reveal()


@app.command()
@told
def runs(
    org: Org = "default",
    status: Annotated[
        str | None,
        typer.Option(help="queued, running, waiting, completed, failed or cancelled."),
    ] = None,
    limit: Annotated[int, typer.Option(help="How many, latest first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """List the runs of an org, latest first."""

    async def find() -> list[dict[str, Any]]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            return [row.run for row in await functions.list_runs(org, status, limit=limit)]

    found = run_async(find())
    if as_json:
        for document in found:
            typer.echo(json.dumps(document, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("run", "play", "status", "attempt", "created", "ended"):
        table.add_column(heading)
    for document in found:
        style = _STYLES.get(document["status"], "")
        table.add_row(
            escape(document["runId"]),
            escape(document["playName"]),
            f"[{style}]{document['status']}[/]" if style else document["status"],
            f"{document['attempt']}/{document['maxAttempts']}",
            _short(document["createdAt"]),
            _short(document["endedAt"]),
        )
    if found:
        print_whole(table)
    else:
        out.print(f"no runs in org {org}", markup=False)


def _short(time: str | None) -> str:
    return "" if time is None else time[:19].replace("T", " ")


@app.command()
@told
def run(
    run_id: Annotated[str, typer.Argument(help="The run.")],
    org: Org = "default",
    events: Annotated[
        bool, typer.Option("--events", help="Also its ledger, line by line.")
    ] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Show one run as JSON: status, attempts, result; with --events its ledger too."""

    async def find() -> tuple[dict[str, Any], list[str]]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            document = await functions.get_run(org, run_id)
            ledger: list[str] = []
            after = 0
            while events:
                page = await functions.read_run_events(org, run_id, after, 500)
                ledger += [event.event for event in page]
                if len(page) < 500:
                    break
                after = page[-1].position
            return document, ledger

    document, ledger = run_async(find())
    typer.echo(json.dumps(document, ensure_ascii=False, indent=2))
    for event in ledger:
        typer.echo(event)


@app.command()
@told
def cancel(
    run_id: Annotated[str, typer.Argument(help="The run.")],
    org: Org = "default",
    reason: Annotated[str | None, typer.Option(help="Why; kept with the run.")] = None,
    descendants: Annotated[
        bool, typer.Option("--descendants", help="Also all runs below it; says how each fared.")
    ] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Cancel a run: at once when it is queued, else as soon as its worker notices."""

    async def ask() -> list[CancelledRun]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            return await functions.cancel_run(org, run_id, reason, descendants)

    for answer in run_async(ask()):
        name = f"{answer.run_id}: " if descendants else ""
        out.print(f"{name}{answer.outcome}, run is {answer.status}", markup=False)


@app.command()
@told
def resume(
    run_id: Annotated[str, typer.Argument(help="The run.")],
    event: Annotated[str, typer.Argument(help="Name of the event that the run waits for.")],
    payload: Annotated[str, typer.Option(help="JSON that run.wait_for() returns.")] = "null",
    signal_id: Annotated[
        str | None, typer.Option(help="Id of this resume; the same id again changes nothing.")
    ] = None,
    org: Org = "default",
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Bring a waiting run the event it waits for."""
    try:
        value = json.loads(payload)
    except ValueError as error:
        raise CliError(f"--payload is not JSON: {error}") from None

    async def bring() -> str:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            answer = await functions.resume_run(
                org, run_id, event, value, signal_id or secrets.token_hex(16)
            )
            return f"{answer.outcome}, run is {answer.status}"

    out.print(run_async(bring()))
