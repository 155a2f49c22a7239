"""Commands of the journal: a run's log, search, and the upkeep of an installation."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Annotated

import typer
from rich.text import Text

from counterfoil.calls.journal import JournalRow, RunRow
from counterfoil.commands.common import (
    Config,
    Dsn,
    Org,
    Schema,
    functions_of,
    out,
    run_async,
    settings_of,
    told,
)
from counterfoil.functions import Functions
from counterfoil.json_text import JsonValue

app = typer.Typer()

PAGE = 500
FOLLOW_SECONDS = 0.5
_ENDED = ("completed", "failed", "cancelled")
_STYLES = {"error": "red", "critical": "red", "warning": "yellow", "debug": "dim"}

Level = Annotated[str | None, typer.Option(help="Only entries of this level, such as error.")]
Channel = Annotated[str | None, typer.Option(help="log, progress or receipt.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON document a line.")]


@app.command()
@told
def logs(
    run_id: Annotated[str, typer.Argument(help="The run.")],
    org: Org = "default",
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Go on until the run has ended.")
    ] = False,
    channel: Channel = None,
    level: Level = None,
    as_json: AsJson = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Print a run's journal in its order: log lines, and what else was indexed."""

    async def show() -> None:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            await functions.get_run(org, run_id)
            async for entry in entries(functions, org, run_id, channel, level, follow=follow):
                _print(entry, as_json=as_json, with_run=False)

    run_async(show())


async def entries(
    functions: Functions,
    org: str,
    run_id: str,
    channel: str | None = None,
    level: str | None = None,
    *,
    follow: bool,
) -> AsyncIterator[JournalRow]:
    """A run's entries by position; with ``follow`` until it has ended and all is indexed."""
    cursor: JsonValue = None
    ended = not follow
    while True:
        page = await functions.search_journal(
            org, None, run_id, channel, cursor, PAGE, level=level, order="position"
        )
        for row in page[:-1]:
            yield row
        last = page[-1]
        cursor = last.cursor
        if last.kind == "more":
            continue
        if ended and (last.kind == "end" or not follow):
            return
        # Ended first, read after: what the run said at its end is not missed.
        ended = (await functions.get_run(org, run_id))["status"] in _ENDED
        if not ended or last.kind == "pending":
            await asyncio.sleep(FOLLOW_SECONDS)


