"""What can go wrong on the way to the ledger, and what is left afterwards."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest

from counterfoil.authority import Authority, DispatchToken, LocalMint
from counterfoil.database import Database
from counterfoil.dispatcher import Dispatcher
from counterfoil.errors import SettingsError
from counterfoil.settings import Settings
from tests.py.driver.scene import KEY, ORG, Scene, open_scene
from tests.servers.databases import Connect, database_name


@pytest.mark.parametrize("endpoint", ["created", "started", "events"])
async def test_a_lost_reply_is_repeated_under_the_same_key(scene: Scene, endpoint: str) -> None:
    attempt = await scene.start()
    await scene.progress("p1")
    await scene.finish(attempt)
    scene.between.fault(f"/{endpoint}", drop_reply=True)
    async with scene.dispatching():
        await scene.reported("retrying")
        await scene.make_due()
        await scene.all_delivered()
    keys = scene.keys(endpoint)
    assert len(keys) >= 2
    assert keys[0] == keys[1]
    assert await scene.ledger() == ["run.created", "run.started", "run.progress", "run.completed"]


async def test_a_frozen_receipt_does_not_grow_after_a_failure(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.progress("p1")
    fault = scene.between.fault("/events", status=500)
    async with scene.dispatching():
        await fault.reached.wait()
        await scene.reported("retrying")
        await scene.progress("p2")
        await scene.finish(attempt)
        await scene.make_due()
        await scene.all_delivered()
    bodies = [r.json() for r in scene.between.requests if r.path.endswith("/events")]
    assert [event["eventId"] for event in bodies[0]["events"]] == ["p1"]
    assert bodies[1]["events"] == bodies[0]["events"]
    assert bodies[1]["idempotencyKey"] == bodies[0]["idempotencyKey"]
    assert (await scene.sources())[2:4] == ["p1", "p2"]


async def test_a_begun_delivery_is_cut_alike_whatever_the_settings_are_by_then(
    scene: Scene,
) -> None:
    await scene.functions.set_setting("delivery_piece_max_events", 2)
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.ingress("e1", count=5)
    first, second = scene.between.fault("/events"), scene.between.fault("/events", status=500)
    async with scene.dispatching():
        await scene.reported("retrying")
        assert first.reached.is_set()
        assert second.reached.is_set()
        await scene.functions.set_setting("delivery_piece_max_events", 100)
        await scene.make_due()
        await scene.all_delivered()
    bodies = [r.json() for r in scene.between.requests if r.path.endswith("/events")]
    assert [(b["chunk"], b["chunkCount"]) for b in bodies] == [
        *((1, 3), (2, 3)),
        *((1, 3), (2, 3), (3, 3)),
    ]
    assert bodies[0] == bodies[2] | {"leaseOwner": bodies[0]["leaseOwner"]}
    assert (await scene.ledger())[2:] == ["sheet.row"] * 5


async def test_a_failing_receiver_is_charged_with_backoff(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.progress("p1")
    await scene.progress("p2")
    scene.between.fault("/events", status=500, body=b'{"error": "down", "code": "broken"}', times=9)
    async with scene.dispatching():
        report = await scene.reported("retrying")
    assert report.retrying == ("p1", "p2")
    failures = await scene.failures()
    assert [(f["event_id"], f["attempts"], f["state"]) for f in failures] == [
        ("p1", 1, "retrying"),
        ("p2", 1, "retrying"),
    ]
    assert failures[0]["next_attempt_at"] == failures[1]["next_attempt_at"]
    assert failures[0]["last_error"]["code"] == "broken"
    [lane] = await scene.lanes()
    assert lane["lease_owner"] is None


async def test_what_the_receiver_refuses_for_good_is_blocked(scene: Scene) -> None:
    await scene.launch()
    refusal = json.dumps({"error": "no", "code": "never", "retryable": False}).encode()
    scene.between.fault("/created", status=422, body=refusal)
    async with scene.dispatching():
        report = await scene.reported("blocked")
    assert report.error_code == "never"
    assert len(report.blocked) == 1
    event_id = report.blocked[0]
    assert await scene.functions.delivery_status(ORG, "run", event_id) == "blocked"


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"{}",
        b'{"outcome": "ignored", "complete": true}',
        b'{"outcome": "appended", "complete": false}',
    ],
)
async def test_facts_do_not_vanish_at_a_receiver_that_says_yes_to_anything(
    scene: Scene, answer: bytes
) -> None:
    await scene.launch()
    scene.between.fault("/created", status=200, body=answer)
    async with scene.dispatching():
        report = await scene.reported("retrying")
        assert report.error_code == "receiver_answer_invalid"
        await scene.make_due()
        await scene.all_delivered()
    assert await scene.ledger() == ["run.created"]


async def test_a_redirect_is_never_followed(scene: Scene) -> None:
    await scene.launch()
    to = f"{scene.settings.base_url}/elsewhere".encode()
    scene.between.fault("/created", status=307, headers=((b"location", to),))
    async with scene.dispatching():
        report = await scene.reported("retrying")
    assert report.error_code == "redirect_refused"
    assert scene.between.counts["elsewhere"] == 0


async def test_an_abort_releases_and_charges_nothing(scene: Scene) -> None:
    await scene.launch()
    fault = scene.between.fault("/created", hold=asyncio.Event())
    dispatcher = scene.dispatcher()
    running = asyncio.create_task(dispatcher.run())
    await fault.reached.wait()
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    [lane] = await scene.lanes()
    assert lane["lease_owner"] is None
    assert lane["failures"] == 0
    assert [report.outcome for report in scene.reports] == ["released"]


async def test_stopping_finishes_what_is_in_hand_and_claims_nothing_more(scene: Scene) -> None:
    attempt = await scene.start()
    await scene.finish(attempt)
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    dispatcher = scene.dispatcher()
    running = asyncio.create_task(dispatcher.run())
    await fault.reached.wait()
    dispatcher.stop()
    gate.set()
    await running
    assert await scene.ledger() == ["run.created"]
    [lane] = await scene.lanes()
    assert lane["lease_owner"] is None
    assert lane["failures"] == 0


async def test_a_drain_that_takes_too_long_releases(scene: Scene) -> None:
    await scene.launch()
    fault = scene.between.fault("/created", hold=asyncio.Event())
    dispatcher = scene.dispatcher(drain_seconds=0.05)
    running = asyncio.create_task(dispatcher.run())
    await fault.reached.wait()
    dispatcher.stop()
    await running
    [lane] = await scene.lanes()
    assert lane["lease_owner"] is None
    assert lane["failures"] == 0


async def test_a_delivery_whose_lease_went_to_another_writes_nothing_twice(scene: Scene) -> None:
    await scene.launch()
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    slow = scene.dispatcher()
    running = asyncio.create_task(slow.run())
    await fault.reached.wait()
    slow.stop()
    await scene.expire_leases()
    async with scene.dispatching():
        await scene.all_delivered()
    gate.set()
    await running
    assert await scene.ledger() == ["run.created"]
    assert {report.outcome for report in scene.reports} == {"delivered", "lost"}


async def test_a_base_url_that_changes_within_a_run_is_an_error(scene: Scene) -> None:
    await scene.start()
    gate = asyncio.Event()
    fault = scene.between.fault("/created", hold=gate)
    async with scene.dispatching():
        await fault.reached.wait()
        await scene.rows(
            "update counterfoil.launches set dispatch_authority ="
            ' dispatch_authority || \'{"baseUrl": "http://127.0.0.1:1"}\''
        )
        gate.set()
        report = await scene.reported("blocked")
    assert report.error_code == "base_url_changed"
    assert scene.between.counts["started"] == 0


class ShortTokens(LocalMint):
    """Tokens that are about to expire whenever they are looked at."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments, lifetime_seconds=3)
        self.asked: list[bool] = []

    async def token(
        self, authority: Authority, event_id: str, lease_owner: str, *, fresh: bool = False
    ) -> DispatchToken:
        self.asked.append(fresh)
        return await super().token(authority, event_id, lease_owner, fresh=fresh)


