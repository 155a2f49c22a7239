"""`make bench`: measure, print a table, and with --write put it into docs/benchmarks.md.

Ends with status 1 when a figure misses its bar (see bars.py).
"""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import statistics
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks import (
    admission,
    bare,
    delivery,
    gateway,
    journal,
    lanes,
    pending,
    plot,
    receipts,
    retention,
    snapshot,
    steps,
    wire,
)
from benchmarks.bars import Bar, Row, measured
from benchmarks.server import measured_database

PAGE = Path(__file__).parent.parent / "docs/benchmarks.md"
PLOT = PAGE.parent / "retention.svg"
ENTRIES = 1_000_000
BEGIN, END = "<!-- figures: begin -->\n", "<!-- figures: end -->\n"


def hot_path(dsn: str, rounds: int) -> list[Row]:
    """Whole cycles as ratios to the floor measured right before each."""
    shapes: dict[str, tuple[Callable[[], float], float]] = {
        "cycle, 1 fact an append, 32 lanes a call": (lambda: delivery.cycle(dsn), 0.40),
        "the same with freeze and proof": (
            lambda: delivery.cycle(dsn, freeze=True, prove=True),
            0.35,
        ),
        "the same shape with nothing promised": (lambda: bare.cycle(dsn), -math.inf),
        "cycle, append_facts of 8, 32 lanes a call": (lambda: delivery.cycle(dsn, batch=8), 1.5),
        "the same shape with nothing promised, 8 facts an append": (
            lambda: bare.cycle(dsn, batch=8),
            -math.inf,
        ),
    }
    ratios: dict[str, list[float]] = {name: [] for name in shapes}
    floors = []
    for _ in range(rounds):
        for name, (shape, _bar) in shapes.items():
            # Right before each shape: what else the machine does changes from minute to minute.
            floor = delivery.floor(dsn)
            floors.append(floor)
            ratios[name].append(shape() / floor)
    return [
        Row(
            "floor: bare single-row updates by key, 8 clients",
            f"{statistics.median(floors):,.0f}/s",
        ),
        *(
            measured(name, ratios[name], "× floor", at_least=bar)
            for name, (_, bar) in shapes.items()
        ),
    ]


def backlog(dsn: str, rounds: int, runs: int = 1_000_000, facts: int = 100_000) -> list[Row]:
    """Claims with a thousand and a million runs pending, and from runs with many facts."""
    pending.load(dsn, runs, facts)
    few, many = {}, {}
    ratios: dict[str, list[float]] = {"1 lane": [], "32 lanes": [], "long": []}
    for _ in range(rounds):
        for name, width in (("1 lane", 1), ("32 lanes", 32)):
            pending.set_pending(dsn, 1_000 * width)
            few |= pending.buffers(dsn)
            small = pending.claim_latency(dsn, lanes=width).milliseconds("claim", 0.99)
            pending.set_pending(dsn, runs)
            many |= pending.buffers(dsn)
            large = pending.claim_latency(dsn, lanes=width).milliseconds("claim", 0.99)
            ratios[name].append(large / small)
        pending.set_long(dsn, 1_000)
        small = pending.long_latency(dsn).milliseconds("claim", 0.99)
        few |= {"claim from one run": pending.buffers(dsn, ["claim of 1 lane"])["claim of 1 lane"]}
        pending.set_long(dsn, facts)
        large = pending.long_latency(dsn).milliseconds("claim", 0.99)
        many |= {"claim from one run": pending.buffers(dsn, ["claim of 1 lane"])["claim of 1 lane"]}
        ratios["long"].append(large / small)
    return [
        measured(
            f"claim p99, {runs:,} runs pending against 1,000, 1 lane a call",
            ratios["1 lane"],
            "×",
            at_most=1.5,
        ),
        measured("the same against 32,000, 32 lanes a call", ratios["32 lanes"], "×", at_most=2),
        measured(
            f"claim p99, a run of {facts:,} facts against one of 1,000",
            ratios["long"],
            "×",
            at_most=1.5,
        ),
        *(
            Row(
                f"pages of a {name}: little pending, much pending",
                f"{few[name]:,}, {many[name]:,}",
                # A tree of a million entries is a level or two deeper than one of a thousand.
                Bar(many[name] / few[name], at_most=1.5),
            )
            for name in few
        ),
    ]


