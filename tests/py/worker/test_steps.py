"""Steps are computed once and remembered, whoever keeps their receipts."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from counterfoil import (
    AsyncRun,
    CounterfoilError,
    InvalidArgumentError,
    NotPlainError,
    PayloadTooLargeError,
    PermanentError,
    Run,
    StepFailedError,
)
from tests.py.worker.bench import ORG, Bench
from tests.py.worker.keepers import through_a_gateway


@pytest.fixture(params=["database", "gateway"])
async def bench(bench: Bench, request: pytest.FixtureRequest) -> AsyncIterator[Bench]:
    """A bench whose workers have their receipts kept by the one or by the other."""
    if request.param == "database":
        yield bench
        return
    async with through_a_gateway(bench):
        yield bench


async def test_a_run_that_is_tried_again_finds_its_steps_remembered(bench: Bench) -> None:
    worker = bench.worker()
    calls: Counter[str] = Counter()

    def compute(name: str) -> dict[str, Any]:
        calls[name] += 1
        return {"name": name, "pair": (1, 2)}

    @worker.play("again")
    def again(run: Run) -> Any:
        found = [run.step("compute", compute, name) for name in ("a", "b")]
        if run.attempt < 3:
            raise ConnectionError("not yet")
        return [*found, run.step("compute", compute, "c")]

    await bench.launch("again")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["attempt"] == 3
    assert run["result"] == [{"name": n, "pair": [1, 2]} for n in ("a", "b", "c")]
    assert calls == {"a": 1, "b": 1, "c": 1}


async def test_an_output_is_the_same_the_first_time_and_later(bench: Bench) -> None:
    worker = bench.worker()
    seen: list[Any] = []

    @worker.play("same")
    def same(run: Run) -> None:
        secret = {"password": "hunter2", "n": 10**30, "pair": (1,)}
        seen.append(run.step("s", lambda: secret))
        if run.attempt == 1:
            raise ConnectionError

    await bench.launch("same")
    async with bench.working(worker):
        await bench.ended()
    first, second = seen
    assert first == second
    assert first["n"] == 10**30
    assert first["pair"] == [1]
    assert first["password"] != "hunter2", "secrets are redacted before they are stored"


async def test_repeats_of_a_name_and_arguments_are_steps_of_their_own(bench: Bench) -> None:
    worker = bench.worker()
    count = iter(range(100))

    @worker.play("repeat")
    def repeat(run: Run) -> Any:
        found = [run.step("next", lambda: next(count)) for _ in range(3)]
        found += [run.step("next", lambda n: next(count) * n, 1) for _ in range(2)]
        if run.attempt == 1:
            raise ConnectionError
        return found

    await bench.launch("repeat")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == [0, 1, 2, 3, 4]
    keys = [row["key"] for row in await bench.rows("select key from counterfoil.step_receipts")]
    assert len(keys) == 5
    assert all(key.startswith("repeat:run:next:") for key in keys)


async def test_a_failed_step_is_tried_again_unless_for_good(bench: Bench) -> None:
    worker = bench.worker()
    calls: Counter[str] = Counter()

    def flaky() -> int:
        calls["flaky"] += 1
        if calls["flaky"] == 1:
            raise ConnectionError("gone")
        return 1

    def hopeless() -> None:
        calls["hopeless"] += 1
        raise PermanentError("no such customer")

    @worker.play("fail")
    def fail(run: Run) -> Any:
        try:
            run.step("hopeless", hopeless)
        except StepFailedError as error:
            return [error.step, str(error), run.step("flaky", flaky)]
        except PermanentError:
            run.step("flaky", flaky)
        raise AssertionError

    await bench.launch("fail")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["result"] == ["hopeless", "step 'hopeless' failed for good: no such customer", 1]
    assert calls == {"flaky": 2, "hopeless": 1}


async def test_an_output_that_cannot_be_stored_fails_the_run_and_names_the_place(
    bench: Bench,
) -> None:
    worker = bench.worker()

    @worker.play("shapeless")
    def shapeless(run: Run) -> None:
        run.step("s", lambda: {"rows": [1, {"path": Path()}]})

    await bench.launch("shapeless")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["status"] == "failed"
    assert run["attempt"] == 1
    assert run["error"]["message"].startswith(
        "the output of step 's' is not a plain value: $.rows[1].path is a PosixPath"
    )


@pytest.mark.parametrize("name", ["line\nbreak", "nul\0", "surrogate\ud800"])
async def test_a_name_that_can_be_no_key_is_refused_before_anything_is_done(
    bench: Bench, name: str
) -> None:
    worker = bench.worker()
    calls: list[str] = []

    @worker.play("odd")
    def odd(run: Run) -> None:
        run.step("good", lambda: None)
        run.step(name, lambda: calls.append(name))

    await bench.launch("odd")
    async with bench.working(worker):
        run = await bench.ended()
    assert (run["status"], run["error"]["code"], run["attempt"]) == (
        "failed",
        "invalid_argument",
        1,
    )
    assert calls == []


async def test_a_ttl_that_can_be_none_is_refused_before_anything_is_done(bench: Bench) -> None:
    worker = bench.worker()
    calls: list[str] = []

    @worker.play("odd")
    def odd(run: Run) -> int:
        refused = 0
        for ttl in (0, -1, 10**12, 1e-9, float("nan")):
            for key in (None, "shared"):
                with pytest.raises((InvalidArgumentError, ValueError), match="ttl"):
                    run.step("s", lambda: calls.append("s"), key=key, ttl=ttl)
                refused += 1
        return refused

    await bench.launch("odd")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == 10
    assert calls == []


KEY_HINT = (
    "A key has 1 to 1000 characters, 1800 bytes at most, and none of them is a control character."
)
TTL_HINT = "Give a number of seconds from 0.001 to 3155760000, which is 100 years, or leave it out."
NO_KEY = (InvalidArgumentError, "keys[0] is no receipt key.", "keys[0]", KEY_HINT)
NO_TTL = (InvalidArgumentError, "ttlSeconds is no time to live.", "ttlSeconds", TTL_HINT)
REFUSED: list[tuple[dict[str, Any], tuple[type[CounterfoilError], str, str, str]]] = [
    ({"key": ""}, NO_KEY),
    ({"key": " \t"}, NO_KEY),
    ({"key": "x" * 1001}, NO_KEY),
    ({"key": "é" * 901}, NO_KEY),
    ({"key": "a\x7fb"}, NO_KEY),
    ({"name": "line\nbreak"}, NO_KEY),
    ({"ttl": 0}, NO_TTL),
    ({"ttl": -1, "key": "k"}, NO_TTL),
    ({"ttl": timedelta(days=36526), "key": "k"}, NO_TTL),
    (
        {"key": "nul\0"},
        (
            InvalidArgumentError,
            "key holds U+0000 or a lone surrogate",
            "key",
            "remove the character",
        ),
    ),
    (
        {"name": "surrogate\ud800"},
        (
            InvalidArgumentError,
            "name holds U+0000 or a lone surrogate",
            "name",
            "remove the character",
        ),
    ),
]
"""Steps that may not be, and what the play is told, whoever keeps the receipts."""


def options(given: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in given.items() if name != "name"}


async def test_what_is_refused_is_told_in_the_same_words_and_before_anything_is_done(
    bench: Bench,
) -> None:
    worker = bench.worker()
    calls: list[str] = []

    @worker.play("odd")
    def odd(run: Run) -> int:
        for given, told in REFUSED:
            with pytest.raises(CounterfoilError) as caught:
                run.step(given.get("name", "s"), calls.append, "s", **options(given))
            error = caught.value
            assert (type(error), error.message, error.reason, error.hint) == told, given
        return len(REFUSED)

    await bench.launch("odd")
    async with bench.working(worker):
        run = await bench.ended()
    assert (run["result"], run["error"]) == (len(REFUSED), None)
    assert calls == []


async def test_a_number_that_is_too_long_is_refused_before_it_is_sent(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("long")
    def long(run: Run) -> Any:
        fits = [10**999, 1 - 10**999]
        for number in (10**1000, -(10**999), 10**5000):
            with pytest.raises(NotPlainError) as caught:
                run.step("s", lambda number=number: {"n": [number]})
            assert (caught.value.path, caught.value.reason) == (
                "$.n[0]",
                "is a number of more than 1000 digits",
            )
        return run.step("fits", lambda: fits) == fits

    await bench.launch("long")
    async with bench.working(worker):
        run = await bench.ended()
    assert (run["result"], run["error"]) == (True, None)


async def test_an_output_is_refused_in_the_same_words(bench: Bench) -> None:
    worker = bench.worker()
    await bench.rows("select counterfoil.set_setting('receipt_output_max_bytes', '1024')")
    found: list[tuple[type[CounterfoilError], str, str]] = []

    @worker.play("large")
    def large(run: Run) -> None:
        for given in ({}, {"key": "k"}, {"ttl": 60}, {"key": "with a ttl", "ttl": 60}):
            with pytest.raises(CounterfoilError) as caught:
                run.step("p_key", lambda: "x" * 1023, **given)
            error = caught.value
            found.append((type(error), error.reason, error.hint))
            key = given.get("key", "large:run:p_key:")
            assert error.message.startswith(f"The output of step '{key}")
            assert error.message.endswith("' has 1025 bytes; it may have 1024.")

    await bench.launch("large")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["error"] is None
    hint = "Return where larger things lie, or raise the setting receipt_output_max_bytes."
    assert found == [(PayloadTooLargeError, "output", hint)] * 4


async def test_an_output_that_is_too_large_fails_the_run(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("large")
    def large(run: Run) -> None:
        run.step("s", lambda: "x" * 1_100_000)

    await bench.launch("large")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["status"] == "failed"
    assert run["error"]["code"] == "payload_too_large"
    assert "has 1100002 bytes; it may have 1048576" in run["error"]["message"]
    assert "CONTEXT" not in run["error"]["message"]
    (receipt,) = await bench.rows("select status, failure_kind from counterfoil.step_receipts")
    assert receipt == {"status": "failed", "failure_kind": "repairable"}


async def test_runs_that_share_a_key_compute_it_once(bench: Bench) -> None:
    workers = [bench.worker(), bench.worker()]
    begun = threading.Event()
    finish = threading.Event()
    calls: list[str] = []

    for worker in workers:

        @worker.play("share")
        def share(run: Run) -> Any:
            def compute() -> str:
                calls.append(run.id)
                begun.set()
                finish.wait(20)
                return run.id

            return run.step("fetch", compute, key="company:1")

    await bench.launch("share", "one")
    await bench.launch("share", "two")
    async with bench.working(*workers):
        await asyncio.to_thread(begun.wait, 20)
        await bench.until("one", lambda run: run["status"] == "running")
        await bench.until("two", lambda run: run["status"] == "running")
        finish.set()
        results = {(await bench.ended(run))["result"] for run in ("one", "two")}
    assert results == set(calls)
    assert len(calls) == 1


async def test_white_space_around_a_key_does_not_count(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play(" spaced ")
    def spaced(run: Run) -> Any:
        found = [run.step("s", lambda: run.attempt, key="  k "), run.step("own", lambda: "own")]
        if run.attempt == 1:
            raise ConnectionError
        return found

    await bench.launch(" spaced ")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == [1, "own"]
    keys = [row["key"] for row in await bench.rows("select key from counterfoil.step_receipts")]
    assert "k" in keys
    assert all(key == key.strip() for key in keys)


async def test_a_shared_step_is_forgotten_after_its_time(bench: Bench) -> None:
    worker = bench.worker()
    count = iter(range(100))

    @worker.play("cache")
    def cache(run: Run) -> Any:
        return run.step("rate", lambda: next(count), key="rate", ttl=3600)

    async with bench.working(worker):
        for run_id, expected in (("one", 0), ("two", 0)):
            await bench.launch("cache", run_id)
            assert (await bench.ended(run_id))["result"] == expected
        await bench.rows("update counterfoil.step_receipts set expires_at = now()")
        await bench.launch("cache", "three")
        assert (await bench.ended("three"))["result"] == 1


async def test_a_map_is_one_step_an_item_in_order(bench: Bench) -> None:
    worker = bench.worker()
    calls: Counter[int] = Counter()
    at_once = most = 0
    lock = threading.Lock()
    gate = threading.Barrier(4, timeout=20)

    def work(n: int) -> int:
        nonlocal at_once, most
        with lock:
            at_once += 1
            most = max(most, at_once)
            calls[n] += 1
        if n < 4:
            gate.wait()
        with lock:
            at_once -= 1
        return n * n

    @worker.play("map")
    def mapped(run: Run) -> Any:
        found = run.map("square", work, range(250), parallel=4)
        if run.attempt == 1:
            raise ConnectionError
        return [found[:3], found[-1], len(found), run.map("none", work, [])]

    await bench.launch("map")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["result"] == [[0, 1, 4], 249 * 249, 250, []]
    assert set(calls.values()) == {1}
    assert most == 4


async def test_a_map_may_be_larger_than_a_call(bench: Bench) -> None:
    worker = bench.worker()
    await bench.rows("select counterfoil.set_setting('receipt_batch_max', '2')")

    @worker.play("map")
    def mapped(run: Run) -> Any:
        return run.map("work", lambda n: n, range(5))

    await bench.launch("map")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == [0, 1, 2, 3, 4]


async def test_more_long_steps_than_a_call_may_touch_are_renewed(bench: Bench) -> None:
    worker = bench.worker()
    await bench.rows("select counterfoil.set_setting('receipt_batch_max', '2')")
    go_on = asyncio.Event()
    loop = asyncio.get_running_loop()

    @worker.play("long")
    async def long(run: AsyncRun) -> Any:
        async def compute(n: int) -> int:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(go_on.wait(), loop))
            return n

        return await asyncio.gather(*(run.step("s", compute, n, key=f"k{n}") for n in range(5)))

    await bench.launch("long")
    async with bench.working(worker):
        await bench.eventually(
            lambda: bench.rows(
                "select key from counterfoil.step_receipts"
                " where lease_expires_at > claimed_at + interval '6 seconds'"
            ),
            lambda renewed: len(renewed) == 5,
        )
        go_on.set()
        assert (await bench.ended())["result"] == [0, 1, 2, 3, 4]


async def test_a_map_that_fails_stops_and_keeps_what_was_done(bench: Bench) -> None:
    worker = bench.worker()
    calls: Counter[int] = Counter()

    def work(n: int) -> int:
        calls[n] += 1
        if n == 5 and calls[n] == 1:
            raise ConnectionError("five")
        return n

    @worker.play("map")
    def mapped(run: Run) -> Any:
        return run.map("work", work, list(range(20)), parallel=1)

    await bench.launch("map")
    async with bench.working(worker):
        run = await bench.ended()
    assert run["result"] == list(range(20))
    assert run["attempt"] == 2
    assert calls == {n: 2 if n == 5 else 1 for n in range(20)}


async def test_a_coroutine_may_give_up_on_a_step_and_try_it_again(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("hurry")
    async def hurry(run: AsyncRun) -> Any:
        try:
            async with asyncio.timeout(0.3):
                await run.step("slow", asyncio.sleep, 60)
        except TimeoutError:
            return await run.step("fast", lambda: "gave up")

    await bench.launch("hurry")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == "gave up"


async def test_who_gave_a_shared_step_up_does_not_wait_for_itself(bench: Bench) -> None:
    # A lease of a minute: twice as long as the bench is patient.
    worker = bench.worker(lease_seconds=60)

    @worker.play("hurry")
    async def hurry(run: AsyncRun) -> Any:
        try:
            async with asyncio.timeout(0.3):
                await run.step("slow", asyncio.sleep, 60, key="k")
        except TimeoutError:
            return await run.step("slow", lambda: "again", key="k")

    await bench.launch("hurry")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == "again"


async def test_steps_may_hold_steps_and_log(bench: Bench) -> None:
    worker = bench.worker()
    calls: Counter[str] = Counter()

    @worker.play("nested")
    def nested(run: Run) -> Any:
        def inner(name: str) -> str:
            calls[name] += 1
            run.log(name)
            return name

        def outer() -> list[str]:
            calls["outer"] += 1
            return [run.step("inner", inner, "a"), run.step("inner", inner, "b")]

        found = run.step("outer", outer)
        if run.attempt == 1:
            raise ConnectionError
        return found

    await bench.launch("nested")
    async with bench.working(worker):
        assert (await bench.ended())["result"] == ["a", "b"]
    assert calls == {"outer": 1, "a": 1, "b": 1}


async def test_colons_in_ids_and_names_keep_steps_apart(bench: Bench) -> None:
    worker = bench.worker()

    @worker.play("play")
    def play(run: Run, name: str) -> Any:
        return run.step(name, lambda: run.id)

    await bench.launch("play", "a", input="b:s")
    await bench.launch("play", "a:b", input="s")
    async with bench.working(worker):
        assert [(await bench.ended(run))["result"] for run in ("a", "a:b")] == ["a", "a:b"]


async def test_a_long_step_keeps_its_lease(bench: Bench) -> None:
    worker = bench.worker()
    go_on = threading.Event()

    @worker.play("long")
    def long(run: Run) -> Any:
        return run.step("wait", go_on.wait, 30, key="shared")

    await bench.launch("long")
    async with bench.working(worker):
        query = "select lease_expires_at as at from counterfoil.step_receipts where org_id = %s"
        first = await bench.eventually(lambda: bench.rows(query, ORG), bool)
        await bench.eventually(
            lambda: bench.rows(query, ORG), lambda found: found[0]["at"] > first[0]["at"]
        )
        go_on.set()
        assert (await bench.ended())["result"] is True


def test_errors_of_plain_values_survive_pickling() -> None:
    import pickle

    error = NotPlainError("it", "$.a", "is a set")
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.path, again.reason) == (str(error), "$.a", "is a set")
