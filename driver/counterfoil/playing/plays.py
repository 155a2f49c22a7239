"""The plays that a worker knows: plain functions or coroutine functions, by name."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

AnyPlay = TypeVar("AnyPlay", bound=Callable[..., Any])


@dataclass(frozen=True)
class Play:
    """One registered play."""

    name: str
    function: Callable[..., Any]
    is_coroutine: bool
    takes_input: bool

    def arguments(self, run: Any, given: Any) -> tuple[Any, ...]:
        """What to call the function with: the run and, where it asks for it, the input."""
        return (run, given) if self.takes_input else (run,)


class Plays:
    """A registry of plays, in the order they were registered."""

    def __init__(self) -> None:
        self._plays: dict[str, Play] = {}

    def add(self, name: str, function: Callable[..., Any]) -> Play:
        """Register ``function``; raises ``ValueError`` for a name taken, ``TypeError`` for a
        function that cannot be called with a run and an input."""
        if not name or len(name) > 200:
            raise ValueError("a play's name has 1 to 200 characters")
        if name in self._plays:
            raise ValueError(f"a play named {name!r} is registered already")
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise TypeError(f"play {name!r} is a generator; a play returns its result")
        is_coroutine = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
            getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
        )
        play = Play(name, function, is_coroutine, _takes_input(name, function))
        self._plays[name] = play
        return play

    def __getitem__(self, name: str) -> Play:
        return self._plays[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._plays)

    def __len__(self) -> int:
        return len(self._plays)


def _takes_input(name: str, function: Callable[..., Any]) -> bool:
    signature = inspect.signature(function)
    for arguments, takes_input in (((None, None), True), ((None,), False)):
        try:
            signature.bind(*arguments)
        except TypeError:
            continue
        return takes_input
    raise TypeError(f"play {name!r} must take a run and an input: def {name}(run, input)")
