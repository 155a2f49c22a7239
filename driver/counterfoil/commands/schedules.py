"""Commands about schedules: create, list, next, pause, resume, delete."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.table import Table

from counterfoil.commands.common import (
    CliError,
    Config,
    Dsn,
    Org,
    Schema,
    functions_of,
    out,
    run_async,
    settings_of,
    started_dsn,
    told,
)
from counterfoil.cron import CronError, parse_cron

app = typer.Typer(no_args_is_help=True, help="Launch runs again and again, by cron.")

Name = Annotated[str, typer.Argument(help="Name of the schedule within the org.")]


@app.command()
@told
def create(
    name: Name,
    cron: Annotated[
        str, typer.Option(help='Cron expression, such as "0 9 * * MON-FRI" or @daily.')
    ],
    play: Annotated[str, typer.Option(help="Name of the play to run.")],
    time_zone: Annotated[
        str, typer.Option("--time-zone", help="Time zone in which the expression is meant.")
    ] = "UTC",
    given: Annotated[str, typer.Option("--input", help="JSON that the play is given.")] = "null",
    overlap: Annotated[
        str, typer.Option(help="While the run before goes on: allow, skip or buffer.")
    ] = "skip",
    catch_up: Annotated[
        str, typer.Option("--catch-up", help="Firings that were missed: none, one or all.")
    ] = "one",
    catch_up_seconds: Annotated[
        int | None, typer.Option("--catch-up-seconds", help="How late a firing may be.")
    ] = None,
    deadline_after: Annotated[
        int | None, typer.Option("--deadline-after", help="Seconds after which a run fails.")
    ] = None,
    priority: Annotated[int | None, typer.Option(help="0 (first) to 9 (last).")] = None,
    max_attempts: Annotated[int | None, typer.Option(help="Attempts each run may use.")] = None,
    concurrency_key: Annotated[
        str | None, typer.Option(help="Runs that share it do not execute all at once.")
    ] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Give a schedule that exists these contents.")
    ] = False,
    org: Org = "default",
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Launch a play whenever a cron expression fits."""
    settings = settings_of(dsn, schema, config)
    try:
        parsed = parse_cron(cron)
    except CronError as error:
        raise CliError(f"--cron: {error}") from None
    try:
        value = json.loads(given)
    except ValueError as error:
        raise CliError(f"--input is not JSON: {error}") from None
    launch = {
        "playId": play,
        "playName": play,
        # A token would outlive no schedule: workers sign one of their own for each run.
        "executorToken": "none",
        "baseUrl": settings.base_url,
        "input": value,
    }
    options = {
        "priority": priority,
        "maxAttempts": max_attempts,
        "concurrencyKey": concurrency_key,
        "deadlineAfterSeconds": deadline_after,
        "releaseLane": settings.release_lane if settings.release_lane != "default" else None,
    }
    launch |= {key: option for key, option in options.items() if option is not None}

    async def make() -> str:
        async with functions_of(settings, started_dsn) as functions:
            made = await functions.create_schedule(
                org, name, parsed, time_zone, launch, overlap, catch_up, catch_up_seconds, replace
            )
            if made.next_fire_at is None:
                return f"{made.outcome}, paused"
            return f"{made.outcome}, fires next at {made.next_fire_at:%Y-%m-%d %H:%M %Z}"

    out.print(run_async(make()), markup=False)


@app.command("list")
@told
def list_them(
    org: Org = "default",
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """List the schedules of an org: when each fires next, and what its last firing came to."""

    async def find() -> list[dict[str, Any]]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            found: list[dict[str, Any]] = []
            while True:
                after = found[-1]["name"] if found else None
                page = await functions.list_schedules(org, after, 1000)
                found += [row.schedule for row in page]
                if len(page) < 1000:
                    return found

    found = run_async(find())
    if as_json:
        for document in found:
            typer.echo(json.dumps(document, ensure_ascii=False))
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("name", "cron", "time zone", "play", "next", "last", "outcome"):
        table.add_column(heading, overflow="fold")
    for document in found:
        table.add_row(
            document["name"],
            document["cron"],
            document["timeZone"],
            document["launch"]["playName"],
            "paused" if document["pausedAt"] else _short(document["nextFireAt"]),
            _short(document["lastFireAt"]),
            ": ".join(filter(None, (document["lastOutcome"], document["lastError"]))),
        )
    out.print(table if found else f"no schedules in org {org}")


def _short(time: str | None) -> str:
    return "" if time is None else time[:16].replace("T", " ")


@app.command("next")
@told
def fire_times(
    name: Name,
    count: Annotated[int, typer.Option(help="How many, 1 to 100.")] = 5,
    org: Org = "default",
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Show when a schedule will fire, in UTC."""

    async def ask() -> list[str]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            found = await functions.schedule_fire_times(org, name, count)
            return [f"{at:%Y-%m-%d %H:%M %Z}" for at in found]

    for line in run_async(ask()):
        typer.echo(line)


@app.command()
@told
def pause(
    name: Name, org: Org = "default", dsn: Dsn = None, schema: Schema = None, config: Config = None
) -> None:
    """Let a schedule fire no more until it is resumed."""

    async def ask() -> str:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            return (await functions.pause_schedule(org, name)).outcome

    out.print(run_async(ask()))


@app.command()
@told
def resume(
    name: Name, org: Org = "default", dsn: Dsn = None, schema: Schema = None, config: Config = None
) -> None:
    """Let a paused schedule fire again, from now on."""

    async def ask() -> str:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            state = await functions.resume_schedule(org, name)
            return f"{state.outcome}, fires next at {state.next_fire_at:%Y-%m-%d %H:%M %Z}"

    out.print(run_async(ask()), markup=False)


@app.command()
@told
def delete(
    name: Name, org: Org = "default", dsn: Dsn = None, schema: Schema = None, config: Config = None
) -> None:
    """Forget a schedule. Runs that it launched stay."""

    async def ask() -> bool:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            return await functions.delete_schedule(org, name)

    out.print("deleted" if run_async(ask()) else "there was none")
