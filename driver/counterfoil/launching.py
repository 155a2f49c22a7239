"""Launching a run for each row of a file: JSON Lines or CSV.

A file is read whole and checked before anything is launched; whatever is wrong is named by its
line. All rows are admitted in one transaction: all of them, or none.
"""

from __future__ import annotations

import csv
import json
import re
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NoReturn

import psycopg

from counterfoil.database import OnConnection
from counterfoil.errors import CapacityError, CounterfoilError, retry_after_seconds
from counterfoil.functions import Admission, Functions
from counterfoil.values import NotPlainError, plain

LAUNCHES_PER_CALL = 10_000
_SHOWN = 20
_NAMED_LAUNCH = re.compile(r"p_launches\[(\d+)\]")


class RowsError(Exception):
    """The file cannot be launched. ``faults`` are lines for people, each naming a line number."""

    def __init__(self, faults: Sequence[str]) -> None:
        shown = list(faults[:_SHOWN])
        if len(faults) > _SHOWN:
            shown.append(f"… and {len(faults) - _SHOWN} more")
        super().__init__("\n".join([*shown, "nothing was launched"]))
        self.faults = list(faults)


@dataclass(frozen=True)
class Row:
    """One row: its line in the file (from 1) and its value, an object for CSV, any JSON for JSON
    Lines."""

    line: int
    value: Any


@dataclass(frozen=True)
class LaunchPlan:
    """What the launches of one file have in common.

    ``batch`` names them: the run of line 7 is ``<batch>-7``, so a repeat of the same file and batch
    launches nothing twice. ``run_id_field`` takes the run ids from the rows instead. ``options``
    are further fields of the launch, such as ``priority`` or ``maxAttempts``.
    """

    play: str
    org_id: str
    base_url: str
    batch: str
    run_id_field: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)


def new_batch(play: str) -> str:
    """A name for a batch that no other has: play, time (UTC) and four random digits."""
    return f"{play[:100]}-{datetime.now(UTC):%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


