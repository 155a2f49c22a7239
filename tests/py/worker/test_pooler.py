"""Workers behind a transaction pooler, with fewer connections than they use."""

from __future__ import annotations

import asyncio

from counterfoil import AsyncRun, Database, Functions, Run, Settings, Worker
from tests.py.worker.bench import ORG, Bench
from tests.servers.pooler import transaction_pooler

RUNS = [f"run-{n}" for n in range(6)]
CONNECTIONS = 2


def worker_behind(dsn: str) -> Worker:
    """A worker with both kinds of plays, which takes more connections than there are."""
    settings = Settings(dsn=dsn, listen=False, poll_seconds=0.1, recover_seconds=0.2, pool_max=4)
    worker = Worker(settings=settings, lease_seconds=5)

    @worker.play("plain")
    def plain(run: Run, given: object) -> list[int]:
        run.log("at work")
        return [run.step("square", lambda n: n * n, n) for n in range(3)]

    @worker.play("waits")
    async def waits(run: AsyncRun, given: object) -> object:
        doubled = await run.map("double", lambda n: 2 * n, range(8))
        return [sum(doubled), await run.wait_for("go")]

    return worker


async def test_workers_share_few_connections_of_a_transaction_pooler(bench: Bench) -> None:
    with transaction_pooler(bench.dsn, CONNECTIONS) as dsn:
        async with Database(dsn, max_size=4) as database:
            behind = Bench(bench.dsn, Functions(database))
            for name in RUNS:
                await behind.launch("plain", name)
            await behind.launch("waits", "waiting")
            async with bench.working(worker_behind(dsn), worker_behind(dsn)):
                runs = await asyncio.gather(*(behind.ended(name) for name in RUNS))
                await behind.until("waiting", lambda run: run["status"] == "waiting")
                await behind.functions.resume_run(ORG, "waiting", "go", "ahead", "signal")
                waited = await behind.ended("waiting")
    assert [run["result"] for run in runs] == [[0, 1, 4]] * len(RUNS)
    assert waited["result"] == [56, "ahead"]
    assert {run["attempt"] for run in runs} == {1}
