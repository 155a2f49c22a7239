"""Errors: one class for each SQLSTATE that the functions raise, and one for each way HTTP can fail.

psycopg finds the classes by their code, so every call through any connection of the process raises
them. Each carries what a caller needs to react: ``name``, ``http_status``, ``retryable``, the
machine-readable ``reason`` and the ``hint``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import ClassVar

import psycopg

DEFAULT_RETRY_AFTER_MS = 1000


class CounterfoilError(psycopg.DatabaseError):
    """What a stored function refused, or the driver refused in its name before calling it."""

    name: ClassVar[str] = "error"
    http_status: ClassVar[int] = 500
    retryable: ClassVar[bool] = False

    def __init__(
        self, *args: object, reason: str | None = None, hint: str | None = None, **kwargs: object
    ) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        self._reason = reason
        self._hint = hint

    def __str__(self) -> str:
        # Without libpq's CONTEXT: where in the functions it was raised helps nobody who calls them.
        return f"{self.message}\nHINT:  {self.hint}" if self.hint else self.message

    @property
    def message(self) -> str:
        """One sentence for people."""
        return self.diag.message_primary or (str(self.args[0]) if self.args else self.name)

    @property
    def reason(self) -> str:
        """DETAIL: the machine-readable reason, an argument's name or a JSON path; may be empty."""
        return self._reason or self.diag.message_detail or ""

    @property
    def hint(self) -> str:
        """What to do about it; may be empty."""
        return self._hint or self.diag.message_hint or ""

    @property
    def retry_after_ms(self) -> int | None:
        """How long to wait before the next try, in milliseconds; None where waiting is no help."""
        return None


class InvalidArgumentError(CounterfoilError, code="RL001"):
    """A malformed or missing argument; ``reason`` is its name or JSON path."""

    name = "invalid_argument"
    http_status = 400


class NotFoundError(CounterfoilError, code="RL002"):
    """No such run, attempt, fact or receipt in this org; ``reason`` says which of these."""

    name = "not_found"
    http_status = 404


class IdentityConflictError(CounterfoilError, code="RL003"):
    """The same id came with different content."""

    name = "identity_conflict"
    http_status = 409


class LeaseLostError(CounterfoilError, code="RL004"):
    """A lease or prefix proof failed; ``reason`` says how. Nothing was written."""

    name = "lease_lost"
    http_status = 409
    retryable = True


class InvalidStateError(CounterfoilError, code="RL005"):
    """The present state does not allow the transition."""

    name = "invalid_state"
    http_status = 409


class CapacityError(CounterfoilError, code="RL006"):
    """No capacity in admission or in the database; ``limit`` says which."""

    name = "capacity"
    http_status = 503
    retryable = True

    @property
    def limit(self) -> str:
        """Name of the limit that was reached; may be empty."""
        return str(self._detail().get("limit", ""))

    @property
    def retry_after_ms(self) -> int | None:
        """How long to wait before the next try, in milliseconds."""
        value = self._detail().get("retryAfterMs")
        return value if isinstance(value, int) else DEFAULT_RETRY_AFTER_MS

    def _detail(self) -> Mapping[str, object]:
        try:
            detail = json.loads(self.reason)
        except ValueError:
            return {}
        return detail if isinstance(detail, dict) else {}


class QuotaExceededError(CapacityError, code="RL007"):
    """The org's own limit is reached; ``limit`` says which."""

    name = "quota_exceeded"
    http_status = 429


class PayloadTooLargeError(CounterfoilError, code="RL008"):
    """Something is over a size setting; ``reason`` is its argument or JSON path."""

    name = "payload_too_large"
    http_status = 413


class SchemaVersionError(CounterfoilError, code="RL009"):
    """Driver and schema do not fit each other."""

    name = "schema_version"
    http_status = 503


