"""Requests to receivers: what they carry, where they may go, and how failures read."""

from __future__ import annotations

import ipaddress
from collections.abc import AsyncIterator

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.addresses import is_public
from counterfoil.errors import ReceiverError, RouteChangedError, SelfProxyError
from counterfoil.settings import NO_SECRET, Secret, Settings
from counterfoil.upstream import (
    Answer,
    Bypass,
    Upstream,
    base_of,
    origin_of,
    refuse_changed_route,
    refuse_self_proxy,
)
from tests.py.driver.scene import serving

BEARER = Secret("bearer-secret")
NONE = Bypass(NO_SECRET, "none")


class Receiver:
    """Answers what a test chooses and keeps what it was sent."""

    def __init__(self) -> None:
        self.answer = Response(b"{}", media_type="application/json")
        self.requests: list[Request] = []
        self.url = ""

    async def endpoint(self, request: Request) -> Response:
        self.requests.append(request)
        return self.answer

    async def post(self, bypass: Bypass = NONE, **options: object) -> Answer:
        trusted = options.pop("trusted", [self.url])
        async with Upstream(trusted_urls=trusted, timeout_seconds=5) as upstream:  # type: ignore[arg-type]
            url = str(options.pop("url", f"{self.url}/x"))
            return await upstream.post(url, "{}", bearer=BEARER, bypass=bypass, headers={})


@pytest.fixture
async def receiver() -> AsyncIterator[Receiver]:
    found = Receiver()
    routes = [Route("/{path:path}", found.endpoint, methods=["GET", "POST"])]
    async with serving(Starlette(routes=routes), Settings()) as url:
        found.url = url
        yield found


async def failure(receiver: Receiver, **options: object) -> ReceiverError:
    with pytest.raises(ReceiverError) as failed:
        await receiver.post(**options)  # type: ignore[arg-type]
    return failed.value


@pytest.mark.parametrize(
    ("launch", "environment", "token", "source"),
    [
        ("one", "two", "one", "launch"),
        (" one ", "", "one", "launch"),
        ("  ", "two", "two", "env"),
        (None, " two ", "two", "env"),
        (None, " ", "", "none"),
    ],
)
def test_the_launchs_bypass_comes_before_the_environments(
    launch: str | None, environment: str, token: str, source: str
) -> None:
    chosen = Bypass.choose(launch, Secret(environment))
    assert (chosen.token.reveal(), chosen.source) == (token, source)
    assert not token or token not in repr(chosen)


async def test_the_bypass_goes_in_its_header_and_asks_for_no_cookie(receiver: Receiver) -> None:
    await receiver.post(Bypass(Secret("by"), "launch"))
    headers = receiver.requests[0].headers
    assert headers["x-vercel-protection-bypass"] == "by"
    assert "x-vercel-set-bypass-cookie" not in headers
    assert headers["authorization"] == "Bearer bearer-secret"


async def test_without_a_bypass_there_is_no_header(receiver: Receiver) -> None:
    await receiver.post()
    assert "x-vercel-protection-bypass" not in receiver.requests[0].headers


@pytest.mark.parametrize(
    "bypass", [Bypass(Secret("a-token"), "launch"), Bypass(Secret("a-token"), "env"), NONE]
)
async def test_each_request_says_where_its_bypass_came_from_and_never_the_token(
    receiver: Receiver, caplog: pytest.LogCaptureFixture, bypass: Bypass
) -> None:
    caplog.set_level("DEBUG", "counterfoil")
    await receiver.post(bypass)
    [told] = [r.__dict__ for r in caplog.records if "bypass_source" in r.__dict__]
    assert (told["bypass_source"], told["status"]) == (bypass.source, 200)
    said = [f"{record.getMessage()} {record.__dict__}" for record in caplog.records]
    assert not [line for line in said if "a-token" in line or BEARER.reveal() in line]


async def test_cookies_are_not_kept(receiver: Receiver) -> None:
    receiver.answer.set_cookie("session", "1")
    async with Upstream(trusted_urls=[receiver.url]) as upstream:
        for _ in range(2):
            await upstream.post(receiver.url, "{}", bearer=BEARER, bypass=NONE, headers={})
    assert "cookie" not in receiver.requests[1].headers


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308, 304])
async def test_redirects_are_not_followed(receiver: Receiver, status: int) -> None:
    receiver.answer = Response(status_code=status, headers={"location": f"{receiver.url}/y"})
    error = await failure(receiver)
    assert (error.code, error.status, error.retryable) == ("redirect_refused", status, None)
    assert len(receiver.requests) == 1


async def test_a_refusal_reads_as_the_receiver_said(receiver: Receiver) -> None:
    body = b'{"error": "no", "code": "c", "retryable": false, "retry_after_ms": 7}'
    receiver.answer = Response(body, 409)
    error = await failure(receiver)
    assert error.to_json() == {
        "message": "no",
        "code": "c",
        "status": 409,
        "retryable": False,
        "retryAfterMs": 7,
    }


async def test_401_is_never_final(receiver: Receiver) -> None:
    receiver.answer = Response(b'{"retryable": false}', 401)
    assert (await failure(receiver)).retryable is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[1]", b'"x"', b'{"error": 7, "code": []}'])
async def test_a_refusal_that_says_nothing_is_named_by_its_status(
    receiver: Receiver, body: bytes
) -> None:
    receiver.answer = Response(body, 502)
    error = await failure(receiver)
    assert (error.message, error.code) == ("the receiver answered 502", "http_502")


