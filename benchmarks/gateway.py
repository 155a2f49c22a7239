"""The gateway over HTTP, in a process of its own: many clients at once, and hostile requests."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import aiohttp
import psutil

from counterfoil.settings import Secret
from counterfoil.stack import free_port
from counterfoil.tokens import TokenSigner

RECEIPTS = "/api/v2/play-runtime/receipts"
_KEY = "a signing key of the benchmark that is long enough"
_PROGRAM = (
    "from counterfoil.services import run_gateway\n"
    "from counterfoil.settings import Settings\n"
    "run_gateway(Settings.load())\n"
)
_HOSTILE = (
    b"",
    b"{oops",
    b"[]",
    b'{"a": "\xff"}',
    b'{"a": "\\u0000"}',
    b'{"a": 1, "a": 2}',
    b'{"a": ' + b"[" * 50_000,
    b'{"a": 1e999999999}',
    b'{"a": "' + b"x" * 9_000_000 + b'"}',
    b'{"playName": "p", "action": "steal"}',
    b'{"playName": "p", "action": "claim_runtime_step_receipts", "keys": {}}',
    b'{"playName": "q", "action": "get_runtime_step_receipt", "key": "k"}',
)


@dataclass(frozen=True)
class Load:
    """What came of a load: answers by status, the slowest hundredth, memory before and after."""

    statuses: Counter[int]
    p99_ms: float
    memory_mb: tuple[float, float]


def busy(dsn: str, clients: int = 64, requests: int = 3000) -> Load:
    """Claims and completions by ``clients`` at once."""

    def body(number: int) -> bytes:
        action = "complete" if number % 2 else "claim"
        return (
            f'{{"playName": "p", "action": "{action}_runtime_step_receipt",'
            f' "key": "busy-{number // 2}", "leaseId": "l", "output": 1}}'
        ).encode()

    with _gateway(dsn) as (url, process):
        return asyncio.run(_load(url, process, clients, requests, body, pairs=True))


def hostile(dsn: str, requests: int = 10_000) -> Load:
    """Requests that mean harm."""
    with _gateway(dsn) as (url, process):
        return asyncio.run(
            _load(url, process, 32, requests, lambda n: _HOSTILE[n % len(_HOSTILE)], pairs=False)
        )


async def _load(
    url: str,
    process: psutil.Process,
    clients: int,
    requests: int,
    body: Callable[[int], bytes],
    *,
    pairs: bool,
) -> Load:
    token = TokenSigner([("k", Secret(_KEY))], "counterfoil").mint(
        org_id="o", play_name="p", run_id="gateway bench", lifetime_seconds=3600
    )
    headers = {
        "authorization": f"Bearer {token.reveal()}",
        "content-type": "application/json",
    }
    step = 2 if pairs else 1
    numbers = iter(range(0, requests, step))
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    before = process.memory_info().rss / 2**20

    async def client(session: aiohttp.ClientSession) -> None:
        for first in numbers:
            for number in range(first, first + step):
                began = time.perf_counter()
                async with session.post(url + RECEIPTS, data=body(number), headers=headers) as got:
                    await got.read()
                    statuses[got.status] += 1
                seconds.append(time.perf_counter() - began)

    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    slowest = sorted(seconds)[int(0.99 * len(seconds))]
    return Load(statuses, 1000 * slowest, (before, process.memory_info().rss / 2**20))


@contextmanager
def _gateway(dsn: str) -> Iterator[tuple[str, psutil.Process]]:
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "COUNTERFOIL_DSN": dsn,
        "COUNTERFOIL_PORT": str(port),
        "COUNTERFOIL_SIGNING_KEYS": f"k:{_KEY}",
    }
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], env=environment, stderr=subprocess.DEVNULL
    )
    try:
        asyncio.run(_ready(url))
        yield url, psutil.Process(process.pid)
    finally:
        process.terminate()
        process.wait(30)


async def _ready(url: str) -> None:
    async with asyncio.timeout(30), aiohttp.ClientSession() as session:
        while True:
            try:
                async with session.get(url + "/readyz") as answer:
                    if answer.status == 200:
                        return
            except aiohttp.ClientError:
                await asyncio.sleep(0.05)
