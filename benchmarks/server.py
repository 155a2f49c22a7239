"""A durable server for measuring: fsync and synchronous_commit on, nothing else at work."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg

from counterfoil import migrations
from counterfoil.embedded import EmbeddedServer

_SETTINGS = {
    "shared_buffers": "1GB",
    "max_wal_size": "8GB",
    "checkpoint_timeout": "30min",
    "max_connections": 100,
    "jit": "off",
}


@contextmanager
def measured_database(dsn: str | None) -> Iterator[str]:
    """A database with the schema in it, on `dsn`'s server or on an embedded one made for this."""
    if dsn is not None:
        migrations.migrate(dsn)
        yield dsn
        return
    with tempfile.TemporaryDirectory(prefix="counterfoil-bench-") as folder:
        server = EmbeddedServer(Path(folder), settings=_SETTINGS, timeout=600)
        server.start()
        try:
            migrations.migrate(server.dsn())
            yield server.dsn()
        finally:
            server.remove()


def empty_tables(dsn: str) -> None:
    """Make every table of runs and facts empty, so that each measurement starts alike."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "truncate counterfoil.runs, counterfoil.outbox, counterfoil.deliveries, "
            "counterfoil.lanes, counterfoil.ledgers, counterfoil.run_journal, "
            "counterfoil.step_receipts, counterfoil.admission_counters "
            "cascade"
        )
        connection.execute("vacuum analyze")
