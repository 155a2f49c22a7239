"""A worker that was stopped past its lease, and then goes on, changes nothing any more."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import psycopg
import pytest

from counterfoil import LeaseLostError, Run
from counterfoil.stack import Stack
from tests.py.worker.bench import ORG, Bench

ATTEMPT = "p_org_id => 'org', p_run_id => 'run', p_attempt => 1, p_lease_id => {lease}"
RECEIPTS = (
    "p_org_id => 'org', p_run_id => 'run', p_receipts =>"
    ' \'[{{"key": "k", "leaseId": "receipt-lease", "runAttempt": 1{more}}}]\''
)
FACT = '{"eventId": "late", "eventType": "run.progress", "payload": {}}'

# Every function of the worker's that takes a lease, called as the holder of attempt 1 would.
CALLS = {
    "complete_attempt": ATTEMPT + ", p_completion => '{{}}'",
    "fail_attempt": ATTEMPT + ', p_failure => \'{{"error": {{"message": "late"}}}}\'',
    "release_attempt": ATTEMPT,
    "suspend_attempt": ATTEMPT + ", p_reason => 'late'",
    "park_attempt": ATTEMPT,
    "record_runner_terminal": ATTEMPT + ', p_terminal => \'{{"status": "completed"}}\'',
    "direct_complete_runner_terminal": ATTEMPT + ', p_terminal => \'{{"status": "completed"}}\'',
    "append_fact": ATTEMPT
    + ", p_event_id => 'late', p_event_type => 'run.progress', p_payload => '{{}}'",
    "append_facts": ATTEMPT + ", p_facts => '[" + FACT.replace("{", "{{").replace("}", "}}") + "]'",
    "claim_receipts": "p_org_id => 'org', p_run_id => 'run', p_run_attempt => 1,"
    " p_keys => array['new'], p_lease_ids => array['l'], p_options => '{{}}'",
    "record_receipt": ATTEMPT + ", p_key => 'own', p_output => '1'",
    "complete_receipts": RECEIPTS.replace("{more}", ', "output": "late"')
    + ", p_return_output => true",
    "fail_receipts": RECEIPTS.replace("{more}", ', "error": "late"'),
    "skip_receipts": RECEIPTS.replace("{more}", ""),
    "release_receipts": RECEIPTS.replace("{more}", ""),
    "mark_receipts_running": RECEIPTS.replace("{more}", ""),
    "mark_receipts_queued": RECEIPTS.replace("{more}", ""),
    "heartbeat_receipts": RECEIPTS.replace("{more}", ""),
}
TABLES = ("runs", "attempts", "run_queue", "outbox", "lanes", "step_receipts", "run_waits")


async def everything(bench: Bench) -> list[Any]:
    """Every row that a worker can change."""
    return [await bench.rows(f"select t::text from counterfoil.{name} as t") for name in TABLES]


@pytest.fixture
async def lost(bench: Bench) -> str:
    """Attempt 1 of the run holds a receipt and is lost; its lease id."""
    await bench.launch("play")
    (claimed,) = await bench.functions.claim_attempts("zombie", 1, 30, ["play"], "default")
    await bench.functions.claim_receipts(ORG, "run", 1, ["k"], ["receipt-lease"], {})
    await bench.expire()
    return claimed.lease_id


@pytest.mark.parametrize("replaced", [False, True], ids=["expired", "replaced"])
async def test_no_function_takes_a_lease_that_was_lost(
    bench: Bench, lost: str, replaced: bool
) -> None:
    if replaced:
        await bench.functions.recover_attempts(10, "default")
        await bench.rows("update counterfoil.run_queue set ready_at = now()")
        await bench.rows("update counterfoil.runs set wake_at = now() where wake_at is not null")
        (heir,) = await bench.functions.claim_attempts("heir", 1, 30, ["play"], "default")
        assert heir.attempt == 2
        await bench.functions.claim_receipts(ORG, "run", 2, ["k"], ["heir-lease"], {})
    before = await everything(bench)
    refused = {}
    for function, call in CALLS.items():
        arguments = call.format(lease=f"'{lost}'")
        try:
            await bench.rows(f"select * from counterfoil.{function}({arguments})")
        except LeaseLostError as error:
            refused[function] = error.reason
        assert await everything(bench) == before, function
    assert refused.keys() == CALLS.keys()
    assert set(refused.values()) <= {"attempt_lease_not_current", "receipt_lease_not_current"}


async def test_a_heartbeat_after_the_loss_says_so_and_changes_nothing(
    bench: Bench, lost: str
) -> None:
    before = await everything(bench)
    (answer,) = await bench.functions.heartbeat_attempts([ORG], ["run"], [1], [lost], 30)
    assert answer.outcome == "lost"
    assert await everything(bench) == before


def test_every_function_that_takes_a_lease_is_tried(installed: str) -> None:
    """New functions of the worker's that take a lease have to join the list above."""
    query = """
        select distinct p.proname
        from pg_proc as p
        where p.pronamespace = 'counterfoil'::regnamespace
            and has_function_privilege('counterfoil_worker', p.oid, 'execute')
            and ('p_lease_id' = any(p.proargnames) or 'p_lease_ids' = any(p.proargnames)
                or 'p_receipts' = any(p.proargnames))
    """
    with psycopg.connect(installed) as connection:
        found = {row[0] for row in connection.execute(query)}
    assert found == {*CALLS, "heartbeat_attempts"}


PROGRAM = """
import time, pathlib
from counterfoil import Worker

worker = Worker()
folder = pathlib.Path(__file__).parent

def slow(attempt):
    (folder / "stuck").touch()
    while not (folder / "go").exists():
        time.sleep(0.01)
    return f"by {attempt}"

@worker.play("play")
def play(run, given):
    try:
        run.progress({"at": "begin"})
        found = run.step("slow", lambda: slow(run.attempt))
        run.log(f"says {run.attempt}")
        run.progress({"at": "end"})
        return found
    finally:
        (folder / f"left-{run.attempt}").touch()
"""


async def test_a_worker_that_was_stopped_past_its_lease_writes_nothing(
    bench: Bench, tmp_path: Path
) -> None:
    (tmp_path / "zombie.py").write_text(PROGRAM)
    heir = bench.worker(name="heir")

    @heir.play("play")
    def play(run: Run) -> str:
        found: str = run.step("slow", lambda: f"by {run.attempt}")
        run.log(f"says {run.attempt}")
        return found

    async def seen(name: str) -> bool:
        return (tmp_path / name).exists()

    await bench.launch("play")
    with Stack(tmp_path, {"COUNTERFOIL_DSN": bench.dsn}) as stack:
        member = stack.start("zombie", "worker", str(tmp_path / "zombie.py"), "--name", "zombie")
        await bench.eventually(lambda: seen("stuck"), bool)
        await bench.eventually(bench.facts, lambda facts: len(facts) == 3)
        os.kill(member.process.pid, signal.SIGSTOP)
        await bench.expire()
        async with bench.working(heir):
            run = await bench.ended()
        before = await everything(bench)
        (tmp_path / "go").touch()
        os.kill(member.process.pid, signal.SIGCONT)
        await bench.eventually(lambda: seen("left-1"), bool)
        stack.stop()
    assert run["result"] == "by 2"
    assert await everything(bench) == before
    assert await bench.lines() == ["says 2"]
    progress = [payload for kind, payload in await bench.facts() if kind == "run.progress"]
    assert progress == [{"at": "begin"}]
    log = await asyncio.to_thread(member.log.read_text)
    assert "AttemptLost" in log
    assert "run completed" not in log
