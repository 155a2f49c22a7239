"""Bodies that mean harm are answered with an error of one shape, and never with a crash."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json
import time
import tracemalloc
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.gateway import create_app
from counterfoil.receiving.documents import NumberText, parse
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.metrics import Metrics
from tests.py.driver.scene import INTERNAL, Scene, serving
from tests.py.gateway.client import BILLING, LEDGER, RECEIPTS, TOKEN, Client

PATHS = [f"{LEDGER}/events", RECEIPTS, TOKEN, BILLING]

HOSTILE = {
    "nothing": (b"", 400, "invalid_json"),
    "no JSON": (b"{oops", 400, "invalid_json"),
    "two documents": (b"{} {}", 400, "invalid_json"),
    "a number": (b"7", 400, "invalid_argument"),
    "a string": (b'"x"', 400, "invalid_argument"),
    "null": (b"null", 400, "invalid_argument"),
    "NaN": (b'{"a": NaN}', 400, "invalid_json"),
    "infinity": (b'{"a": -Infinity}', 400, "invalid_json"),
    "a byte order mark": (b"\xef\xbb\xbf{}", 400, "invalid_json"),
    "invalid UTF-8": (b'{"a": "\xff"}', 400, "invalid_utf8"),
    "an encoded surrogate": (b'{"a": "\xed\xa0\x80"}', 400, "invalid_utf8"),
    "UTF-16": ('{"a": 1}'.encode("utf-16"), 400, "invalid_utf8"),
    "NUL": (b'{"a": "\\u0000"}', 400, "invalid_argument"),
    "a raw NUL": (b'{"a": "\x00"}', 400, "invalid_json"),
    "NUL in a key": (b'{"\\u0000": 1}', 400, "invalid_argument"),
    "a lone surrogate": (b'{"a": "\\ud800"}', 400, "invalid_argument"),
    "the same key twice": (b'{"a": 1, "a": 2}', 400, "duplicate_key"),
    "the same key twice below": (b'{"a": [{"b": 1, "b": 1}]}', 400, "duplicate_key"),
    "depth": (b'{"a":' + b"[" * 50_000 + b"]" * 50_000 + b"}", 400, "invalid_argument"),
    "depth of objects": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, 400, "invalid_argument"),
    "an open depth": (b'{"a":' + b"[" * 90_000, 400, "invalid_argument"),
    "a long number": (b'{"a": ' + b"9" * 100_000 + b"}", 400, "invalid_argument"),
    "a big exponent": (b'{"a": 1e999999999}', 400, "invalid_argument"),
    "a small exponent": (b'{"a": 1E-99999}', 400, "invalid_argument"),
    "too large": (b'{"a": "' + b"x" * 300_000 + b'"}', 413, "payload_too_large"),
}


@pytest.mark.parametrize("path", PATHS)
async def test_a_hostile_body_is_refused(client: Client, path: str) -> None:
    bearers = {LEDGER: client.token("dispatch"), RECEIPTS: client.token()}
    for what, (body, status, code) in HOSTILE.items():
        bearer = next((b for start, b in bearers.items() if path.startswith(start)), None)
        if bearer is None:
            answer = await client.internal(path, body)
        else:
            answer = await client.call("POST", path, body, bearer=bearer)
        assert answer.error == (status, code), what
        assert "traceback" not in answer.text.lower()


@pytest.mark.parametrize("path", [f"{LEDGER}/events", TOKEN])
async def test_an_array_is_no_body(client: Client, path: str) -> None:
    bearer = INTERNAL.reveal() if path == TOKEN else client.token("dispatch")
    for body in (b"[]", b"[{}]"):
        answer = await client.call("POST", path, body, bearer=bearer)
        assert answer.error == (400, "invalid_argument")


async def test_the_path_of_what_cannot_be_stored_is_named(client: Client) -> None:
    answer = await client.receipt(b'{"a": {"b": ["\\u0000"]}}')
    assert answer.body["detail"] == "body.a.b[0]"


LONG = "9" * 1001
PLACES = {
    f'{{"n": {LONG}}}': "body.n",
    f'{{"a": [{{}}, {{"b": [0, {LONG}]}}], "c": {LONG}}}': "body.a[1].b[1]",
    '{"a": 1, "b": {"c": [1e9999]}}': "body.b.c[0]",
    '{"a b": {"": -1E-12345}}': 'body["a b"][""]',
    f'{{"é": [[{LONG}.5]]}}': 'body["\\u00e9"][0][0]',
    f'{{"{"x" * 50_000}": {LONG}}}': f"body.{'x' * 100}",
    '{"a": [NaN]}': "body.a[0]",
    '{"a": {"b": -Infinity}}': "body.a.b",
    '{"a": 1, "a": 2}': "body.a",
    '{"a": [{"b": {"c d": 1, "c d": 1}}]}': 'body.a[0].b["c d"]',
    '{"a": [{"\\ud800": 1, "\\ud800": 1}]}': 'body.a[0]["\\ud800"]',
    # Of several the one that was found first.
    f'{{"a": {{"b": {LONG}, "b": 1}}}}': "body.a.b",
    '{"a": [{"b": 1, "b": 2}, {}], "a": 1, "c": NaN}': "body.a[0].b",
    f'{{"a": {{"b": 1, "b": {LONG}}}, "a": 1}}': "body.a.b",
}


def test_the_path_of_what_no_body_may_have_is_named() -> None:
    for text, path in PLACES.items():
        with pytest.raises(RequestError) as caught:
            parse(text)
        error = caught.value
        assert (error.status, error.detail) == (400, path), text[:100]
        assert error.message.startswith(f"{path} is "), text[:100]
        assert error.hint
        assert len(error.message) < 300


async def test_the_path_of_a_long_number_is_told(client: Client) -> None:
    for filler in ("", "x" * 100_000):  # on the loop, and on the parser's thread
        body = f'{{"filler": "{filler}", "receipts": [{{"output": {{"n": [{LONG}]}}}}]}}'
        answer = await client.receipt(body.encode())
        assert answer.error == (400, "invalid_argument")
        assert answer.body["detail"] == "body.receipts[0].output.n[0]"
        assert answer.body["hint"] == "send a number of more than 1000 digits as a string"


async def test_a_hint_holds_nothing_of_the_request_and_no_answer_is_long(client: Client) -> None:
    name = "password=hunter22\\u001b[31m\\r\\nx: y " + "é" * 500
    key = f'"playName": "play", "key": "{name}"'
    for body in (
        f'{{"{name}": {LONG}}}',
        f'{{"{name}": {{"{name}": ["\\u0000"]}}}}',
        f'{{"{name}": 1, "{name}": 1}}',
        "{" + f'"{name}": {{' * 150 + f'"": {LONG}' + "}" * 151,
        "{" + f'"{name}": {{' * 150 + '"": "\\u0000"' + "}" * 151,
        f'{{"action": "{name}", "playName": "play"}}',
        f'{{"action": "get_runtime_step_receipt", {key}}}',
        f'{{"action": "claim_runtime_step_receipt", {key}, "ttlSeconds": 0}}',
        f'{{"action": "complete_runtime_step_receipt", {key}, "leaseId": "{name}"}}',
        f'{{"action": "observe_docflow_node", "playName": "play", "nodeId": "{name}"}}',
    ):
        answer = await client.receipt(body.encode())
        assert answer.error[0] == 400, body[:100]
        assert "hunter22" not in answer.body["hint"], body[:100]
        assert "hunter22" not in str(answer.headers)
        assert all(letter >= " " for letter in answer.text)
        assert len(answer.text) < 6000, body[:100]


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (f'{{"a": {LONG}, ' + '"b": [}', "invalid_json"),
        (f'{{"a": {LONG}, "b": ' + "[" * 201 + "]" * 201 + "}", "invalid_argument"),
        (f'{{"a": {LONG}, "b": ' + "[" * 50_000, "invalid_argument"),
        (f"[{','.join(['1e9999'] * 100_000)}]", "invalid_argument"),
        (f"[{','.join(['NaN'] * 100_000)}]", "invalid_json"),
    ],
)
def test_what_follows_a_misfit_may_be_worse(text: str, code: str) -> None:
    began = time.process_time()
    with pytest.raises(RequestError) as caught:
        parse(text, or_array=True)
    assert caught.value.code == code
    assert time.process_time() - began < 2


async def test_what_only_looks_hostile_passes(client: Client) -> None:
    body = b'{"playName": "play", "action": "\\\\u0000", "n": 1.5e300, "t": "\\ud83d\\ude00 [[["}'
    assert (await client.receipt(body)).error == (400, "unsupported_action")


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": ""},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-encoding": "gzip"},
    ],
)
async def test_another_kind_of_body_is_refused(client: Client, headers: dict[str, str]) -> None:
    assert (await client.receipt(b"{}", headers=headers)).error == (415, "unsupported_media_type")


async def test_json_in_utf8_may_say_so(client: Client) -> None:
    headers = {"content-type": 'Application/JSON; charset="UTF-8"'}
    assert (await client.receipt(b"{}", headers=headers)).status == 403


async def test_a_body_without_a_declared_length_is_bounded_too(client: Client) -> None:
    async def endless() -> AsyncIterator[bytes]:
        for _ in range(100):
            yield b"x" * 10_000

    assert (await client.receipt(endless())).error == (413, "payload_too_large")


async def test_a_slow_body_is_given_up(client: Client) -> None:
    forever = asyncio.Event()

    async def slow() -> AsyncIterator[bytes]:
        yield b'{"a"'
        await forever.wait()

    answer = await client.receipt(slow())
    assert answer.error == (408, "body_too_slow")
    forever.set()


async def test_all_bodies_together_are_bounded(client: Client, scene: Scene) -> None:
    half, gate = b'{"a": "' + b"x" * 120_000, asyncio.Event()

    async def unfinished() -> AsyncIterator[bytes]:
        yield half
        await gate.wait()
        yield b'"}'

    metrics = Metrics()
    bounded = replace(scene.settings, bodies_max_bytes=200_000, body_timeout=20.0)
    async with serving(create_app(scene.database, bounded, metrics), bounded) as url:
        client.url = url
        first = asyncio.create_task(client.receipt(unfinished()))
        await scene.eventually(
            lambda: asyncio.sleep(0, metrics.text()), lambda text: f"held {2 * len(half)}\n" in text
        )
        busy = await client.receipt(half + b'"}')
        assert busy.error == (503, "gateway_busy")
        assert (busy.body["retryable"], busy.headers["retry-after"]) == (True, "1")
        gate.set()
        assert (await first).error == (403, "scope_mismatch")
        assert (await client.receipt(half + b'"}')).error == (403, "scope_mismatch")
        assert "held 0\n" in metrics.text()


def test_a_body_of_numbers_or_of_nothing_much_takes_little_room() -> None:
    body = b'{"a": [' + b"0," * 1_000_000 + b"0]}"
    tracemalloc.start()
    try:
        parse(body.decode())
        assert tracemalloc.get_traced_memory()[1] < 16 * len(body)
    finally:
        tracemalloc.stop()


def test_a_string_that_never_ends_is_refused_at_once() -> None:
    # Looked for anew from each of its quotes, its end costs a time that grows with the square.
    body = '{"a": [' + "[], " * 300 + '"' + '\\"' * 32_000
    began = time.process_time()
    with pytest.raises(RequestError, match="no JSON"):
        parse(body)
    assert time.process_time() - began < 2


async def test_a_small_request_is_answered_while_a_large_body_is_parsed(
    client: Client, scene: Scene
) -> None:
    lists = b'{"a": [' + b"[]," * 2_700_000 + b"0]}"
    names = "{" + ",".join(f'"{number}":0' for number in range(299_000)) + "}"
    longest = 0.0
    roomy = replace(scene.settings, body_max_bytes=9_000_000, body_timeout=20.0)
    async with serving(create_app(scene.database, roomy), roomy) as url:
        client.url = url
        for body, error in (
            (lists, (413, "payload_too_large")),
            (names.encode(), (403, "scope_mismatch")),
        ):
            asking = asyncio.create_task(client.receipt(body))
            while not asking.done():
                # Of this process's own time, which others on the machine do not lengthen.
                began = time.process_time()
                assert (await client.get("/healthz")).status == 200
                longest = max(longest, time.process_time() - began)
            assert (await asking).error == error
    assert longest < 1
    assert gc.isenabled()


async def test_what_is_counted_are_values_and_not_what_strings_hold(
    client: Client, scene: Scene
) -> None:
    few = replace(scene.settings, body_max_values=100)
    text = '"a": "' + ',:[{\\"' * 20_000 + '"'
    async with serving(create_app(scene.database, few), few) as url:
        client.url = url
        # Two members and the list are four.
        for listed, error in ((96, (403, "scope_mismatch")), (97, (413, "payload_too_large"))):
            body = "{" + text + ', "b": [' + ",".join(["1"] * listed) + "]}"
            assert (await client.receipt(body.encode())).error == error, listed


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("content-type", ("application/json", "text/plain")),
        ("content-encoding", ("identity", "gzip")),
        ("idempotency-key", ("one", "two")),
        ("x-counterfoil-receipt-wire-format", ("3", "2")),
    ],
)
async def test_a_header_that_may_come_once_comes_once(
    client: Client, name: str, values: tuple[str, str]
) -> None:
    path, use = (f"{LEDGER}/events", "dispatch") if "key" in name else (RECEIPTS, "executor")
    token = client.token(use)  # type: ignore[arg-type]
    headers = [("authorization", f"Bearer {token}"), *((name, value) for value in values)]
    if name != "content-type":
        headers.append(("content-type", "application/json"))
    async with client.session.post(client.url + path, data=b"{}", headers=headers) as answer:
        body = await answer.json()
    assert (answer.status, body["code"]) == (400, "invalid_argument")
    assert body["detail"] == name


async def test_a_client_that_goes_away_leaves_the_gateway_well(client: Client) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    for _ in range(5):
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(
            f"POST {RECEIPTS} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {client.token()}\r\n"
            "content-type: application/json\r\ncontent-length: 100\r\n\r\n{".encode()
        )
        await writer.drain()
        writer.close()
    assert (await client.get("/healthz")).status == 200


async def test_noise_on_the_wire_is_answered_or_dropped(client: Client) -> None:
    host, port = client.url.removeprefix("http://").split(":")
    for noise in (b"\x00\xff\r\n\r\n", b"GET\r\n\r\n", b"POST / HTTP/9.9\r\n\r\n"):
        reader, writer = await asyncio.open_connection(host, int(port))
        writer.write(noise)
        writer.write_eof()
        answer = await asyncio.wait_for(reader.read(), 10)
        assert answer == b"" or answer.startswith(b"HTTP/1.1 4")
        writer.close()
    assert (await client.get("/healthz")).status == 200


@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
@settings(max_examples=300)
def test_any_bytes_are_parsed_or_refused(raw: bytes) -> None:
    text = raw.decode("utf-8", "replace")
    with contextlib.suppress(RequestError):
        assert isinstance(parse(text), dict)


@given(st.dictionaries(st.text("ab", max_size=2), st.integers() | st.floats(allow_nan=False)))
def test_numbers_are_left_as_text(document: dict[str, float]) -> None:
    text = json.dumps(document).replace("Infinity", "1")
    assert all(isinstance(value, NumberText) for value in parse(text).values())
