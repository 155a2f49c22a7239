"""Commands about facts whose delivery is blocked: look, try again, pass over; and who did so."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer
from rich.markup import escape
from rich.table import Table

from counterfoil.calls.operations import AuditEntry
from counterfoil.commands.common import (
    Config,
    Dsn,
    Schema,
    functions_of,
    out,
    print_whole,
    run_async,
    settings_of,
    told,
)
from counterfoil.functions import BlockedFact

app = typer.Typer()

PAGE = 500
Org = Annotated[str, typer.Argument(help="The org.")]
Run = Annotated[str, typer.Argument(help="The run.")]
Event = Annotated[str, typer.Argument(help="Event id of the blocked fact.")]
Reason = Annotated[str, typer.Option(help="Why; kept in the audit trail.")]


@app.command()
@told
def blocked(
    org: Annotated[str | None, typer.Option(help="Only this org; else all.")] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, oldest first in each org.")] = 100,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """List facts that wait for an operator: which blocks what, since when, and why."""

    async def find() -> list[BlockedFact]:
        found: list[BlockedFact] = []
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while len(found) < limit:
                size = min(PAGE, limit - len(found))
                page = await functions.list_blocked(org, found[-1].cursor if found else None, size)
                found += page
                if len(page) < size:
                    break
        return found

    found = run_async(find())
    if as_json:
        for fact in found:
            typer.echo(json.dumps(_document(fact), ensure_ascii=False))
        return
    if not found:
        out.print("nothing is blocked")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("org", "run", "lane", "fact", "type", "since", "tries", "behind it", "error"):
        table.add_column(heading)
    for fact in found:
        table.add_row(
            escape(fact.org_id),
            escape(fact.run_id),
            fact.lane,
            escape(fact.event_id),
            fact.event_type,
            f"{fact.blocked_at.astimezone():%Y-%m-%d %H:%M:%S}",
            str(fact.attempts),
            # A lane goes up to its blocked fact, and waits there.
            f"{fact.waiting_facts} {'wait' if fact.blocks_lane else 'will wait'}",
            escape(str(fact.last_error.get("message", ""))),
        )
    print_whole(table)


def _document(fact: BlockedFact) -> dict[str, Any]:
    return {
        "orgId": fact.org_id,
        "runId": fact.run_id,
        "lane": fact.lane,
        "seq": fact.seq,
        "eventId": fact.event_id,
        "eventType": fact.event_type,
        "attempts": fact.attempts,
        "blockedAt": fact.blocked_at.isoformat(),
        "blocksLane": fact.blocks_lane,
        "waitingFacts": fact.waiting_facts,
        "lastError": fact.last_error,
    }


@app.command()
@told
def replay(
    org: Org,
    run_id: Run,
    event_id: Event,
    reason: Reason,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Try a blocked fact again, and what was frozen with it, from the start of the policy."""

    async def ask() -> list[str]:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            return await functions.replay_blocked(org, run_id, event_id, reason)

    for name in run_async(ask()):
        out.print(f"{name} is tried again", markup=False)


@app.command("replay-all")
@told
def replay_all(
    reason: Reason,
    org: Annotated[str | None, typer.Option(help="Only this org; else all.")] = None,
    code: Annotated[
        str | None, typer.Option(help="Only facts whose last error has this code.")
    ] = None,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Try again all that is blocked, as after an outage of the receiver."""

    async def ask() -> int:
        count, before = 0, None
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while done := await functions.replay_all_blocked(reason, org, code, before):
                count, before = count + len(done), done[0].blocked_before
        return count

    count = run_async(ask())
    out.print(f"{count} fact{'s are' if count != 1 else ' is'} tried again", markup=False)


@app.command()
@told
def skip(
    org: Org,
    run_id: Run,
    event_id: Event,
    reason: Reason,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """Pass over a blocked fact for good: it never reaches the ledger; what follows does."""

    async def ask() -> None:
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            await functions.skip_blocked(org, run_id, event_id, reason)

    run_async(ask())
    out.print(f"{event_id} is passed over", markup=False)


@app.command()
@told
def audit(
    org: Annotated[
        str | None, typer.Option(help="What was done in this org; else to all of the installation.")
    ] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many, latest first.")] = 50,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON document a line.")] = False,
    dsn: Dsn = None,
    schema: Schema = None,
    config: Config = None,
) -> None:
    """List what operators did by hand, the latest first: who, when, to what, and why."""

    async def find() -> list[AuditEntry]:
        found: list[AuditEntry] = []
        async with functions_of(settings_of(dsn, schema, config)) as functions:
            while len(found) < limit:
                size = min(PAGE, limit - len(found))
                page = await functions.list_audit(
                    org,
                    found[-1].recorded_at if found else None,
                    found[-1].audit_id if found else None,
                    size,
                )
                found += page
                if len(page) < size:
                    break
        return found

    found = run_async(find())
    if as_json:
        for entry in found:
            typer.echo(json.dumps(_audited(entry), ensure_ascii=False))
        return
    if not found:
        out.print("nothing was done by hand")
        return
    table = Table(box=None, pad_edge=False)
    for heading in ("when", "who", "did", "to", "reason"):
        table.add_column(heading)
    for entry in found:
        table.add_row(
            f"{entry.recorded_at.astimezone():%Y-%m-%d %H:%M:%S}",
            escape(entry.actor),
            entry.action,
            escape(" ".join(str(value) for value in entry.target.values())),
            escape(entry.reason or ""),
        )
    print_whole(table)


def _audited(entry: AuditEntry) -> dict[str, Any]:
    return {
        "auditId": str(entry.audit_id),
        "recordedAt": entry.recorded_at.isoformat(),
        "actor": entry.actor,
        "action": entry.action,
        "target": entry.target,
        "reason": entry.reason,
        "details": entry.details,
    }
