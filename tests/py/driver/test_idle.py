"""What an installation without work costs: one query a process and poll, and nothing that grows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager

import psycopg
from psycopg.types.json import Jsonb

from counterfoil import Database, Settings, Worker
from counterfoil.dispatcher import Dispatcher
from counterfoil.gateway import create_app
from counterfoil.kept_secrets import local_secrets
from counterfoil.services import make_server
from counterfoil.stack import free_port
from tests.servers.databases import create_database, database_name, drop_database

POLL = 0.05
SHORT, LONG = 0.5, 4.5


def settings_for(dsn: str) -> Settings:
    """Settings of a process of its own, with a short poll."""
    secrets = {
        name.removeprefix("COUNTERFOIL_").lower(): value for name, value in local_secrets().items()
    }
    return Settings.load({"dsn": dsn, "poll_seconds": POLL, "port": free_port(), **secrets})


@asynccontextmanager
async def a_worker(dsn: str) -> AsyncIterator[None]:
    worker = Worker(settings=settings_for(dsn))
    worker.play("play")(lambda run, given: None)
    serving = asyncio.create_task(worker.serve())
    yield
    worker.stop()
    await serving


@asynccontextmanager
async def a_projector(dsn: str) -> AsyncIterator[None]:
    settings = settings_for(dsn)
    async with Database(dsn) as database:
        dispatcher = Dispatcher(database, settings)
        running = asyncio.create_task(dispatcher.run())
        yield
        dispatcher.stop()
        await running


@asynccontextmanager
async def a_gateway(dsn: str) -> AsyncIterator[None]:
    settings = settings_for(dsn)
    async with Database(dsn) as database:
        server = make_server(create_app(database, settings), settings)
        serving = asyncio.create_task(server.serve())
        yield
        server.should_exit = True
        await serving


def launch(run: str) -> Jsonb:
    """A small launch of the org."""
    return Jsonb(
        {
            "orgId": "org",
            "runId": run,
            "playId": "play",
            "playName": "play",
            "executorToken": "none",
            "baseUrl": "http://127.0.0.1:1",
        }
    )


def put_behind_a_limit(dsn: str) -> None:
    """One run is executed elsewhere, and its org's limit lets the other not start."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select counterfoil.set_admission_limits('org', 'org', '{\"maxActive\": 1}')"
        )
        for run in ("first", "second"):
            connection.execute("select counterfoil.admit_launch(%s)", (launch(run),))
        connection.execute(
            "select counterfoil.claim_attempts('elsewhere', 1, 300, null, 'default')"
        )


def put_behind_a_key(dsn: str) -> None:
    """The same with a concurrency key instead of a limit."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        for run in ("first", "second"):
            document = {**launch(run).obj, "concurrencyKey": "key"}
            connection.execute("select counterfoil.admit_launch(%s)", (Jsonb(document),))
        connection.execute(
            "select counterfoil.claim_attempts('elsewhere', 1, 300, null, 'default')"
        )


async def transactions(admin: psycopg.AsyncConnection, dsn: str) -> int:
    """Transactions that were ever made in the database, once nobody is connected to it."""
    name = database_name(dsn)
    while True:
        found = await admin.execute(
            "select s.numbackends, s.xact_commit + s.xact_rollback"
            " from pg_stat_database as s where s.datname = %s",
            (name,),
        )
        row = await found.fetchone()
        assert row is not None
        if row[0] == 0:
            return int(row[1])
        await asyncio.sleep(0.02)


async def queries_a_poll(
    admin_dsn: str, dsn: str, process: Callable[[str], AbstractAsyncContextManager[None]]
) -> float:
    """Transactions a poll interval, by the difference between a short and a long life."""
    admin = await psycopg.AsyncConnection.connect(admin_dsn, autocommit=True)
    lives = []
    async with admin:
        for seconds in (SHORT, LONG):
            before, started = await transactions(admin, dsn), time.monotonic()
            async with process(dsn):
                await asyncio.sleep(seconds)
                lasted = time.monotonic() - started
            lives.append((await transactions(admin, dsn) - before, lasted))
    (few, short), (many, long) = lives
    return (many - few) / ((long - short) / POLL)


PROCESSES = {
    "worker": (a_worker, None, 1),
    "worker behind a limit": (a_worker, put_behind_a_limit, 1),
    "worker behind a key": (a_worker, put_behind_a_key, 1),
    "projector": (a_projector, None, 1),
    "gateway": (a_gateway, None, 0),
}


async def test_a_process_without_work_asks_once_a_poll(
    admin_dsn: str, installed_template: str
) -> None:
    template = database_name(installed_template)
    dsns = {name: create_database(admin_dsn, template) for name in PROCESSES}
    try:
        for name, (_, prepare, _) in PROCESSES.items():
            if prepare is not None:
                prepare(dsns[name])
        found = dict(
            zip(
                PROCESSES,
                await asyncio.gather(
                    *(
                        queries_a_poll(admin_dsn, dsns[name], process)
                        for name, (process, _, _) in PROCESSES.items()
                    )
                ),
                strict=True,
            )
        )
    finally:
        for dsn in dsns.values():
            drop_database(admin_dsn, dsn)
    # A busy machine may take up to half a second longer to start the one life than the other.
    slack = 10 / ((LONG - SHORT) / POLL)
    assert {
        name: rate for name, rate in found.items() if rate > PROCESSES[name][2] + slack
    } == {}, found
    assert found["worker"] > 0.3, "the measure sees queries at all"


POLLS = 720
"""An hour at the default of five seconds."""
PASSES = (
    "update counterfoil.workers set first_seen_at = first_seen_at - interval '5 seconds',"
    " last_seen_at = last_seen_at - interval '5 seconds'",
    "update counterfoil.listeners set asleep_until = asleep_until - interval '5 seconds'",
)
ASKS = (
    "select counterfoil.look_for_work('worker', '{play}', 'default', 50, 'worker')",
    "select * from counterfoil.look_for_deliveries('{lifecycle,search}', '{lifecycle,search}')",
)
SIZES = (
    "select c.relname, pg_total_relation_size(c.oid) from pg_class as c"
    " where c.relnamespace = 'counterfoil'::regnamespace and c.relkind = 'r'"
)


def test_nothing_grows_in_an_hour_without_work(installed: str) -> None:
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute("select counterfoil.claim_attempts('worker', 1, 30, '{play}', null)")
        for listener, queue in (
            ("worker", "attempts"),
            ("lifecycle", "lifecycle"),
            ("search", "search"),
        ):
            connection.execute("select counterfoil.start_listening(%s, %s, 60)", (listener, queue))
        sizes: list[dict[str, int]] = []
        for poll in range(POLLS):
            if poll == POLLS // 10:
                sizes.append(dict(connection.execute(SIZES).fetchall()))
            with connection.pipeline():
                for statement in (*PASSES, *ASKS):
                    connection.execute(statement)
                if poll % 60 == 0:
                    connection.execute("select counterfoil.maintain()")
        sizes.append(dict(connection.execute(SIZES).fetchall()))
        alive = connection.execute(
            "select (select count(*) from counterfoil.listeners where asleep_until > now()),"
            " (select count(*) from counterfoil.workers"
            "  where last_seen_at > now() - interval '1 minute')"
        ).fetchone()
    assert alive == (3, 1), "an hour later they are still known"
    first, last = sizes
    assert {
        table: (first[table], size) for table, size in last.items() if size > first[table]
    } == {}
