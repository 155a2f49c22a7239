"""What large bodies take of a gateway's memory, in a process of its own."""

from __future__ import annotations

import asyncio

import aiohttp
import psutil

from benchmarks.gateway import RECEIPTS, serving, token

SIZE = 4_000_000


async def _post_all(
    url: str, process: psutil.Process, bodies: list[bytes]
) -> tuple[float, set[int]]:
    """The most memory above the beginning, in MB, and the statuses of the answers."""
    headers = {"authorization": f"Bearer {token()}", "content-type": "application/json"}
    before, most, statuses = process.memory_info().rss, 0, set()
    waiting = iter(bodies)

    async def client(session: aiohttp.ClientSession) -> None:
        for body in waiting:
            async with session.post(url + RECEIPTS, data=body, headers=headers) as answer:
                statuses.add(answer.status)

    async def watch() -> None:
        nonlocal most
        while True:
            most = max(most, process.memory_info().rss)
            await asyncio.sleep(0.01)

    async with aiohttp.ClientSession() as session:
        watching = asyncio.create_task(watch())
        await asyncio.gather(*(client(session) for _ in range(16)))
        watching.cancel()
    return (most - before) / 2**20, statuses


def test_large_bodies_take_bounded_memory(installed: str) -> None:
    # In memory one such letter makes each of the others four bytes, and a small string takes fifty.
    wide = ('{"a": "\U0001f511' + "x" * SIZE + '"}').encode()
    many = b'{"a": [' + b'"xxxxxxxxxx",' * (SIZE // 13) + b"0]}"
    names = ("{" + ",".join(f'"{n:09}":0' for n in range(SIZE // 14)) + "}").encode()
    with serving(installed) as (url, process):
        grown, statuses = asyncio.run(_post_all(url, process, [wide, many, names, wide] * 12))
    assert grown < 128
    assert statuses <= {403, 503}
    assert 403 in statuses
