"""The test kit for users: killing, time, events, and what an outcome tells."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from counterfoil import AsyncRun, PermanentError, Run, Worker
from counterfoil.cron import parse_cron
from counterfoil.testing import Kit
from counterfoil.testing.databases import TestServer


def test_a_killed_worker_unwinds_nothing_and_the_run_goes_on(kit: Kit) -> None:
    told: list[str] = []

    def play(run: Run) -> str:
        try:
            run.step("first", told.append, "first")
            run.step("second", told.append, "second")
        except BaseException:
            told.append("unwound")
            raise
        finally:
            told.append("finally")
        return "done"

    kit.kill_after("first")
    killed = kit.run(play)
    assert killed.killed
    assert killed.status == "running"
    assert told == ["first"]
    outcome = kit.run_on()
    assert outcome.assert_completed() == "done"
    assert told == ["first", "second", "finally"]
    assert outcome.attempts == 2
    assert [(s.name, s.status, s.calls) for s in outcome.steps] == [
        ("first", "completed", 1),
        ("second", "completed", 1),
    ]


def test_a_worker_killed_during_a_step_computes_it_again(kit: Kit) -> None:
    told: list[int] = []

    def note(number: int) -> int:
        told.append(number)
        return number

    async def play(run: AsyncRun) -> Any:
        try:
            return [await run.step("note", note, number) for number in (1, 2)]
        finally:
            told.append(-1)

    kit.kill_during("note", nth=2)
    assert kit.run(play).killed
    assert told == [1, 2]
    outcome = kit.run_on()
    assert outcome.result == [1, 2]
    assert told == [1, 2, 2, -1]
    assert [step.calls for step in outcome.steps] == [1, 2]


def test_a_killing_of_a_step_that_is_not_there_fails_the_test(kit: Kit) -> None:
    def play(run: Run) -> None:
        run.step("charge", int)

    kit.kill_after("chrage")
    with pytest.raises(AssertionError, match="'chrage' was not computed.*were: charge"):
        kit.run(play)


def test_a_killing_that_never_came_about_fails_a_test_that_ends_while_its_run_waits(
    counterfoil_server: TestServer,
) -> None:
    def play(run: Run) -> None:
        run.step("charge", int)
        run.wait_for("approved")

    ended = "the test ended and step 'chrage' was not computed 1 times.*were: charge"
    with pytest.raises(AssertionError, match=ended), counterfoil_server.kit() as kit:
        kit.kill_after("chrage")
        kit.run(play).assert_waiting("approved")


def test_time_moves_for_waits_retries_and_expiring_steps(kit: Kit) -> None:
    calls: list[int] = []

    def play(run: Run) -> Any:
        run.step("shared", calls.append, 1, key="rate", ttl=3600)
        run.sleep(7200)
        run.step("shared", calls.append, 1, key="rate", ttl=3600)
        if run.attempt == 1:
            raise ConnectionError("once")
        return run.attempt

    slow = {"backoffBaseMs": 600_000, "backoffMaxMs": 600_000, "jitter": 0}
    kit.run(play, retryPolicy=slow).assert_waiting()
    kit.advance(hours=1, minutes=59)
    kit.run_on().assert_waiting()
    assert len(calls) == 1
    kit.advance(minutes=2)
    waiting = kit.run_on()
    assert len(calls) == 2  # the play started again, and the step had expired
    assert (waiting.status, waiting.attempts) == ("waiting", 1)
    kit.advance(minutes=11)
    assert kit.run_on().assert_completed() == 2


def test_an_event_and_a_cancellation(kit: Kit) -> None:
    def play(run: Run) -> Any:
        return run.wait_for("go")

    first = kit.launch(play)
    second = kit.launch(play, run_id="second")
    kit.run_on(first).assert_waiting("go")
    kit.resume("go", [1, 2], run_id=first)
    kit.cancel("enough", run_id=second)
    assert kit.run_on(first).result == [1, 2]
    assert kit.outcome(second).status == "cancelled"


def test_deadlines_pass_whatever_the_run_does(kit: Kit) -> None:
    def play(run: Run) -> Any:
        run.step("step", int)
        return run.wait_for("go")

    soon = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    waiting = kit.launch(play, deadlineAt=soon)
    kit.run_on().assert_waiting("go")
    kit.kill_after("step")
    killed = kit.launch(play, deadlineAt=soon)
    assert kit.run_on().killed
    queued = kit.launch(play, deadlineAt=soon)
    kit.advance(hours=2)
    for run in (waiting, killed, queued):
        assert kit.run_on(run).assert_failed()["code"] == "deadline_exceeded"


def test_schedules_fire_when_time_has_passed(kit: Kit) -> None:
    worker = Worker()

    @worker.play("tick")
    def tick(run: Run) -> str:
        return run.id

    kit.use(worker)
    template = {"playId": "t", "playName": "tick", "executorToken": "none", "baseUrl": "http://x"}
    daily = parse_cron("0 0 * * *")
    kit.call(lambda f: f.create_schedule("org", "daily", daily, "UTC", template))
    kit.launch("tick", run_id="by-hand")
    for fired in range(2):
        kit.run_on("by-hand").assert_completed()
        runs = kit.call(lambda f: f.list_runs("org"))
        assert [run.status for run in runs] == ["completed"] * (1 + fired)
        kit.advance(days=1)


def test_facts_log_and_ledger_are_told(kit: Kit) -> None:
    def play(run: Run) -> None:
        run.log("a line", level="warning")
        run.progress({"done": 1})
        raise PermanentError("no")

    outcome = kit.run(play)
    assert outcome.assert_failed()["message"] == "no"
    assert [fact.type for fact in outcome.facts] == [
        "run.created",
        "run.started",
        "run.events",
        "run.progress",
        "run.failed",
    ]
    assert [(line.text, line.context["level"]) for line in outcome.log] == [("a line", "warning")]
    assert [event["type"] for event in outcome.ledger][-1] == "run.failed"
    with pytest.raises(AssertionError, match=r"failed \(PermanentError: no\), not completed"):
        outcome.assert_completed()
    with pytest.raises(AssertionError, match="the steps were: none"):
        outcome.step("x")


def test_a_programs_worker_is_used_and_unknown_plays_are_named(kit: Kit) -> None:
    worker = Worker()

    @worker.play("greet")
    def hello(run: Run, name: str) -> str:
        return f"Hello {name}"

    kit.use(worker)
    assert kit.run("greet", "Ada").result == "Hello Ada"
    assert kit.run(hello, "Bob").result == "Hello Bob"
    with pytest.raises(ValueError, match=r"no play 'other' \(known: greet\)"):
        kit.run("other")


def test_a_run_that_never_ends_fails_the_test(kit: Kit) -> None:
    def play(run: Run) -> None:
        while True:
            run.step("again", int)

    kit.patience = 0.3
    with pytest.raises(AssertionError, match="still work in: endless"):
        kit.run(play, run_id="endless")


def test_a_worker_with_nothing_to_do_ends_at_once(kit: Kit) -> None:
    def play(run: Run) -> Any:
        return run.wait_for("go")

    kit.run(play)
    for _ in range(5):  # it is stopped before it has begun
        kit.run_on().assert_waiting("go")


def test_a_session_s_own_server_leaves_nothing_behind() -> None:
    """Also where it lies elsewhere than asked, as root's does."""
    with TestServer() as server, server.database() as dsn:
        place = Path(str(conninfo_to_dict(dsn)["host"])).parent
        assert (place / "data").is_dir()
    assert not place.exists()


def test_functions_of_one_name_are_plays_of_their_own(kit: Kit) -> None:
    plays = [lambda run: "first", lambda run: "second"]
    assert [kit.run(play).result for play in (*plays, *plays)] == ["first", "second"] * 2
