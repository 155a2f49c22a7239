"""Twenty SIGKILLs of workers, dispatchers and gateways, and nothing lost or done twice."""

from __future__ import annotations

import asyncio
import json
import random
import secrets
from pathlib import Path
from typing import Any

import psycopg

from counterfoil.demonstration.report import read_account
from counterfoil.kept_secrets import local_secrets
from counterfoil.stack import Stack, free_port
from tests.py.worker.bench import ORG, Bench

KILLS = 20
RUNS = 36
STEPS = 4
SEED = 20260102

PROGRAM = f"""
import json, os, pathlib, time
from counterfoil import Worker

worker = Worker()
journal = pathlib.Path(__file__).parent / "executions"

def work(run_id, n):
    line = json.dumps({{"run": run_id, "n": n, "at": time.time()}}) + "\\n"
    descriptor = os.open(journal, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    os.write(descriptor, line.encode())
    os.close(descriptor)
    time.sleep(0.05 + n * 0.05)
    return {{"run": run_id, "n": n}}

@worker.play("plain")
def plain(run, given):
    for n in range({STEPS}):
        run.step("work", work, run.id, n)
        run.log(f"step {{n}} done")
        run.progress({{"done": n + 1}})
    return {{"run": run.id}}

@worker.play("coroutine")
async def coroutine(run, given):
    await run.map("work", lambda n: work(run.id, n), range({STEPS}), parallel=2)
    run.log("mapped")
    return {{"run": run.id}}
"""


class Ship:
    """A stack whose members are killed and replaced."""

    def __init__(self, bench: Bench, folder: Path) -> None:
        self.bench = bench
        self.port = free_port()
        self.program = folder / "sailors.py"
        self.program.write_text(PROGRAM)
        environment = {
            "COUNTERFOIL_DSN": bench.dsn,
            "COUNTERFOIL_PORT": str(self.port),
            "COUNTERFOIL_BASE_URL": self.base_url,
            "COUNTERFOIL_ATTEMPT_LEASE": "5",
            "COUNTERFOIL_DELIVERY_LEASE": "5",
            "COUNTERFOIL_RECOVER_SECONDS": "0.3",
            "COUNTERFOIL_POLL_SECONDS": "0.3",
            "COUNTERFOIL_LISTEN": "false",
            **local_secrets(),
        }
        self.stack = Stack(folder, environment)
        self.names: dict[str, str] = {}

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, role: str) -> None:
        """Start a member, and return when it is at work."""
        name = self.names[role] = f"{role}-{secrets.token_hex(3)}"
        if role == "gateway":
            self.stack.start(name, "gateway")
            await asyncio.to_thread(self.stack.wait_for_url, f"{self.base_url}/healthz")
            return
        if role == "dispatcher":
            self.stack.start(name, "dispatch")
            await asyncio.to_thread(self.stack.wait_for_message, name, "dispatching")
            return
        self.stack.start(name, "worker", str(self.program), "--name", name, "--concurrency", "3")
        await asyncio.to_thread(self.stack.wait_for_message, name, "worker started")

    async def kill(self, role: str) -> None:
        """Kill a member with SIGKILL, and let its leases have run out."""
        name = self.names[role]
        self.stack.kill(name)
        if role.startswith("worker"):
            await self.bench.rows(
                "update counterfoil.attempts set lease_expires_at = now() - interval '1 second'"
                " where worker = %s and status = 'running'",
                name,
            )
        elif role == "dispatcher":
            await self.bench.rows(
                "update counterfoil.lanes set lease_expires_at = now() - interval '1 second'"
                " where lease_owner is not null"
            )


