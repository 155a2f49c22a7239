"""One typed method per stored function, and nothing else: arguments in, rows out.

``Functions(database)`` has them all; the rooms' modules hold them and the types of their rows.
Errors are those of `counterfoil.errors`, by SQLSTATE.
"""

from __future__ import annotations

from counterfoil.database import Executor
from counterfoil.functions_claims import Acknowledgement, ClaimedFact, ClaimFunctions
from counterfoil.functions_dead_letters import BlockedFact, DeadLetterFunctions
from counterfoil.functions_delivery import (
    AcknowledgedLane,
    DeliveryDue,
    DeliveryFunctions,
    Piece,
    Renewal,
    RenewedLane,
    SettledFact,
)
from counterfoil.functions_detached import DetachedFunctions
from counterfoil.functions_facts import FactFunctions, ProjectedEvent, RecordedFact
from counterfoil.functions_journal import JournalFunctions
from counterfoil.functions_ledger import HttpAnswer, LedgerEvent, LedgerFunctions
from counterfoil.functions_operations import OperationFunctions
from counterfoil.functions_receipts import Receipt, ReceiptFunctions
from counterfoil.functions_runs import (
    Admission,
    AttemptEnd,
    ClaimedAttempt,
    Heartbeat,
    RecoveredAttempt,
    ReleasedAttempt,
    RunFunctions,
    RunOutcome,
    Suspension,
)

__all__ = [
    "AcknowledgedLane",
    "Acknowledgement",
    "Admission",
    "AttemptEnd",
    "BlockedFact",
    "ClaimedAttempt",
    "ClaimedFact",
    "DeliveryDue",
    "Functions",
    "Heartbeat",
    "HttpAnswer",
    "LedgerEvent",
    "Piece",
    "ProjectedEvent",
    "Receipt",
    "RecordedFact",
    "RecoveredAttempt",
    "ReleasedAttempt",
    "Renewal",
    "RenewedLane",
    "RunOutcome",
    "SettledFact",
    "Suspension",
]


class Functions(
    RunFunctions,
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
