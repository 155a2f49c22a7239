"""A scene for deliveries: an installed database, a gateway on a real port, and faults in between.

The receiver is the package's own gateway, served by uvicorn on the loopback interface. `Between`
wraps it as ASGI middleware: it counts requests and can refuse one, hold it up, or drop the reply
after the gateway has done its work.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import psycopg
from psycopg.rows import dict_row
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from counterfoil.calls.runs import ClaimedAttempt
from counterfoil.database import Database
from counterfoil.delivering.deliveries import DeliveryReport
from counterfoil.dispatcher import Dispatcher
from counterfoil.functions import Functions
from counterfoil.gateway import create_app
from counterfoil.services import make_server
from counterfoil.settings import Secret, Settings
from counterfoil.tokens import TokenSigner

ORG = "org"
KEY = ("k1", Secret("a signing key for tests that is long enough"))
INTERNAL = Secret("an internal token for tests")
PATIENCE = 20.0
Found = TypeVar("Found")


@dataclass
class Request:
    """One request as the receiver saw it."""

    path: str
    headers: dict[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        parsed: dict[str, Any] = json.loads(self.body)
        return parsed


@dataclass
class Fault:
    """What to do to one request whose path holds ``on``."""

    on: str
    status: int = 0
    """Answer this status without asking the gateway; 0 asks it."""
    body: bytes = b"{}"
    drop_reply: bool = False
    """Let the gateway do its work, then break the connection."""
    hold: asyncio.Event | None = None
    """Wait for this before asking the gateway."""
    reached: asyncio.Event = field(default_factory=asyncio.Event)
    headers: tuple[tuple[bytes, bytes], ...] = ()
    times: int = 1


class Between:
    """ASGI middleware that records requests and applies faults."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.requests: list[Request] = []
        self.faults: list[Fault] = []

    @property
    def counts(self) -> Counter[str]:
        return Counter(request.path.rsplit("/", 1)[-1] for request in self.requests)

    def fault(self, on: str, **options: Any) -> Fault:
        """Add a fault for the next request whose path holds ``on``."""
        fault = Fault(on, **options)
        self.faults.append(fault)
        return fault

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        headers = {name.decode(): value.decode("latin-1") for name, value in scope["headers"]}
        self.requests.append(Request(scope["path"], headers, body))
        fault = next((f for f in self.faults if f.on in scope["path"]), None)
        if fault is None:
            await self.app(scope, _replay(body), send)
            return
        fault.times -= 1
        if fault.times == 0:
            self.faults.remove(fault)
        fault.reached.set()
        if fault.hold is not None:
            await fault.hold.wait()
        if fault.drop_reply:
            await self.app(scope, _replay(body), _swallow)
            raise ConnectionAbortedError("the reply was dropped")
        if fault.status:
            start = {"type": "http.response.start", "status": fault.status}
            plain = [(b"content-type", b"application/json")]
            await send({**start, "headers": [*plain, *fault.headers]})
            await send({"type": "http.response.body", "body": fault.body})
            return
        await self.app(scope, _replay(body), send)


def _replay(body: bytes) -> Receive:
    sent = False

    async def receive() -> Message:
        nonlocal sent
        if sent:
            await asyncio.Event().wait()
        sent = True
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


async def _swallow(message: Message) -> None:
    return None


@asynccontextmanager
async def serving(app: ASGIApp, settings: Settings) -> AsyncIterator[str]:
    """Serve ``app`` on a free port of the loopback interface; gives its base URL."""
    server = make_server(app, replace(settings, host="127.0.0.1", port=0, drain_seconds=0))
    task = asyncio.create_task(server.serve())
    async with asyncio.timeout(PATIENCE):
        while not server.started:
            await asyncio.sleep(0.005)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


