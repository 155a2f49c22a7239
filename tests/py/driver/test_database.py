"""The pool: handshake, dead connections, exhaustion, text that cannot be held, poolers."""

from __future__ import annotations

import asyncio

import psycopg
import pytest

from counterfoil import migrations
from counterfoil.database import LARGE_BYTES, NEWEST_SCHEMA_VERSION, Database, OnConnection
from counterfoil.errors import (
    InvalidArgumentError,
    NotFoundError,
    PoolExhaustedError,
    SchemaVersionError,
)
from counterfoil.functions import Functions
from counterfoil.json_text import JsonBytes
from tests.servers.databases import Connect

LAUNCH = {
    "orgId": "org",
    "runId": "run",
    "playId": "p",
    "playName": "p",
    "executorToken": "t",
    "baseUrl": "http://127.0.0.1:1",
}


async def test_the_handshake_accepts_the_installed_version(installed: str) -> None:
    async with Database(installed) as database:
        assert await database.check_version() == NEWEST_SCHEMA_VERSION


async def test_a_database_without_the_schema_is_refused(database: str) -> None:
    with pytest.raises(SchemaVersionError, match="not installed") as refused:
        await Database(database).open()
    assert refused.value.reason == "schema_not_installed"


@pytest.mark.parametrize(
    ("shift", "reason"), [(1, "schema_too_new"), (-NEWEST_SCHEMA_VERSION, "schema_too_old")]
)
async def test_another_version_is_refused(
    installed: str, connect: Connect, shift: int, reason: str
) -> None:
    connection = await connect(installed)
    version = NEWEST_SCHEMA_VERSION + shift
    await connection.execute(
        "create or replace function counterfoil.schema_version() returns integer"
        f" language sql stable as 'select {version}'".encode()
    )
    with pytest.raises(SchemaVersionError) as refused:
        await Database(installed).open()
    assert refused.value.reason == reason
    assert refused.value.hint


async def test_a_connection_that_sent_a_large_document_is_replaced(installed: str) -> None:
    scope = {"orgId": "org", "playName": "p", "runId": "run"}
    async with Database(installed, max_size=1) as database:

        async def server_process() -> int:
            async with database._connection() as connection:
                return connection.info.backend_pid

        for size, is_replaced in ((10, False), (LARGE_BYTES, True)):
            before = await server_process()
            body = JsonBytes(b'{"playName": "\xc3\xa9", "a": "' + b"x" * size + b'"}')
            answer = await Functions(database).dispatch_receipt_action(scope, body, 3)
            assert answer.status == 403
            assert (await server_process() != before) is is_replaced


async def test_another_schema_is_called_by_its_name(database: str) -> None:
    await asyncio.to_thread(migrations.migrate, database, "odd Name")
    async with Database(database, schema="odd Name") as opened:
        admitted = await Functions(opened).admit_launch(LAUNCH)
    assert admitted.outcome == "admitted"


async def test_a_dead_connection_is_replaced_and_the_call_repeated(
    installed: str, connect: Connect
) -> None:
    async with Database(installed, min_size=3, max_size=3, application_name="victim") as database:
        functions = Functions(database)
        killer = await connect(installed)
        await killer.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity"
            " where application_name = 'victim'"
        )
        assert (await functions.admit_launch(LAUNCH)).outcome == "admitted"
        assert await functions.schema_version() == NEWEST_SCHEMA_VERSION


async def test_a_lost_server_ends_in_psycopgs_error(installed: str, admin_dsn: str) -> None:
    async with Database(installed, application_name="victim") as database:
        with psycopg.connect(admin_dsn, autocommit=True) as admin:
            name = psycopg.conninfo.conninfo_to_dict(installed)["dbname"]
            admin.execute(f'alter database "{name}" allow_connections false'.encode())
            admin.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name = 'victim'"
            )
            try:
                with pytest.raises((psycopg.OperationalError, PoolExhaustedError)):
                    await Functions(database).schema_version()
            finally:
                admin.execute(f'alter database "{name}" allow_connections true'.encode())


async def test_an_exhausted_pool_answers_at_once(installed: str) -> None:
    async with Database(installed, max_size=1, acquire_seconds=0.05) as database:
        async with database._connection():
            with pytest.raises(PoolExhaustedError) as refused:
                await Functions(database).schema_version()
        assert (refused.value.http_status, refused.value.retryable) == (503, True)
        assert refused.value.limit == "database_connections"
        assert await Functions(database).schema_version() == NEWEST_SCHEMA_VERSION


async def test_more_waiting_than_allowed_is_refused_without_waiting(installed: str) -> None:
    async with Database(installed, max_size=1, max_waiting=1, acquire_seconds=30) as database:
        async with database._connection():
            waiting = asyncio.create_task(Functions(database).schema_version())
            await asyncio.sleep(0)
            with pytest.raises(PoolExhaustedError):
                await Functions(database).schema_version()
        assert await waiting == NEWEST_SCHEMA_VERSION


@pytest.mark.parametrize("bad", ["a\x00b", "a\ud800b"])
async def test_text_that_cannot_be_held_is_named(installed: str, bad: str) -> None:
    async with Database(installed) as database:
        functions = Functions(database)
        with pytest.raises(InvalidArgumentError) as refused:
            await functions.get_run("org", bad)
        assert refused.value.reason == "p_run_id"
        with pytest.raises(InvalidArgumentError) as in_list:
            await functions.get_receipts("org", ["k", bad])
        assert in_list.value.reason == "p_keys[1]"
        with pytest.raises(InvalidArgumentError) as in_json:
            await functions.admit_launch(LAUNCH | {"input": {"x": [bad]}})
        assert in_json.value.reason == "p_launch.input.x[0]"


async def test_a_call_leaves_no_session_state(installed: str) -> None:
    """What a transaction pooler would hand to the next client is clean."""
    async with Database(installed, max_size=1) as database:
        functions = Functions(database)
        with pytest.raises(NotFoundError):
            await functions.materialize_runtime_outbox_event("org", "nothing", "me", 12_345)
        for _ in range(10):
            await functions.schema_version()
        async with database._connection() as connection:
            for statement, wanted in (
                ("select count(*) from pg_prepared_statements", 0),
                ("select setting from pg_settings where name = 'statement_timeout'", "0"),
                ("select count(*) from pg_locks where locktype = 'advisory'", 0),
            ):
                row = await (await connection.execute(statement.encode())).fetchone()
                assert row == (wanted,)


async def test_a_statement_timeout_is_the_calls_own(installed: str, connect: Connect) -> None:
    blocker = await connect(installed)
    async with Database(installed) as database:
        await blocker.execute("begin")
        await blocker.execute("lock counterfoil.outbox in access exclusive mode")
        with pytest.raises(psycopg.errors.QueryCanceled):
            await Functions(database).materialize_runtime_outbox_event("org", "e", "me", 50)
        await blocker.execute("rollback")


async def test_functions_work_inside_the_callers_transaction(
    installed: str, connect: Connect
) -> None:
    connection = await connect(installed)
    functions = Functions(OnConnection(connection))
    async with connection.transaction(force_rollback=True):
        assert (await functions.admit_launch(LAUNCH)).outcome == "admitted"
        assert (await functions.get_run("org", "run"))["runId"] == "run"
    with pytest.raises(NotFoundError):
        await functions.get_run("org", "run")


def test_the_connection_string_is_not_shown() -> None:
    assert "hunter2" not in repr(Database("postgresql://u:hunter2@h/d"))
