"""`counterfoil demo`: the product's main job, for real, on this machine.

Every Python distribution installed here becomes one run. Gateway, dispatcher and two workers are
processes of their own; half way one worker is killed with SIGKILL and another takes its place. What
happened is then read from the database, shown, and judged.
"""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo
from rich.console import Console
from rich.live import Live

from counterfoil import migrations
from counterfoil.demonstration.killing import (
    Killing,
    at_work,
    wait_until_gone,
    wait_until_quiet,
)
from counterfoil.demonstration.play import PLAY, distributions
from counterfoil.demonstration.report import Account, read_account
from counterfoil.demonstration.view import Progress, show_account, show_progress
from counterfoil.embedded import EmbeddedServer
from counterfoil.kept_secrets import local_secrets
from counterfoil.launching import admit_all
from counterfoil.settings import Settings
from counterfoil.stack import Stack, StackError, free_port

ORG = "demo"
SCHEMA = "counterfoil"
PATIENCE_SECONDS = 180.0
LEASE_SECONDS = 5
KILL_AFTER = 0.35
"""Part of the runs that has ended when a worker is killed."""
ENOUGH_STEPS = 3
"""Steps of unfinished runs that the worker to be killed has done, so that there is something to
take over."""
LATE = 0.95
"""Part of the runs after which any worker will do."""
_PAUSE = 0.1
_PLAYS_AT_ONCE = 4

_PROGRESS: LiteralString = """
select count(*) filter (where u.status = 'queued') as queued,
       count(*) filter (where u.status = 'running') as running,
       count(*) filter (where u.status = 'waiting') as waiting,
       count(*) filter (where u.ended_at is not null) as ended,
       (select count(*) from {schema}.outbox as o where o.org_id = %(org)s) as facts,
       (select count(*) from {schema}.step_receipts as r
        where r.org_id = %(org)s and r.status = 'completed') as steps,
       (select count(*) from {schema}.ledger_events as e where e.org_id = %(org)s) as events,
       (select count(*) from {schema}.ledgers as g
        where g.org_id = %(org)s and g.ended_at is not null) as closed
from {schema}.runs as u where u.org_id = %(org)s
"""


