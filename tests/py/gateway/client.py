"""Calls to the gateway as a runner or a process makes them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import aiohttp

from counterfoil.tokens import Use
from tests.py.driver.scene import INTERNAL, ORG, Scene

LEDGER = "/api/v2/play-runtime/run-ledger"
RECEIPTS = "/api/v2/play-runtime/receipts"
TOKEN = "/api/v2/internal/play-runtime/run-ledger-dispatch-token"
BILLING = "/api/v2/internal/play-runtime/compute-billing-dispatch-token"


@dataclass(frozen=True)
class Answer:
    """One HTTP answer."""

    status: int
    headers: dict[str, str]
    text: str

    @property
    def body(self) -> Any:
        return json.loads(self.text)

    @property
    def error(self) -> tuple[int, str]:
        """Status and code of an error; every error has the same shape."""
        body = self.body
        for name in ("error", "code", "hint"):
            assert isinstance(body[name], str), name
            assert body[name], name
        assert isinstance(body["retryable"], bool)
        assert self.headers["content-type"] == "application/json"
        assert self.headers["x-counterfoil-error-code"] == body["code"]
        return self.status, body["code"]


class Client:
    """A client of the gateway, with tokens for the run `run` unless told otherwise."""

    def __init__(self, session: aiohttp.ClientSession, scene: Scene, url: str) -> None:
        self.session = session
        self.scene = scene
        self.url = url

    def token(self, use: Use = "executor", run_id: str = "run", org_id: str = ORG) -> str:
        """A bearer token."""
        minted = self.scene.signer.mint(
            org_id=org_id, play_name="play", run_id=run_id, use=use, lifetime_seconds=60
        )
        return minted.reveal()

    async def call(
        self,
        method: str,
        path: str,
        data: Any = None,
        *,
        bearer: str | None = None,
        headers: dict[str, str] | None = None,
    ) -> Answer:
        """One request; ``data`` that is no bytes or iterator goes as JSON."""
        sent = {"content-type": "application/json"} if data is not None else {}
        if bearer is not None:
            sent["authorization"] = f"Bearer {bearer}"
        if isinstance(data, dict | list):
            data = json.dumps(data).encode()
        async with self.session.request(
            method, self.url + path, data=data, headers=sent | (headers or {})
        ) as response:
            found = {name.lower(): value for name, value in response.headers.items()}
            return Answer(response.status, found, await response.text())

    async def ledger(self, action: str, data: Any, **options: Any) -> Answer:
        """A ledger append with a dispatch token."""
        bearer = options.pop("bearer", self.token("dispatch"))
        return await self.call("POST", f"{LEDGER}/{action}", data, bearer=bearer, **options)

    async def receipt(self, data: Any, **options: Any) -> Answer:
        """A receipt action with the runner's token."""
        bearer = options.pop("bearer", self.token())
        if isinstance(data, dict):
            data = {"playName": "play", "runId": "run"} | data
        return await self.call("POST", RECEIPTS, data, bearer=bearer, **options)

    async def internal(self, path: str, data: Any, **options: Any) -> Answer:
        """An internal endpoint with the internal token."""
        bearer = options.pop("bearer", INTERNAL.reveal())
        return await self.call("POST", path, data, bearer=bearer, **options)

    async def get(self, path: str, bearer: str | None = None) -> Answer:
        """A read."""
        return await self.call("GET", path, bearer=bearer)
