"""The receipts of one attempt's steps: who computes a step, and what it came to.

Lives on the worker's event loop, except `Steps.named`, which is safe from any thread.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from counterfoil.errors import LeaseLostError
from counterfoil.json_text import clean_log_line
from counterfoil.playing.interruptions import PermanentError, StepFailedError
from counterfoil.playing.session import Session
from counterfoil.values import arguments_digest

CLAIM_BATCH = 100
"""Receipts that one call claims at most."""
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 2.0
_LONGEST_KEY = 1000
_LONGEST_ERROR = 4000


@dataclass(frozen=True)
class Step:
    """One step of a play. Its key is ``shared`` when the play chose it, since other runs of the
    org may use it too; otherwise it belongs to this run alone. ``ttl`` is in seconds."""

    name: str
    key: str
    shared: bool
    ttl: float | None = None


@dataclass(frozen=True)
class Claim:
    """The answer to a claim: the step's remembered output or permanent failure, or else the lease
    to compute it under."""

    step: Step
    remembered: bool
    output: Any = None
    lease_id: str = ""
    failure: StepFailedError | None = None


@dataclass
class _Held:
    step: Step
    lease_id: str
    renewed_at: float = field(default_factory=time.monotonic)


class Steps:
    """Names, claims and settles the steps of one attempt."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._functions = session.functions
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._held: dict[str, _Held] = {}

    def named(
        self,
        name: str,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        key: str | None = None,
        ttl: float | None = None,
    ) -> Step:
        """The step of that name and arguments; a repeat of both gets a number of its own."""
        if not isinstance(name, str) or not 1 <= len(name) <= 200:
            raise ValueError("a step's name is a string of 1 to 200 characters")
        if key is not None:
            if not isinstance(key, str) or not 1 <= len(key) <= _LONGEST_KEY:
                raise ValueError(f"a step's key is a string of 1 to {_LONGEST_KEY} characters")
            return Step(name, key, True, ttl)
        at = self._session.claimed
        digest = arguments_digest(args, kwargs, name)
        base = f"{at.play_name}:{at.run_id}:{name}:{digest}"
        with self._lock:
            self._seen[base] += 1
            repeat = self._seen[base]
        return Step(name, base if repeat == 1 else f"{base}:{repeat}", False, ttl)

    def wait_id(self, name: str) -> str:
        """The id of the next wait of that name: its number among them."""
        with self._lock:
            self._seen[name] += 1
            return f"{name}#{self._seen[name]}"

    async def claim(self, step: Step) -> Claim:
        """Remembered output or a lease; waits while another run computes a shared step."""
        wait = _FIRST_WAIT
        while True:
            (claim,) = await self.claim_many([step])
            if claim is not None:
                return claim
            await self._session.pause(wait)
            wait = min(wait * 2, _LONGEST_WAIT)

    async def claim_many(self, steps: Sequence[Step]) -> list[Claim | None]:
        """Claims for up to ``CLAIM_BATCH`` distinct steps in one call, all shared or none.

        None stands for a step that another run computes at present.
        """
        at = self._session.claimed
        lease_ids = [uuid.uuid4().hex for _ in steps]
        # Nobody but this run can hold a step of its own: what is still leased died with an earlier
        # attempt. A shared step may be in the hands of a run that is alive, whose lease is waited
        # for, unless an earlier attempt of this run left it.
        shared = any(step.shared for step in steps)
        options = {
            "leaseAware": True,
            "leaseSeconds": self._session.lease_seconds,
            "reclaimOwnRun" if shared else "reclaimRunning": True,
        }
        found = await self._session.call(
            lambda: self._functions.claim_receipts(
                at.org_id,
                at.run_id,
                at.attempt,
                [s.key for s in steps],
                lease_ids,
                options,
                relaxed=True,  # the completion, which counts, is a transaction of its own
            )
        )
        claims: list[Claim | None] = []
        for step, lease_id, answer in zip(steps, lease_ids, found, strict=True):
            if answer.claimed:
                self._held[lease_id] = _Held(step, lease_id)
                claims.append(Claim(step, remembered=False, lease_id=lease_id))
            else:
                claims.append(None if answer.receipt is None else _settled(step, answer.receipt))
        return claims

    async def complete(self, claim: Claim, output: Any) -> Claim | None:
        """Remember the output; answers with the output as it was stored.

        None when the step's lease ran out meanwhile: claim again, another run may have computed it.
        """
        at = self._session.claimed
        receipt = {
            "key": claim.step.key,
            "leaseId": claim.lease_id,
            "runAttempt": at.attempt,
            "output": output,
        }
        if claim.step.ttl is not None:
            receipt["ttlSeconds"] = claim.step.ttl
        try:
            found = await self._session.call(
                lambda: self._functions.complete_receipts(
                    at.org_id, at.run_id, [receipt], return_output=True
                )
            )
        except LeaseLostError:
            return None
        finally:
            self._held.pop(claim.lease_id, None)
        stored = found[0].receipt or {}
        return Claim(claim.step, remembered=True, output=stored.get("output"))

    def abandon(self, claim: Claim) -> None:
        """Stop renewing a step that will not be settled; safe from any thread."""
        self._held.pop(claim.lease_id, None)

    async def fail(self, claim: Claim, error: BaseException) -> None:
        """Remember that the step failed: for good with PermanentError, else until the next try."""
        at = self._session.claimed
        kind = "terminal" if isinstance(error, PermanentError) else "repairable"
        text = clean_log_line(str(error) or type(error).__name__)[:_LONGEST_ERROR]
        receipt = {
            "key": claim.step.key,
            "leaseId": claim.lease_id,
            "runAttempt": at.attempt,
            "error": text,
            "errorPayload": {"type": type(error).__qualname__, "message": text},
            "failureKind": kind,
        }
        try:
            await self._session.call(
                lambda: self._functions.fail_receipts(at.org_id, at.run_id, [receipt])
            )
        except LeaseLostError:
            pass  # whoever holds the step now decides what it came to
        finally:
            self._held.pop(claim.lease_id, None)

    async def renew(self) -> None:
        """Extend the leases of steps that have been computing for a while."""
        now = time.monotonic()
        due = [
            held
            for held in list(self._held.values())
            if now - held.renewed_at > self._session.lease_seconds / 4
        ]
        if not due:
            return
        at = self._session.claimed
        receipts = [
            {"key": h.step.key, "leaseId": h.lease_id, "runAttempt": at.attempt} for h in due
        ]
        await self._functions.heartbeat_receipts(
            at.org_id, at.run_id, receipts, self._session.lease_seconds
        )
        for held in due:
            held.renewed_at = now


def _settled(step: Step, receipt: Mapping[str, Any]) -> Claim | None:
    if receipt["status"] in ("completed", "skipped"):
        return Claim(step, remembered=True, output=receipt.get("output"))
    if receipt["status"] == "failed" and receipt.get("failureKind") == "terminal":
        failure = StepFailedError(step.name, str(receipt.get("error")))
        return Claim(step, remembered=True, failure=failure)
    return None