def read_rows(path: Path) -> list[Row]:
    """The rows of a ``.jsonl`` (``.ndjson``) or ``.csv`` file. Raises RowsError."""
    readers = {".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _csv_rows}
    reader = readers.get(path.suffix.lower())
    if reader is None:
        raise RowsError([f"{path}: rows come in a file named .jsonl or .csv"])
    try:
        data = path.read_bytes()
    except OSError as error:
        raise RowsError([f"{path}: {error.strerror or error}"]) from None
    faults: list[str] = []
    rows = list(reader(_lines(data, path), path, faults))
    if faults:
        raise RowsError(faults)
    if not rows:
        raise RowsError([f"{path}: no rows"])
    return rows


def _lines(data: bytes, path: Path) -> list[str]:
    lines = []
    for number, line in enumerate(data.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            lines.append(line.decode("utf-8") + "\n")
        except UnicodeDecodeError as error:
            raise RowsError(
                [f"{path}:{number}: not UTF-8 text (byte {error.start + 1} of the line)"]
            ) from None
    return lines


def _json_lines(lines: Sequence[str], path: Path, faults: list[str]) -> Iterator[Row]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            value = json.loads(
                line, parse_constant=_refuse_constant, object_pairs_hook=_distinct_pairs
            )
            yield Row(number, plain(value, "the row"))
        except json.JSONDecodeError as error:
            faults.append(f"{path}:{number}: not JSON: {_said(error)}")
        except (ValueError, NotPlainError, RecursionError) as error:
            faults.append(f"{path}:{number}: {error or 'nested too deep'}")


def _said(error: json.JSONDecodeError) -> str:
    # Some of its messages end in "at", for a place that follows.
    return f"{error.msg.removesuffix(' at')} at column {error.colno}"


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


def _distinct_pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key in keys if keys.count(key) > 1)
        raise ValueError(f"the key {twice!r} stands twice in one object")
    return found


def _csv_rows(lines: Sequence[str], path: Path, faults: list[str]) -> Iterator[Row]:
    reader = csv.reader(lines, strict=True)
    header: list[str] | None = None
    while True:
        number = reader.line_num + 1
        try:
            cells = next(reader, None)
        except csv.Error as error:
            faults.append(f"{path}:{number}: not CSV: {error}")
            return
        if cells is None:
            return
        if not cells or cells == [""]:
            continue
        if header is None:
            header = _checked_header(cells, path, number)
        elif len(cells) != len(header):
            faults.append(
                f"{path}:{number}: {len(cells)} cells, but the header has {len(header)} columns"
            )
        else:
            try:
                yield Row(number, plain(dict(zip(header, cells, strict=True)), "the row"))
            except NotPlainError as error:
                faults.append(f"{path}:{number}: {error}")


def _checked_header(cells: list[str], path: Path, number: int) -> list[str]:
    names = [cell.strip() for cell in cells]
    if "" in names:
        raise RowsError(
            [f"{path}:{number}: column {names.index('') + 1} of the header has no name"]
        )
    for name in names:
        if names.count(name) > 1:
            raise RowsError([f"{path}:{number}: the header names the column {name!r} twice"])
    return names


def launches_of(rows: Sequence[Row], plan: LaunchPlan, path: Path) -> list[dict[str, Any]]:
    """One launch document a row, in order. Raises RowsError for run ids that cannot be."""
    faults: list[str] = []
    seen: dict[str, int] = {}
    launches = []
    for row in rows:
        run_id = _run_id(row, plan)
        if not run_id or len(run_id) > 200:
            faults.append(
                f"{path}:{row.line}: {plan.run_id_field or 'the run id'} must be text of 1 to 200 "
                "characters"
            )
            continue
        if run_id in seen:
            faults.append(
                f"{path}:{row.line}: the run id {run_id!r} stands in line {seen[run_id]} already"
            )
            continue
        seen[run_id] = row.line
        launches.append(
            {
                "orgId": plan.org_id,
                "runId": run_id,
                "playId": plan.play,
                "playName": plan.play,
                "baseUrl": plan.base_url,
                "input": row.value,
                **plan.options,
            }
        )
    if faults:
        raise RowsError(faults)
    return launches


def _run_id(row: Row, plan: LaunchPlan) -> str:
    if plan.run_id_field is None:
        return f"{plan.batch}-{row.line}"
    value = row.value.get(plan.run_id_field) if isinstance(row.value, dict) else None
    return value if isinstance(value, str) else ""


async def admit_all(dsn: str, schema: str, launches: Sequence[dict[str, Any]]) -> list[Admission]:
    """Admit the launches in one transaction; 10,000 of them are one call.

    Raises what the database refused; nothing is launched then.
    """
    admitted: list[Admission] = []
    connection = await psycopg.AsyncConnection.connect(
        dsn, autocommit=True, prepare_threshold=None, application_name="counterfoil launch"
    )
    async with connection, connection.transaction():
        functions = Functions(OnConnection(connection, schema))
        for start in range(0, len(launches), LAUNCHES_PER_CALL):
            try:
                admitted += await functions.admit_launches(
                    launches[start : start + LAUNCHES_PER_CALL]
                )
            except CounterfoilError as error:
                error.add_note(str(start))
                raise
    return admitted


def fault_of(
    error: CounterfoilError, launches: Sequence[Mapping[str, Any]], rows: Sequence[Row], path: Path
) -> str:
    """What the database refused, with the line of the row that it is about where it says one."""
    hint = error.hint
    if isinstance(error, CapacityError):
        hint = (
            f"Try again in {retry_after_seconds(error.retry_after_ms)} s, or have the limit raised."
        )
    said = error.message + (f" ({hint})" if hint else "")
    named = _NAMED_LAUNCH.search(error.reason) or _NAMED_LAUNCH.search(error.message)
    if named is not None:
        notes = getattr(error, "__notes__", ["0"])
        return f"{path}:{rows[int(notes[-1]) + int(named.group(1))].line}: {said}"
    for launch, row in zip(launches, rows, strict=True):
        if f"Run {launch['runId']} " in error.message:
            return f"{path}:{row.line}: {said}"
    return said
