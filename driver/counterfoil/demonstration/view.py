"""How the demo looks: progress while it runs, tables when it has ended."""

from __future__ import annotations

from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from counterfoil.demonstration.killing import Killing
from counterfoil.demonstration.report import Account

_MOST_LICENCES = 8
_MOST_FILES = 12


@dataclass(frozen=True)
class Progress:
    """How far the demo is. ``closed`` runs have their terminal in the ledger."""

    total: int
    queued: int
    running: int
    waiting: int
    ended: int
    facts: int
    steps: int
    events: int
    closed: int


def show_progress(
    progress: Progress, members: list[str], killing: Killing | None
) -> RenderableType:
    """The live view."""
    bars = Table.grid(padding=(0, 2))
    for name, done in (("runs ended", progress.ended), ("in the ledger", progress.closed)):
        bars.add_row(
            Text(f"{name:>13}", style="bold"),
            ProgressBar(total=progress.total, completed=done, width=40),
            f"{done}/{progress.total}",
        )
    line = Text.assemble(
        (f"{'now':>13}  ", "bold"),
        f"{progress.queued} queued, {progress.running} running, {progress.waiting} waiting · "
        f"{progress.steps} steps · {progress.facts} facts · {progress.events} ledger events",
    )
    alive = Text.assemble((f"{'alive':>13}  ", "bold"), ", ".join(members))
    rows: list[RenderableType] = [bars, line, alive]
    if killing is not None:
        rows.append(
            Text.assemble(
                (f"{'SIGKILL':>13}  ", "bold red"),
                f"{killing.worker}, with {killing.steps} steps of unfinished runs done",
            )
        )
    return Group(*rows)


def show_account(
    console: Console, account: Account, killing: Killing | None, seconds: float
) -> None:
    """The tables: what happened, and what was found."""
    console.print()
    console.print(_what_happened(account, killing, seconds))
    console.print()
    console.print(_what_was_found(account))
    console.print()


def _table(title: str) -> Table:
    table = Table(
        title=title, title_justify="left", title_style="bold", show_header=False, box=None
    )
    table.add_column(justify="right", style="bold")
    table.add_column()
    return table


def _what_happened(account: Account, killing: Killing | None, seconds: float) -> Table:
    counts = account.counts
    statuses = ", ".join(f"{count} {status}" for status, count in account.statuses.items())
    again = counts["attempts"] - counts["runs"]
    table = _table("What happened")
    table.add_row("runs", statuses)
    table.add_row(
        "attempts",
        f"{counts['attempts']}" + (f", {again} of them for runs begun again" if again else ""),
    )
    if killing is not None:
        table.add_row("killed", f"{killing.worker} (SIGKILL), replaced by worker-3")
    table.add_row(
        "steps",
        f"{counts['completed']} executed, {counts['memoised']} memoised by a later attempt",
    )
    table.add_row(
        "facts",
        f"{counts['written']} written, {counts['to_deliver'] - counts['pending']} delivered in "
        f"{counts['deliveries']} deliveries",
    )
    table.add_row("appends", f"{counts['appends']} over HTTP, {counts['events']} ledger events")
    table.add_row("duplicates", f"{counts['duplicates']}")
    table.add_row("gaps", f"{counts['gaps']}")
    table.add_row("ledger = facts", "yes" if account.differences == 0 else "no")
    table.add_row(
        "latency",
        f"p50 {account.p50:.2f} s, p99 {account.p99:.2f} s, "
        "from admission to terminal in the ledger",
    )
    table.add_row("took", f"{seconds:.1f} s altogether")
    return table


def _what_was_found(account: Account) -> Table:
    found = account.findings
    files = sum(item["files"] for item in found)
    verified = sum(item["verified"] for item in found)
    size = sum(item["bytes"] for item in found)
    table = _table("What was found")
    table.add_row("distributions", f"{len(found)}, {files} files, {size / 1e6:.1f} MB")
    table.add_row(
        "sha256",
        f"{verified} files as recorded, {sum(item['unsigned'] for item in found)} unsigned",
    )
    for what in ("altered", "missing"):
        paths = [f"{item['name']}: {path}" for item in found for path in item[what]]
        table.add_row(what, escape("\n".join(_bounded(paths, _MOST_FILES))) or "none")
    common = account.licences.most_common()
    licences = [f"{count} {name}" for name, count in common]
    table.add_row("licences", escape(", ".join(_bounded(licences, _MOST_LICENCES))) or "none")
    largest = sorted(found, key=lambda item: -int(item["bytes"]))[:3]
    table.add_row(
        "largest", ", ".join(f"{item['name']} {item['bytes'] / 1e6:.1f} MB" for item in largest)
    )
    return table


def _bounded(items: list[str], most: int) -> list[str]:
    return items if len(items) <= most else [*items[:most], f"and {len(items) - most} more"]
