"""The cache of gateway-issued tokens, to the letter."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import jwt
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from counterfoil.authority import Authority, DispatchToken, GatewayTokens, TokenCache
from counterfoil.errors import ReceiverError
from counterfoil.settings import NO_SECRET, Secret, Settings
from counterfoil.upstream import Upstream
from tests.py.driver.scene import serving

NOW = 1_800_000_000.0


class Clock:
    """Wall clock and monotonic clock, moved together or apart."""

    def __init__(self) -> None:
        self.wall = NOW
        self.steady = 100.0

    def cache(self) -> TokenCache:
        return TokenCache(clock=lambda: self.wall, monotonic=lambda: self.steady)

    def pass_by(self, seconds: float) -> None:
        self.wall += seconds
        self.steady += seconds


def kept(seconds: float | None) -> DispatchToken:
    return DispatchToken(Secret("t"), None if seconds is None else NOW + seconds, False)


@pytest.fixture
def clock() -> Clock:
    return Clock()


def test_a_token_is_kept_for_thirty_seconds_at_most(clock: Clock) -> None:
    cache = clock.cache()
    cache.put("k", kept(3600))
    clock.pass_by(29.9)
    assert cache.get("k")
    clock.pass_by(0.1)
    assert cache.get("k") is None


def test_and_never_past_its_expiry_less_five_seconds(clock: Clock) -> None:
    cache = clock.cache()
    cache.put("k", kept(15))
    clock.pass_by(9.9)
    assert cache.get("k")
    clock.pass_by(0.1)
    assert cache.get("k") is None


@pytest.mark.parametrize("seconds", [5, 4, -10, None])
def test_a_token_about_to_expire_or_without_expiry_is_not_kept(
    clock: Clock, seconds: float | None
) -> None:
    cache = clock.cache()
    cache.put("k", kept(seconds))
    assert len(cache) == 0


def test_a_wall_clock_set_back_prolongs_nothing(clock: Clock) -> None:
    cache = clock.cache()
    cache.put("k", kept(3600))
    clock.wall -= 7200
    clock.steady += 30
    assert cache.get("k") is None


def test_it_holds_256_and_the_oldest_goes_first(clock: Clock) -> None:
    cache = clock.cache()
    for n in range(256):
        cache.put(f"k{n}", kept(60))
    assert cache.get("k0")  # a look does not make it younger
    cache.put("k256", kept(60))
    assert len(cache) == 256
    assert cache.get("k0") is None
    assert cache.get("k1")


def test_putting_again_makes_it_the_youngest(clock: Clock) -> None:
    cache = clock.cache()
    for n in range(256):
        cache.put(f"k{n}", kept(60))
    cache.put("k0", kept(60))
    cache.put("k256", kept(60))
    assert cache.get("k0")
    assert cache.get("k1") is None


def authority(org_id: str = "o", **changes: Any) -> Authority:
    document = {
        "runId": "r",
        "playId": "p",
        "playName": "p",
        "executorToken": "stored",
        "baseUrl": "http://h",
        "runtimeApiBaseUrl": None,
        "orgId": org_id,
        "runtimeAuthority": None,
        "vercelProtectionBypassToken": None,
    }
    return Authority.read(org_id, "r", document | changes)


def test_the_key_covers_schema_authority_and_internal_token_but_not_the_stored_token() -> None:
    first = authority().fingerprint("s", Secret("i"))
    assert authority(executorToken="another").fingerprint("s", Secret("i")) == first
    others = [
        authority().fingerprint("t", Secret("i")),
        authority().fingerprint("s", Secret("j")),
        authority(org_id="x").fingerprint("s", Secret("i")),
        *(
            authority(**{name: "http://changed"}).fingerprint("s", Secret("i"))
            for name in (
                *("runId", "playId", "playName", "baseUrl", "runtimeApiBaseUrl"),
                *("runtimeAuthority", "vercelProtectionBypassToken", "runtimeTokenOrigin"),
            )
        ),
    ]
    assert len({first, *others}) == len(others) + 1
    assert len(first) == 64


class Issuer:
    """A token endpoint whose answers a test chooses."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.answer: dict[str, Any] = {}
        self.status = 200
        self.gate: asyncio.Event | None = None
        self.arrived = asyncio.Event()

    async def endpoint(self, request: Request) -> Response:
        self.asked.append(json.loads(await request.body()))
        self.arrived.set()
        if self.gate is not None:
            await self.gate.wait()
        claims = {"exp": NOW + 3600, "n": len(self.asked)}
        token = jwt.encode(claims, "a secret for the tests, long enough")
        return JSONResponse({"executorToken": token} | self.answer, self.status)


