"""What deliveries are made of: a run's claimed facts, options, and the report of how it went."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from counterfoil.authority import Authority, DispatchToken
from counterfoil.calls.journal import MATERIALISE_TIMEOUT_MS
from counterfoil.errors import CounterfoilError, InvalidProjectionError, SettingsError
from counterfoil.functions import ClaimedFact, Functions

log = logging.getLogger(__name__)

PREFIX_MAX_FACTS = 64
"""Facts asked for at a time; the database has its own bound."""
MATERIALISE_LEASE_SECONDS = 120
"""Lease under which facts are materialised: longer than the statement may take."""
_RENEW_AFTER_SECONDS = MATERIALISE_LEASE_SECONDS - MATERIALISE_TIMEOUT_MS / 1000 - 10
"""Age at which such a lease might end within one more statement."""

LONGEST_APPEND_SECONDS = 290
"""No lease is over 300 s, and a request must not outlast it."""

Outcome = Literal["delivered", "handed_off", "released", "retrying", "blocked", "lost"]


@dataclass(frozen=True)
class DeliveryOptions:
    """How deliveries are made. Times are seconds."""

    lease_seconds: int = 30
    append_seconds: float = 20.0
    projector: bool = True

    def __post_init__(self) -> None:
        if self.append_seconds > LONGEST_APPEND_SECONDS:
            raise SettingsError(f"append_timeout must be at most {LONGEST_APPEND_SECONDS} seconds")

    @property
    def lease(self) -> int:
        """The lease of a delivery: long enough for the HTTP request that follows its renewal."""
        return max(self.lease_seconds, int(self.append_seconds) + 5)


@dataclass
class HeldRun:
    """One run's lane while a dispatcher holds it: its facts now, and the authority it goes by."""

    org_id: str
    run_id: str
    lease_owner: str
    facts: list[ClaimedFact]
    authority: Authority | None = None
    token: DispatchToken | None = None
    token_served: bool = False
    """Whether the token has opened the door before: only such a token is worth a refresh."""
    projected: bool = True
    """Whether the facts in hand came with all their ledger events."""
    claim_milliseconds: float | None = None
    """What the claim that brought the facts took; None once it was reported."""

    @property
    def event_ids(self) -> list[str]:
        """Event ids of the facts in hand, in order."""
        return [fact.event_id for fact in self.facts]


def held_runs(
    facts: Sequence[ClaimedFact], lease_owner: str, began: float | None = None
) -> list[HeldRun]:
    """A claim's facts, run by run, in the order claimed. ``began``: its start, monotonic."""
    took = None if began is None else (time.monotonic() - began) * 1000
    runs: dict[tuple[str, str], HeldRun] = {}
    for fact in facts:
        key = (fact.org_id, fact.run_id)
        held = runs.setdefault(key, HeldRun(*key, lease_owner, [], claim_milliseconds=took))
        held.facts.append(fact)
    return list(runs.values())


@dataclass
class DeliveryReport:
    """How one delivery went: ids, counts and milliseconds, never a payload or a token."""

    org_id: str
    run_id: str
    lane: str
    event_ids: tuple[str, ...]
    outcome: Outcome = "delivered"
    events: int = 0
    pieces: int = 0
    acknowledged: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    retrying: tuple[str, ...] = ()
    error_code: str = ""
    bypass_source: str = "none"
    milliseconds: dict[str, float] = field(default_factory=dict)

    def to_log(self) -> dict[str, object]:
        """The report as fields of a log record."""
        return {
            "org_id": self.org_id,
            "run_id": self.run_id,
            "lane": self.lane,
            "outcome": self.outcome,
            "facts": len(self.event_ids),
            "events": self.events,
            "pieces": self.pieces,
            "error_code": self.error_code,
            "bypass_source": self.bypass_source,
            **{f"{name}_ms": round(value, 2) for name, value in self.milliseconds.items()},
        }


class Stopwatch:
    """Adds up where the time of a delivery goes."""

    def __init__(self, milliseconds: dict[str, float]) -> None:
        self._milliseconds = milliseconds
        self._doing: str | None = None
        self._since = 0.0

    def start(self, name: str | None) -> None:
        """From here on the time counts for ``name``, and no more for what was done before."""
        now = time.monotonic()
        if self._doing is not None:
            spent = (now - self._since) * 1000
            self._milliseconds[self._doing] = self._milliseconds.get(self._doing, 0.0) + spent
        self._doing, self._since = name, now

    def stop(self) -> None:
        """Nothing is being done any more."""
        self.start(None)


Observer = Callable[[DeliveryReport], None]
"""Told of every delivery after it was made. What it raises is logged and changes nothing."""


def tell(observer: Observer | None, report: DeliveryReport) -> None:
    """Log a report and tell the observer."""
    quiet = report.outcome in ("delivered", "handed_off", "released")
    log.log(logging.DEBUG if quiet else logging.WARNING, "delivery", extra=report.to_log())
    if observer is None:
        return
    try:
        observer(report)
    except Exception as error:  # noqa: BLE001 - a metrics callback must not fail a delivery
        log.warning("a delivery observer failed", extra={"error": type(error).__name__})


class InvalidFactError(Exception):
    """One fact of a delivery can never be projected."""

    def __init__(self, event_id: str, cause: CounterfoilError) -> None:
        super().__init__(event_id)
        self.event_id = event_id
        self.cause = cause


async def materialise(
    functions: Functions, held: HeldRun, leased_at: float = float("-inf")
) -> None:
    """Materialise the deferred facts in hand, each under a lease that outlasts its statement.

    ``leased_at``: monotonic time at which they were claimed for MATERIALISE_LEASE_SECONDS, if so.
    Raises InvalidFactError naming the first fact that is malformed or in conflict.
    """
    for index, fact in enumerate(held.facts):
        if not fact.deferred:
            continue
        now = time.monotonic()
        if now - leased_at > _RENEW_AFTER_SECONDS:
            await functions.renew_delivery(
                held.org_id,
                held.run_id,
                held.event_ids,
                held.lease_owner,
                MATERIALISE_LEASE_SECONDS,
                False,
            )
            leased_at = now
        try:
            await functions.materialize_runtime_outbox_event(
                held.org_id, fact.event_id, held.lease_owner
            )
        except InvalidProjectionError as error:
            raise InvalidFactError(fact.event_id, error) from None
        held.facts[index] = replace(fact, deferred=False)
        held.projected = False
