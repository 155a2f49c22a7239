"""A delivery is cut into bounded pieces without a character changed."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from counterfoil.append import PieceLimits, cut, elements
from counterfoil.functions import ClaimedFact

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def fact(*events: str) -> ClaimedFact:
    return ClaimedFact(
        *("o", "r", "lifecycle", 1, "e", "run.events", False),
        *(f"[{', '.join(events)}]", len(events), NOW, NOW, False, "key", None),
    )


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@given(st.lists(values, max_size=6), st.sampled_from([None, 1]))
def test_elements_are_taken_as_they_stand(items: list[Any], indent: int | None) -> None:
    array = json.dumps(items, ensure_ascii=False, indent=indent)
    found = list(elements(array))
    assert [json.loads(text) for text in found] == items
    assert all(text in array for text in found)


def test_numbers_are_taken_as_they_stand() -> None:
    assert list(elements("[1.0, 1e400, -0.10]")) == ["1.0", "1e400", "-0.10"]


def test_facts_without_events_make_no_piece() -> None:
    assert cut([fact(), fact()], PieceLimits()) == []


def test_a_small_delivery_is_one_piece() -> None:
    [piece] = cut([fact('{"a": 1.50}'), fact(), fact("{}", "[2]")], PieceLimits())
    assert (piece.events, piece.number, piece.count) == ('[{"a": 1.50}, {}, [2]]', 1, 1)


@given(
    st.lists(st.lists(st.integers(0, 300), max_size=5), max_size=6),
    st.integers(1, 5),
    st.integers(1, 400),
)
def test_pieces_are_bounded_in_order_and_leave_nothing_out(
    sizes: list[list[int]], most: int, size: int
) -> None:
    facts = [fact(*(json.dumps("x" * length) for length in lengths)) for lengths in sizes]
    pieces = cut(facts, PieceLimits(most, size))
    found = [json.loads(piece.events) for piece in pieces]
    assert [e for events in found for e in events] == ["x" * n for s in sizes for n in s]
    assert [piece.number for piece in pieces] == list(range(1, len(pieces) + 1))
    for events in found:
        assert 1 <= len(events) <= most
        assert len(events) == 1 or sum(len(json.dumps(e)) for e in events) <= size
