"""What `run.step`, `run.map` and the waits do, once for plain functions and for coroutines.

A flow is a generator that yields commands and is sent their answers. It knows the order of things;
who drives it knows how to wait: by blocking the play's thread, or by awaiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from counterfoil.errors import CounterfoilError
from counterfoil.playing.steps import CLAIM_BATCH, Claim, Step, Steps
from counterfoil.values import plain


@dataclass(frozen=True)
class Ask:
    """Await the call on the worker's event loop.

    Where the play may block, ``now`` is tried before; what it cannot do, it answers with None.
    """

    call: Callable[[], Awaitable[Any]]
    now: Callable[[], Any] | None = None


@dataclass(frozen=True)
class Do:
    """Call the play's own function where the play runs."""

    function: Callable[..., Any]
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]


@dataclass(frozen=True)
class Together:
    """Drive the flows side by side; when all are done, raise the first error there was."""

    flows: Sequence[Flow]


Command: TypeAlias = Ask | Do | Together
Flow: TypeAlias = Generator[Command, Any, Any]


def one_step(
    steps: Steps,
    step: Step,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    claim: Claim | None = None,
) -> Flow:
    """The step's remembered output, or what ``function`` returns, remembered from now on."""
    while True:
        if claim is None:
            claim = steps.known(step) or (yield Ask(lambda: steps.claim(step)))
        if claim.failure is not None:
            raise claim.failure
        if claim.remembered:
            return claim.output
        claim = yield from _compute(steps, claim, function, args, kwargs)


def _compute(
    steps: Steps,
    claim: Claim,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
) -> Flow:
    steps.begin(claim)
    try:
        try:
            result = yield Do(function, args, kwargs)
            output = plain(result, f"the output of step {claim.step.name!r}")
        except Exception as error:
            failure = error
            yield Ask(lambda: steps.fail(claim, failure))
            raise
        try:
            return (
                yield Ask(
                    lambda: steps.complete(claim, output),
                    now=lambda: steps.complete_now(claim, output),
                )
            )
        except CounterfoilError as error:
            refusal = error
            yield Ask(lambda: steps.fail(claim, refusal))
            raise
    finally:
        steps.abandon(claim)


def many_steps(
    steps: Steps,
    name: str,
    function: Callable[..., Any],
    items: Sequence[Any],
    parallel: int,
) -> Flow:
    """One step an item, up to ``parallel`` at once; the outputs in the order of the items."""
    named = [steps.named(name, (item,), {}) for item in items]
    queue = _ClaimQueue(steps, named)
    outputs: list[Any] = [None] * len(named)

    def lane() -> Flow:
        try:
            while (found := (yield Ask(queue.next))) is not None:
                index, claim = found
                outputs[index] = yield from one_step(
                    steps, named[index], function, (items[index],), {}, claim
                )
        finally:
            # Empty by now, unless this lane failed: then the others finish what they have begun.
            queue.stop()

    yield Together([lane() for _ in range(min(parallel, len(named)))])
    return outputs


class _ClaimQueue:
    """Hands out the steps of a map in order, claimed in batches."""

    def __init__(self, steps: Steps, named: Sequence[Step]) -> None:
        self._steps = steps
        self._named = named
        self._next = 0
        self._ready: list[tuple[int, Claim | None]] = []
        self._turn = asyncio.Lock()

    async def next(self) -> tuple[int, Claim | None] | None:
        """The next step's index and claim; None when there is no more."""
        async with self._turn:
            if not self._ready and self._next < len(self._named):
                batch = self._named[self._next : self._next + CLAIM_BATCH]
                claims = await self._steps.claim_many(batch)
                self._ready = list(enumerate(claims, self._next))
                self._next += len(batch)
            return self._ready.pop(0) if self._ready else None

    def stop(self) -> None:
        """Hand out nothing more."""
        self._next = len(self._named)
        ready, self._ready = self._ready, []
        for _, claim in ready:
            if claim is not None:
                self._steps.abandon(claim)
