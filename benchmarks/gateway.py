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
from counterfoil.tokens import TokenSigner, Use

RECEIPTS = "/api/v2/play-runtime/receipts"
KEY = "a signing key of the benchmark that is long enough"
_INTERNAL = "the internal token of the benchmark"
_SILENT = 500
_PROGRAM = (
    "from counterfoil.services import run_gateway\n"
    "from counterfoil.settings import Settings\n"
    "run_gateway(Settings.load())\n"
)
_JSON = b"content-type: application/json\r\n"
_BODIES = (
    b"",
    b"{oops",
    b"[]",
    b"\xef\xbb\xbf{}",
    b'{"a": "\xff"}',
    b'{"a": "\\u0000"}',
    b'{"a": "\\ud800"}',
    b'{"a": NaN}',
    b'{"a": 1, "a": 2}',
    b'{"a": ' + b"[" * 50_000,
    b'{"a": ' + b'{"a":' * 190 + b"1" + b"}" * 191,
    b'{"a": 1e999999999}',
    b'{"a": ' + b"9" * 900 + b"}",
    b'{"a": [' + b"0," * 100_000 + b"0]}",
    b'{"playName": "p", "action": "steal"}',
    b'{"playName": "p", "action": ["get_runtime_step_receipt"], "key": {}}',
    b'{"playName": "p", "action": "claim_runtime_step_receipts", "keys": {}}',
    b'{"playName": "p", "action": "claim_runtime_step_receipt", "key": "k", "leaseSeconds": 1e300}',
    b'{"playName": "p", "action": "complete_runtime_step_receipt", "key": "\\u0001"}',
    b'{"playName": "p", "action": "complete_runtime_step_receipt", "key": "k", "output": "'
    + b'password=\\"' * 10_000
    + b'"}',
    b'{"playName": "p", "action": "heartbeat_runtime_step_receipts", "keys": ["k", "k", ""]}',
    b'{"playName": "p", "action": "observe_docflow_node", "nodeId": "n", "status": "started",'
    b' "at": -1e99, "attempt": 1e99, "inputs": {"token": "x"}}',
    b'{"playName": "q", "action": "get_runtime_step_receipt", "key": "k"}',
    b'{"runId": "gateway bench", "idempotencyKey": "k", "leaseOwner": "o",'
    b' "events": [{"type": 7}]}',
    b'{"orgId": "o", "runId": "r", "eventId": "e", "leaseOwner": "\\u001f"}',
    b'{"a": [' + b"[]," * 1000 + b'"' + b'\\"' * 2_000_000,
    b'{"playName": "p", "action": "get_runtime_step_receipt", "key": "k", "a": ['
    + b"[]," * 1_350_000
    + b"0]}",
    b'{"playName": "p", "action": "get_runtime_step_receipt", "key": "k", "a": ['
    + b'"0123456789",' * 300_000
    + b"0]}",
)
_HEADS = (
    b"GET /api/v2/runs/%00?orgId=o HTTP/1.1\r\nhost: g\r\n",
    b"GET /api/v2/runs/%ff%fe/events?after=9e9 HTTP/1.1\r\nhost: g\r\n",
    b"GET /api/v2/runs/gateway%20bench/journal?query=%ed%a0%80%00 HTTP/1.1\r\nhost: g\r\n",
    b"GET /api/v2/runs/gateway%20bench/journal?cursor={{{{ HTTP/1.1\r\nhost: g\r\n",
    b"GET /api/v2/journal?orgId=o&orgId=p&limit=99999999999999999999 HTTP/1.1\r\nhost: g\r\n",
    b"GET /api/v2/play-runtime/control/%2e%2e/%2e%2e/etc HTTP/1.1\r\nhost: g\r\n",
    b"POST /api/v2/play-runtime/control/x HTTP/1.1\r\nhost: g\r\ncontent-length: 0\r\n",
    b"POST /api/v2/play-runtime/receipts HTTP/1.1\r\nhost: g\r\ncontent-length: 9000000\r\n"
    + _JSON,
    b"POST /healthz HTTP/1.1\r\nhost: g\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n",
    b"POST /api/v2/play-runtime/receipts HTTP/1.1\r\nhost: g\r\ntransfer-encoding: x\r\n" + _JSON,
    b"GET / HTTP/1.1\r\nhost: g\r\nx: " + b"y" * 100_000 + b"\r\n",
    b"GET / HTTP/1.1\r\nhost : g\r\n",
    b"\x16\x03\x01\x02\x00\x01",
    b"PRI * HTTP/2.0\r\n",
)


@dataclass(frozen=True)
class Load:
    """What came of a load: answers by status, the slowest hundredth, memory before and at most.

    Status 0 stands for no answer, and one below 0 for a 503 that says when to come back.
    """

    statuses: Counter[int]
    p99_ms: float
    memory_mb: tuple[float, float]

    @property
    def errors(self) -> int:
        """Requests that were not answered 200."""
        return self.statuses.total() - self.statuses[200]

    @property
    def failures(self) -> int:
        """Requests without an answer, and answers of 500 and above that nobody intended."""
        return sum(count for status, count in self.statuses.items() if status == 0 or status >= 500)


