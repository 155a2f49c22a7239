"""The receipts of one attempt's steps: who computes a step, and what it came to.

Lives on the worker's event loop, except `Steps.named`, which is safe from any thread.
"""

from __future__ import annotations

import asyncio
import json
import threading
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import psycopg

from counterfoil.blocking import AllBusyError
from counterfoil.errors import LeaseLostError, PayloadTooLargeError
from counterfoil.functions import Receipt
from counterfoil.json_text import check_text, error_text
from counterfoil.playing.interruptions import PermanentError, StepFailedError
from counterfoil.playing.receipts import DatabaseReceipts, Recalled, Receipts
from counterfoil.playing.session import Session
from counterfoil.values import arguments_digest

Item = TypeVar("Item")
Answer = TypeVar("Answer")

CLAIM_BATCH = 100
"""Receipts that one call claims, or renews, at most."""
_FIRST_WAIT = 0.1
_LONGEST_WAIT = 2.0
_OWN_KEY_BYTES = 1800
"""What a key of the run's own is made to fit into. Whether it is a key, the database says."""
_WHITE_SPACE = " \t\n\r\f\v"
_AFTER_NAME = 40


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
    to compute it under. An ``unclaimed`` step is computed under the attempt's own lease."""

    step: Step
    remembered: bool
    output: Any = None
    lease_id: str = ""
    failure: StepFailedError | None = None
    unclaimed: bool = False


@dataclass
class _Held:
    step: Step
    lease_id: str
    claimed: bool
    renewed_at: float = field(default_factory=time.monotonic)


