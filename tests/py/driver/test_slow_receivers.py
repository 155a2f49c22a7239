"""A receiver that keeps its requests waiting does not keep the others from theirs."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

import pytest

from counterfoil.delivering.receivers import Receivers
from counterfoil.gateway import create_app
from tests.py.driver.scene import PATIENCE, Between, Scene, serving

GOOD = ("https", "good.example", 443)
BAD = ("https", "bad.example", 443)
WORSE = ("https", "worse.example", 443)


@asynccontextmanager
async def hanging(scene: Scene) -> AsyncIterator[tuple[Between, str, asyncio.Event]]:
    """A second receiver of the same ledger: it answers nothing until the event is set."""
    between = Between(create_app(scene.database, scene.settings))
    gate = asyncio.Event()
    between.fault("/", hold=gate, times=1_000_000)
    async with serving(between, scene.settings) as url:
        try:
            yield between, url, gate
        finally:
            gate.set()


async def delivered(scene: Scene, name: str) -> int:
    """How many runs of that name have nothing pending."""
    [found] = await scene.rows(
        "select count(*) as runs from counterfoil.runs as r where r.run_id like %s and not exists ("
        "select from counterfoil.lanes as l where l.run_id = r.run_id and l.org_id = r.org_id)",
        f"{name}%",
    )
    count: int = found["runs"]
    return count


async def test_a_hanging_receiver_leaves_places_to_the_others(scene: Scene) -> None:
    changes = {"concurrency": 4, "slow_seconds": 0.3, "allow_private_upstreams": True}
    async with hanging(scene) as (between, url, gate):
        for n in range(24):
            await scene.start(f"bad{n}", baseUrl=url)
            await scene.progress(f"b{n}", f"bad{n}")
        async with scene.dispatching(append_timeout=PATIENCE, delivery_lease=60, **changes):
            # All places hang, until it is known that they do.
            await scene.eventually(lambda: held(scene), lambda places: places == 4)
            for n in range(40):
                await scene.start(f"good{n}")
                await scene.progress(f"g{n}", f"good{n}")
            await scene.eventually(lambda: delivered(scene, "good"), lambda runs: runs == 40)
            assert await delivered(scene, "bad") == 0
            # It is still asked, in its share of the places; whoever has none waits unleased, but
            # for the moment between a claim and the release.
            await scene.eventually(lambda: held(scene), lambda places: 1 <= places <= 2)
            asked = len(between.requests)
            assert asked >= 4
            gate.set()
            await scene.eventually(lambda: delivered(scene, "bad"), lambda runs: runs == 24)
    for n in range(24):
        assert await scene.ledger(f"bad{n}") == ["run.created", "run.started", "run.progress"]
    assert await scene.rows("select * from counterfoil.fact_failures") == []


async def held(scene: Scene) -> int:
    """How many lanes are leased."""
    [found] = await scene.rows(
        "select count(*) as lanes from counterfoil.lanes where lease_owner is not null"
    )
    count: int = found["lanes"]
    return count


async def test_what_has_no_place_is_not_claimed_again_and_again(scene: Scene) -> None:
    """Each run is claimed ever more seldom: in four seconds a few times, not hundreds."""
    async with hanging(scene) as (_, url, _gate):
        for n in range(12):
            await scene.launch(f"bad{n}", baseUrl=url)
        async with scene.dispatching(
            concurrency=4,
            slow_seconds=0.2,
            append_timeout=PATIENCE,
            drain_seconds=0.0,
            allow_private_upstreams=True,
        ):
            await scene.eventually(lambda: held(scene), lambda places: places == 2)
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(asyncio.Event().wait(), 4)
            claims = await scene.rows("select max(lease_generation) as most from counterfoil.lanes")
    assert claims[0]["most"] <= 8


class Places:
    """Receivers on a clock of the test's own, of eight places, four of them for the slow."""

    def __init__(self) -> None:
        self.now = 0.0
        self.receivers = Receivers(4, 1.0, lambda: self.now)
        self.tasks: list[asyncio.Task[None]] = []

    def take(self, receiver: tuple[str, str, int]) -> asyncio.Task[None] | None:
        """A place for one delivery more."""
        task = asyncio.create_task(asyncio.sleep(PATIENCE))
        self.tasks.append(task)
        return task if self.receivers.take(receiver, task) else None

    def answer(self, receiver: tuple[str, str, int], seconds: float) -> None:
        """A request that takes so long."""
        with self.receivers.asked(receiver):
            self.now += seconds

    @contextmanager
    def waiting(self, receiver: tuple[str, str, int]) -> Iterator[None]:
        """A request that is under way for two seconds already."""
        with self.receivers.asked(receiver):
            self.now += 2
            yield


@pytest.fixture
async def places() -> AsyncIterator[Places]:
    made = Places()
    yield made
    for task in made.tasks:
        task.cancel()


async def test_whoever_answers_may_have_every_place(places: Places) -> None:
    assert all([places.take(GOOD) for _ in range(8)])
    places.answer(GOOD, 0.9)
    assert places.receivers.surplus() == []


async def test_whoever_does_not_has_its_share(places: Places) -> None:
    taken = [places.take(BAD) for _ in range(8)]
    with places.waiting(BAD):
        assert places.receivers.surplus() == taken[4:]
        assert places.take(BAD) is None
        assert places.take(GOOD)
    # A late answer is one, but none in time.
    assert places.take(BAD) is None
    places.answer(BAD, 0.9)
    assert places.take(BAD)
    assert places.receivers.surplus() == []


async def test_those_who_do_not_share_alike(places: Places) -> None:
    first = [places.take(BAD) for _ in range(3)]
    places.answer(BAD, 1.1)
    places.answer(WORSE, 1.1)
    assert places.take(WORSE)
    assert places.take(WORSE) is None  # all four are taken
    assert places.receivers.surplus() == first[2:]
    places.receivers.leave(BAD, first[0])  # type: ignore[arg-type]
    assert places.take(BAD) is None
    assert places.take(WORSE)


async def test_a_cut_delivery_is_cut_once_and_says_nothing_of_its_receiver(places: Places) -> None:
    async def cut() -> None:
        with places.receivers.asked(BAD):
            await asyncio.sleep(PATIENCE)

    taken = [places.take(BAD) for _ in range(6)]
    places.answer(BAD, 1.1)
    request = asyncio.create_task(cut())
    await asyncio.sleep(0)
    request.cancel()
    await asyncio.wait([request])
    assert places.receivers.surplus() == taken[4:]
    places.tasks[4].cancel()
    assert places.receivers.surplus() == taken[5:]


async def test_a_receiver_that_nobody_asks_is_forgotten(places: Places) -> None:
    places.answer(BAD, 1.1)
    places.now += 61
    assert all([places.take(BAD) for _ in range(8)])