class Demo:
    """One demo on one database."""

    def __init__(self, console: Console, settings: Settings, folder: Path) -> None:
        self.console = console
        self.settings = settings
        self.folder = folder
        self.killing: Killing | None = None
        self._started_at = time.monotonic()

    def run(self) -> int:
        """The exit code: 0 when every promise was kept."""
        with self._server() as admin, self._database(admin) as dsn:
            self._say("schema", str(migrations.migrate(dsn, SCHEMA)).splitlines()[0])
            packages = distributions()
            with Stack(self.folder, self._environment(dsn)) as stack:
                self._start(stack)
                self._launch(dsn, packages)
                with psycopg.connect(dsn, autocommit=True) as connection:
                    self._watch(stack, connection, len(packages))
            with psycopg.connect(dsn, autocommit=True) as connection:
                account = read_account(connection, SCHEMA, ORG)
        return self.judge(account, len(packages))

    def judge(self, account: Account, launched: int) -> int:
        """Show the account, and what is wrong with it; the exit code."""
        problems = account.problems(launched) + self._missed(account)
        show_account(self.console, account, self.killing, time.monotonic() - self._started_at)
        for problem in problems:
            self.console.print(f"[bold red]✗[/] {problem}")
        if not problems:
            self.console.print(
                f"[bold green]✓[/] {launched} runs, one worker killed, nothing lost, "
                "nothing done twice: verified from the database"
            )
        return 1 if problems else 0

    @contextmanager
    def _server(self) -> Iterator[str]:
        """The server's dsn: the one in the settings, else an embedded server."""
        if self.settings.dsn:
            yield self.settings.dsn
            return
        server = EmbeddedServer.default()
        with server:
            self._say("server", f"embedded PostgreSQL in {server.home}")
            yield server.dsn()

    @contextmanager
    def _database(self, admin: str) -> Iterator[str]:
        """A database for this demo alone, dropped at the end."""
        name = f"counterfoil_demo_{secrets.token_hex(4)}"
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute(sql.SQL("create database {}").format(sql.Identifier(name)))
        try:
            yield make_conninfo(admin, dbname=name)
        finally:
            with psycopg.connect(admin, autocommit=True) as connection:
                connection.execute(
                    sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name))
                )

    def _environment(self, dsn: str) -> dict[str, str]:
        self.port = free_port()
        return {
            "COUNTERFOIL_DSN": dsn,
            "COUNTERFOIL_SCHEMA": SCHEMA,
            "COUNTERFOIL_BASE_URL": self._base_url,
            "COUNTERFOIL_PORT": str(self.port),
            "COUNTERFOIL_ATTEMPT_LEASE": str(LEASE_SECONDS),
            "COUNTERFOIL_RECOVER_SECONDS": "1",
            "COUNTERFOIL_DELIVERY_LEASE": str(LEASE_SECONDS),
            "COUNTERFOIL_POLL_SECONDS": "1",
            **local_secrets(),
        }

    @property
    def _base_url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _start(self, stack: Stack) -> None:
        stack.start("gateway", "gateway")
        stack.wait_for_url(f"{self._base_url}/readyz")
        stack.start("dispatcher", "dispatch")
        self._start_worker(stack, "worker-1")
        self._start_worker(stack, "worker-2")
        pids = ", ".join(f"{m.name} ({m.process.pid})" for m in stack.members.values())
        self._say("processes", pids)

    def _start_worker(self, stack: Stack, name: str) -> None:
        stack.start(
            name,
            *("worker", "counterfoil.demonstration.play", "--name", name),
            *("--concurrency", str(_PLAYS_AT_ONCE)),
        )

    def _launch(self, dsn: str, packages: list[dict[str, Any]]) -> None:
        launches = [
            {
                "orgId": ORG,
                "runId": f"audit-{package['name']}",
                "playId": PLAY,
                "playName": PLAY,
                "executorToken": "none",
                "baseUrl": self._base_url,
                "input": package,
            }
            for package in packages
        ]
        begun = time.monotonic()
        admitted = asyncio.run(admit_all(dsn, SCHEMA, launches))
        took = (time.monotonic() - begun) * 1000
        self._say("launched", f"{len(admitted)} runs in one call, {took:.0f} ms")

    def _watch(self, stack: Stack, connection: psycopg.Connection, total: int) -> None:
        """Show progress until everything is in the ledger, and kill a worker on the way."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        with Live(console=self.console, refresh_per_second=10, transient=True) as live:
            while True:
                row = self._rows(connection, _PROGRESS, {"org": ORG})[0]
                progress = Progress(total, *(int(value) for value in row))
                live.update(show_progress(progress, list(stack.members), self.killing))
                if progress.closed == total:
                    break
                if self.killing is None and progress.ended >= total * KILL_AFTER:
                    self._kill_one(stack, connection, late=progress.ended >= total * LATE)
                stack.check()
                if time.monotonic() > deadline:
                    logs = "\n".join(f"{m.name}: {m.last_lines(2)}" for m in stack.members.values())
                    raise StackError(f"not done after {PATIENCE_SECONDS:g} s\n{logs}")
                time.sleep(_PAUSE)

    def _kill_one(self, stack: Stack, connection: psycopg.Connection, *, late: bool) -> None:
        """Kill the worker that has the most to lose, if there is one with something to lose."""
        workers = [name for name in stack.members if name.startswith("worker")]
        found = at_work(connection, SCHEMA, ORG, workers)
        if not found or (found[0].steps < ENOUGH_STEPS and not late):
            return
        victim = found[0].worker
        # It may end its run between a look and a blow: so it is held still for the look, and what
        # it had already asked of the database is waited for.
        stack.freeze(victim)
        wait_until_quiet(connection, victim)
        held = at_work(connection, SCHEMA, ORG, [victim])
        if not held or (held[0].steps < ENOUGH_STEPS and not late):
            stack.thaw(victim)
            return
        stack.kill(victim)
        wait_until_gone(connection, victim)
        left = at_work(connection, SCHEMA, ORG, [victim])
        self.killing = left[0] if left else Killing(victim, 0)
        self._start_worker(stack, "worker-3")

    def _missed(self, account: Account) -> list[str]:
        """What the killing should have shown and did not."""
        if self.killing is None:
            return ["no worker could be killed: the runs ended too quickly"]
        counts = account.counts
        if self.killing.steps == 0:
            return ["the killed worker had no unfinished run with a step done"]
        if counts["memoised"] < self.killing.steps:
            return [
                f"{self.killing.worker} had done {self.killing.steps} steps of unfinished runs, "
                f"but only {counts['memoised']} were taken over"
            ]
        return []

    def _rows(
        self, connection: psycopg.Connection, query: LiteralString, parameters: dict[str, Any]
    ) -> list[tuple[Any, ...]]:
        composed = sql.SQL(query).format(schema=sql.Identifier(SCHEMA))
        return connection.execute(composed, parameters).fetchall()

    def _say(self, what: str, text: str) -> None:
        self.console.print(f"[bold]{what:>10}[/]  {text}", markup=True)


def run_demo(console: Console, settings: Settings) -> int:
    """Run the demo; its logs are kept in a temporary folder only while it runs."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-demo-") as folder:
        return Demo(console, settings, Path(folder)).run()
