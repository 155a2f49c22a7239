"""Connections: too many, too slow, and bytes that two servers could read differently."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from counterfoil.receiving.failures import ERROR_CODE_HEADER
from counterfoil.settings import Settings
from tests.py.driver.scene import PATIENCE, serving

BODY = b'{"a": 1}'
GET = b"GET /x HTTP/1.1\r\nhost: gw\r\n\r\n"


async def answer(request: Request) -> Response:
    await request.body()
    return Response(b"x" * int(request.query_params.get("bytes", "2")))


async def early(request: Request) -> Response:
    return Response(b"no", 401)


APP = Starlette(
    routes=[Route("/x", answer, methods=["GET", "POST"]), Route("/e", early, methods=["POST"])]
)


@asynccontextmanager
async def server(**changes: Any) -> AsyncIterator[tuple[str, int]]:
    settings = Settings(**{"head_timeout": 0.3, "body_timeout": 0.3} | changes)
    async with serving(APP, settings) as url:
        host, port = url.removeprefix("http://").split(":")
        yield host, int(port)


async def heard(sent: bytes, at: tuple[str, int]) -> bytes:
    """All that the server says to these bytes before it closes the connection."""
    reader, writer = await asyncio.open_connection(*at)
    writer.write(sent)
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    finally:
        writer.close()


def error(said: bytes) -> tuple[int, str]:
    """Status and code of the last answer, which is an error of the gateway's shape."""
    head, _, body = said[said.rindex(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    lines = head.decode().lower().split("\r\n")
    headers = dict(line.split(": ", 1) for line in lines[1:])
    found = json.loads(body)
    assert headers["content-type"] == "application/json"
    assert headers[ERROR_CODE_HEADER] == found["code"]
    assert headers["connection"] == "close"
    assert ("retry-after" in headers) == ("retry_after_ms" in found)
    assert all(isinstance(found[name], str) and found[name] for name in ("error", "hint"))
    status = int(lines[0].split(" ")[1])
    assert found["retryable"] is (status in (408, 503))
    return status, found["code"]


@pytest.mark.parametrize(
    "sent",
    [b"GET /x HTTP/1.1\r\nhost: gw\r\nx-slow: ", GET + b"GET /x HTTP/1.1\r\n"],
)
async def test_a_head_that_does_not_come_is_given_up(sent: bytes) -> None:
    async with server() as at:
        assert error(await heard(sent, at)) == (408, "head_too_slow")


async def test_a_connection_on_which_nothing_comes_is_closed() -> None:
    async with server() as at:
        assert await heard(b"", at) == b""


async def test_a_head_that_drips_is_given_up() -> None:
    async with server() as at:
        reader, writer = await asyncio.open_connection(*at)
        reading = asyncio.create_task(reader.read())
        for byte in GET[:-2] + b"x: " + b"y" * 10_000:
            writer.write(bytes([byte]))
            await asyncio.wait({reading}, timeout=0.02)
            if reading.done():
                break
        assert error(reading.result()) == (408, "head_too_slow")
        writer.close()


async def test_a_body_that_nobody_waits_for_any_more_is_given_up() -> None:
    async with server() as at:
        head = b"POST /e HTTP/1.1\r\nhost: gw\r\ntransfer-encoding: chunked\r\n\r\n"
        reader, writer = await asyncio.open_connection(*at)
        writer.write(head)
        reading = asyncio.create_task(reader.read())
        while not reading.done():
            writer.write(b"1\r\nx\r\n")
            await asyncio.wait({reading}, timeout=0.02)
        assert reading.result().startswith(b"HTTP/1.1 401")
        writer.close()


async def test_an_early_answer_ends_the_connection_and_the_rest_is_not_read() -> None:
    async with server(head_timeout=20.0) as at:
        reader, writer = await asyncio.open_connection(*at)
        writer.write(b"POST /e HTTP/1.1\r\nhost: gw\r\ntransfer-encoding: chunked\r\n\r\n1\r\n")
        said = await asyncio.wait_for(reader.read(), PATIENCE)
        assert said.startswith(b"HTTP/1.1 401")
        assert b"\r\nconnection: close\r\n" in said
        # Neither what is no chunk nor a whole request is parsed; the answer is not lost by either.
        writer.write(b"zz" + GET)
        await writer.drain()
        assert said.count(b"HTTP/1.1") == 1
        writer.close()
        whole = b"POST /e HTTP/1.1\r\nhost: gw\r\ncontent-length: 1\r\n\r\nx"
        said = await heard(whole + GET.replace(b"host", b"connection: close\r\nhost"), at)
        assert (said.count(b"HTTP/1.1 401"), said.count(b"HTTP/1.1 200")) == (1, 1)
        assert said.lower().count(b"connection: close") == 1


async def test_an_early_answer_reaches_a_client_that_goes_on_sending() -> None:
    async with server(head_timeout=20.0) as at:
        reader, writer = await asyncio.open_connection(*at)
        writer.write(b"POST /e HTTP/1.1\r\nhost: gw\r\ncontent-length: 9000000\r\n\r\n")
        for _ in range(9):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
        assert (await asyncio.wait_for(reader.read(), PATIENCE)).endswith(b"\r\n\r\nno")
        writer.close()


async def test_a_client_that_does_not_take_its_answer_is_given_up() -> None:
    async with server() as at:
        _, writer = await asyncio.open_connection(*at, limit=1024)
        writer.write(GET.replace(b"/x", b"/x?bytes=50000000"))
        # Nothing is read until the server has let go; what was on its way ends in a broken pipe.
        with pytest.raises((ConnectionError, BrokenPipeError)):
            async with asyncio.timeout(PATIENCE):
                while True:
                    writer.write(b"\r\n")
                    await writer.drain()
                    await asyncio.sleep(0.01)
        writer.close()


async def test_an_answer_that_is_taken_in_time_is_whole() -> None:
    async with server(body_timeout=20.0) as at:
        said = await heard(
            GET.replace(b"/x", b"/x?bytes=5000000").replace(b"host", b"connection: close\r\nhost"),
            at,
        )
        assert said.endswith(b"\r\n\r\n" + b"x" * 5_000_000)


async def test_one_connection_too_many_is_told_so_and_the_others_are_served() -> None:
    async with server(max_connections=2, head_timeout=20.0) as at:
        held = [await asyncio.open_connection(*at) for _ in range(2)]
        assert error(await heard(GET, at)) == (503, "gateway_busy")
        post = b"POST /x HTTP/1.1\r\nhost: gw\r\ncontent-length: 8\r\n\r\n" + BODY
        assert error(await heard(post, at)) == (503, "gateway_busy")
        more = [await asyncio.open_connection(*at) for _ in range(2)]
        assert await heard(GET, at) == b""
        for reader, writer in held:
            writer.write(GET)
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for _, writer in held + more:
            writer.close()
            await writer.wait_closed()
        close = GET.replace(b"host", b"connection: close\r\nhost")
        async with asyncio.timeout(PATIENCE):
            while not (await heard(close, at)).startswith(b"HTTP/1.1 200"):
                pass


POST = b"POST /x HTTP/1.1\r\nhost: gw\r\n"
CHUNKED = b"POST /x HTTP/1.1\r\nhost: gw\r\ntransfer-encoding: chunked\r\n\r\n"
AMBIGUOUS = {
    "both lengths": CHUNKED.replace(b"host", b"content-length: 3\r\nhost") + b"0\r\n\r\n",
    "two lengths": POST + b"content-length: 1\r\ncontent-length: 2\r\n\r\nx",
    "a signed length": POST + b"content-length: +1\r\n\r\nx",
    "a length of words": POST + b"content-length: 1 1\r\n\r\nx",
    "no length": POST + b"content-length:\r\n\r\nx",
    "an endless length": POST + b"content-length: " + b"9" * 5000 + b"\r\n\r\nx",
    "another coding": CHUNKED.replace(b"chunked", b"chunked, gzip"),
    "a hidden coding": CHUNKED.replace(b"chunked", b"xchunked"),
    "two codings": CHUNKED.replace(b"host", b"transfer-encoding: chunked\r\nhost"),
    "a blank before the colon": CHUNKED.replace(b"encoding:", b"encoding :"),
    "a folded header": CHUNKED.replace(b"encoding: ", b"encoding:\r\n "),
    "two hosts": GET.replace(b"host: gw", b"host: gw\r\nhost: other"),
    "no host": b"GET /x HTTP/1.1\r\n\r\n",
    "a NUL in a header": GET.replace(b"gw", b"g\0w"),
    "a bare CR in a header": GET.replace(b"gw", b"g\rx: y"),
    "a bad chunk size": CHUNKED + b"zz\r\n",
    "a signed chunk size": CHUNKED + b"-1\r\n",
    "a huge chunk size": CHUNKED + b"f" * 40 + b"\r\n",
    "a chunk without its end": CHUNKED + b"1\r\nxy\r\n0\r\n\r\n",
    "a giant head": GET[:-2] + b"x: " + b"y" * 200_000 + b"\r\n\r\n",
    "many headers": GET[:-2] + b"x: y\r\n" * 50_000 + b"\r\n",
    "a giant target": b"GET /x?" + b"y" * 200_000 + b" HTTP/1.1\r\nhost: gw\r\n\r\n",
    "a target in UTF-8": "GET /ä HTTP/1.1\r\nhost: gw\r\n\r\n".encode(),
    "TLS": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "noise": b"\x00\xff\r\n\r\n",
}


async def test_what_can_be_read_in_two_ways_is_refused_and_the_connection_ends() -> None:
    async with server(head_timeout=5.0, body_timeout=5.0) as at:
        for what, sent in AMBIGUOUS.items():
            said = await heard(sent + GET, at)
            assert error(said) == (400, "invalid_http"), what
            assert b" 200 " not in said, what


async def test_a_bad_chunk_ends_the_request_that_it_belongs_to() -> None:
    async with server(head_timeout=5.0, body_timeout=5.0) as at:
        reader, writer = await asyncio.open_connection(*at)
        writer.write(CHUNKED + b"1\r\nx\r\n")
        await writer.drain()
        await asyncio.sleep(0)
        writer.write(b"zz\r\n" + GET)
        said = await asyncio.wait_for(reader.read(), PATIENCE)
        assert error(said) == (400, "invalid_http")
        assert said.count(b"HTTP/1.1") == 1
        writer.close()