@pytest.fixture
def issuer() -> Issuer:
    return Issuer()


@pytest.fixture
async def tokens(issuer: Issuer, clock: Clock) -> AsyncIterator[tuple[GatewayTokens, Authority]]:
    path = "/api/v2/internal/play-runtime/run-ledger-dispatch-token"
    app = Starlette(routes=[Route(path, issuer.endpoint, methods=["POST"])])
    async with (
        serving(app, Settings()) as url,
        Upstream(trusted_urls=[url], timeout_seconds=5) as upstream,
    ):
        gateway = GatewayTokens(
            upstream,
            schema="s",
            internal_token=Secret("internal"),
            environment_bypass=NO_SECRET,
            cache=clock.cache(),
        )
        yield gateway, authority(baseUrl=url)


Tokens = tuple[GatewayTokens, Authority]


async def test_a_token_is_reused(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    first = await gateway.token(run, "e1", "owner")
    second = await gateway.token(run, "e2", "owner")
    assert (first.reused, second.reused) == (False, True)
    assert first.token == second.token
    assert len(issuer.asked) == 1


@pytest.mark.parametrize("advertised", [True, False, None, "yes"])
async def test_an_advertised_token_is_never_kept_and_evicts(
    tokens: Tokens, issuer: Issuer, advertised: object
) -> None:
    gateway, run = tokens
    await gateway.token(run, "e1", "owner")
    issuer.answer = {"runLedgerIngressPrefixBatching": advertised}
    found = await gateway.token(run, "e1", "owner", fresh=True)
    assert found.prefix_batching is (advertised is True)
    issuer.answer = {}
    again = await gateway.token(run, "e1", "owner")
    assert not again.reused
    assert len(issuer.asked) == 3


async def test_a_forced_refresh_asks_and_replaces(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    first = await gateway.token(run, "e1", "owner")
    second = await gateway.token(run, "e1", "owner", fresh=True)
    third = await gateway.token(run, "e1", "owner")
    assert first.token != second.token == third.token
    assert len(issuer.asked) == 2


async def test_an_opaque_token_works_and_is_not_kept(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    issuer.answer = {"executorToken": "opaque"}
    assert (await gateway.token(run, "e1", "owner")).token == Secret("opaque")
    await gateway.token(run, "e1", "owner")
    assert len(issuer.asked) == 2


async def test_dropping_forgets(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    await gateway.token(run, "e1", "owner")
    gateway.drop(run)
    assert not (await gateway.token(run, "e1", "owner")).reused


async def test_concurrent_misses_make_one_request(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    issuer.gate = asyncio.Event()
    asking = [asyncio.create_task(gateway.token(run, f"e{n}", "owner")) for n in range(20)]
    await issuer.arrived.wait()
    issuer.gate.set()
    found = await asyncio.gather(*asking)
    assert len(issuer.asked) == 1
    assert len({token.token for token in found}) == 1


async def test_an_aborted_caller_does_not_fail_the_others(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    issuer.gate = asyncio.Event()
    first = asyncio.create_task(gateway.token(run, "e1", "owner"))
    await issuer.arrived.wait()
    second = asyncio.create_task(gateway.token(run, "e2", "owner"))
    await asyncio.sleep(0)
    first.cancel()
    issuer.gate.set()
    assert (await second).token
    assert first.cancelled()
    assert len(issuer.asked) == 1


async def test_a_failed_request_is_not_remembered(tokens: Tokens, issuer: Issuer) -> None:
    gateway, run = tokens
    issuer.status, issuer.answer = 503, {"error": "busy", "code": "c", "retryable": True}
    with pytest.raises(ReceiverError, match="busy") as failed:
        await gateway.token(run, "e1", "owner")
    assert (failed.value.status, failed.value.code, failed.value.retryable) == (503, "c", True)
    issuer.status, issuer.answer = 200, {}
    assert await gateway.token(run, "e1", "owner")


@pytest.mark.parametrize("token", [None, 7, "", "  "])
async def test_an_answer_without_a_token_is_a_failure(
    tokens: Tokens, issuer: Issuer, token: object
) -> None:
    gateway, run = tokens
    issuer.answer = {"executorToken": token}
    with pytest.raises(ReceiverError) as failed:
        await gateway.token(run, "e1", "owner")
    assert failed.value.code == "dispatch_token_missing"


def test_an_authority_shows_no_credentials() -> None:
    shown = repr(authority(vercelProtectionBypassToken="bypass"))
    assert "stored" not in shown
    assert "bypass" not in shown
