"""Rows to launch: what is read, and how what is wrong is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from counterfoil.errors import CounterfoilError, IdentityConflictError, InvalidArgumentError
from counterfoil.launching import (
    LaunchPlan,
    Row,
    RowsError,
    fault_of,
    launches_of,
    new_batch,
    read_rows,
)

PLAN = LaunchPlan(play="audit", org_id="o", base_url="http://x", batch="b")


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def faults(path: Path) -> list[str]:
    with pytest.raises(RowsError) as caught:
        read_rows(path)
    return [text.removeprefix(str(path)) for text in caught.value.faults]


def test_json_lines_hold_any_json(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", '{"a": 1}\n\n"text"\n[1, 2]\n  \nnull\n')
    assert read_rows(path) == [
        Row(1, {"a": 1}),
        Row(3, "text"),
        Row(4, [1, 2]),
        Row(6, None),
    ]


def test_csv_rows_are_objects_and_know_their_line(tmp_path: Path) -> None:
    text = '\ufeffname,note\r\nrequests,"two\nlines"\r\n\r\nrich,\r\n'
    path = write(tmp_path, "rows.csv", text)
    assert read_rows(path) == [
        Row(2, {"name": "requests", "note": "two\nlines"}),
        Row(5, {"name": "rich", "note": ""}),
    ]


def test_every_bad_json_line_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        "rows.jsonl",
        '{"a": 1}\n{"a": }\n{"a": NaN}\n{"a": 1, "a": 2}\n{"a": "\\u0000"}\n{"a": "\\ud800"}\n',
    )
    assert faults(path) == [
        ":2: not JSON: Expecting value at column 7",
        ":3: NaN is no JSON number",
        ":4: the key 'a' stands twice in one object",
        ":5: the row is not a plain value: $.a holds the character U+0000, which PostgreSQL cannot "
        "store",
        ":6: the row is not a plain value: $.a holds a lone surrogate, which is no text",
    ]


def test_a_fault_in_a_text_reads_well(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", '"one\ttab"\n"open\n')
    assert faults(path) == [
        ":1: not JSON: Invalid control character at column 5",
        ":2: not JSON: Invalid control character at column 6",
    ]


def test_every_bad_csv_line_is_named(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.csv", "a,b\n1,2\n1\n1,2,3\n1,2\n")
    assert faults(path) == [
        ":3: 1 cells, but the header has 2 columns",
        ":4: 3 cells, but the header has 2 columns",
    ]
    assert faults(write(tmp_path, "open.csv", 'a,b\n1,"2\n3,4\n'))[0].startswith(":2: not CSV")


@pytest.mark.parametrize(
    ("name", "content", "fault"),
    [
        ("bytes.jsonl", b'"a"\n"\xff"\n', ":2: not UTF-8 text (byte 2 of the line)"),
        ("empty.csv", "a,b\n", ": no rows"),
        ("twice.csv", "a,a\n1,2\n", ":1: the header names the column 'a' twice"),
        ("unnamed.csv", "a,\n1,2\n", ":1: column 2 of the header has no name"),
        ("rows.txt", "x", ": rows come in a file named .jsonl or .csv"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: str | bytes, fault: str) -> None:
    assert faults(write(tmp_path, name, content)) == [fault]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    assert faults(tmp_path / "none.csv") == [": No such file or directory"]


def test_many_faults_are_counted(tmp_path: Path) -> None:
    path = write(tmp_path, "rows.jsonl", "x\n" * 50)
    with pytest.raises(RowsError, match="… and 30 more") as caught:
        read_rows(path)
    assert len(caught.value.faults) == 50


def test_run_ids_come_from_the_batch_and_the_line() -> None:
    launches = launches_of([Row(2, "x"), Row(5, {"y": 1})], PLAN, Path("f"))
    assert [launch["runId"] for launch in launches] == ["b-2", "b-5"]
    assert launches[1] == {
        "orgId": "o",
        "runId": "b-5",
        "playId": "audit",
        "playName": "audit",
        "baseUrl": "http://x",
        "input": {"y": 1},
    }


def test_run_ids_come_from_a_field_where_one_is_named() -> None:
    plan = LaunchPlan("audit", "o", "http://x", "b", run_id_field="id", options={"priority": 1})
    rows = [Row(1, {"id": "one"}), Row(2, {"id": "two"})]
    launches = launches_of(rows, plan, Path("f"))
    assert [(launch["runId"], launch["priority"]) for launch in launches] == [
        ("one", 1),
        ("two", 1),
    ]

    with pytest.raises(RowsError) as caught:
        launches_of([*rows, Row(3, {"id": "one"}), Row(4, {}), Row(5, "x")], plan, Path("f"))
    assert caught.value.faults == [
        "f:3: the run id 'one' stands in line 1 already",
        "f:4: id must be text of 1 to 200 characters",
        "f:5: id must be text of 1 to 200 characters",
    ]


def test_what_the_database_refuses_is_named_by_line() -> None:
    rows = [Row(1, "x"), Row(4, "y")]
    launches = launches_of(rows, PLAN, Path("f"))

    def fault(error: CounterfoilError) -> str:
        return fault_of(error, launches, rows, Path("f"))

    error = InvalidArgumentError(
        "priority is too high", reason="p_launches[1].priority", hint="0…9"
    )
    assert fault(error) == "f:4: priority is too high (0…9)"
    conflict = IdentityConflictError("Run b-4 exists with another launch.", reason="input")
    assert fault(conflict) == "f:4: Run b-4 exists with another launch."
    assert fault(InvalidArgumentError("no", reason="p_launches")) == "no"


def test_batches_have_names_of_their_own() -> None:
    assert new_batch("audit") != new_batch("audit")
    assert new_batch("audit").startswith("audit-")
