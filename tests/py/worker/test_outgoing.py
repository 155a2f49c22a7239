"""What a play says, gathered into facts."""

from __future__ import annotations

from typing import Any

import pytest

from counterfoil.playing.outgoing import MAX_LINE, Outgoing
from counterfoil.values import NotPlainError


def outgoing(*, with_line_ids: bool = False) -> Outgoing:
    return Outgoing(2, "lease", with_line_ids=with_line_ids)


def lines_of(fact: dict[str, Any]) -> list[str]:
    (event,) = fact["payload"]["events"]
    lines: list[str] = event["lines"]
    return lines


def test_lines_and_progress_keep_their_order() -> None:
    out = outgoing()
    out.add_log("one", {})
    out.add_log("two", {"level": "warning"})
    out.add_progress({"done": 1})
    out.add_log("three", {})
    facts = out.take()
    assert [fact["eventType"] for fact in facts] == ["run.events", "run.progress", "run.events"]
    assert [fact["eventId"] for fact in facts] == ["lease.1", "lease.2", "lease.3"]
    assert facts[0]["payload"]["events"] == [
        {
            "type": "log.appended",
            "channel": "log",
            "producerAttempt": 2,
            "lines": ["one", "two"],
            "lineContexts": [None, {"level": "warning"}],
        }
    ]
    assert facts[1]["payload"] == {"done": 1}
    assert out.take() == []


def test_ids_go_on_after_a_take() -> None:
    out = outgoing()
    out.add_progress({"n": 1})
    out.take()
    out.add_progress({"n": 2})
    assert out.take()[0]["eventId"] == "lease.2"


def test_a_message_of_several_lines_becomes_lines() -> None:
    out = outgoing()
    out.add_log("  a\r\n\nb\n", {"n": 1})
    (fact,) = out.take()
    assert lines_of(fact) == ["  a", "", "b"]
    assert fact["payload"]["events"][0]["lineContexts"] == [{"n": 1}] * 3


def test_what_postgresql_cannot_hold_is_replaced_in_lines_and_refused_in_contexts() -> None:
    out = outgoing()
    out.add_log("a\x00b\ud800c", {})
    assert lines_of(out.take()[0]) == ["a\ufffdb\ufffdc"]
    with pytest.raises(NotPlainError, match=r"\$\.key"):
        out.add_log("x", {"key": "a\x00"})
    assert out.take() == []


def test_long_lines_are_cut_and_say_so() -> None:
    out = outgoing()
    out.add_log("x" * (MAX_LINE + 1), {})
    (line,) = lines_of(out.take()[0])
    assert len(line) == MAX_LINE
    assert line.endswith("… (cut)")


def test_many_lines_become_several_facts_of_bounded_size() -> None:
    out = outgoing()
    for n in range(450):
        out.add_log(str(n), {})
    assert out.waiting == 450
    facts = out.take()
    assert [len(lines_of(fact)) for fact in facts] == [200, 200, 50]
    assert out.waiting == 0
    for _ in range(30):
        out.add_log("y" * MAX_LINE, {})
    assert all(sum(map(len, lines_of(fact))) < 250_000 for fact in out.take())


def test_line_ids_are_given_where_the_run_identifies_lines_by_origin() -> None:
    out = outgoing(with_line_ids=True)
    out.add_log("a\nb", {})
    out.add_log("c", {})
    (fact,) = out.take()
    assert fact["payload"]["events"][0]["lineIds"] == ["lease.1.0", "lease.1.1", "lease.1.2"]


def test_progress_is_a_dictionary() -> None:
    with pytest.raises(TypeError, match="dictionary"):
        outgoing().add_progress([1])  # type: ignore[arg-type]