async def test_twenty_kills_lose_nothing_and_repeat_no_completed_step(
    bench: Bench, tmp_path: Path
) -> None:
    dice = random.Random(SEED)
    ship = Ship(bench, tmp_path)
    roles = ["gateway", "dispatcher", "worker-a", "worker-b"]
    with ship.stack:
        for role in roles:
            await ship.start(role)
        victims = ["gateway", "dispatcher", "worker-a", "worker-b"] * (KILLS // 4)
        dice.shuffle(victims)
        launched = 0
        for number, victim in enumerate(victims, 1):
            # Work arrives all the time, so that every kill finds some in hand.
            while launched < RUNS * number // KILLS:
                await launch(bench, ship, launched)
                launched += 1
            await asyncio.sleep(dice.uniform(0.05, 0.6))
            await ship.kill(victim)
            await ship.start(victim)
        for number in range(launched):
            await bench.until(f"run-{number}", lambda run: run["endedAt"] is not None)
        await bench.eventually(
            lambda: bench.rows("select l.run_id from counterfoil.lanes as l"),
            lambda lanes: not lanes,
        )
        ship.stack.check()

    assert launched == RUNS
    with psycopg.connect(bench.dsn, autocommit=True) as connection:
        account = read_account(connection, "counterfoil", ORG)
    assert account.problems(RUNS) == []
    assert account.counts["completed"] == RUNS * STEPS
    assert account.counts["attempts"] > RUNS, "no kill interrupted a run"
    assert account.counts["memoised"] > 0, "no run took steps over"
    assert {row["run_id"]: row["result"] for row in account.results} == {
        f"run-{n}": {"run": f"run-{n}"} for n in range(RUNS)
    }
    assert await executed_after_completion(bench, tmp_path) == []


async def launch(bench: Bench, ship: Ship, number: int) -> None:
    await bench.launch(
        "plain" if number % 3 else "coroutine",
        f"run-{number}",
        maxAttempts=100,
        baseUrl=ship.base_url,
    )


async def executed_after_completion(bench: Bench, folder: Path) -> list[Any]:
    """Executions that began when the step had a stored result already."""
    settled = {
        (row["output"]["run"], row["output"]["n"]): row["at"]
        for row in await bench.rows(
            "select r.output, extract(epoch from r.settled_at)::float8 as at"
            " from counterfoil.step_receipts as r where r.status = 'completed'"
        )
    }
    text = await asyncio.to_thread((folder / "executions").read_text)
    executions = [json.loads(line) for line in text.splitlines()]
    assert {(e["run"], e["n"]) for e in executions} == settled.keys()
    return [e for e in executions if e["at"] > settled[e["run"], e["n"]]]


async def test_the_account_sees_what_is_wrong(bench: Bench, tmp_path: Path) -> None:
    """The judge of the test above, and of the demo, is not blind."""
    ship = Ship(bench, tmp_path)
    with ship.stack:
        for role in ("gateway", "dispatcher", "worker-a"):
            await ship.start(role)
        for number in range(3):
            await launch(bench, ship, number)
        for number in range(3):
            await bench.until(f"run-{number}", lambda run: run["endedAt"] is not None)
        await bench.eventually(
            lambda: bench.rows("select l.run_id from counterfoil.lanes as l"),
            lambda lanes: not lanes,
        )
    with psycopg.connect(bench.dsn, autocommit=True) as connection:
        assert read_account(connection, "counterfoil", ORG).problems(3) == []
        damages = {
            "delete from counterfoil.ledger_events where run_id = 'run-0' and position = 3": (
                "gaps in the ledger"
            ),
            "update counterfoil.ledger_events set event = event || '{\"x\": 1}'"
            " where run_id = 'run-0' and position = 2": "differ from their facts",
            "delete from counterfoil.ledger_events where run_id = 'run-1' and event_type ="
            " 'run.completed'": "have not one terminal",
            "update counterfoil.runs set result = null where run_id = 'run-2'": "has no result",
            "delete from counterfoil.runs where run_id = 'run-2'": "3 launched, 2 runs found",
            "insert into counterfoil.lanes (org_id, run_id, lane, priority, due_at, head_seq,"
            " tail_seq) values ('org', 'run-0', 'lifecycle', 3, now(), 2, 3)": "not delivered",
        }
        for damage, problem in damages.items():
            with connection.transaction(force_rollback=True):
                connection.execute(damage.encode())
                found = read_account(connection, "counterfoil", ORG).problems(3)
                assert any(problem in text for text in found), (damage, found)