def held_snapshot(
    dsn: str, rounds: int, unmarked: float = 60.0, marked: float = 300.0
) -> list[Row]:
    """Claims while a snapshot is held. One round, whatever was asked for: it takes eight minutes.

    Without marks the cost rises from the first minute on; with marks it must not in five.
    """
    rows = []
    for seconds, with_marks in ((unmarked, False), (marked, True)):
        phases = snapshot.held(dsn, seconds, marked=with_marks)
        before, held, after = (phases[name] for name in ("before", "held", "after"))
        name = f"a snapshot held for {seconds:.0f} s, dispatchers with{'' if with_marks else 'out'}"
        rows.append(
            Row(
                f"{name} marks: claim p99 before, under (second half), after",
                f"{before.p99:.1f} → {held.p99:.1f} → {after.p99:.1f} ms",
                Bar(max(held.p99, after.p99) / before.p99, at_most=2) if with_marks else None,
            )
        )
        rows.append(
            Row(
                f"{name} marks: facts/s before, under",
                f"{before.facts:,.0f} → {held.facts:,.0f}",
                Bar(held.facts / before.facts, at_least=0.9) if with_marks else None,
            )
        )
        rows.append(
            Row(
                f"{name} marks: longest claim under it",
                f"{held.longest:.0f} ms",
                Bar(held.longest, at_most=150) if with_marks else None,
            )
        )
    return rows


def over_http(dsn: str, rounds: int) -> list[Row]:
    """Whole runs through one dispatcher and one gateway, and where a delivery's time goes."""
    taken = [wire.deliver(dsn) for _ in range(rounds)]
    last = taken[-1]
    steps = "; ".join(f"{name} {mid:.1f}, {p99:.1f}" for name, (mid, p99) in last.steps.items())
    return [
        measured(
            f"facts through HTTP, {wire.RUNS} runs of {wire.FACTS + 3}, a second",
            [one.facts for one in taken],
            "/s",
        ),
        measured("runs through HTTP a second", [one.runs for one in taken], "/s"),
        Row("milliseconds of a delivery by step, 16 at once: median, p99", steps),
    ]


def journal_costs(dsn: str, rounds: int) -> list[Row]:
    """Indexing against a bare insert, searches against a read by key, and the size over days."""
    ratios = []
    for _ in range(rounds):
        indexed, bare = journal.materialise_ratio(dsn)
        ratios.append(indexed / bare)
    rows = [
        measured(
            "materialise 100 lines a fact, against a bare insert of the rows",
            ratios,
            "×",
            at_most=2,
        )
    ]
    journal.load(dsn, ENTRIES)
    for search, p99, ratio, pages in journal.search_latency(dsn):
        name = f"search {ENTRIES:,} entries, {search.name}"
        rows += [
            Row(
                f"{name}: p99, × a read by key",
                f"{ratio:.1f}×, {p99:.2f} ms",
                Bar(ratio, at_most=search.most_times) if search.most_times else None,
            ),
            Row(f"{name}: pages", f"{pages:,}", Bar(pages, at_most=search.most_pages)),
        ]
    sizes = journal.plateau(dsn, days=30, per_day=20_000, kept=7, burst_day=15)
    figures = ", ".join(f"day {day}: {size} MB" for day, _, size in sizes[6::4])
    before, indexes, whole = journal.given_back(dsn)
    return [
        *rows,
        Row("journal of 7 days, 20,000 entries a day, 200,000 on day 15", figures),
        Row(
            "its size after that, after reindex concurrently, after vacuum full",
            f"{before} MB, {indexes} MB, {whole} MB",
        ),
    ]


