"""Plain values, and the digest that tells a step's arguments apart."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from uuid import UUID

import pytest

from counterfoil.values import NotPlainError, arguments_digest, plain


class Colour(Enum):
    RED = "red"


@dataclass
class Point:
    x: int
    y: int


def digest(*args: object, **kwargs: object) -> str:
    return arguments_digest(args, kwargs, "step")


def test_plain_values_come_back_as_json_gives_them() -> None:
    value = {"a": [1, 2.5, None, True, ("x", {"b": "é"})]}
    assert plain(value, "it") == {"a": [1, 2.5, None, True, ["x", {"b": "é"}]]}


@pytest.mark.parametrize(
    ("value", "path", "reason"),
    [
        ({"files": [{"size": 1}, {"size": {1}}]}, "$.files[1].size", "is a set"),
        ({"when": datetime(2026, 1, 1, tzinfo=UTC)}, "$.when", "is a datetime"),
        ([1, float("nan")], "$[1]", "is nan"),
        ({"a": {1: "x"}}, "$.a", "has the key 1"),
        ({"a b": object()}, '$["a b"]', "is an object"),
        (["a\x00b"], "$[0]", "U+0000"),
        ({"a": "\ud800"}, "$.a", "surrogate"),
        ({"\x00": 1}, "$ (a key)", "U+0000"),
        (Colour.RED, "$", "is a Colour"),
    ],
)
def test_other_values_are_named_by_their_path(value: object, path: str, reason: str) -> None:
    with pytest.raises(NotPlainError) as caught:
        plain(value, "the output")
    assert caught.value.path == path
    assert reason in caught.value.reason
    assert str(caught.value).startswith("the output is not a plain value: $")


def test_a_value_that_holds_itself_is_refused() -> None:
    value: list[object] = []
    value.append(value)
    with pytest.raises(NotPlainError, match="deeper than"):
        plain(value, "it")


def test_equal_arguments_have_equal_digests_in_any_process() -> None:
    code = (
        "from counterfoil.values import arguments_digest as d\n"
        "from pathlib import Path\n"
        "print(d(({'b': 1, 'a': {'x', 'y', 'z'}}, Path('/a')), {'k': b'bytes'}, 'step'))"
    )
    here = digest({"a": {"z", "y", "x"}, "b": 1}, Path("/a"), k=b"bytes")
    for seed in ("1", "2"):
        answer = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            env={"PYTHONHASHSEED": seed},
        )
        assert answer.stdout.strip() == here


def test_different_arguments_have_different_digests() -> None:
    values = [
        *((), (1,), (1.0,), ("1",), (True,), (None,), ([],), ({},), ([1],), ([[1]],), ((1, 2),)),
        *(({"a": 1},), ({1: "a"},), ({"1": "a"},), ({"a", "b"},), (["a", "b"],), (b"a",)),
        *((Path("a"),), ("a",), (Decimal("1"),), (UUID(int=1),), (Colour.RED,), ("red",)),
        *((Point(1, 2),), (Point(2, 1),), ({"x": 1, "y": 2},)),
        *((datetime(2026, 1, 1, tzinfo=UTC),), ("2026-01-01T00:00:00+00:00",)),
    ]
    digests = [digest(*args) for args in values]
    assert len(set(digests)) == len(values)
    assert digest(a=1) != digest({"a": 1})


def test_an_argument_without_identity_is_named() -> None:
    with pytest.raises(TypeError, match=r"argument 2 of step 'fetch' is an object.*key="):
        arguments_digest((1, object()), {}, "fetch")
    with pytest.raises(TypeError, match="argument session= of step"):
        arguments_digest((), {"session": object()}, "fetch")
