"""Receipts through the gateway: tokens, lost replies, refusals. Otherwise see test_steps."""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from counterfoil import CapacityError, LeaseLostError, PayloadTooLargeError, Run, Settings, Worker
from counterfoil.errors import SettingsError, is_transient
from counterfoil.functions import ClaimedAttempt
from counterfoil.playing import gateway_receipts
from counterfoil.tokens import TokenSigner
from tests.py.driver.scene import KEY
from tests.py.worker.bench import ORG, PATIENCE, Bench
from tests.py.worker.keepers import through_a_gateway

PATH = gateway_receipts.PATH


def counting(worker: Worker) -> list[int]:
    """A play of two steps on the worker; the attempts that computed the first."""
    calls: list[int] = []

    @worker.play("play")
    def play(run: Run) -> Any:
        return [run.step("a", lambda: calls.append(run.attempt)), run.step("b", lambda: "b")]

    return calls


async def result(bench: Bench, worker: Worker, **launch: Any) -> dict[str, Any]:
    """The run's document once the worker has ended it."""
    await bench.launch("play", **launch)
    async with bench.working(worker):
        return await bench.ended()


async def test_no_receipt_goes_past_the_gateway(bench: Bench) -> None:
    async with through_a_gateway(bench) as between:
        worker = bench.worker()
        counting(worker)
        assert (await result(bench, worker))["result"] == [None, "b"]
        actions = [json.loads(request.body)["action"] for request in between.requests]
    claim, complete = "claim_runtime_step_receipts", "complete_runtime_step_receipt"
    assert actions == [claim, complete, claim, complete]


async def test_a_run_goes_from_one_keeper_to_the_other(bench: Bench) -> None:
    calls: Counter[str] = Counter()

    def compute(name: str) -> str:
        calls[name] += 1
        return name

    def relay_of(worker: Worker) -> Worker:
        @worker.play("relay")
        def relay(run: Run) -> list[str]:
            found = [run.step("s", compute, name) for name in "abc"[: run.attempt]]
            if run.attempt < 3:
                worker.stop()
                raise ConnectionError
            return found

        return worker

    direct = [relay_of(bench.worker(name=name)) for name in ("first", "third")]
    await bench.launch("relay")
    async with through_a_gateway(bench) as between:
        relays = [direct[0], relay_of(bench.worker(name="second")), direct[1]]
        for number, worker in enumerate(relays):
            async with bench.working(worker):
                run = await bench.until(
                    "run",
                    lambda run, number=number: (  # type: ignore[misc]
                        len(run["attempts"]) > number
                        and run["attempts"][number]["status"] != "running"
                    ),
                )
        assert between.requests
    assert run["result"] == ["a", "b", "c"]
    assert [attempt["worker"] for attempt in run["attempts"]] == ["first", "second", "third"]
    assert calls == {"a": 1, "b": 1, "c": 1}


async def test_a_refused_token_is_renewed_once(bench: Bench) -> None:
    async with through_a_gateway(bench) as between:
        between.fault(PATH, status=401, body=b'{"error": "expired", "code": "unauthorized"}')
        worker = bench.worker()
        counting(worker)
        assert (await result(bench, worker))["result"] == [None, "b"]
        assert len(between.requests) == 5
        between.requests.clear()
        between.fault(PATH, status=401, body=b'{"error": "no", "code": "unauthorized"}', times=2)
        await bench.launch("play", "other", maxAttempts=1)
        async with bench.working(worker):
            run = await bench.ended("other")
        assert len(between.requests) == 2
    assert run["status"] == "failed"
    assert "the gateway refused the run: no" in run["error"]["message"]


def test_a_token_is_signed_anew_before_it_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr("counterfoil.playing.gateway_receipts.time.monotonic", lambda: now)
    at = ClaimedAttempt(ORG, "run", 1, "lease", datetime.now(UTC), "play", {}, {}, None)
    signer = TokenSigner((KEY,), "counterfoil", clock=lambda: now)
    token = gateway_receipts.RunToken(at, signer)
    first = token.get()
    now += 239
    assert token.get() == first
    now += 2
    assert token.get() != first


async def test_without_a_key_the_launch_brings_the_token(bench: Bench) -> None:
    token = TokenSigner((KEY,), "counterfoil").mint(org_id=ORG, play_name="play", run_id="run")
    async with through_a_gateway(bench) as between:
        bench.settings |= {"signing_keys": (), "token_authority": "gateway"}
        worker = bench.worker()
        counting(worker)
        run = await result(bench, worker, executorToken=token.reveal())
        assert {request.headers["authorization"] for request in between.requests} == {
            f"Bearer {token.reveal()}"
        }
        between.requests.clear()
        await bench.launch("play", "other", executorToken=token.reveal(), maxAttempts=1)
        async with bench.working(worker):
            refused = await bench.ended("other")
        assert len(between.requests) == 1, "a token that cannot be renewed is not sent again"
    assert run["result"] == [None, "b"]
    assert refused["status"] == "failed"
    assert token.reveal() not in json.dumps(refused["error"])


