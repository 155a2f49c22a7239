"""One typed method per stored function, and nothing else: arguments in, rows out.

``Functions(database)`` has them all; the rooms' modules hold them and the types of their rows.
Errors are those of `counterfoil.errors`, by SQLSTATE.
"""

from __future__ import annotations

from counterfoil.calls.claims import Acknowledgement, ClaimedFact, ClaimFunctions
from counterfoil.calls.dead_letters import BlockedFact, DeadLetterFunctions, ReplayedFact
from counterfoil.calls.delivery import (
    AcknowledgedLane,
    DeliveryDue,
    DeliveryFunctions,
    LaneDue,
    Piece,
    Renewal,
    RenewedLane,
    SettledFact,
)
from counterfoil.calls.detached import DetachedFunctions
from counterfoil.calls.facts import FactFunctions, ProjectedEvent, RecordedFact
from counterfoil.calls.journal import JournalFunctions
from counterfoil.calls.ledger import HttpAnswer, LedgerEvent, LedgerFunctions
from counterfoil.calls.operations import OperationFunctions
from counterfoil.calls.receipts import Receipt, ReceiptFunctions
from counterfoil.calls.runs import (
    Admission,
    AttemptEnd,
    CancelledRun,
    ClaimedAttempt,
    Heartbeat,
    RecoveredAttempt,
    ReleasedAttempt,
    RunFunctions,
    RunOutcome,
    Suspension,
)
from counterfoil.calls.schedules import (
    Firing,
    ScheduleCreated,
    ScheduleEntry,
    ScheduleFunctions,
    ScheduleState,
)
from counterfoil.database import Executor

__all__ = [
    "AcknowledgedLane",
    "Acknowledgement",
    "Admission",
    "AttemptEnd",
    "BlockedFact",
    "CancelledRun",
    "ClaimedAttempt",
    "ClaimedFact",
    "DeliveryDue",
    "Firing",
    "Functions",
    "Heartbeat",
    "HttpAnswer",
    "LaneDue",
    "LedgerEvent",
    "Piece",
    "ProjectedEvent",
    "Receipt",
    "RecordedFact",
    "RecoveredAttempt",
    "ReleasedAttempt",
    "Renewal",
    "RenewedLane",
    "ReplayedFact",
    "RunOutcome",
    "ScheduleCreated",
    "ScheduleEntry",
    "ScheduleState",
    "SettledFact",
    "Suspension",
]


class Functions(
    RunFunctions,
    ScheduleFunctions,
    DetachedFunctions,
    FactFunctions,
    ClaimFunctions,
    DeliveryFunctions,
    DeadLetterFunctions,
    LedgerFunctions,
    JournalFunctions,
    ReceiptFunctions,
    OperationFunctions,
):
    """Every stored function that drivers call, on a pool or on a connection of the caller's."""

    def __init__(self, executor: Executor) -> None:
        self._executor = executor
