"""Clients that call in a loop, each a process with a connection of its own."""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Callable
from dataclasses import dataclass
from multiprocessing.connection import Connection

import psycopg

Client = Callable[[psycopg.Connection, int, Callable[[], bool], "Tally"], None]
"""A client: connection, its number, whether to go on, and where it counts."""


class Tally:
    """What one client did: units of work, and seconds per call by name."""

    def __init__(self) -> None:
        self.units = 0
        self.seconds: dict[str, list[float]] = {}

    def timed(self, name: str, started: float) -> None:
        """Count a call of `name` that began at `started` (time.perf_counter)."""
        self.seconds.setdefault(name, []).append(time.perf_counter() - started)


@dataclass(frozen=True)
class Result:
    """What all clients did together within `seconds`."""

    seconds: float
    units: int
    calls: dict[str, list[float]]

    @property
    def rate(self) -> float:
        """Units a second."""
        return self.units / self.seconds

    def milliseconds(self, name: str, share: float) -> float:
        """The quantile `share` (0…1) of the calls of `name`, in milliseconds."""
        ordered = sorted(self.calls[name])
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def run_clients(dsn: str, clients: list[Client], seconds: float) -> Result:
    """Run `clients` side by side for `seconds`."""
    context = multiprocessing.get_context("fork")
    starting = context.Barrier(len(clients) + 1)
    pipes: list[Connection] = []
    processes = []
    for number, client in enumerate(clients):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(
            target=_client, args=(dsn, client, number, seconds, starting, theirs)
        )
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    starting.wait()
    started = time.perf_counter()
    tallies = [pipe.recv() for pipe in pipes]
    elapsed = time.perf_counter() - started
    for process in processes:
        process.join()
    calls: dict[str, list[float]] = {}
    for tally in tallies:
        for name, spent in tally.seconds.items():
            calls.setdefault(name, []).extend(spent)
    return Result(elapsed, sum(tally.units for tally in tallies), calls)


def _client(
    dsn: str, client: Client, number: int, seconds: float, starting: object, pipe: Connection
) -> None:
    tally = Tally()
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as connection:
        starting.wait()  # type: ignore[attr-defined]
        until = time.perf_counter() + seconds
        client(connection, number, lambda: time.perf_counter() < until, tally)
    pipe.send(tally)
