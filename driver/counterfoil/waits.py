"""Waits of a play: for an event, or for a time to pass. A waiting run holds no worker.

The first time, the attempt is suspended and the play ends here; when the run is resumed the play
starts again, finds its steps remembered, comes back to the same wait and gets its outcome, which
from then on is remembered like a step's.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from counterfoil.interruptions import Suspended
from counterfoil.session import Session
from counterfoil.steps import Step, Steps


async def wait(
    session: Session,
    steps: Steps,
    step: Step,
    reason: str,
    event: str | None,
    wake_after: timedelta | None,
) -> dict[str, Any]:
    """What ended the wait: ``eventName``, ``payload``, ``timedOut``. Raises Suspended before."""
    found = await steps.remembered(step)
    if found is not None:
        return _outcome(found.output)
    resumed, session.resumed = session.resumed, None
    if resumed is None:
        resumed = await _suspend(session, reason, event, wake_after)
    if not resumed.get("timedOut") and resumed.get("eventName") != event:
        raise RuntimeError(
            f"the run was resumed by {resumed.get('eventName')!r}, but the play now waits for "
            f"{event!r}: a play must come to its waits in the same order every time"
        )
    claim = await steps.claim(step)
    if claim.remembered:
        return _outcome(claim.output)
    stored = await steps.complete(claim, resumed)
    return _outcome(resumed if stored is None else stored.output)


async def _suspend(
    session: Session, reason: str, event: str | None, wake_after: timedelta | None
) -> dict[str, Any]:
    await session.flush()
    at = session.claimed
    answer = await session.call(
        lambda: session.functions.suspend_attempt(
            at.org_id, at.run_id, at.attempt, at.lease_id, reason, event, wake_after
        )
    )
    if answer.outcome == "suspended" or answer.resumed is None:
        session.interrupt(Suspended)
        session.check()
    return dict(answer.resumed or {})


def _outcome(output: Any) -> dict[str, Any]:
    return dict(output) if isinstance(output, dict) else {}