async def test_a_long_delivery_renews_its_token_before_it_expires(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.functions.set_setting("delivery_piece_max_events", 2)
    await scene.ingress("e1", count=6)
    tokens = ShortTokens(scene.signer)
    dispatcher = Dispatcher(scene.database, scene.settings, tokens=tokens)
    running = asyncio.create_task(dispatcher.run())
    await scene.all_delivered()
    dispatcher.stop()
    await running
    assert tokens.asked == [False, True, True, True]


async def test_a_base_url_that_changes_within_a_long_delivery_is_an_error(scene: Scene) -> None:
    await scene.start()
    async with scene.dispatching():
        await scene.all_delivered()
    await scene.functions.set_setting("delivery_piece_max_events", 2)
    await scene.ingress("e1", count=6)
    before, gate = len(scene.keys()), asyncio.Event()
    fault = scene.between.fault("/events", hold=gate)
    observer = scene.reports.append
    tokens = ShortTokens(scene.signer)
    dispatcher = Dispatcher(scene.database, scene.settings, tokens=tokens, observer=observer)
    running = asyncio.create_task(dispatcher.run())
    await fault.reached.wait()
    await scene.rows(
        "update counterfoil.launches set dispatch_authority ="
        ' dispatch_authority || \'{"baseUrl": "http://127.0.0.1:1"}\''
    )
    gate.set()
    report = await scene.reported("blocked")
    dispatcher.stop()
    await running
    assert report.error_code == "base_url_changed"
    assert len(scene.keys()) == before + 1


async def test_a_request_may_not_outlast_every_lease() -> None:
    Dispatcher(Database("host=nowhere"), Settings(signing_keys=(KEY,), append_timeout=290))
    with pytest.raises(SettingsError, match="append_timeout"):
        Dispatcher(Database("host=nowhere"), Settings(signing_keys=(KEY,), append_timeout=291))


async def test_a_receiver_that_is_away_is_tried_again(scene: Scene) -> None:
    await scene.launch(baseUrl="http://127.0.0.1:1")
    async with scene.dispatching(allow_private_upstreams=True):
        report = await scene.reported("retrying")
    assert report.error_code == "receiver_unreachable"


async def test_a_private_address_is_refused_unless_allowed(scene: Scene) -> None:
    await scene.launch(baseUrl="http://127.0.0.1:1")
    async with scene.dispatching():
        report = await scene.reported("retrying")
    assert report.error_code == "upstream_address_refused"
    [failure] = await scene.failures()
    assert "base_url" in failure["last_error"]["message"]


async def test_a_dispatcher_that_is_told_the_right_base_url_heals_what_it_refused(
    scene: Scene,
) -> None:
    await scene.launch()
    async with scene.dispatching(base_url="http://127.0.0.1:1"):
        await scene.reported("retrying")
    async with scene.dispatching():
        await scene.make_due()
        await scene.all_delivered()
    assert await scene.ledger() == ["run.created"]


@pytest.mark.parametrize("isolation", ["repeatable read", "serializable"])
async def test_a_database_with_another_default_isolation_charges_no_fact(
    installed: str, connect: Connect, isolation: str
) -> None:
    """Calls that meet each other fail there with 40001; the driver makes them again."""
    admin = await connect(installed)
    await admin.execute(
        f"alter database {database_name(installed)}"
        f" set default_transaction_isolation = '{isolation}'".encode()
    )
    async with open_scene(installed) as scene:
        attempt = await scene.start()

        async def produce(name: str) -> None:
            for n in range(10):
                await scene.progress(f"{name}{n}")

        async with scene.dispatching(), scene.dispatching():
            await asyncio.gather(*(produce(name) for name in "abcdef"))
            await scene.finish(attempt)
            await scene.all_delivered()
        assert len(await scene.ledger()) == 63
        assert {report.outcome for report in scene.reports} == {"delivered"}
