"""Gateway and dispatcher as processes: they drain on SIGTERM and stop hard on a second one."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import urllib.request
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest

from counterfoil.authority import INTERNAL_PATH
from counterfoil.stack import free_port
from tests.py.driver.scene import INTERNAL, KEY, PATIENCE, Scene
from tests.servers.databases import Connect


@asynccontextmanager
async def process(
    scene: Scene, service: str, **changes: str
) -> AsyncIterator[asyncio.subprocess.Process]:
    environment = {
        "COUNTERFOIL_DSN": scene.dsn,
        "COUNTERFOIL_BASE_URL": scene.settings.base_url,
        "COUNTERFOIL_SIGNING_KEYS": f"{KEY[0]}:{KEY[1].reveal()}",
        "COUNTERFOIL_INTERNAL_TOKEN": INTERNAL.reveal(),
        "COUNTERFOIL_CONCURRENCY": "2",
        **{f"COUNTERFOIL_{name.upper()}": value for name, value in changes.items()},
    }
    code = (
        "from counterfoil.services import run_dispatcher, run_gateway\n"
        "from counterfoil.settings import Settings\n"
        f"run_{service}(Settings.load())\n"
    )
    running = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", code), env=os.environ | environment
    )
    try:
        yield running
    finally:
        if running.returncode is None:
            running.kill()
            await running.wait()


async def ended(running: asyncio.subprocess.Process) -> int:
    async with asyncio.timeout(PATIENCE):
        return await running.wait()


async def test_sigterm_drains_a_dispatcher(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.finish(attempt)
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    async with process(scene, "dispatcher") as running:
        await asyncio.wait_for(fault.reached.wait(), PATIENCE)
        running.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.5)
        gate.set()
        assert await ended(running) == 0
    assert await scene.ledger() == ["run.created"]
    [lane] = await scene.lanes()
    assert (lane["lease_owner"], lane["failures"]) == (None, 0)


async def test_a_second_sigterm_stops_at_once_and_nothing_is_lost(scene: Scene) -> None:
    await scene.launch()
    fault = scene.between.fault("/created", hold=asyncio.Event())
    async with process(scene, "dispatcher") as running:
        await asyncio.wait_for(fault.reached.wait(), PATIENCE)
        running.send_signal(signal.SIGTERM)
        await asyncio.sleep(0.2)
        running.send_signal(signal.SIGTERM)
        assert await ended(running) == 128 + signal.SIGTERM
    await scene.expire_leases()
    async with scene.dispatching():
        await scene.all_delivered()
    assert await scene.ledger() == ["run.created"]


async def test_a_killed_dispatcher_loses_nothing(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.progress("p1")
    await scene.finish(attempt)
    fault = scene.between.fault("/events", drop_reply=True)
    fault.hold = gate = asyncio.Event()
    async with process(scene, "dispatcher") as running:
        await asyncio.wait_for(fault.reached.wait(), PATIENCE)
        running.kill()
        await ended(running)
    gate.set()
    await scene.expire_leases()
    async with scene.dispatching():
        await scene.all_delivered()
    assert await scene.ledger() == ["run.created", "run.started", "run.progress", "run.completed"]
    assert len(set(scene.keys())) == 1


@asynccontextmanager
async def gateway(
    scene: Scene, **changes: str
) -> AsyncIterator[tuple[asyncio.subprocess.Process, int]]:
    """A gateway that is ready, and its port."""
    port = int(changes.pop("port", None) or free_port())

    def ready() -> bool:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=2) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False

    async with process(scene, "gateway", port=str(port), drain_seconds="30", **changes) as running:
        await scene.eventually(lambda: asyncio.to_thread(ready), bool)
        yield running, port


async def test_a_gateway_killed_between_append_and_reply_appends_once(
    scene: Scene, connect: Connect
) -> None:
    watcher = await connect(scene.dsn)
    async with gateway(scene) as (running, port):
        url = f"http://127.0.0.1:{port}"
        await scene.launch(baseUrl=url)
        await watcher.execute("begin")
        await watcher.execute("lock table counterfoil.ledger_appends in share mode")
        async with scene.dispatching(base_url=url):
            await scene.eventually(
                lambda: scene.rows(
                    "select pid from pg_locks where not granted and database ="
                    " (select oid from pg_database where datname = current_database())"
                ),
                len,
            )
            running.send_signal(signal.SIGSTOP)
            await watcher.execute("commit")
            # The append is there, and who ordered it can tell nobody any more.
            await scene.eventually(scene.ledger, len)
            running.kill()
            await scene.reported("retrying")
    async with gateway(scene, port=str(port)), scene.dispatching(base_url=url):
        await scene.make_due()
        await scene.all_delivered()
    assert await scene.ledger() == ["run.created"]
    [append] = await scene.rows("select idempotency_key from counterfoil.ledger_appends")
    [delivery] = await scene.rows("select idempotency_key from counterfoil.deliveries")
    assert append == delivery


async def test_sigterm_ends_a_gateway(scene: Scene) -> None:
    async with gateway(scene) as (running, _):
        running.send_signal(signal.SIGTERM)
        assert await ended(running) == 0


async def test_a_gateway_that_stops_is_not_ready_before_it_takes_no_more(scene: Scene) -> None:
    async with gateway(scene, ready_delay="60") as (running, port):
        running.send_signal(signal.SIGTERM)

        async def ask(path: str) -> tuple[int, str]:
            async with (
                asyncio.timeout(PATIENCE),
                aiohttp.ClientSession() as session,
                session.get(f"http://127.0.0.1:{port}{path}") as answer,
            ):
                return answer.status, await answer.text()

        ready = await scene.eventually(lambda: ask("/readyz"), lambda said: said[0] == 503)
        assert "draining" in ready[1]
        assert (await ask("/healthz"))[0] == 200
        running.send_signal(signal.SIGTERM)
        assert await ended(running) == 128 + signal.SIGTERM


async def test_a_gateway_answers_what_it_has_begun_unless_told_twice(scene: Scene) -> None:
    async with gateway(scene) as (running, port):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        # A request whose body does not come keeps the gateway at work.
        writer.write(
            f"POST {INTERNAL_PATH}/run-ledger-dispatch-token HTTP/1.1\r\nHost: gateway\r\n"
            f"Authorization: Bearer {INTERNAL.reveal()}\r\n"
            "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{".encode()
        )
        await writer.drain()
        running.send_signal(signal.SIGTERM)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(running.wait(), 0.5)
        running.send_signal(signal.SIGTERM)
        assert await ended(running) == 128 + signal.SIGTERM
        writer.close()
