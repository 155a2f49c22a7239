"""What ends a play from outside, and what a play raises to say how it failed.

The interruptions derive from ``BaseException``, as ``asyncio.CancelledError`` does, so that an
``except Exception`` in a play does not swallow them. A play may catch one to clean up; whatever it
does afterwards, nothing more of that attempt is written.
"""

from __future__ import annotations


class Interrupted(BaseException):
    """The attempt is over for this process; raised by the next ``run.*`` call of the play."""


class AttemptLost(Interrupted):
    """The attempt's lease lapsed or was taken: another worker may be executing the run."""


class RunCancelled(Interrupted):
    """Somebody asked for the run to be cancelled."""


class WorkerStopping(Interrupted):
    """The worker shuts down and has given the run back; another one continues it."""


class Suspended(Interrupted):
    """The run waits; a worker starts the play again, with its steps memoised, when it may go on."""


class PermanentError(Exception):
    """Raise it in a step or a play to say that trying again is of no use.

    The step's failure is remembered, and the run fails without a further attempt.
    """


class StepFailedError(PermanentError):
    """A step whose permanent failure was remembered; ``step`` is its name."""

    def __init__(self, step: str, message: str) -> None:
        super().__init__(f"step {step!r} failed for good: {message}")
        self.step = step
