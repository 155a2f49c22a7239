"""A step that does nothing, in Counterfoil, absurd and DBOS; and a remembered step against a read.

All on the same server with the same durability, one play at a time, timed inside the play: from
before its first step to after its last. absurd and DBOS come with the extra `bench`; absurd's
schema is the one that its `absurdctl` carries.
"""

from __future__ import annotations

import asyncio
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from counterfoil import Database, Functions, Run, Settings, Worker

STEPS = 300
ORG = "bench"
Play = Callable[[Any], float]


def counterfoil(dsn: str) -> float:
    """Steps a second of a plain play."""

    def steps(run: Run) -> float:
        return timed(lambda number: run.step("nothing", nothing, number))

    return STEPS / _played(dsn, steps)


def remembered(dsn: str) -> tuple[float, float]:
    """Seconds of a remembered step's read, and of a bare select by key, through one driver."""

    async def measure() -> tuple[float, float]:
        async with Database(dsn, max_size=1) as database:
            functions = Functions(database)
            run_id, keys = f"run-{uuid.uuid4().hex}", [uuid.uuid4().hex]
            await functions.admit_launch(_launch(run_id, "remembered"))
            await functions.claim_attempts("bench", 1, 60, ["remembered"], "default")
            options = {"leaseAware": True, "leaseSeconds": 60}
            await functions.claim_receipts(ORG, run_id, 1, keys, ["lease"], options)
            done = [{"key": keys[0], "leaseId": "lease", "runAttempt": 1, "output": None}]
            await functions.complete_receipts(ORG, run_id, done, return_output=False)

            async def read() -> None:
                assert not (
                    await functions.claim_receipts(ORG, run_id, 1, keys, ["other"], options)
                )[0].claimed

            async def bare() -> None:
                await database.rows(
                    dict,
                    "select s.output from {schema}.step_receipts as s"
                    " where s.org_id = %(org)s and s.key = %(key)s",
                    {"org": ORG, "key": keys[0]},
                )

            spent = {read: 0.0, bare: 0.0}
            for _ in range(STEPS * 3):
                for call in (read, bare):
                    began = time.perf_counter()
                    await call()
                    spent[call] += time.perf_counter() - began
            return spent[read], spent[bare]

    return asyncio.run(measure())


def floor(dsn: str) -> float:
    """Rows a second that one connection inserts, a transaction each: what durability costs."""
    table = sql.Identifier(f"floor_{uuid.uuid4().hex[:8]}")
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(sql.SQL("create table {} (key text primary key)").format(table))
        insert = sql.SQL("insert into {} values (%s)").format(table)
        spent = timed(lambda number: connection.execute(insert, [f"nothing {number}"]))
        connection.execute(sql.SQL("drop table {}").format(table))
    return STEPS / spent


def absurd(dsn: str) -> float:
    """Steps a second of an absurd task."""
    from absurd_sdk import Absurd
    from absurdctl import BUNDLED_SCHEMA_SQL

    with _database(dsn) as own:
        with psycopg.connect(own, autocommit=True) as connection:
            connection.execute(BUNDLED_SCHEMA_SQL.encode())
        app = Absurd(own, queue_name="bench")
        app.create_queue()
        spent: list[float] = []

        @app.register_task(name="steps")
        def steps(params: Any, context: Any) -> None:
            spent.append(timed(lambda number: context.step(f"nothing {number}", lambda: None)))

        app.spawn("steps", {})
        app.work_batch()
        app.close()
    return STEPS / spent[0]


def dbos(dsn: str) -> float:
    """Steps a second of a DBOS workflow."""
    from dbos import DBOS

    with _database(dsn) as own:
        address = psycopg.conninfo.conninfo_to_dict(own)
        url = (
            f"postgresql://{address['user']}@/{address['dbname']}"
            f"?host={address['host']}&port={address['port']}"
        )
        DBOS(config={"name": "bench", "system_database_url": url, "run_admin_server": False})
        step = DBOS.step()(nothing)

        @DBOS.workflow()
        def steps() -> float:
            return timed(step)

        DBOS.launch()
        spent = steps()
        DBOS.destroy(destroy_registry=True)
    return STEPS / spent


def nothing(number: int) -> None:
    """The step."""


def timed(step: Callable[[int], Any]) -> float:
    """Seconds that the steps take, one after the other; one before them opens what is needed."""
    step(-1)
    began = time.perf_counter()
    for number in range(STEPS):
        step(number)
    return time.perf_counter() - began


def _launch(run_id: str, play: str) -> dict[str, Any]:
    return {
        "orgId": ORG,
        "runId": run_id,
        "playId": play,
        "playName": play,
        "executorToken": "token",
        "baseUrl": "http://127.0.0.1:1",
    }


def _played(dsn: str, play: Callable[[Run], float]) -> float:
    """What the play returned, executed by a worker of its own."""
    worker = Worker(settings=Settings(dsn=dsn, poll_seconds=0.1))
    answer: list[float] = []

    @worker.play("steps")
    def steps(run: Run) -> None:
        answer.append(play(run))
        worker.stop()

    async def work() -> None:
        async with Database(dsn) as database:
            await Functions(database).admit_launch(_launch(f"run-{uuid.uuid4().hex}", "steps"))
        await worker.serve()

    thread = threading.Thread(target=lambda: asyncio.run(work()))
    thread.start()
    thread.join()
    return answer[0]


@contextmanager
def _database(dsn: str) -> Iterator[str]:
    name = f"bench_{uuid.uuid4().hex[:8]}"
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield make_conninfo(dsn, dbname=name)
        finally:
            connection.execute(
                sql.SQL("drop database {} with (force)").format(sql.Identifier(name))
            )
