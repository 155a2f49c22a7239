"""How an attempt ends: what the worker tells the database once its play has returned or raised."""

from __future__ import annotations

import logging
import traceback
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import psycopg

from counterfoil.errors import CounterfoilError
from counterfoil.json_text import clean_log_line, error_text
from counterfoil.playing.interruptions import (
    AttemptLost,
    Interrupted,
    PermanentError,
    RunCancelled,
    WorkerStopping,
)
from counterfoil.playing.session import Session
from counterfoil.values import NotPlainError, plain

log = logging.getLogger(__name__)

_FRAMES = 20


async def end_attempt(session: Session, play: Future[Any]) -> None:
    """Write the end that the play's outcome calls for. ``play`` is done."""
    error = play.exception()
    interruption = session.interruption
    if interruption is not None and (
        session.has_ended or interruption in (AttemptLost, WorkerStopping)
    ):
        log.info("play left", extra=session.label | {"reason": interruption.__name__})
    elif error is None:
        await _complete(session, play.result())
    elif interruption is RunCancelled:
        await _acknowledge_cancel(session)
    else:
        await _fail(session, error)


async def give_back(session: Session) -> None:
    """Let another worker have the run at once; the play finds out at its next call."""
    session.interrupt(WorkerStopping)
    await session.flush_last()
    at = session.claimed
    await session.last_call(
        lambda: session.functions.release_attempt(at.org_id, at.run_id, at.attempt, at.lease_id)
    )


async def _complete(session: Session, result: Any) -> None:
    at = session.claimed
    try:
        completion = {"result": plain(result, "the play's result")}
        await session.flush()
        answer = await session.last_call(
            lambda: session.functions.complete_attempt(
                at.org_id, at.run_id, at.attempt, at.lease_id, completion
            )
        )
    except RunCancelled:
        await _acknowledge_cancel(session)
    except Interrupted:
        return
    except (NotPlainError, psycopg.Error) as error:
        await _fail(session, error)
    else:
        if answer is not None:
            log.info("run completed", extra=session.label)


async def _fail(session: Session, error: BaseException) -> None:
    at = session.claimed
    # What an exception says may hold a payload: it goes to the database, not into the log.
    log.warning("play failed", extra=session.label | {"error": type(error).__qualname__})
    log.debug("play failed", extra=session.label, exc_info=error)
    await session.flush_last()
    answer = await session.last_call(
        lambda: session.functions.fail_attempt(
            at.org_id, at.run_id, at.attempt, at.lease_id, {"error": error_document(error)}
        )
    )
    if answer is not None:
        session.goes_on_by_itself = answer.next_attempt_at is not None
        log.info("attempt failed", extra=session.label | {"outcome": answer.outcome})


async def _acknowledge_cancel(session: Session) -> None:
    at = session.claimed
    await session.flush_last()
    failure = {
        "error": {
            "message": "the run was cancelled",
            "type": RunCancelled.__name__,
            "code": "cancelled",
            "retryable": False,
        }
    }
    await session.last_call(
        lambda: session.functions.fail_attempt(
            at.org_id, at.run_id, at.attempt, at.lease_id, failure
        )
    )
    log.info("run cancelled", extra=session.label)


def error_document(error: BaseException) -> dict[str, Any]:
    """An exception as ``fail_attempt`` takes it: message, type, code, retryable, where it arose."""
    permanent = isinstance(error, PermanentError | NotPlainError) or (
        isinstance(error, CounterfoilError) and not error.retryable
    )
    kind = type(error)
    return {
        "message": error_text(error),
        "type": kind.__qualname__,
        "code": error.name if isinstance(error, CounterfoilError) else "play_error",
        "retryable": not permanent,
        "details": {"trace": _trace(error)},
    }


def _trace(error: BaseException) -> list[str]:
    """The frames that led to the error, file names without folders and no source text."""
    frames = traceback.extract_tb(error.__traceback__)[-_FRAMES:]
    return [
        clean_log_line(f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}")
        for frame in frames
    ]
