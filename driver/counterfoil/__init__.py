"""Counterfoil: durable runs on PostgreSQL.

    from counterfoil import Worker

    worker = Worker()

    @worker.play("greet")
    def greet(run, name):
        return run.step("compose", compose, name)

    worker.run()

`Functions` calls the stored functions themselves, through a `Database` (a pool) or `OnConnection`
(a connection and transaction of the caller's). docs/plays.md and docs/workers.md say the rest.
"""

from counterfoil.database import Database, OnConnection
from counterfoil.embedded import EmbeddedServer
from counterfoil.errors import (
    CapacityError,
    CounterfoilError,
    IdentityConflictError,
    InvalidArgumentError,
    InvalidProjectionError,
    InvalidStateError,
    LeaseLostError,
    NotFoundError,
    PayloadTooLargeError,
    QuotaExceededError,
    SchemaVersionError,
)
from counterfoil.functions import Functions
from counterfoil.playing.interruptions import (
    AttemptLost,
    Interrupted,
    PermanentError,
    RunCancelled,
    StepFailedError,
    Suspended,
    WorkerStopping,
)
from counterfoil.playing.logging_handler import RunLogHandler
from counterfoil.playing.run import AsyncRun, Run
from counterfoil.settings import Settings
from counterfoil.values import NotPlainError
from counterfoil.worker import Worker

__all__ = [
    "AsyncRun",
    "AttemptLost",
    "CapacityError",
    "CounterfoilError",
    "Database",
    "EmbeddedServer",
    "Functions",
    "IdentityConflictError",
    "Interrupted",
    "InvalidArgumentError",
    "InvalidProjectionError",
    "InvalidStateError",
    "LeaseLostError",
    "NotFoundError",
    "NotPlainError",
    "OnConnection",
    "PayloadTooLargeError",
    "PermanentError",
    "QuotaExceededError",
    "Run",
    "RunCancelled",
    "RunLogHandler",
    "SchemaVersionError",
    "Settings",
    "StepFailedError",
    "Suspended",
    "Worker",
    "WorkerStopping",
]
