"""Waits of a play: for an event, or for a time to pass. A waiting run holds no worker.

A wait that has not ended suspends the attempt, and the play ends here. When the run may go on the
play starts again, finds its steps remembered and comes back to the same wait. The database knows it
by its id and answers, then and in every later attempt, with what ended it.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from counterfoil.playing.interruptions import RunCancelled, Suspended
from counterfoil.playing.session import Session


async def wait(
    session: Session, wait_id: str, reason: str, event: str | None, wake_after: timedelta | None
) -> dict[str, Any]:
    """What ended the wait: ``eventName``, ``payload``, ``timedOut``. Until then, Suspended."""
    await session.flush()
    at = session.claimed
    answer = await session.call(
        lambda: session.functions.suspend_attempt(
            at.org_id, at.run_id, at.attempt, at.lease_id, reason, event, wake_after, wait_id
        )
    )
    if answer.resumed is None:
        session.has_ended = True
        session.goes_on_by_itself = wake_after is not None
        session.interrupt(RunCancelled if answer.outcome == "cancelled" else Suspended)
        session.check()
    return dict(answer.resumed or {})
