"""Who gets in: scoped tokens, the internal token, and nobody else."""

from __future__ import annotations

import base64
import hmac
from collections.abc import AsyncIterator
from dataclasses import replace
from types import SimpleNamespace

import aiohttp
import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from counterfoil.errors import SettingsError
from counterfoil.gateway import create_app
from counterfoil.settings import NO_SECRET, Secret
from counterfoil.tokens import TokenSigner
from tests.py.driver.scene import INTERNAL, KEY, ORG, Scene, open_scene, serving
from tests.py.gateway.client import BILLING, LEDGER, RECEIPTS, TOKEN, Client

SCOPED = [
    ("POST", f"{LEDGER}/events"),
    ("POST", RECEIPTS),
    ("GET", "/api/v2/runs/run"),
    ("GET", "/api/v2/runs/run/state"),
    ("GET", "/api/v2/runs/run/events"),
    ("GET", "/api/v2/runs/run/journal"),
    ("GET", "/api/v2/play-runtime/control/x"),
]


@pytest.mark.parametrize(("method", "path"), [*SCOPED, ("POST", TOKEN), ("POST", BILLING)])
async def test_no_token_no_entry(client: Client, method: str, path: str) -> None:
    for headers in (
        {},
        {"authorization": ""},
        {"authorization": "Bearer"},
        {"authorization": "Bearer "},
        {"authorization": f"Basic {INTERNAL.reveal()}"},
        {"authorization": "Bearer nonsense"},
        {"authorization": "Bearer a.b.c"},
    ):
        answer = await client.call(method, path, b"{}", headers=headers)
        assert answer.error == (401, "unauthorized"), headers
        assert answer.headers["www-authenticate"] == "Bearer"
        assert INTERNAL.reveal() not in answer.text


async def test_a_token_of_any_bytes_is_refused(client: Client) -> None:
    deep = base64.urlsafe_b64encode(b"[" * 30_000).decode()
    head = base64.urlsafe_b64encode(b'{"alg": "HS256", "kid": "k1"}').decode().rstrip("=")
    for bearer in (f"{deep}.x.y", f"{head}.{deep}.x", "ä.b.c", "a" * 50_000, ".." * 1000, "\t."):
        for path in (RECEIPTS, TOKEN):
            answer = await client.call("POST", path, b"{}", bearer=bearer)
            assert answer.error == (401, "unauthorized"), bearer[:20]


@pytest.mark.parametrize(("method", "path"), SCOPED)
async def test_a_forged_token_is_refused(client: Client, method: str, path: str) -> None:
    forger = TokenSigner([(KEY[0], Secret("the wrong secret, but of good length"))], "counterfoil")
    token = forger.mint(org_id=ORG, play_name="play", run_id="run", use="dispatch")
    answer = await client.call(method, path, b"{}", bearer=token.reveal())
    assert answer.error == (401, "unauthorized")


async def test_a_runners_token_does_not_open_the_ledger(client: Client) -> None:
    answer = await client.ledger("events", {}, bearer=client.token("executor"))
    assert answer.error == (403, "scope_mismatch")


@pytest.mark.parametrize("use", ["dispatch", "compute_billing"])
async def test_receipts_are_the_runners_alone(client: Client, use: str) -> None:
    answer = await client.receipt({}, bearer=client.token(use))  # type: ignore[arg-type]
    assert answer.error == (403, "scope_mismatch")


async def test_a_scoped_token_does_not_open_internal_endpoints(client: Client) -> None:
    answer = await client.internal(TOKEN, {}, bearer=client.token("dispatch"))
    assert answer.error == (401, "unauthorized")


async def test_reads_are_of_the_tokens_own_run(client: Client, scene: Scene) -> None:
    await scene.launch("other")
    async with scene.dispatching():
        await scene.all_delivered("other")
    answer = await client.get("/api/v2/runs/other", client.token())
    assert answer.error == (403, "scope_mismatch")
    assert (await client.get("/api/v2/runs/other", client.token(run_id="other"))).status == 200
    own = await client.get(f"/api/v2/runs/other?orgId={ORG}", client.token(run_id="other"))
    assert own.status == 200
    theirs = await client.get("/api/v2/runs/other?orgId=theirs", client.token(run_id="other"))
    assert theirs.error == (403, "scope_mismatch")
    foreign = client.token(run_id="other", org_id="another org")
    assert (await client.get("/api/v2/runs/other", foreign)).error == (404, "not_found")


async def test_the_internal_token_reads_any_org_that_it_names(client: Client, scene: Scene) -> None:
    await scene.launch()
    async with scene.dispatching():
        await scene.all_delivered()
    path = "/api/v2/runs/run"
    bearer = INTERNAL.reveal()
    assert (await client.get(f"{path}?orgId={ORG}", bearer)).status == 200
    assert (await client.get(path, bearer)).error == (400, "invalid_argument")
    assert (await client.get(f"{path}?orgId=another", bearer)).error == (404, "not_found")


@pytest.fixture
async def rotated(installed: str) -> AsyncIterator[Client]:
    """A gateway in the middle of a change of its internal token."""
    new, old = Secret("the new internal token ä"), INTERNAL
    changes = {"internal_token": new, "previous_internal_token": old}
    async with open_scene(installed, **changes) as scene, aiohttp.ClientSession() as session:
        yield Client(session, scene, scene.settings.base_url)


async def test_the_internal_token_is_changed_with_overlap(rotated: Client) -> None:
    for bearer in ("the new internal token ä", INTERNAL.reveal()):
        assert (await rotated.internal(TOKEN, {}, bearer=bearer)).status == 400
    assert (await rotated.internal(TOKEN, {}, bearer="neither")).status == 401


async def test_an_internal_token_is_compared_in_constant_time_with_every_known_one(
    rotated: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = ["the new internal token ä", INTERNAL.reveal()]
    compared: list[str] = []
    says = [hmac.compare_digest]

    def compare(given: bytes, other: bytes) -> bool:
        compared.append(other.decode())
        return says[0](given, other)

    monkeypatch.setattr(
        "counterfoil.receiving.access.hmac", SimpleNamespace(compare_digest=compare)
    )
    for bearer, status in ((known[0], 400), (known[1], 400), ("neither", 401)):
        compared.clear()
        assert (await rotated.internal(TOKEN, {}, bearer=bearer)).status == status
        # None of them less for a match: the time would tell which one it was.
        assert compared == known
    says[0] = lambda _given, _other: False
    assert (await rotated.internal(TOKEN, {}, bearer=known[0])).status == 401


async def test_without_an_internal_token_nobody_is_internal(client: Client, scene: Scene) -> None:
    app = create_app(scene.database, replace(scene.settings, internal_token=NO_SECRET))
    async with serving(app, scene.settings) as url:
        client.url = url
        for bearer in ("", "x"):
            answer = await client.internal(TOKEN, {}, headers={"authorization": f"Bearer {bearer}"})
            assert answer.error == (503, "not_configured")


async def test_the_app_can_be_mounted(client: Client, scene: Scene) -> None:
    app = Starlette(routes=[Mount("/below", create_app(scene.database, scene.settings))])
    async with serving(app, scene.settings) as url:
        client.url = url + "/below"
        assert (await client.get("/healthz")).status == 200
        assert (await client.receipt({"action": "x"})).error == (400, "unsupported_action")
        assert (await client.get("/openapi.json")).body["servers"] == [{"url": "/below"}]


async def test_a_gateway_without_a_signing_key_does_not_start(scene: Scene) -> None:
    with pytest.raises(SettingsError, match="signing_keys"):
        create_app(scene.database, replace(scene.settings, signing_keys=()))