class Steps:
    """Names, claims and settles the steps of one attempt.

    A step of the run's own needs no claim: nobody else may compute it while the attempt's lease is
    held. So where everything that the run remembers was read at once, such a step is one call, its
    completion. One that takes long is claimed after a while, for all to see.
    """

    def __init__(self, session: Session, receipts: Receipts | None = None) -> None:
        """``receipts`` is who keeps them; None is the database."""
        self._session = session
        self._receipts = receipts or DatabaseReceipts(session.functions, session.claimed)
        at = session.claimed
        self._own_keys = f"{at.play_name}:{at.run_id}:".lstrip(_WHITE_SPACE)
        # A name is cut where it would not fit beside long ids in many-byte letters: 4 bytes each.
        self._name_room = (_OWN_KEY_BYTES - len(self._own_keys.encode()) - _AFTER_NAME) // 4
        # Ids may hold colons; with this in their digests, the keys of two runs differ all the same.
        self._identity = json.dumps([at.play_name, at.run_id])
        self._lock = threading.Lock()
        self._seen: Counter[str] = Counter()
        self._held: dict[tuple[str, str], _Held] = {}
        self._given_up: dict[str, str] = {}
        self._recalled: Recalled | None = None
        self._recalling: asyncio.Task[None] | None = None

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
            if not isinstance(key, str):
                raise TypeError("a step's key is a string")
            check_text(key, "key")
            # As the gateway reads keys, so that both ways lead to the same receipt.
            return Step(name, key.strip(_WHITE_SPACE), True, ttl)
        check_text(name, "name")
        digest = arguments_digest(args, kwargs, name, self._identity)
        if len(name) > self._name_room:
            digest = arguments_digest(args, kwargs, name, f"{self._identity}{name}")
        base = f"{self._own_keys}{name[: self._name_room]}:{digest}"
        with self._lock:
            self._seen[base] += 1
            repeat = self._seen[base]
        return Step(name, base if repeat == 1 else f"{base}:{repeat}", False, ttl)

    def wait_id(self, name: str) -> str:
        """The id of the next wait of that name: its number among them."""
        with self._lock:
            self._seen[name] += 1
            return f"{name}#{self._seen[name]}"

    def known(self, step: Step) -> Claim | None:
        """The claim, where it takes no call; safe from any thread."""
        recalled = self._recalled
        # An odd key is refused, if it is to be, before the step has done anything.
        if recalled is None or step.shared or step.ttl is not None or not step.key.isprintable():
            return None
        receipt = recalled.settled.get(step.key)
        if receipt is not None:
            return _settled(step, receipt)
        return Claim(
            step, remembered=False, lease_id=self._session.claimed.lease_id, unclaimed=True
        )

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
        shared = any(step.shared for step in steps)
        if not shared:
            await self._recall()
            known = [self.known(step) for step in steps]
            if None not in known:
                return known
        # Who gave a shared step up and comes back to it must not wait for a lease of its own.
        lease_ids = [self._given_up.pop(step.key, "") or uuid.uuid4().hex for step in steps]
        asked = list(zip(steps, lease_ids, strict=True))
        found = await self._session.call(lambda: self._claim(asked, shared=shared))
        claims: list[Claim | None] = []
        for step, lease_id, answer in zip(steps, lease_ids, found, strict=True):
            if answer.claimed:
                self._hold(Claim(step, remembered=False, lease_id=lease_id))
                claims.append(Claim(step, remembered=False, lease_id=lease_id))
            else:
                claims.append(None if answer.receipt is None else _settled(step, answer.receipt))
        return claims

    def begin(self, claim: Claim) -> None:
        """The step is being computed from now on; safe from any thread."""
        if claim.unclaimed:
            self._hold(claim)

    async def complete(self, claim: Claim, output: Any) -> Claim | None:
        """Remember the output; answers with the output as it was stored.

        None when the step's lease ran out meanwhile: claim again, another run may have computed it.
        """
        try:
            if claim.unclaimed and (recalled := self._recalled) is not None:
                stored = await self._session.call(lambda: recalled.record(claim.step.key, output))
                return _settled(claim.step, stored)
            receipt = {**self._proof(claim.step, claim.lease_id), "output": output}
            if claim.step.ttl is not None:
                receipt["ttlSeconds"] = claim.step.ttl
            stored = await self._session.call(lambda: self._receipts.complete(receipt))
            return Claim(claim.step, remembered=True, output=stored.get("output"))
        except LeaseLostError:
            return None
        finally:
            self.abandon(claim)

    def complete_now(self, claim: Claim, output: Any) -> Claim | None:
        """As `complete`, for a thread that may block; None where `complete` has to do it."""
        recalled = self._recalled
        if not claim.unclaimed or recalled is None or recalled.record_now is None:
            return None
        self._session.check()
        try:
            settled = _settled(claim.step, recalled.record_now(claim.step.key, output))
        except (AllBusyError, psycopg.Error):
            return None  # safe to repeat, and `complete` knows what to make of it
        self.abandon(claim)
        return settled

    def abandon(self, claim: Claim) -> None:
        """Stop renewing a step that will not be settled; safe from any thread."""
        if self._held.pop((claim.step.key, claim.lease_id), None) and claim.step.shared:
            self._given_up[claim.step.key] = claim.lease_id

    async def fail(self, claim: Claim, error: BaseException) -> None:
        """Remember that the step failed: for good with PermanentError, else until the next try."""
        kind = "terminal" if isinstance(error, PermanentError) else "repairable"
        text = error_text(error)
        receipt = {
            **self._proof(claim.step, claim.lease_id),
            "error": text,
            "errorPayload": {"type": type(error).__qualname__, "message": text},
            "failureKind": kind,
        }
        try:
            if claim.unclaimed:
                (answer,) = await self._session.call(
                    lambda: self._claim([(claim.step, claim.lease_id)], shared=False)
                )
                if not answer.claimed:
                    return
            await self._session.call(lambda: self._receipts.fail(receipt))
        except LeaseLostError:
            pass  # whoever holds the step now decides what it came to
        finally:
            self.abandon(claim)

    async def renew(self) -> None:
        """Extend the leases of steps that have been computing for a while."""
        now = time.monotonic()
        due = [
            held
            for held in list(self._held.values())
            if now - held.renewed_at > self._session.lease_seconds / 4
        ]
        for part in _batches([held for held in due if not held.claimed]):
            await self._claim([(held.step, held.lease_id) for held in part], shared=False)
        for part in _batches([held for held in due if held.claimed]):
            await _in_parts(part, self._heartbeat)
        for held in due:
            held.claimed = True
            held.renewed_at = now

    async def _recall(self) -> None:
        """Read what the run remembers, once, whichever step comes first."""
        if self._recalling is None:
            self._recalling = asyncio.create_task(self._read_recalled())
        await asyncio.shield(self._recalling)

    async def _read_recalled(self) -> None:
        self._recalled = await self._session.call(lambda: self._receipts.recall(self._own_keys))

    async def _claim(self, asked: Sequence[tuple[Step, str]], *, shared: bool) -> Sequence[Receipt]:
        """One answer for each step and the lease id to claim it under."""
        # Nobody but this run can hold a step of its own: what is still leased died with an earlier
        # attempt. A shared step may be in the hands of a run that is alive, whose lease is waited
        # for, unless an earlier attempt of this run left it.
        options: dict[str, Any] = {
            "leaseAware": True,
            "leaseSeconds": self._session.lease_seconds,
            "reclaimOwnRun" if shared else "reclaimRunning": True,
        }
        # Said here too, so that a wrong one is refused before the step is computed. A step that has
        # one is claimed alone.
        if asked[0][0].ttl is not None:
            options["ttlSeconds"] = asked[0][0].ttl
        return await _in_parts(
            asked,
            lambda part: self._receipts.claim(
                [step.key for step, _ in part], [lease_id for _, lease_id in part], options
            ),
        )

    async def _heartbeat(self, part: Sequence[_Held]) -> Sequence[None]:
        proofs = [self._proof(held.step, held.lease_id) for held in part]
        await self._receipts.heartbeat(proofs, self._session.lease_seconds)
        return ()

    def _hold(self, claim: Claim) -> None:
        held = _Held(claim.step, claim.lease_id, claimed=not claim.unclaimed)
        self._held[claim.step.key, claim.lease_id] = held

    def _proof(self, step: Step, lease_id: str) -> dict[str, Any]:
        return {
            "key": step.key,
            "leaseId": lease_id,
            "runAttempt": self._session.claimed.attempt,
        }


def _batches(items: Sequence[Item]) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), CLAIM_BATCH):
        yield items[start : start + CLAIM_BATCH]


async def _in_parts(
    items: Sequence[Item], call: Callable[[Sequence[Item]], Awaitable[Sequence[Answer]]]
) -> Sequence[Answer]:
    """The call's answers for all items, in as many calls as `receipt_batch_max` makes needed."""
    try:
        return await call(items)
    except PayloadTooLargeError:
        half = len(items) // 2
        if half == 0:
            raise
        return [*await _in_parts(items[:half], call), *await _in_parts(items[half:], call)]


def _settled(step: Step, receipt: Mapping[str, Any]) -> Claim | None:
    if receipt["status"] in ("completed", "skipped"):
        return Claim(step, remembered=True, output=receipt.get("output"))
    if receipt["status"] == "failed" and receipt.get("failureKind") == "terminal":
        failure = StepFailedError(step.name, str(receipt.get("error")))
        return Claim(step, remembered=True, failure=failure)
    return None
