"""A dispatcher without the signing key: it asks the gateway for tokens through its live lease."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from counterfoil.authority import Authority, GatewayTokens, TokenCache
from counterfoil.database import Database
from counterfoil.dispatcher import Dispatcher
from counterfoil.errors import ReceiverError, SettingsError
from counterfoil.settings import NO_SECRET, Secret, Settings
from counterfoil.upstream import Upstream
from tests.py.driver.scene import INTERNAL, ORG, Request, Scene, open_scene
from tests.servers.databases import Connect

KEYLESS: dict[str, Any] = {"token_authority": "gateway", "signing_keys": ()}
TOKEN = "run-ledger-dispatch-token"


@pytest.fixture
async def silent(installed: str) -> AsyncIterator[Scene]:
    """A scene whose gateway advertises nothing, so that tokens are kept."""
    async with open_scene(installed, ingress_prefix_batching=False) as opened:
        yield opened


async def test_a_gateway_token_delivers_and_is_kept(silent: Scene) -> None:
    attempt = await silent.start()
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
        await silent.progress("p1")
        await silent.all_delivered()
        await silent.finish(attempt)
        await silent.all_delivered()
    assert len(await silent.ledger()) == 4
    assert silent.between.counts[TOKEN] == 1
    [asked] = [r for r in silent.between.requests if r.path.endswith(TOKEN)]
    assert asked.headers["authorization"] == f"Bearer {INTERNAL.reveal()}"
    assert asked.json().keys() == {"orgId", "runId", "eventId", "leaseOwner", "schedulerSchema"}


async def test_401_on_a_kept_token_is_refreshed_once_under_the_same_key(silent: Scene) -> None:
    await silent.start()
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
        silent.between.fault("/events", status=401)
        await silent.progress("p1")
        await silent.all_delivered()
    assert silent.between.counts[TOKEN] == 2
    keys = silent.keys()
    assert len(keys) == 2
    assert keys[0] == keys[1]
    assert not await silent.failures()


async def test_a_token_that_is_refused_tells_by_which_bypass_it_was_asked_for(
    scene: Scene,
) -> None:
    await scene.launch(vercelProtectionBypassToken="expired")
    scene.between.fault(TOKEN, status=403)
    async with scene.dispatching(**KEYLESS):
        report = await scene.reported("retrying")
    assert (report.error_code, report.bypass_source) == ("http_403", "launch")


async def test_a_second_401_fails_and_drops_the_kept_token(silent: Scene) -> None:
    await silent.start()
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
        silent.between.fault("/events", status=401, times=2)
        await silent.progress("p1")
        await silent.reported("retrying")
        assert silent.between.counts[TOKEN] == 2
        await silent.make_due()
        await silent.all_delivered()
    assert silent.between.counts[TOKEN] == 3
    assert len(set(silent.keys())) == 1


async def test_401_on_a_token_that_has_served_is_refreshed_between_pieces(silent: Scene) -> None:
    await silent.start()
    await silent.functions.set_setting("delivery_piece_max_events", 2)
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
    await silent.ingress("e1", count=6)
    before, gate = silent.between.counts[TOKEN], asyncio.Event()
    first = silent.between.fault("/events", hold=gate)
    async with silent.dispatching(**KEYLESS):
        await first.reached.wait()
        silent.between.fault("/events", status=401)
        gate.set()
        await silent.all_delivered()
    assert silent.between.counts[TOKEN] == before + 2, "one for the run, one for the second piece"
    assert len(silent.keys()) == 4
    assert len(set(silent.keys())) == 1
    assert silent.reports[-1].outcome == "delivered"


async def test_401_on_a_fresh_token_is_not_refreshed(scene: Scene) -> None:
    await scene.launch()
    scene.between.fault("/created", status=401, body=b'{"retryable": false}')
    async with scene.dispatching(**KEYLESS):
        report = await scene.reported("retrying")
    assert report.error_code == "http_401"
    assert scene.between.counts[TOKEN] == 1


async def test_any_failed_append_drops_the_kept_token(silent: Scene) -> None:
    await silent.start()
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
        silent.between.fault("/events", status=503)
        await silent.progress("p1")
        await silent.reported("retrying")
        await silent.make_due()
        await silent.all_delivered()
    assert silent.between.counts[TOKEN] == 2


async def test_an_advertised_receiver_gets_the_widened_prefix(scene: Scene) -> None:
    attempt = await scene.start()
    async with scene.dispatching(**KEYLESS):
        await scene.all_delivered()
    for n in range(3):
        await scene.ingress(f"e{n}")
    await scene.progress("p1")
    await scene.finish(attempt)
    before = len(scene.keys())
    async with scene.dispatching(**KEYLESS):
        await scene.all_delivered()
    assert len(scene.keys()) == before + 1
    assert (await scene.ledger())[2:] == ["sheet.row"] * 3 + ["run.progress", "run.completed"]
    assert "widen" in scene.reports[-1].milliseconds


async def test_a_drain_widens_within_its_budget(scene: Scene) -> None:
    attempt = await scene.start()
    dispatcher = scene.dispatcher(**KEYLESS)
    await dispatcher.dispatch_through_event(ORG, "run", "nothing")
    for n in range(3):
        await scene.ingress(f"e{n}")
    terminal = await scene.finish(attempt)
    first = await dispatcher.dispatch_through_event(ORG, "run", terminal, max_facts=2)
    assert first.acknowledged == ["e0", "e1"]
    rest = await dispatcher.dispatch_through_event(ORG, "run", terminal)
    assert rest.acknowledged == ["e2", terminal]
    assert len(scene.keys()) == 2
    await dispatcher.close()


@pytest.mark.parametrize("hours", [-1, 1])
async def test_a_dispatcher_whose_clock_is_wrong_delivers(silent: Scene, hours: int) -> None:
    await silent.functions.set_setting("delivery_piece_max_events", 2)
    await silent.start()
    await silent.ingress("e0", count=4)
    dispatcher = silent.dispatcher(**KEYLESS)

    def wrong() -> float:
        return time.time() + hours * 3600

    credentials = dispatcher._deliverer._credentials
    credentials._clock = wrong
    assert isinstance(credentials._tokens, GatewayTokens)
    credentials._tokens._cache = TokenCache(clock=wrong)
    running = asyncio.create_task(dispatcher.run())
    await silent.all_delivered()
    await silent.ingress("e1")
    await silent.all_delivered()
    dispatcher.stop()
    await running
    assert len(await silent.ledger()) == 7
    assert {report.outcome for report in silent.reports} == {"delivered"}


async def test_without_the_advertisement_ingress_goes_alone(silent: Scene) -> None:
    attempt = await silent.start()
    for n in range(3):
        await silent.ingress(f"e{n}")
    await silent.finish(attempt)
    async with silent.dispatching(**KEYLESS):
        await silent.all_delivered()
    assert len(silent.keys()) == 4


async def test_widening_that_cannot_lock_keeps_the_single_head(
    scene: Scene, connect: Connect
) -> None:
    attempt = await scene.start()
    async with scene.dispatching(**KEYLESS):
        await scene.all_delivered()
    await scene.ingress("e0")
    await scene.ingress("e1")
    await scene.finish(attempt)
    gate = asyncio.Event()
    fault = scene.between.fault(TOKEN, hold=gate)
    locked = await connect(scene.dsn)
    async with scene.dispatching(**KEYLESS):
        await fault.reached.wait()
        await locked.execute("begin")
        await locked.execute("select from counterfoil.runs where run_id = 'run' for update")
        # The gateway itself reads without locks, so it answers; the widening finds the run locked.
        gate.set()
        await scene.eventually(_sent(scene, "e0"), bool)
        await locked.execute("rollback")
        await scene.all_delivered()
    first = next(r.json() for r in scene.between.requests if _has(r, "e0"))
    assert [event["eventId"] for event in first["events"]] == ["e0"]
    assert (await scene.sources())[2:4] == ["e0", "e1"]


async def test_widening_brings_deferred_facts_to_the_projector_first(scene: Scene) -> None:
    attempt = await scene.start()
    async with scene.dispatching(**KEYLESS):
        await scene.all_delivered()
    await scene.ingress("e0")
    await scene.append("d1", "run.progress", {"deferredProjection": True, "done": 1})
    await scene.finish(attempt)
    before = len(scene.keys())
    async with scene.dispatching(**KEYLESS, projector=False):
        report = await scene.reported("handed_off")
    assert "d1" in report.event_ids
    assert len(scene.keys()) == before
    async with scene.dispatching(**KEYLESS):
        await scene.all_delivered()
    assert (await scene.ledger())[2:] == ["sheet.row", "run.progress", "run.completed"]


async def test_a_wrong_internal_token_is_a_failure_to_retry(scene: Scene) -> None:
    await scene.launch()
    async with scene.dispatching(**KEYLESS, internal_token=Secret("another")):
        report = await scene.reported("retrying")
    assert report.error_code == "unauthorized"
    assert scene.between.counts["created"] == 0


async def test_gateway_authority_needs_the_internal_token() -> None:
    settings = Settings(token_authority="gateway", internal_token=NO_SECRET)
    with pytest.raises(SettingsError, match="internal_token"):
        Dispatcher(Database("host=nowhere"), settings)


async def test_a_billing_token_needs_a_work_counter_segment(scene: Scene) -> None:
    attempt = await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.progress("p1")
    terminal = await scene.finish(attempt, terminalWorkCounterSegment={"rows": 3})
    facts = await scene.functions.claim_deliveries("owner", 30, 64, 1)
    authority = Authority.read(ORG, "run", facts[0].dispatch_authority or {})
    upstream = Upstream(trusted_urls=[scene.settings.base_url])
    async with upstream:
        tokens = GatewayTokens(
            upstream,
            schema="counterfoil",
            internal_token=INTERNAL,
            environment_bypass=NO_SECRET,
        )
        token = await tokens.compute_billing_token(authority, terminal, "owner")
        assert scene.signer.check(token.reveal(), frozenset({"compute_billing"})).run_id == "run"
        with pytest.raises(ReceiverError) as refused:
            await tokens.compute_billing_token(authority, "p1", "owner")
        assert refused.value.status == 409
        with pytest.raises(ReceiverError) as foreign:
            await tokens.compute_billing_token(authority, terminal, "somebody else")
        assert (foreign.value.status, foreign.value.code) == (409, "lease_lost")


def _has(request: Request, event_id: str) -> bool:
    return request.path.endswith("/events") and request.json()["events"][0]["eventId"] == event_id


def _sent(scene: Scene, event_id: str) -> Callable[[], Awaitable[bool]]:
    async def probe() -> bool:
        return any(_has(request, event_id) for request in scene.between.requests)

    return probe