# P0001 is also what any stranger's plain `raise exception` gives, so whoever catches psycopg's own
# class for it in the same process must go on catching this one.
class InvalidProjectionError(CounterfoilError, psycopg.errors.RaiseException, code="P0001"):
    """A malformed or conflicting fact cannot be materialised."""

    name = "invalid_projection"
    http_status = 422


class PoolExhaustedError(CapacityError):
    """No database connection came free in time. Nothing was sent."""

    @property
    def limit(self) -> str:
        """Always the connection pool."""
        return "database_connections"


BY_SQLSTATE: Mapping[str, type[CounterfoilError]] = {
    "RL001": InvalidArgumentError,
    "RL002": NotFoundError,
    "RL003": IdentityConflictError,
    "RL004": LeaseLostError,
    "RL005": InvalidStateError,
    "RL006": CapacityError,
    "RL007": QuotaExceededError,
    "RL008": PayloadTooLargeError,
    "RL009": SchemaVersionError,
    "P0001": InvalidProjectionError,
}
"""Every SQLSTATE of the contract with its class."""

# Connection failures, too many connections, shutdown, and conflicts that a repeat resolves.
_TRANSIENT_CLASSES = ("08", "40", "53", "57")
_TRANSIENT_CODES = ("55P03", "25006")


def is_transient(error: psycopg.Error) -> bool:
    """Whether the same call may succeed later because the database was merely not available."""
    if isinstance(error, CounterfoilError):
        return error.retryable
    if error.sqlstate is None:
        return isinstance(error, psycopg.OperationalError)
    return error.sqlstate[:2] in _TRANSIENT_CLASSES or error.sqlstate in _TRANSIENT_CODES


def is_disconnection(error: BaseException) -> bool:
    """Whether an error means that the database could not be reached at all."""
    if not isinstance(error, psycopg.OperationalError | psycopg.InterfaceError):
        return False
    return (
        error.sqlstate is None
        or error.sqlstate[:2] in ("08", "53")
        or (error.sqlstate.startswith("57P"))
    )


class SettingsError(Exception):
    """A setting is missing or malformed; the message names it and says what is allowed."""


class TokenError(Exception):
    """A token was refused. ``hint`` says what to do; neither text ever holds the token."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message, hint)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return self.message


class ReceiverError(Exception):
    """An HTTP request to a receiver failed.

    ``status`` is the HTTP status, or None when no answer came. ``code`` is the receiver's own code
    or one of the driver's. ``retryable`` is what the receiver said, or None when it said nothing.
    """

    def __init__(
        self,
        message: str,
        *,
        code: str,
        status: int | None = None,
        retryable: bool | None = None,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.retryable = retryable
        self.retry_after_ms = retry_after_ms

    def to_json(self) -> dict[str, object]:
        """The ``p_error`` of ``settle_delivery_failure``: message, code, status, retryable."""
        found = {
            "message": self.message,
            "code": self.code,
            "status": self.status,
            "retryable": self.retryable,
            "retryAfterMs": self.retry_after_ms,
        }
        return {key: value for key, value in found.items() if value is not None}


class SelfProxyError(ReceiverError):
    """The upstream is the gateway itself; forwarding would loop."""


class RouteChangedError(ReceiverError):
    """The base URL of a run changed between two authorities of one delivery."""


def error_document(error: BaseException) -> dict[str, object]:
    """``p_error`` for any failure of a delivery. Unknown ones are named by type, never quoted."""
    if isinstance(error, ReceiverError):
        return error.to_json()
    if isinstance(error, CounterfoilError):
        return {
            "message": error.message,
            "code": error.reason or error.name,
            "retryable": error.retryable,
        }
    code = getattr(error, "sqlstate", None) or "driver_error"
    return {"message": type(error).__name__, "code": code, "retryable": True}


def retry_after_seconds(milliseconds: int | None) -> str:
    """The value of a ``retry-after`` header: whole seconds, rounded up, at least one."""
    return str(max(1, -(-(milliseconds or DEFAULT_RETRY_AFTER_MS) // 1000)))
