"""Registering plays."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from counterfoil.playing.plays import Plays


def test_plain_functions_and_coroutines_are_told_apart() -> None:
    plays = Plays()

    def plain(run: Any, given: Any) -> None: ...

    async def coroutine(run: Any, given: Any) -> None: ...

    class Callable:
        async def __call__(self, run: Any, given: Any) -> None: ...

    assert not plays.add("plain", plain).is_coroutine
    assert plays.add("coroutine", coroutine).is_coroutine
    assert plays.add("partial", functools.partial(coroutine)).is_coroutine
    assert plays.add("object", Callable()).is_coroutine
    assert list(plays) == ["plain", "coroutine", "partial", "object"]


def test_a_play_may_do_without_its_input() -> None:
    plays = Plays()
    assert plays.add("both", lambda run, given: None).arguments("run", 1) == ("run", 1)
    assert plays.add("default", lambda run, given=None: None).arguments("run", 1) == ("run", 1)
    assert plays.add("run only", lambda run: None).arguments("run", 1) == ("run",)


def test_what_cannot_be_a_play_is_refused() -> None:
    plays = Plays()
    plays.add("taken", lambda run: None)
    with pytest.raises(ValueError, match="'taken' is registered already"):
        plays.add("taken", lambda run: None)
    with pytest.raises(ValueError, match="1 to 200"):
        plays.add("", lambda run: None)
    with pytest.raises(TypeError, match="must take a run and an input"):
        plays.add("three", lambda run, given, more: None)

    def generator(run: Any) -> Any:
        yield 1

    with pytest.raises(TypeError, match="is a generator"):
        plays.add("generator", generator)
