"""The hot path's shape with nothing promised (bare.sql): what this machine gives at best."""

from __future__ import annotations

from pathlib import Path

import psycopg

from benchmarks.delivery import AGAIN, GATHER, NAME_FACTS, ORG, RUNS, SECONDS
from benchmarks.scripts import run_scripts

_CLAIM = """
select count(*) as n, coalesce(array_agg(g.org_id), '{}') as orgs,
    coalesce(array_agg(g.run_id), '{}') as runs, coalesce(array_agg(g.seq), '{}') as seqs,
    coalesce(array_agg(g.payloads), '{}') as payloads
from (
    select c.org_id, c.run_id, max(c.seq) as seq, jsonb_agg(c.payload) as payloads
    from bench_bare.claim('dispatcher-' || :client_id, %d) as c
    group by c.org_id, c.run_id
) as g \\gset
\\if :n > 0
"""
_ACKNOWLEDGE = """
select bench_bare.acknowledge(
    :orgs::text[], :runs::text[], :seqs::bigint[], 'dispatcher-' || :client_id) as busy \\gset
"""


def cycle(
    dsn: str, *, appenders: int = 8, dispatchers: int = 4, lanes: int = 32, batch: int = 1
) -> float:
    """Append, claim and acknowledge side by side; facts acknowledged a second."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(Path(__file__).with_suffix(".sql").read_text())
        connection.execute(
            "insert into bench_bare.counters"
            " select %s, 'run-' || lpad(i::text, 8, '0'), 0 from generate_series(0, %s) as i",
            (ORG, RUNS - 1),
        )
        connection.execute("vacuum analyze")
    ids = ", ".join(f":e || '-{i}'" for i in range(batch))
    payloads = ", ".join(f"'{{\"done\": {i}}}'::jsonb" for i in range(batch))
    append = f"""{NAME_FACTS}
select bench_bare.append('{ORG}', 'run-' || lpad(:r::text, 8, '0'),
    array[{ids}]::text[], 'run.progress', array[{payloads}]);
"""
    again = AGAIN.format(_ACKNOWLEDGE)
    deliver = _CLAIM % lanes + _ACKNOWLEDGE + again + GATHER.format(lanes)
    run_scripts(dsn, SECONDS, (appenders, append), (dispatchers, deliver))
    with psycopg.connect(dsn, autocommit=True) as connection:
        row = connection.execute(
            "select coalesce(sum(d.last_seq - d.first_seq + 1), 0) from bench_bare.deliveries as d"
        ).fetchone()
        connection.execute("drop schema bench_bare cascade")
    return float(row[0] if row else 0) / SECONDS
