"""The journal: what indexing costs, what searches cost, and whether its tables stop growing."""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

import psycopg

from benchmarks.server import empty_tables

FACTS = 1_000
LINES = 100
_TABLE = "counterfoil.run_journal"
_LONG_AGO = "2020-01-01T00:00:00Z"
_COLUMNS = (
    "org_id, run_id, identity, channel, position, producer_attempt, level, occurred_at, line,"
    " content_digest, event_id, recorded_at, terms"
)


def materialise_ratio(dsn: str) -> tuple[float, float]:
    """Seconds for 100,000 lines in 1,000 facts, and for a bare insert of the same rows."""
    empty_tables(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(
            "select a.outcome from counterfoil.admit_launches((select jsonb_agg("
            "jsonb_build_object('orgId', 'bench', 'runId', 'run' || r, 'playId', 'p', 'playName',"
            " 'p', 'executorToken', 't', 'baseUrl', 'https://x.example'))"
            " from generate_series(0, 99) as r)) as a"
        )
        connection.execute(
            "select count(*) from counterfoil.claim_attempts('w', 100, 60, null, 'default')"
        )
        connection.execute(
            "select count(*) from generate_series(0, 999) as f cross join lateral"
            " counterfoil.append_fact('bench', 'run' || f %% 100, 'f' || f, 'runner.logs',"
            " jsonb_build_object('searchOnly', true, 'deferredProjection', true, 'lines',"
            " (select jsonb_agg(format('processed row %%s of sheet%%s status ok took %%s ms',"
            " f * 100 + n, n %% 97, (f * n) %% 1013)) from generate_series(1, 100) as n))) as a",
            (),
        )
        connection.execute(
            "select count(*) from counterfoil.claim_deliveries('me', 300, 64, 100, 'bench', null,"
            " 'search')"
        )
        indexed = _timed(
            connection,
            *(
                f"select counterfoil.materialize_runtime_outbox_event('bench', 'f{n}', 'me')"
                for n in range(FACTS)
            ),
        )
        connection.execute(f"create table kept as select * from {_TABLE} order by event_id")
        connection.execute(f"truncate {_TABLE}")
        bare = _timed(
            connection,
            *(
                f"insert into {_TABLE} select * from kept offset {n * LINES} limit {LINES}"
                for n in range(FACTS)
            ),
        )
        connection.execute("drop table kept")
    return indexed, bare


def fill(connection: psycopg.Connection, first: int, last: int, started: str) -> None:
    """Entries ``first`` to ``last``, one in 2.5 seconds, nine of ten of one org."""
    connection.execute(
        f"insert into {_TABLE} ({_COLUMNS})"
        " select s.org, s.run, 'in:1:log:' || s.n, 'log', s.n, 1, 'info', s.at, s.line,"
        " sha256(''), 'e', s.at,"
        " counterfoil.journal_terms(s.org, s.run, 'log', 'info', s.at, s.line)"
        " from (select n,"
        " case when n %% 10 = 0 then 'org' || (n / 10) %% 200 else 'big' end as org,"
        " 'run' || n / 500 as run, %s::timestamptz + n * interval '2.5 seconds' as at,"
        " format('processed row %%s of sheet%%s status ok took %%s ms%%s', n, n %% 997, n %% 1013,"
        " case when n %% 20011 = 0 then ' needle' else '' end) as line"
        " from generate_series(%s::bigint, %s) as n) as s",
        (started, first, last),
    )


@dataclass(frozen=True)
class Search:
    """A search that is measured: what it is called, the arguments after the org, and its bars."""

    name: str
    arguments: str
    most_pages: int
    """What one call may read, however many entries there are."""
    most_times: float | None = None
    """How many times as long as a read by key its p99 may take."""


SEARCHES = (
    Search("a word in one of 20,000", "'needle'", 2_000, 50),
    Search("a word in every one", "'status ok', p_limit => 50", 2_000, 50),
    Search("a word in one of a thousand", "'sheet5', p_limit => 50", 4_000, 50),
    Search("two words, one of them nowhere", "'status nowhere'", 2_000, 50),
    Search(
        "a substring that is nowhere (looks at 20,000)", "'nowhe', p_mode => 'substring'", 4_000
    ),
)


def load(dsn: str, entries: int) -> None:
    """Fill the journal with ``entries`` entries; the index of terms is built at the end."""
    empty_tables(dsn)
    with psycopg.connect(dsn, autocommit=True) as connection:
        definition = connection.execute(
            "select pg_get_indexdef('counterfoil.run_journal_terms_idx'::regclass)"
        ).fetchone()
        assert definition is not None
        connection.execute("drop index counterfoil.run_journal_terms_idx")
        for first in range(1, entries, 100_000):
            fill(connection, first, min(first + 99_999, entries), _LONG_AGO)
        connection.execute("set maintenance_work_mem = '2GB'")
        connection.execute(str(definition[0]).encode())
        connection.execute(f"vacuum analyze {_TABLE}")


def search_latency(dsn: str) -> list[tuple[Search, float, float, int]]:
    """(search, p99 milliseconds, ratio to the p99 of a read by primary key, pages it reads)."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        key = _p99(
            connection,
            f"select * from {_TABLE} where org_id = 'big' and run_id = 'run40'"
            " and identity = 'in:1:log:20011'",
            400,
        )
        found = []
        for search in SEARCHES:
            p99 = _p99(
                connection,
                f"select * from counterfoil.search_journal('big', {search.arguments})",
                100,
            )
            found.append((search, p99, p99 / key, _pages(connection, search.arguments)))
    return found


def _pages(connection: psycopg.Connection, arguments: str) -> int:
    """Pages, in memory or not, that one search reads."""
    row = connection.execute(
        "explain (analyze, buffers, format json)"
        f" select * from counterfoil.search_journal('big', {arguments})".encode()
    ).fetchone()
    assert row is not None
    plan = row[0][0]["Plan"]
    return int(plan["Shared Hit Blocks"]) + int(plan["Shared Read Blocks"])


def plateau(
    dsn: str, days: int, per_day: int, kept: int, burst_day: int
) -> list[tuple[int, int, int]]:
    """(day, entries, megabytes with indexes) of a journal that keeps ``kept`` days.

    Each day entries arrive, on ``burst_day`` ten times as many; then purge_journal() takes out what
    is too old, batch by batch, and vacuum follows, as autovacuum would.
    """
    empty_tables(dsn)
    sizes = []
    firsts = [1]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for day in range(1, days + 1):
            last = firsts[-1] + per_day * (10 if day == burst_day else 1) - 1
            fill(connection, firsts[-1], last, _LONG_AGO)
            firsts.append(last + 1)
            if day > kept:
                # Retention counts from today: as many seconds as lie behind the first day kept.
                connection.execute(
                    "select counterfoil.set_setting('journal_retention', to_jsonb(floor(extract("
                    "epoch from now() - %s::timestamptz - %s * interval '2.5 seconds'))::bigint))",
                    (_LONG_AGO, firsts[day - kept]),
                )
                while _one(connection, "select p.more from counterfoil.purge_journal(5000) as p"):
                    pass
            connection.execute(f"vacuum {_TABLE}")
            entries = _one(connection, f"select count(*) from {_TABLE}")
            size = _one(connection, f"select pg_total_relation_size('{_TABLE}') / 1048576")
            sizes.append((day, entries, size))
    return sizes


def given_back(dsn: str) -> tuple[int, int, int]:
    """Megabytes of the journal as it is, with its indexes built anew, and written anew itself."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        sizes = [_one(connection, f"select pg_total_relation_size('{_TABLE}') / 1048576")]
        for statement in (f"reindex table concurrently {_TABLE}", f"vacuum full {_TABLE}"):
            connection.execute(statement.encode())
            sizes.append(_one(connection, f"select pg_total_relation_size('{_TABLE}') / 1048576"))
    return sizes[0], sizes[1], sizes[2]


def _one(connection: psycopg.Connection, statement: str) -> int:
    row = connection.execute(statement.encode()).fetchone()
    assert row is not None
    return int(row[0])


def _timed(connection: psycopg.Connection, *statements: str) -> float:
    start = time.perf_counter()
    for statement in statements:
        connection.execute(statement.encode())
    return time.perf_counter() - start


def _p99(connection: psycopg.Connection, statement: str, times: int) -> float:
    connection.execute(statement.encode())
    spent = [_timed(connection, statement) * 1000 for _ in range(times)]
    return statistics.quantiles(spent, n=100)[98]
