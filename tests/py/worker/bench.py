"""A worker inside the test's process, and ways to look at what it did."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row

from counterfoil import Functions, Settings, Worker

ORG = "org"
PATIENCE = 30.0
Found = TypeVar("Found")


class Bench:
    """One installed database, with shorthands for launching, waiting and looking."""

    def __init__(self, dsn: str, functions: Functions) -> None:
        self.dsn = dsn
        self.functions = functions
        self.settings: dict[str, Any] = {"poll_seconds": 0.2, "recover_seconds": 0.2, "pool_max": 4}

    def worker(self, **options: Any) -> Worker:
        """A worker with short times, not started yet."""
        settings = Settings(dsn=self.dsn, **self.settings)
        return Worker(settings=settings, **({"lease_seconds": 5} | options))

    @asynccontextmanager
    async def working(self, *workers: Worker) -> AsyncIterator[None]:
        """The workers at work for the time of the block; they drain at its end."""
        tasks = [asyncio.create_task(worker.serve()) for worker in workers]
        try:
            yield
        finally:
            for worker in workers:
                worker.stop()
            await asyncio.gather(*tasks)

    async def launch(self, play: str, run_id: str = "run", **fields: Any) -> None:
        """Admit one run."""
        await self.functions.admit_launch(
            {
                "orgId": ORG,
                "runId": run_id,
                "playId": play,
                "playName": play,
                "executorToken": "token",
                "baseUrl": "http://127.0.0.1:1",
                "retryPolicy": {"backoffBaseMs": 1, "backoffMaxMs": 1},
                **fields,
            }
        )

    async def run(self, run_id: str = "run") -> dict[str, Any]:
        """The run's document."""
        return await self.functions.get_run(ORG, run_id)

    async def ended(self, run_id: str = "run") -> dict[str, Any]:
        """The run's document once it has ended."""
        return await self.until(run_id, lambda run: run["endedAt"] is not None)

    async def until(
        self, run_id: str, condition: Callable[[dict[str, Any]], bool]
    ) -> dict[str, Any]:
        """The run's document once it fulfils the condition."""
        return await self.eventually(lambda: self.run(run_id), condition)

    async def eventually(
        self, probe: Callable[[], Awaitable[Found]], condition: Callable[[Found], Any]
    ) -> Found:
        """What ``probe`` finds, once it fulfils the condition."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await probe()
                if condition(found):
                    return found
                await asyncio.sleep(0.02)

    async def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """What a query of the test's own finds."""
        connection = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
        async with connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), parameters)
            return await cursor.fetchall() if cursor.description else []

    async def facts(self, run_id: str = "run") -> list[tuple[str, dict[str, Any]]]:
        """(type, payload) of every fact of the run, in order."""
        found = await self.rows(
            "select o.event_type, o.payload from counterfoil.outbox as o"
            " where o.org_id = %s and o.run_id = %s order by o.seq",
            ORG,
            run_id,
        )
        return [(row["event_type"], row["payload"]) for row in found]

    async def lines(self, run_id: str = "run") -> list[str]:
        """Every log line of the run, in order."""
        return [
            line
            for kind, payload in await self.facts(run_id)
            if kind == "run.events"
            for event in payload["events"]
            for line in event["lines"]
        ]

    async def expire(self, run_id: str = "run") -> None:
        """Let the leases of the run, and of its steps, have run out."""
        for table in ("attempts", "step_receipts"):
            await self.rows(
                f"update counterfoil.{table} as t set lease_expires_at = now() - interval '1 hour'"
                " where t.org_id = %s and t.run_id = %s and t.lease_expires_at is not null",
                ORG,
                run_id,
            )
