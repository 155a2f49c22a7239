"""Forwarding a runner's requests: to the pinned base, and with nothing that must not travel."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.gateway import create_app
from counterfoil.receiving.metrics import Metrics
from counterfoil.settings import Secret, Settings
from tests.py.driver.scene import ORG, Scene, serving
from tests.py.gateway.client import Answer, Client

CONTROL = "/api/v2/play-runtime/control"


class RuntimeApi:
    """The upstream: keeps what it was sent and answers what a test chooses."""

    def __init__(self) -> None:
        self.requests: list[tuple[Request, bytes]] = []
        self.answer = Response(b'{"n": 1.50}', media_type="application/json")
        self.gate: asyncio.Event | None = None
        self.url = ""

    async def endpoint(self, request: Request) -> Response:
        self.requests.append((request, await request.body()))
        if self.gate is not None:
            await self.gate.wait()
        return self.answer


@pytest.fixture
async def api() -> AsyncIterator[RuntimeApi]:
    found = RuntimeApi()
    routes = [Route("/{path:path}", found.endpoint, methods=["GET", "POST", "PUT", "DELETE"])]
    async with serving(Starlette(routes=routes), Settings()) as url:
        found.url = url
        yield found


@pytest.fixture
async def proxy(client: Client, scene: Scene) -> AsyncIterator[Client]:
    """A gateway that may forward to private addresses."""
    allowing = replace(
        scene.settings,
        allow_private_upstreams=True,
        append_timeout=1.0,
        protection_bypass=Secret("env-bypass"),
    )
    async with serving(create_app(scene.database, allowing), allowing) as url:
        client.url = url
        yield client


async def call(client: Client, path: str = "/x", method: str = "POST", **options: object) -> Answer:
    return await client.call(
        method,
        CONTROL + path,
        options.pop("data", None),
        bearer=client.token(),
        **options,  # type: ignore[arg-type]
    )


async def test_a_request_is_forwarded_and_answered_as_it_is(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url + "/base")
    api.answer.status_code = 418
    answer = await call(
        proxy, "/a%2Fb/b%20c?q=1&q=%26", "PUT", data=b'{"n": 1.50}', headers={"x-own": "kept"}
    )
    assert (answer.status, answer.text) == (418, '{"n": 1.50}')
    [(request, body)] = api.requests
    assert (request.method, body) == ("PUT", b'{"n": 1.50}')
    assert request.scope["raw_path"] == b"/base/a%2Fb/b%20c"
    assert request.scope["query_string"] == b"q=1&q=%26"
    assert request.headers["x-own"] == "kept"
    assert request.headers["authorization"].startswith("Bearer ")


async def test_the_launchs_bypass_comes_first(proxy: Client, scene: Scene, api: RuntimeApi) -> None:
    await scene.launch(baseUrl=api.url, vercelProtectionBypassToken="launch-bypass")
    await call(proxy, headers={"x-vercel-protection-bypass": "the caller's"})
    assert api.requests[0][0].headers["x-vercel-protection-bypass"] == "launch-bypass"


async def test_the_environments_bypass_comes_second(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    await call(proxy)
    assert api.requests[0][0].headers["x-vercel-protection-bypass"] == "env-bypass"


async def test_what_must_not_travel_does_not(proxy: Client, scene: Scene, api: RuntimeApi) -> None:
    await scene.launch(baseUrl=api.url)
    api.answer.headers.update({"set-cookie": "a=b", "x-seen": "1", "keep-alive": "5"})
    answer = await call(
        proxy,
        headers={
            "x-vercel-set-bypass-cookie": "true",
            "cookie": "a=b",
            "te": "trailers",
            "trailer": "x-hop",
            "upgrade": "h2c",
            "keep-alive": "5",
            "proxy-authorization": "Basic x",
            "proxy-connection": "keep-alive",
            "connection": "close, x-hop",
            "x-hop": "1",
        },
    )
    sent = api.requests[0][0].headers
    hops = {"te", "trailer", "upgrade", "keep-alive", "proxy-authorization", "proxy-connection"}
    ours = {"x-vercel-set-bypass-cookie", "cookie", "x-hop"}
    assert not {name.lower() for name in sent} & (hops | ours)
    assert sent["host"] == api.url.removeprefix("http://")
    assert "set-cookie" not in answer.headers
    assert "keep-alive" not in answer.headers
    assert answer.headers["x-seen"] == "1"


async def test_a_header_given_twice_travels_whole_or_not_at_all(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    headers = [("connection", "x-a"), ("connection", "X-B, close"), ("x-a", "1"), ("x-b", "2")]
    headers += [("x-kept", "1"), ("x-kept", "2"), ("authorization", f"Bearer {proxy.token()}")]
    async with proxy.session.get(proxy.url + CONTROL + "/x", headers=headers) as answer:
        assert answer.status == 200
    sent = api.requests[0][0].headers
    assert ("x-a" in sent, "x-b" in sent, sent["x-kept"]) == (False, False, "1, 2")


async def test_headers_travel_as_the_bytes_that_they_are(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    said = "Zoë €".encode() + b" \xff"
    api.answer.raw_headers.append((b"x-name", said))
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"GET {CONTROL}/x HTTP/1.1\r\nhost: x\r\nconnection: close\r\nx-name: Zoë €\r\n"
        f"authorization: Bearer {proxy.token()}\r\n\r\n".encode()
    )
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 200")
    assert b"x-name: " + said + b"\r\n" in answer
    assert dict(api.requests[0][0].headers.raw)[b"x-name"] == "Zoë €".encode()


@pytest.mark.parametrize("status", ["101", "099", "600", "999"])
async def test_a_status_that_ends_no_request_is_502(
    proxy: Client, scene: Scene, status: str
) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n".encode())
        writer.close()

    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        await scene.launch(baseUrl=f"http://127.0.0.1:{port}")
        assert (await call(proxy)).error == (502, "receiver_answer_invalid")


async def test_one_orgs_slow_runtime_api_holds_up_no_other_org(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    for org_id in (ORG, "another"):
        await scene.launch(orgId=org_id, baseUrl=api.url)
    narrow = replace(
        scene.settings, allow_private_upstreams=True, append_timeout=20.0, org_forwards=2
    )
    api.gate = asyncio.Event()

    async def arrived(count: int) -> None:
        await scene.eventually(
            lambda: asyncio.sleep(0, len(api.requests)), lambda found: found == count
        )

    async with serving(create_app(scene.database, narrow), narrow) as url:
        proxy.url = url
        asking = [asyncio.create_task(call(proxy)) for _ in range(2)]
        await arrived(2)
        busy = await call(proxy)
        assert busy.error == (503, "gateway_busy")
        assert (busy.body["retryable"], busy.headers["retry-after"]) == (True, "1")
        theirs = proxy.token(org_id="another")
        asking.append(asyncio.create_task(proxy.call("GET", CONTROL + "/x", bearer=theirs)))
        await arrived(3)
        api.gate.set()
        assert [answer.status for answer in await asyncio.gather(*asking)] == [200] * 3
        assert [(await call(proxy)).status for _ in range(3)] == [200] * 3


async def test_redirects_are_not_followed(proxy: Client, scene: Scene, api: RuntimeApi) -> None:
    await scene.launch(baseUrl=api.url)
    api.answer = Response(status_code=307, headers={"location": api.url + "/sso"})
    answer = await call(proxy)
    assert answer.error == (502, "redirect_refused")
    assert "location" not in answer.headers
    assert len(api.requests) == 1


async def test_a_gateway_does_not_forward_to_itself(proxy: Client, scene: Scene) -> None:
    await scene.launch(baseUrl=proxy.url)
    assert (await call(proxy)).error == (508, "self_proxy")


async def test_private_addresses_are_refused_unless_allowed(
    client: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    assert (await call(client)).error == (403, "upstream_address_refused")
    assert not api.requests


async def test_the_configured_name_and_the_own_address_are_the_gateway_too(
    proxy: Client, scene: Scene
) -> None:
    for run_id, url in (("a", scene.settings.base_url), ("b", proxy.url)):
        await scene.launch(run_id, baseUrl=url)
        answer = await proxy.call(
            "GET", CONTROL + "/x", bearer=proxy.token(run_id=run_id), headers={"host": "gw.example"}
        )
        assert answer.error == (508, "self_proxy")


async def test_a_gateways_own_endpoints_are_no_runtime_api_by_any_name(
    proxy: Client, scene: Scene
) -> None:
    port = proxy.url.rpartition(":")[2]
    await scene.launch(baseUrl=f"http://localhost:{port}")
    for path in ("/metrics", "/healthz", "/openapi.json", "/api/v2/runs/run/state"):
        answer = await proxy.call("GET", CONTROL + path, bearer=proxy.token())
        assert answer.error == (508, "self_proxy"), path


async def test_what_comes_back_by_another_name_is_refused(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    port = proxy.url.rpartition(":")[2]
    await scene.launch(baseUrl=f"http://localhost:{port}{CONTROL}")
    looped = await call(proxy, headers={"connection": "x-counterfoil-forwarded"})
    assert looped.error == (508, "self_proxy")
    await scene.launch("other", baseUrl=api.url)
    bearer = proxy.token(run_id="other")
    marked = await proxy.call(
        "GET", CONTROL + "/x", bearer=bearer, headers={"x-counterfoil-forwarded": "0"}
    )
    assert marked.error == (508, "self_proxy")
    assert not api.requests
    assert (await proxy.call("GET", CONTROL + "/x", bearer=bearer)).status == 200
    assert api.requests[0][0].headers["x-counterfoil-forwarded"] == "1"


@pytest.mark.parametrize(
    "path",
    [
        "/",
        "/%2e%2e/x",
        "/a/%2e%2e/%2e%2e/x",
        "//evil.example/x",
        "/a//b",
        "/a%5Cb",
        "/%2e%2e%2fx",
        "/a%2F%2Fb",
        "/%2e",
        "/..;/x",
        "/a/..;b=c/x",
    ],
)
async def test_a_path_cannot_leave_the_base(
    proxy: Client, scene: Scene, api: RuntimeApi, path: str
) -> None:
    await scene.launch(baseUrl=api.url + "/base")
    host, port = proxy.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(
        f"GET {CONTROL}{path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
        f"authorization: Bearer {proxy.token()}\r\n\r\n".encode()
    )
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    assert answer.startswith(b"HTTP/1.1 400")
    assert not api.requests


async def test_a_slow_upstream_is_504_and_an_absent_one_502(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    api.gate = asyncio.Event()
    answer = await call(proxy)
    api.gate.set()
    assert answer.error == (504, "receiver_timeout")
    await scene.launch("other", baseUrl="http://127.0.0.1:1")
    gone = await proxy.call("GET", CONTROL + "/x", bearer=proxy.token(run_id="other"))
    assert gone.error == (502, "receiver_unreachable")


async def test_an_answer_is_bounded(proxy: Client, scene: Scene, api: RuntimeApi) -> None:
    await scene.launch(baseUrl=api.url)
    api.answer = Response(b"x" * 300_000)
    assert (await call(proxy)).error == (502, "receiver_answer_too_large")
    assert (await call(proxy, data=b"x" * 300_000)).error == (413, "payload_too_large")


async def test_answers_count_among_the_bodies_that_are_held(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    await scene.launch(baseUrl=api.url)
    metrics = Metrics()
    tight = replace(scene.settings, allow_private_upstreams=True, bodies_max_bytes=1)
    async with serving(create_app(scene.database, tight, metrics), tight) as url:
        proxy.url = url
        api.answer = Response(b"x" * 150_000)
        # One body and its copy may be held at least; what is sent and what is answered add up.
        assert (await call(proxy, data=b"x" * 180_000)).status == 200
        api.gate = asyncio.Event()
        both = [asyncio.create_task(call(proxy, data=b"x" * 180_000)) for _ in range(2)]
        async with asyncio.timeout(5):
            while len(api.requests) < 3:
                await asyncio.sleep(0.01)
        api.gate.set()
        answers = await asyncio.gather(*both)
        assert (503, "gateway_busy") in [a.error for a in answers if a.status != 200]
        assert "body_bytes_held 0\n" in metrics.text()


async def test_only_a_runner_of_a_live_run_is_forwarded(
    proxy: Client, scene: Scene, api: RuntimeApi
) -> None:
    attempt = await scene.start(baseUrl=api.url)
    other = await proxy.call("GET", CONTROL + "/x", bearer=proxy.token("dispatch"))
    assert other.error == (403, "scope_mismatch")
    assert (await proxy.call("GET", CONTROL + "/x")).error == (401, "unauthorized")
    await scene.finish(attempt)
    assert (await call(proxy)).error == (409, "invalid_state")
    assert not api.requests
