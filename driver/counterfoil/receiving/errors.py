"""What the gateway refuses by itself, before the database is asked."""

from __future__ import annotations


class RequestError(Exception):
    """A request that is refused before it means anything; ``hint`` says what to do."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        hint: str,
        detail: str = "",
        *,
        retry_after_ms: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retry_after_ms = retry_after_ms
        self.status = status
        self.code = code
        self.message = message
        self.hint = hint
        self.detail = detail
