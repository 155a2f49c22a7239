"""Receipts through the gateway, for workers that are to reach the database as little as possible.

Each call is one action of the gateway's receipt endpoint, with a token of the run's own. What it
refuses, or cannot do, is raised as the database would have it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import psycopg

from counterfoil.errors import BY_SQLSTATE, CapacityError, CounterfoilError, ReceiverError
from counterfoil.functions import ClaimedAttempt, Receipt
from counterfoil.json_text import encode
from counterfoil.playing.receipts import Document, Recalled
from counterfoil.settings import Secret
from counterfoil.tokens import TokenSigner
from counterfoil.upstream import Bypass, Upstream, read_bounded

PATH = "/api/v2/play-runtime/receipts"
TOKEN_SECONDS = 300
"""Life of a token that the worker signs itself."""
_RENEW_BEFORE_SECONDS = 60
# A hundred remembered outputs of the largest size that `receipt_output_max_bytes` has by default.
_LARGEST_ANSWER = 128 * 1024 * 1024
_OUTPUT_COMES_BACK = {"x-counterfoil-receipt-wire-format": "2"}

_BY_CODE: Mapping[str, type[CounterfoilError]] = {
    **{kind.name: kind for kind in BY_SQLSTATE.values()},
    "scheduler_capacity": CapacityError,
}
_AWAY = (408, 502, 503, 504)
_NOT_ALLOWED = (401, 403)
_REASONS = ("detail", "hint")

HttpAnswer: TypeAlias = tuple[int, Any]


class RunToken:
    """The run's bearer token: signed here where there is a key, else the one of the launch."""

    def __init__(self, claimed: ClaimedAttempt, signer: TokenSigner | None) -> None:
        self._at = claimed
        self._signer = signer
        self._signed: tuple[Secret, float] | None = None

    def get(self) -> Secret:
        """A token that is good for a while."""
        if self._signer is None:
            return Secret(str(self._at.launch.get("executorToken", "")))
        if self._signed is None or self._signed[1] <= time.monotonic():
            token = self._signer.mint(
                org_id=self._at.org_id,
                play_name=self._at.play_name,
                run_id=self._at.run_id,
                lifetime_seconds=TOKEN_SECONDS,
            )
            self._signed = token, time.monotonic() + TOKEN_SECONDS - _RENEW_BEFORE_SECONDS
        return self._signed[0]

    def renew(self) -> bool:
        """Forget the token that was refused; whether the next one is another."""
        self._signed = None
        return self._signer is not None


class GatewayReceipts:
    """Receipts through the receipt actions of the gateway at ``base_url``."""

    def __init__(
        self,
        upstream: Upstream,
        base_url: str,
        claimed: ClaimedAttempt,
        token: RunToken,
        environment_bypass: Secret,
    ) -> None:
        self._upstream = upstream
        self._url = base_url.rstrip("/") + PATH
        self._at = claimed
        self._token = token
        launch_bypass = claimed.launch.get("vercelProtectionBypassToken")
        self._bypass = Bypass.choose(
            launch_bypass if isinstance(launch_bypass, str) else None, environment_bypass
        )

    async def recall(self, prefix: str) -> Recalled | None:
        """None: the gateway's actions name their keys."""
        return None

    async def claim(
        self, keys: Sequence[str], lease_ids: Sequence[str], options: Mapping[str, Any]
    ) -> Sequence[Receipt]:
        """As in `Receipts`."""
        found = await self._call(
            "claim_runtime_step_receipts",
            keys=list(keys),
            leaseIds=list(lease_ids),
            runAttempt=self._at.attempt,
            **options,
        )
        return [
            Receipt(number, key, receipt, receipt["claimed"])
            for number, (key, receipt) in enumerate(zip(keys, found, strict=True), 1)
        ]

    async def complete(self, receipt: Document) -> Document:
        """As in `Receipts`."""
        found: Document = await self._call("complete_runtime_step_receipt", **receipt)
        return found

    async def fail(self, receipt: Document) -> None:
        """As in `Receipts`."""
        await self._call("fail_runtime_step_receipt", **receipt)

    async def heartbeat(self, receipts: Sequence[Document], lease_seconds: int) -> None:
        """As in `Receipts`."""
        await self._call(
            "heartbeat_runtime_step_receipts",
            keys=[receipt["key"] for receipt in receipts],
            leaseIds=[receipt["leaseId"] for receipt in receipts],
            runAttempt=self._at.attempt,
            leaseSeconds=lease_seconds,
        )

    async def _call(self, action: str, **members: Any) -> Any:
        body = {"action": action, "playName": self._at.play_name, "runId": self._at.run_id}
        text = encode({**body, **members}, "receipts").encode()
        status, answer = await self._post(text)
        if status == 401 and self._token.renew():
            status, answer = await self._post(text)
        if 200 <= status < 300:
            return answer
        raise _refusal(status, answer if isinstance(answer, dict) else {})

    async def _post(self, body: bytes) -> HttpAnswer:
        headers = {
            **_OUTPUT_COMES_BACK,
            "content-type": "application/json",
            "accept-encoding": "identity",
            "authorization": f"Bearer {self._token.get().reveal()}",
        }
        try:
            async with self._upstream.request(
                "POST", self._url, body, headers, self._bypass
            ) as response:
                return response.status, json.loads(await read_bounded(response, _LARGEST_ANSWER))
        except ReceiverError as error:
            if error.retryable:
                raise psycopg.OperationalError(error.message) from None
            raise psycopg.DatabaseError(error.message) from None
        except ValueError:
            raise psycopg.OperationalError("the gateway's answer is no JSON") from None


def _refusal(status: int, body: Mapping[str, Any]) -> psycopg.Error:
    """The exception that the database would have raised for what the gateway answered."""
    code, message = str(body.get("code", "")), str(body.get("error", f"http {status}"))
    detail, hint = (text if isinstance(text, str) else None for text in map(body.get, _REASONS))
    if kind := _BY_CODE.get(code):
        return kind(message, reason=detail, hint=hint)
    # As PostgreSQL's own errors tell it.
    told = f"{message}\nHINT:  {hint}" if hint else message
    if status in _AWAY:
        return psycopg.OperationalError(told)
    if status in _NOT_ALLOWED:
        return psycopg.errors.InsufficientPrivilege(f"the gateway refused the run: {told}")
    return psycopg.DatabaseError(told)