@app.command()
@told
def search(
    query: Annotated[str, typer.Argument(help='Words, or "text in quotes".')] = "",
    org: Org = "default",
    run_id: Annotated[str | None, typer.Option("--run", help="Only this run.")] = None,
    channel: Channel = None,
    level: Level = None,
    since: Annotated[datetime | None, typer.Option(help="From this time on.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Before this time.")] = None,
    substring: Annotated[
        bool, typer.Option("--substring", help="The query as it stands, also within words.")
    ] = False,
    limit: Annotated[int, typer.Option(min=1, help="How many, latest first.")] = 50,
    as_json: AsJson = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Search the journal of an org, the latest entries first."""

    async def find() -> None:
        left, cursor = limit, None
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while left:
                page = await functions.search_journal(
                    org,
                    query,
                    run_id,
                    channel,
                    cursor,
                    min(left, PAGE),
                    level=level,
                    since=since and since.astimezone(),
                    until=until and until.astimezone(),
                    mode="substring" if substring else "words",
                )
                for row in page[:-1]:
                    _print(row, as_json=as_json, with_run=True)
                left -= len(page) - 1
                cursor = page[-1].cursor
                if page[-1].kind != "more":
                    return

    run_async(find())


def _printable(text: str) -> str:
    """Somebody else's text without what would move a terminal's cursor."""
    return "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in text)


def _print(row: JournalRow, *, as_json: bool, with_run: bool) -> None:
    if as_json:
        document = {
            "runId": row.run_id,
            "channel": row.channel,
            "position": row.position,
            "occurredAt": row.occurred_at and row.occurred_at.isoformat(),
            "level": row.level,
            "line": row.line,
            "context": row.context,
            "details": row.details,
        }
        typer.echo(json.dumps(document, ensure_ascii=False))
        return
    when = row.occurred_at.astimezone() if row.occurred_at else None
    text = Text(_printable(row.line or ""), style=_STYLES.get((row.level or "").lower(), ""))
    for start, length in row.highlights or []:
        text.stylize("bold", start, start + length)
    lead = f"{when:%Y-%m-%d %H:%M:%S} " if when else ""
    if with_run:
        lead += f"{row.run_id} "
    if row.channel != "log":
        lead += f"({row.channel}) "
    out.print(Text(lead, style="dim") + text)


@app.command()
@told
def search_runs(
    query: Annotated[
        str, typer.Argument(help="Text in run id, play, error or result summary.")
    ] = "",
    org: Org = "default",
    status: Annotated[str | None, typer.Option(help="Such as failed.")] = None,
    play: Annotated[str | None, typer.Option(help="Only runs of this play.")] = None,
    error: Annotated[str | None, typer.Option(help="Text in the error.")] = None,
    since: Annotated[datetime | None, typer.Option(help="Created from this time on.")] = None,
    until: Annotated[datetime | None, typer.Option(help="Created before this time.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, latest first.")] = 50,
    as_json: AsJson = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Search the runs of an org, the latest first."""

    async def find() -> None:
        left, cursor = limit, None
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while left:
                page = await functions.search_runs(
                    org,
                    status,
                    play,
                    query,
                    error,
                    since=since and since.astimezone(),
                    until=until and until.astimezone(),
                    before=cursor,
                    limit=min(left, PAGE),
                )
                for row in page[:-1]:
                    _print_run(row, as_json=as_json)
                left -= len(page) - 1
                cursor = page[-1].cursor
                if page[-1].kind != "more":
                    return

    run_async(find())


def _print_run(row: RunRow, *, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(row.run, ensure_ascii=False))
        return
    when = row.created_at.astimezone() if row.created_at else None
    run = row.run if isinstance(row.run, dict) else {}
    failure = run.get("error")
    message = str(failure.get("message") or "") if isinstance(failure, dict) else ""
    parts = [f"{when:%Y-%m-%d %H:%M:%S}", row.status, run.get("playName"), row.run_id, message]
    out.print(Text(_printable(" ".join(str(part) for part in parts if part))))


@app.command()
@told
def retention(
    org: Annotated[str, typer.Argument(help="The org.")],
    name: Annotated[
        str | None,
        typer.Argument(help="Such as journal_retention; without it all are shown."),
    ] = None,
    seconds: Annotated[
        str | None, typer.Argument(help="How long, in seconds, or default: as the setting says.")
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Show, or set, how long an org keeps things where that differs from the settings.

    Where it has nothing of its own to show, the settings are shown, which hold for it.
    """
    if seconds not in (None, "default") and not str(seconds).isdecimal():
        raise typer.BadParameter("a number of seconds, or default")

    async def work() -> None:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            if name is not None and seconds is not None:
                await functions.set_org_retention(
                    org, name, None if seconds == "default" else int(seconds)
                )
            owned = await functions.list_org_retention(org)
            shown = [f"{own.name} {own.seconds}" for own in owned if name in (None, own.name)]
            if not shown:
                shown = [
                    f"{setting.name} {setting.value} (the setting)"
                    for setting in await functions.settings_list()
                    if setting.name.endswith("_retention") and name in (None, setting.name)
                ]
            for line in shown:
                typer.echo(line)

    run_async(work())


@app.command()
@told
def health(dsn: Dsn = None, schema: Schema = None, config: Config = None) -> None:
    """Print the installation's signs of life as JSON: lanes, leases, queue, retention backlog."""

    async def show() -> None:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            typer.echo(json.dumps(await functions.health(), ensure_ascii=False, indent=2))

    run_async(show())


@app.command()
@told
def maintain(
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Rows of a kind in a batch.")] = 1000,
    once: Annotated[bool, typer.Option("--once", help="One batch of each kind only.")] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Recover runs whose worker is gone, and take out what is past its retention.

    For a timer (or call counterfoil.maintain() from pg_cron); several at once are safe.
    """

    async def work() -> None:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while True:
                done = await functions.maintain(limit)
                typer.echo(json.dumps(done, ensure_ascii=False))
                if once or not done["more"]:
                    return

    run_async(work())