def lane_independence(dsn: str, rounds: int) -> list[Row]:
    """Lifecycle deliveries with a million search facts behind, against none.

    A projector at work takes processor and disk as anybody would who writes as much: so it is
    compared with somebody who does, beside an empty lane.
    """
    lanes.load_search_facts(dsn, 1_000_000)
    waiting, worked = [], []
    for _ in range(rounds):
        lanes.set_backlog(dsn, behind=False)
        alone = lanes.delivery_p99(dsn)
        lanes.set_backlog(dsn, behind=True)
        waiting.append(lanes.delivery_p99(dsn) / alone)
        lanes.set_backlog(dsn, behind=False)
        beside_stranger = lanes.delivery_p99(dsn, lanes.stranger)
        lanes.set_backlog(dsn, behind=True)
        worked.append(lanes.delivery_p99(dsn, lanes.projector) / beside_stranger)
    return [
        measured(
            "lifecycle delivery p99, search lane 1,000,000 facts behind, against empty",
            waiting,
            "×",
            at_most=1.2,
        ),
        measured(
            "the same while a projector works on them, against empty beside a stranger's writes",
            worked,
            "×",
            at_most=1.2,
        ),
    ]


def retention_day(dsn: str, rounds: int) -> list[Row]:
    """Sizes over a day of traffic; the plot goes into docs/. One round, whatever was asked for."""
    day = retention.day(dsn, hours=24, hour_seconds=8.0, runs=500)
    series = {
        **{name: [hour.megabytes[name] for hour in day] for name in retention.TABLES},
        "all": [hour.total for hour in day],
        "their indexes": [hour.indexes for hour in day],
    }
    shown = {name: values for name, values in series.items() if max(values) > 0.04 * day[-1].total}
    PLOT.write_text(
        plot.lines("A day of traffic: tables with their indexes", "hour", "megabytes", shown)
    )
    figures = ", ".join(f"{at} h {day[at - 1].total:.1f} MB" for at in (4, 8, 12, 16, 20, 24))
    if day[-1].behind_seconds > 1:
        figures += f"; {day[-1].behind_seconds:.0f} s behind: the machine had too much to do"
    grown = [_mean(day[-6:]) / _mean(day[-12:-6])]
    return [
        Row("a day of 500 runs an hour, kept for 2 to 8 hours", figures),
        measured(
            "its size in the last six hours, against the six before", grown, "×", at_most=1.05
        ),
    ]


def admissions(dsn: str, rounds: int) -> list[Row]:
    """Admissions one by one and in bulk, as ratios of the same round."""
    singles, bulks = [], []
    for _ in range(rounds):
        bare = admission.floor(dsn).rate
        single = admission.single(dsn).rate
        singles.append(single / bare)
        bulks.append(admission.bulk(dsn) / single)
    return [
        measured(
            "admissions one by one, 8 clients, against two bare rows each",
            singles,
            "× floor",
            at_least=0.2,
        ),
        measured(
            "admit_launches of 10,000 by one client, against one by one by 8",
            bulks,
            "×",
            at_least=5,
        ),
    ]


def claims(dsn: str, rounds: int) -> list[Row]:
    """Claims beside a long queue, turns between orgs, and a worker without work."""
    latencies = admission.claim_latencies(dsn, rounds=rounds)
    few, many = latencies[-1]
    last = admission.fairness(dsn)
    queries, grown = admission.idle(dsn)
    return [
        measured(
            "claim_attempts p99, 1,000,000 queued against 1,000",
            [large / small for small, large in latencies],
            "×",
            at_most=1.5,
            note=f" (last: {few:.2f} → {many:.2f} ms)",
        ),
        Row(
            "100 orgs of 10 beside one of 1,000,000: claims until all 1,000 have started",
            f"{last:,}",
            Bar(last, at_most=2_000),
        ),
        Row(
            "a worker without work, 720 polls: queries a poll",
            f"{queries:.2f}",
            Bar(queries, at_most=1),
        ),
        Row("the same: growth of the schema, kB", f"{grown // 1024:,}", Bar(grown, at_most=0)),
    ]