async def test_a_lost_reply_is_asked_for_again(bench: Bench) -> None:
    async with through_a_gateway(bench) as between:
        between.fault(PATH, drop_reply=True)
        worker = bench.worker()
        calls = counting(worker)
        run = await result(bench, worker)
        first, second = (json.loads(request.body) for request in between.requests[:2])
    assert first == second
    assert run["result"] == [None, "b"]
    assert run["attempt"] == 1
    assert calls == [1]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (503, b'{"error": "busy", "code": "runtime_postgres_admission_backpressure"}'),
        (503, b'{"error": "full", "code": "scheduler_capacity", "detail": "x"}'),
        (502, b"<html>"),
        (200, b"<html>"),
    ],
)
async def test_a_gateway_that_is_away_is_waited_for(bench: Bench, status: int, body: bytes) -> None:
    async with through_a_gateway(bench) as between:
        between.fault(PATH, status=status, body=body, times=2)
        worker = bench.worker()
        calls = counting(worker)
        run = await result(bench, worker)
    assert (run["result"], run["attempt"], calls) == ([None, "b"], 1, [1])


async def test_a_gateway_that_does_not_answer_costs_no_run_its_lease(bench: Bench) -> None:
    async with through_a_gateway(bench) as between:
        worker = bench.worker()
        go_on = threading.Event()

        @worker.play("long")
        def long(run: Run) -> int:
            run.step("wait", lambda: go_on.wait(PATIENCE))
            return run.attempt

        await bench.launch("long")
        async with bench.working(worker):
            query = "select heartbeat_at as at from counterfoil.attempts"
            await bench.eventually(
                lambda: bench.rows("select key from counterfoil.step_receipts"), bool
            )
            answer = asyncio.Event()
            silence = between.fault(PATH, hold=answer)
            await asyncio.wait_for(silence.reached.wait(), PATIENCE)
            (silent_since,) = await bench.rows("select clock_timestamp() as at")
            await bench.eventually(
                lambda: bench.rows(query),
                lambda beats: beats[-1]["at"] > silent_since["at"] + timedelta(seconds=5),
            )
            answer.set()
            go_on.set()
            assert (await bench.ended())["result"] == 1


async def test_a_gateway_that_redirects_is_an_error(bench: Bench) -> None:
    async with through_a_gateway(bench) as between:
        between.fault(PATH, status=307, headers=((b"location", b"http://127.0.0.1:1/"),))
        worker = bench.worker()
        counting(worker)
        run = await result(bench, worker, maxAttempts=1)
        assert len(between.requests) == 1
    assert run["status"] == "failed"


def test_refusals_are_the_database_s() -> None:
    refusal = gateway_receipts._refusal
    said = {"error": "m", "detail": "attempt_lease_not_current", "hint": "Stop."}
    lost = refusal(409, {"code": "lease_lost", **said})
    assert isinstance(lost, LeaseLostError)
    assert (lost.message, lost.reason, lost.hint) == ("m", "attempt_lease_not_current", "Stop.")
    assert str(lost) == "m\nHINT:  Stop."
    odd = refusal(409, {"code": "lease_lost", "detail": {}, "hint": ["x"]})
    assert isinstance(odd, LeaseLostError)
    assert (odd.reason, odd.hint) == ("", "")
    assert isinstance(refusal(413, {"code": "payload_too_large"}), PayloadTooLargeError)
    full = refusal(503, {"code": "scheduler_capacity"})
    assert isinstance(full, CapacityError)
    assert is_transient(full)
    assert is_transient(refusal(503, {"code": "upstream_service_unavailable"}))
    assert not is_transient(refusal(403, {"code": "scope_mismatch"}))
    unknown = refusal(500, {"code": "work_receipt_persistence_failed", "error": "why"})
    assert type(unknown) is psycopg.DatabaseError
    assert str(unknown) == "why"
    for status in (403, 500, 503):
        told = refusal(status, {"code": "x", "error": "why", "hint": "Do this."})
        assert str(told).endswith("why\nHINT:  Do this.")


def test_the_setting_has_two_values() -> None:
    with pytest.raises(SettingsError, match="receipts must be database or gateway"):
        Settings(receipts="both")
    settings = Settings.load(environment={"COUNTERFOIL_RECEIPTS": "gateway"})
    assert Worker(settings=settings).settings.receipts == "gateway"
    assert Worker(dsn="dbname=x", receipts="gateway").settings.receipts == "gateway"