class Scene:
    """Shorthands for what a test of deliveries does."""

    def __init__(self, dsn: str, database: Database, settings: Settings, between: Between) -> None:
        self.dsn = dsn
        self.database = database
        self.functions = Functions(database)
        self.settings = settings
        self.between = between
        self.reports: list[DeliveryReport] = []
        self.signer = TokenSigner(settings.signing_keys, settings.schema)

    def dispatcher(self, **changes: Any) -> Dispatcher:
        """A dispatcher with short times, not started."""
        observer = changes.pop("observer", self.reports.append)
        settings = replace(self.settings, **changes)
        return Dispatcher(self.database, settings, observer=observer)

    @asynccontextmanager
    async def dispatching(self, **changes: Any) -> AsyncIterator[Dispatcher]:
        """A dispatcher at work for the time of the block; it drains at its end."""
        dispatcher = self.dispatcher(**changes)
        task = asyncio.create_task(dispatcher.run())
        try:
            yield dispatcher
        finally:
            dispatcher.stop()
            await task

    async def launch(self, run_id: str = "run", **fields: Any) -> None:
        """Admit one run."""
        document = {
            "orgId": ORG,
            "runId": run_id,
            "playId": "play",
            "playName": "play",
            "executorToken": "stored token",
            "baseUrl": self.settings.base_url,
        }
        await self.functions.admit_launch(document | fields)

    async def start(self, run_id: str = "run", **fields: Any) -> ClaimedAttempt:
        """Admit one run and claim its attempt."""
        await self.launch(run_id, **fields)
        [attempt] = await self.functions.claim_attempts("worker", 1, 60, [], "default")
        assert attempt.run_id == run_id
        return attempt

    async def finish(self, attempt: ClaimedAttempt, **completion: Any) -> str:
        """Complete an attempt; the terminal's event id."""
        end = await self.functions.complete_attempt(
            ORG,
            attempt.run_id,
            attempt.attempt,
            attempt.lease_id,
            {"result": {"ok": True}} | completion,
        )
        assert end.event_id is not None
        return end.event_id

    async def append(
        self, event_id: str, event_type: str, payload: Any, run_id: str = "run"
    ) -> None:
        """Append one fact."""
        await self.functions.append_fact(ORG, run_id, event_id, event_type, payload)

    async def progress(self, event_id: str, run_id: str = "run", **data: Any) -> None:
        """Append one progress fact."""
        await self.append(event_id, "run.progress", data or {"step": event_id}, run_id)

    async def ingress(self, event_id: str, run_id: str = "run", count: int = 1) -> None:
        """Append a producer's batch of ``count`` events."""
        events = [{"type": "sheet.row", "row": n, "of": event_id} for n in range(count)]
        await self.append(event_id, "run.events", {"events": events}, run_id)

    async def ledger(self, run_id: str = "run") -> list[str]:
        """Types of the run's ledger events, in order."""
        found = await self.functions.read_run_events(ORG, run_id, 0, 1000)
        assert [event.position for event in found] == list(range(1, len(found) + 1))
        return [event.event_type for event in found]

    async def sources(self, run_id: str = "run") -> list[str]:
        """Event ids of the run's ledger events, in order."""
        return [e.event_id for e in await self.functions.read_run_events(ORG, run_id, 0, 1000)]

    async def lanes(self, run_id: str = "run") -> list[dict[str, Any]]:
        """The run's lanes: what is pending."""
        return await self.rows("select * from counterfoil.lanes where run_id = %s", run_id)

    async def all_delivered(self, run_id: str = "run") -> None:
        """Return when the run has nothing pending."""
        await self.eventually(lambda: self.lanes(run_id), lambda lanes: not lanes)

    async def eventually(
        self, probe: Callable[[], Awaitable[Found]], condition: Callable[[Found], Any]
    ) -> Found:
        """What ``probe`` finds, once it fulfils the condition."""
        async with asyncio.timeout(PATIENCE):
            while True:
                found = await probe()
                if condition(found):
                    return found
                await asyncio.sleep(0.01)

    async def rows(self, query: str, *parameters: Any) -> list[dict[str, Any]]:
        """What a query of the test's own finds."""
        connection = await psycopg.AsyncConnection.connect(self.dsn, autocommit=True)
        async with connection, connection.cursor(row_factory=dict_row) as cursor:
            await cursor.execute(query.encode(), parameters)
            return await cursor.fetchall() if cursor.description else []

    async def failures(self, run_id: str = "run") -> list[dict[str, Any]]:
        """The run's failed facts, in order."""
        return await self.rows(
            "select * from counterfoil.fact_failures where run_id = %s order by seq", run_id
        )

    async def make_due(self) -> None:
        """Let every backoff be over."""
        await self.rows(
            "update counterfoil.fact_failures set next_attempt_at = now() - interval '1 s'"
            " where next_attempt_at is not null"
        )
        await self.rows("update counterfoil.lanes set due_at = now() - interval '1 s'")

    async def expire_leases(self) -> None:
        """Let every delivery lease have lapsed."""
        await self.rows(
            "update counterfoil.lanes set lease_expires_at = now() - interval '1 s'"
            " where lease_owner is not null"
        )

    async def reported(self, outcome: str) -> DeliveryReport:
        """The first report of that outcome, once there is one."""

        async def probe() -> bool:
            return any(report.outcome == outcome for report in self.reports)

        await self.eventually(probe, bool)
        return next(report for report in self.reports if report.outcome == outcome)

    def keys(self, endpoint: str = "events") -> list[str]:
        """Idempotency keys of the requests to a ledger endpoint, in order."""
        return [
            request.json()["idempotencyKey"]
            for request in self.between.requests
            if request.path.endswith("/" + endpoint)
        ]


@asynccontextmanager
async def open_scene(dsn: str, **changes: Any) -> AsyncIterator[Scene]:
    """A scene on the installed database of ``dsn``."""
    settings = Settings(
        dsn=dsn,
        signing_keys=(KEY,),
        internal_token=INTERNAL,
        poll_seconds=0.5,
        append_timeout=5.0,
        drain_seconds=5.0,
        concurrency=4,
    )
    settings = replace(settings, **changes)
    async with Database(dsn, max_size=8) as database:
        between = Between(create_app(database, settings))
        async with serving(between, settings) as url:
            yield Scene(dsn, database, replace(settings, base_url=url), between)