def busy(dsn: str, clients: int = 64, requests: int = 3000) -> Load:
    """Claims and completions by ``clients`` at once."""

    def body(number: int) -> bytes:
        action = "complete" if number % 2 else "claim"
        return (
            f'{{"playName": "p", "action": "{action}_runtime_step_receipt",'
            f' "key": "busy-{number // 2}", "leaseId": "l", "output": 1}}'
        ).encode()

    with serving(dsn) as (url, process):
        return asyncio.run(_load(url, process, clients, requests, body))


def hostile(dsn: str, requests: int = 10_000) -> Load:
    """Requests that mean harm, each on its own connection, beside hundreds that say nothing."""
    with serving(dsn) as (url, process):
        host, port = url.removeprefix("http://").split(":")
        return asyncio.run(_attack(host, int(port), process, requests))


def token(use: Use = "executor") -> str:
    """A token of the run that the requests are for."""
    signer = TokenSigner([("k", Secret(KEY))], "counterfoil")
    minted = signer.mint(
        org_id="o", play_name="p", run_id="gateway bench", use=use, lifetime_seconds=3600
    )
    return minted.reveal()


def _hostile_requests() -> list[bytes]:
    ledger, internal = "/api/v2/play-runtime/run-ledger", "/api/v2/internal/play-runtime"
    doors = (
        (RECEIPTS, token()),
        (f"{ledger}/events", token("dispatch")),
        (f"{ledger}/created", token("executor")),
        (f"{internal}/run-ledger-dispatch-token", _INTERNAL),
        (f"{internal}/compute-billing-dispatch-token", "eyJ.eyJ.x"),
    )
    made = [head + f"authorization: Bearer {token()}\r\n\r\n".encode() for head in _HEADS]
    for path, bearer in doors:
        for body in _BODIES:
            head = f"POST {path} HTTP/1.1\r\nhost: g\r\nauthorization: Bearer {bearer}\r\n"
            length = f"content-length: {len(body)}\r\n\r\n".encode()
            made.append(head.encode() + _JSON + length + body)
    return made


async def _attack(host: str, port: int, process: psutil.Process, requests: int) -> Load:
    made = _hostile_requests()
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    numbers = iter(range(requests))
    before, most = _megabytes(process), 0.0
    silent = [await asyncio.open_connection(host, port) for _ in range(_SILENT)]

    async def client() -> None:
        nonlocal most
        for number in numbers:
            began = time.perf_counter()
            statuses[await _status(host, port, made[number % len(made)])] += 1
            seconds.append(time.perf_counter() - began)
            if number % 50 == 0:
                most = max(most, _megabytes(process))

    await asyncio.gather(*(client() for _ in range(32)))
    for _, writer in silent:
        writer.close()
    return Load(statuses, _slowest(seconds), (before, most))


async def _status(host: str, port: int, sent: bytes) -> int:
    """The answer's status; 0 without one, below 0 for a 503 that says when to come back."""
    try:
        async with asyncio.timeout(60):
            reader, writer = await asyncio.open_connection(host, port)
            try:
                writer.write(sent)
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
            finally:
                writer.close()
    except (OSError, EOFError, TimeoutError):
        return 0
    status = int(head.split(b" ")[1])
    return -status if status == 503 and b"\r\nretry-after: " in head else status


def _megabytes(process: psutil.Process) -> float:
    return float(process.memory_info().rss) / 2**20


def _slowest(seconds: list[float]) -> float:
    return 1000 * sorted(seconds)[int(0.99 * len(seconds))]


async def _load(
    url: str,
    process: psutil.Process,
    clients: int,
    requests: int,
    body: Callable[[int], bytes],
) -> Load:
    headers = {"authorization": f"Bearer {token()}", "content-type": "application/json"}
    pairs = iter(range(0, requests, 2))
    statuses: Counter[int] = Counter()
    seconds: list[float] = []
    before, most = _megabytes(process), 0.0

    async def client(session: aiohttp.ClientSession) -> None:
        nonlocal most
        for first in pairs:
            for number in (first, first + 1):
                began = time.perf_counter()
                async with session.post(url + RECEIPTS, data=body(number), headers=headers) as got:
                    await got.read()
                    statuses[got.status] += 1
                seconds.append(time.perf_counter() - began)
            if first % 100 == 0:
                most = max(most, _megabytes(process))

    connector = aiohttp.TCPConnector(limit=clients)
    async with aiohttp.ClientSession(connector=connector) as session:
        await asyncio.gather(*(client(session) for _ in range(clients)))
    return Load(statuses, _slowest(seconds), (before, most))


@contextmanager
def serving(dsn: str) -> Iterator[tuple[str, psutil.Process]]:
    """A gateway of its own process that signs with `KEY`: its URL, and the process."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    environment = os.environ | {
        "COUNTERFOIL_DSN": dsn,
        "COUNTERFOIL_PORT": str(port),
        "COUNTERFOIL_SIGNING_KEYS": f"k:{KEY}",
        "COUNTERFOIL_INTERNAL_TOKEN": _INTERNAL,
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
