"""Calls into the database that end in time: a request waits for no lock for good."""

from __future__ import annotations

import asyncio
from typing import TypeVar

from psycopg.errors import QueryCanceled

from counterfoil.database import Executor, Parameters, Statement

Row = TypeVar("Row")


class Deadline:
    """Runs statements, and cancels those that take longer than ``seconds``.

    It is the client's clock and no setting of the session, so that it holds behind a transaction
    pooler too. Raises QueryCanceled (57014) as a statement_timeout would.
    """

    def __init__(self, executor: Executor, seconds: float) -> None:
        self._executor = executor
        self._seconds = seconds

    async def rows(
        self,
        row: type[Row],
        statement: Statement,
        parameters: Parameters,
        *,
        timeout_ms: int | None = None,
    ) -> list[Row]:
        """Run one statement."""
        try:
            async with asyncio.timeout(self._seconds):
                return await self._executor.rows(row, statement, parameters, timeout_ms=timeout_ms)
        except TimeoutError:
            raise QueryCanceled("the call took too long") from None
