"""The one question of a dispatcher whose lanes sleep."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import psycopg
import pytest

from counterfoil.calls.delivery import LaneDue
from counterfoil.delivering.looking import Looking
from counterfoil.functions import Functions
from counterfoil.wakeups import Wakeups


class Answers:
    """In place of the stored functions: answers from a list, the last one again and again."""

    def __init__(self, *answers: dict[str, float | None] | Exception) -> None:
        self._answers = list(answers)
        self.asked: list[list[str]] = []

    async def look_for_deliveries(
        self, lanes: Sequence[str], listeners: Sequence[str | None]
    ) -> list[LaneDue]:
        self.asked.append(list(lanes))
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if isinstance(answer, Exception):
            raise answer
        return [LaneDue(lane, answer.get(lane)) for lane in lanes]


def scene(answers: Answers, poll_seconds: float) -> tuple[Looking, Wakeups, Wakeups]:
    functions = cast(Functions, answers)
    nowhere = cast(Any, None)
    return (
        Looking(functions, poll_seconds=poll_seconds),
        Wakeups(nowhere, "a", "lifecycle", listen=False),
        Wakeups(nowhere, "b", "search", listen=False),
    )


async def test_lanes_that_sleep_share_a_question_and_only_the_due_one_wakes() -> None:
    answers = Answers({}, {}, {"search": -1.0}, {})
    looking, one, other = scene(answers, 0.02)
    sleeping = asyncio.create_task(looking.sleep("lifecycle", one))
    assert await looking.sleep("search", other)
    assert not sleeping.done()
    assert [sorted(lanes) for lanes in answers.asked[:3]] == [["lifecycle", "search"]] * 3
    one.wake()
    assert not await sleeping, "woken by somebody, not because something is due"
    await looking.close()


async def test_it_is_asked_again_when_something_falls_due() -> None:
    looking, one, _ = scene(Answers({"lifecycle": 0.05}, {"lifecycle": 0.0}), 600)
    async with asyncio.timeout(5):
        assert await looking.sleep("lifecycle", one)
    await looking.close()


async def test_what_the_question_meets_with_reaches_every_sleeper_and_the_next_sleep_asks() -> None:
    looking, one, other = scene(Answers(psycopg.OperationalError("gone"), {"search": 0.0}), 600)
    found = await asyncio.gather(
        looking.sleep("lifecycle", one), looking.sleep("search", other), return_exceptions=True
    )
    assert [type(error) for error in found] == [psycopg.OperationalError] * 2
    assert await looking.sleep("search", other)
    await looking.close()


@pytest.mark.parametrize("slept", [False, True])
async def test_closing_ends_it(slept: bool) -> None:
    looking, one, _ = scene(Answers({}), 600)
    if slept:
        one.wake()
        assert not await looking.sleep("lifecycle", one)
    async with asyncio.timeout(5):
        await looking.close()
