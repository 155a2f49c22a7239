"""Step receipts: claim and complete, one by one and in batches, and reads of what is memoised."""

from __future__ import annotations

import json
import statistics
import time
from collections.abc import Callable

import psycopg

_CLAIM = "select * from counterfoil.claim_receipts('o', 'r', null, %s::text[], null, null)"
_COMPLETE = "select * from counterfoil.complete_receipts('o', 'r', %s::jsonb)"
_READ = "select * from counterfoil.get_receipts('o', %s::text[])"
_BARE = "select r.output from counterfoil.step_receipts as r where r.org_id = 'o' and r.key = %s"


def batch_ratio(dsn: str, round_number: int, keys: int = 1000, batch: int = 100) -> float:
    """Receipts a second in batches over receipts a second one by one, claimed and completed."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        rates = []
        for size in (1, batch):
            names = [f"{round_number}-{size}-{number}" for number in range(keys)]
            began = time.perf_counter()
            for start in range(0, keys, size):
                part = names[start : start + size]
                connection.execute(_CLAIM, [part])
                done = [{"key": name, "output": {"n": 1}} for name in part]
                connection.execute(_COMPLETE, [json.dumps(done)])
            rates.append(keys / (time.perf_counter() - began))
        return rates[1] / rates[0]


def read_ratio(dsn: str, reads: int = 1500) -> float:
    """A memoised read's median time over that of a bare select by primary key."""
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=None) as connection:
        connection.execute(_CLAIM, [["read"]])
        connection.execute(_COMPLETE, [json.dumps([{"key": "read", "output": {"n": 1}}])])
        return _median(reads, lambda: connection.execute(_READ, [["read"]])) / _median(
            reads, lambda: connection.execute(_BARE, ["read"])
        )


def _median(times: int, call: Callable[[], psycopg.Cursor]) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        call().fetchall()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)
