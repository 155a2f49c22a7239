"""What PostgreSQL cannot hold is replaced in log lines and refused, by path, elsewhere."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import InvalidArgumentError
from counterfoil.json_text import MAX_DEPTH, JsonText, clean_log_line, encode

NUL, LONE, GOOD = "\x00", "\ud800", "\ufffd"


def nested(depth: int) -> Any:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("bad", [NUL, LONE])
def test_log_lines_are_mended(bad: str) -> None:
    assert clean_log_line(f"a{bad}b") == f"a{GOOD}b"
    value = {"terminalLogLines": [f"a{bad}"], "events": [{"data": {"lines": [bad, "c"]}}]}
    assert json.loads(encode(value, "p")) == {
        "terminalLogLines": [f"a{GOOD}"],
        "events": [{"data": {"lines": [GOOD, "c"]}}],
    }


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"a": [{"b": NUL}]}, "p.a[0].b"),
        ({"a": LONE}, "p.a"),
        ({"odd key": NUL}, 'p["odd key"]'),
        (NUL, "p"),
        ({"a": {f"k{NUL}": 1}}, "p.a"),
        ({"a": float("nan")}, "p.a"),
        ([1, float("-inf")], "p[1]"),
        ({"a": object()}, "p.a"),
        ({"a": {(1, 2): 3}}, "p.a"),
        ({"a": {1, 2}}, "p.a"),
    ],
)
def test_anything_else_is_refused_by_path(value: Any, path: str) -> None:
    with pytest.raises(InvalidArgumentError) as refused:
        encode(value, "p")
    assert refused.value.reason == path
    assert NUL not in refused.value.message


def test_too_much_depth_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match="deep"):
        encode(nested(100_000), "p")
    assert encode(nested(MAX_DEPTH), "p")


def test_raw_text_is_passed_on_untouched() -> None:
    text = JsonText('{"n": 1.0000000000000000000000001}')
    assert encode(text, "p") is text


def test_a_backslash_that_only_looks_like_nul_passes() -> None:
    assert json.loads(encode({"a": "\\u0000"}, "p")) == {"a": "\\u0000"}


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    # Characters that PostgreSQL can hold.
    | st.text(st.characters(exclude_categories=["Cs"], exclude_characters=NUL)),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=20,
)


@given(json_values)
def test_what_can_be_held_is_not_changed(value: Any) -> None:
    assert json.loads(encode(value, "p")) == value