async def test_a_receivers_words_are_bounded_and_carry_no_credential(receiver: Receiver) -> None:
    said = f'{{"error": "{"x" * 600}\\nbearer-secret"}}'.encode()
    receiver.answer = Response(said, 500)
    assert len((await failure(receiver)).message) == 500
    receiver.answer = Response(b'{"error": "bearer-secret\\r\\nis bad"}', 500)
    assert (await failure(receiver)).message == "*** is bad"


async def test_a_200_that_is_no_json_is_a_failure(receiver: Receiver) -> None:
    receiver.answer = Response(b"<html>login</html>")
    assert (await failure(receiver)).code == "receiver_answer_invalid"


async def test_an_endless_answer_is_cut_off(receiver: Receiver) -> None:
    receiver.answer = Response(b" " * (2 * 1024 * 1024))
    assert (await failure(receiver)).code == "receiver_answer_too_large"


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "2130706433", "[::1]", "127.1"])
async def test_private_addresses_are_refused_however_they_are_written(
    receiver: Receiver, host: str
) -> None:
    port = receiver.url.rsplit(":", 1)[1]
    error = await failure(receiver, trusted=[], url=f"http://{host}:{port}/")
    assert (error.code, error.retryable) == ("upstream_address_refused", None)
    assert not receiver.requests


async def test_trust_in_one_port_of_a_host_opens_no_other(receiver: Receiver) -> None:
    port = receiver.url.rsplit(":", 1)[1]
    url = f"http://localhost:{port}/"
    assert (await receiver.post(trusted=[url], url=url)).status == 200
    error = await failure(receiver, trusted=["http://localhost:1"], url=url)
    assert error.code == "upstream_address_refused"
    assert len(receiver.requests) == 1


async def test_what_was_checked_is_what_is_connected_to(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = [["93.184.216.34", "127.0.0.1"], ["127.0.0.1"]]

    async def resolve(
        self: object, host: str, port: int, family: object
    ) -> list[dict[str, object]]:
        return [
            {"hostname": host, "host": address, "port": port, "family": 2, "proto": 0, "flags": 0}
            for address in answers.pop(0)
        ]

    monkeypatch.setattr("aiohttp.ThreadedResolver.resolve", resolve)
    port = receiver.url.rsplit(":", 1)[1]
    for _ in range(2):
        error = await failure(receiver, trusted=[], url=f"http://rebinding.example:{port}/")
        assert error.code == "upstream_address_refused"
    assert not receiver.requests


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("10.0.0.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fd00::1", False),
        ("fe80::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
        ("64:ff9b:1::a00:1", False),
        ("::a00:1", False),
        ("::ffff:0:a00:1", False),
        ("fec0::1", False),
        ("2001:0:a00:1::", False),
        ("64:ff9b::5db8:d822", True),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(ipaddress.ip_address(address)) is public


@pytest.mark.parametrize(
    "url",
    [
        *("", "h", "ftp://h/", "file:///etc/passwd", "http://", "http://h:99999/"),
        *("http://[]@/", "http://u:p@h/", "http://u@h/", "http://:p@h/", "http://:@h/"),
    ],
)
def test_what_is_no_base_url_is_refused(url: str) -> None:
    for check in (origin_of, base_of):
        with pytest.raises(ReceiverError) as refused:
            check(url)
        assert (refused.value.code, refused.value.retryable) == ("base_url_invalid", False)


@pytest.mark.parametrize("url", ["http://h/?a=1", "http://h?", "http://h/#a", "http://h#:1"])
def test_a_base_url_ends_with_its_path(url: str) -> None:
    assert base_of("http://h:1/a/") == "http://h:1/a"
    with pytest.raises(ReceiverError, match="query or a fragment") as refused:
        base_of(url)
    assert (refused.value.code, refused.value.retryable) == ("base_url_invalid", False)


@pytest.mark.parametrize(
    "host",
    [f"{'a' * 64}.example", "a..example", "xn--a", "%31.example", "a\u200bb", ".", "-", "[v1.x]"],
)
async def test_a_host_that_cannot_be_is_a_failure_of_the_receiver(
    receiver: Receiver, host: str
) -> None:
    error = await failure(receiver, trusted=[], url=f"http://{host}:1/")
    assert error.code in ("base_url_invalid", "receiver_unreachable")


@pytest.mark.parametrize(
    ("url", "own_host"),
    [
        ("https://gw.example/x", "gw.example"),
        ("https://GW.example", " gw.EXAMPLE "),
        ("https://gw.example:443", "gw.example"),
        ("http://gw.example:8765", "gw.example:8765"),
        ("http://[::1]:80", "[::1]"),
        ("https://gw.example.", "gw.example"),
        ("https://gw.example", "gw.example.:443"),
    ],
)
def test_a_gateway_does_not_proxy_to_itself(url: str, own_host: str) -> None:
    with pytest.raises(SelfProxyError):
        refuse_self_proxy(url, own_host)


@pytest.mark.parametrize(
    ("url", "own_host"),
    [("https://app.example", "gw.example"), ("http://h:1", "h:2"), ("http://h", None), ("h", "")],
)
def test_another_host_is_another_host(url: str, own_host: str | None) -> None:
    refuse_self_proxy(url, own_host)


def test_a_route_may_not_change() -> None:
    refuse_changed_route("http://h/", "http://h")
    with pytest.raises(RouteChangedError):
        refuse_changed_route("http://h", "http://i")