def one_step(dsn: str, rounds: int) -> list[Row]:
    """A step that does nothing against those of absurd and DBOS, and a remembered step's read."""
    rivals = {"absurd": steps.absurd, "DBOS": steps.dbos}
    steps.counterfoil(dsn)
    rates, floors, reads = [], [], []
    ratios: dict[str, list[float]] = {name: [] for name in rivals}
    ceilings: dict[str, list[float]] = {name: [] for name in rivals}
    for _ in range(rounds):
        read, bare = steps.remembered(dsn)
        reads.append(read / bare)
        for name, rival in rivals.items():
            # Right beside each other: what else the machine does changes from minute to minute.
            rates.append(steps.counterfoil(dsn))
            floors.append(steps.floor(dsn))
            with contextlib.suppress(ImportError):
                other = rival(dsn)
                ratios[name].append(rates[-1] / other)
                ceilings[name].append(floors[-1] / other)
    missing = "not measured: pip install counterfoil[bench]"
    return [
        Row(
            "a step that does nothing, one play at a time",
            f"{statistics.median(rates):.0f}/s",
        ),
        measured(
            "the same against a bare insert, a transaction each",
            [rate / floor for rate, floor in zip(rates, floors, strict=True)],
            "×",
        ),
        *(
            measured(
                f"the same against a step of {name}",
                ratios[name],
                "× as fast",
                at_least=2,
                note=f"; a bare insert: {statistics.median(ceilings[name]):.2f}×",
            )
            if ratios[name]
            else Row(f"the same against a step of {name}", missing)
            for name in rivals
        ),
        measured("a remembered step's read against a select by primary key", reads, "×", at_most=2),
    ]


def step_receipts(dsn: str, rounds: int) -> list[Row]:
    """Batches against single calls, and memoised reads against a bare select by key."""
    batches = [receipts.batch_ratio(dsn, number) for number in range(rounds)]
    reads = [receipts.read_ratio(dsn) for _ in range(rounds)]
    return [
        measured(
            "receipts claimed and completed, 100 a call against 1 a call",
            batches,
            "×",
            at_least=10,
        ),
        measured("memoised read against a bare select by key", reads, "×", at_most=2),
    ]


def gateway_load(dsn: str, rounds: int) -> list[Row]:
    """64 clients at once, and 10,000 hostile requests."""
    rows: list[Row] = []
    busy, hostile = gateway.busy(dsn), gateway.hostile(dsn)
    for name, load, failures, growth in (
        ("gateway, 64 clients, claims and completions", busy, busy.errors, 32),
        ("gateway, 10,000 hostile requests", hostile, hostile.failures, 128),
    ):
        before, most = load.memory_mb
        answers = ", ".join(
            f"{count:,} × {status}" for status, count in sorted(load.statuses.items())
        )
        rows += [
            Row(f"{name}: answers, p99", f"{answers}; {load.p99_ms:.0f} ms"),
            Row(f"{name}: failures", f"{failures}", Bar(failures, at_most=0)),
            Row(
                f"{name}: memory, at most above the beginning",
                f"{most - before:.0f} MB (from {before:.0f})",
                Bar(most - before, at_most=growth),
            ),
        ]
    return rows


BENCHES = {
    "steps": one_step,
    "admissions": admissions,
    "claims": claims,
    "hot-path": hot_path,
    "backlog": backlog,
    "snapshot": held_snapshot,
    "http": over_http,
    "journal": journal_costs,
    "lanes": lane_independence,
    "retention": retention_day,
    "receipts": step_receipts,
    "gateway": gateway_load,
}


def _mean(hours: list[retention.Hour]) -> float:
    return statistics.mean(hour.total for hour in hours)


def main() -> None:
    """Run the benches named on the command line, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("bench", nargs="*", default=list(BENCHES), help=", ".join(BENCHES))
    parser.add_argument("--rounds", type=int, default=5, help="interleaved rounds (default 5)")
    parser.add_argument("--write", action="store_true", help="write docs/benchmarks.md")
    options = parser.parse_args()
    for name in options.bench:
        if name not in BENCHES:
            parser.error(f"there is no bench {name!r}; there are {', '.join(BENCHES)}")
    rows: list[Row] = []
    with measured_database(os.environ.get("COUNTERFOIL_DSN")) as dsn:
        for name in options.bench:
            for row in BENCHES[name](dsn, options.rounds):
                print(row, flush=True)
                rows.append(row)
    if options.write:
        page = PAGE.read_text()
        before, rest = page.split(BEGIN)
        _, after = rest.split(END)
        table = "| measured | median (spread) | bar |\n|---|---|---|\n"
        table += "".join(f"| {row.name} | {row.figure} | {row.bar or ''} |\n" for row in rows)
        PAGE.write_text(before + BEGIN + table + END + after)
    missed = [row for row in rows if row.bar and not row.bar.met]
    if missed:
        print("missed:", *missed, sep="\n", file=sys.stderr)
        sys.exit(1)


if __name__ == "__main__":
    main()
