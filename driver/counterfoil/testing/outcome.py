"""What a run came to, as a test sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class StepOutcome:
    """One step. ``calls``: how often its function was called to its end within this kit, whether
    its output came to be stored or not. ``status``: running, completed or failed."""

    name: str
    key: str
    status: str
    output: Any
    error: str | None
    calls: int


@dataclass(frozen=True)
class Fact:
    """One fact of the run: its position, type (such as ``run.started``) and payload."""

    seq: int
    type: str
    payload: Mapping[str, Any] = field(repr=False)


@dataclass(frozen=True)
class LogLine:
    """One line that the play logged, and what was given to go with it."""

    text: str
    context: Mapping[str, Any]


@dataclass(frozen=True)
class Outcome:
    """A run when nothing of it was left to do: it ended, waits, or its worker was killed.

    ``status``: queued, running (its worker was killed), waiting, completed, failed or cancelled.
    ``waits_for``: the event it waits for, None when it waits for time alone or not at all.
    ``ledger``: the events delivered so far, in order, as the receiver has them.
    """

    run_id: str
    status: str
    result: Any
    error: Mapping[str, Any] | None
    attempts: int
    killed: bool
    waits_for: str | None
    steps: Sequence[StepOutcome]
    facts: Sequence[Fact]
    log: Sequence[LogLine]
    ledger: Sequence[Mapping[str, Any]]

    def step(self, name: str) -> StepOutcome:
        """The only step of that name; AssertionError when there is none, or more than one."""
        found = [step for step in self.steps if step.name == name]
        if len(found) != 1:
            names = ", ".join(step.name for step in self.steps) or "none"
            raise AssertionError(f"{len(found)} steps are named {name!r}; the steps were: {names}")
        return found[0]

    def assert_completed(self) -> Any:
        """The result; AssertionError saying what happened instead when the run did not complete."""
        if self.status != "completed":
            raise AssertionError(f"the run is {self._shown()}, not completed")
        return self.result

    def assert_failed(self) -> Mapping[str, Any]:
        """The error (``message``, ``type``, ``code``); AssertionError when the run did not fail."""
        if self.status != "failed" or self.error is None:
            raise AssertionError(f"the run is {self._shown()}, not failed")
        return self.error

    def assert_waiting(self, event: str | None = None) -> None:
        """AssertionError unless the run waits, for that event (None: for time alone)."""
        if self.status != "waiting" or self.waits_for != event:
            wanted = f"waiting for {event!r}" if event else "waiting for time to pass"
            raise AssertionError(f"the run is {self._shown()}, not {wanted}")

    def _shown(self) -> str:
        if self.killed:
            return "killed"
        if self.status == "waiting":
            return f"waiting for {self.waits_for!r}" if self.waits_for else "waiting"
        if self.error is not None:
            return f"{self.status} ({self.error.get('type')}: {self.error.get('message')})"
        return self.status
