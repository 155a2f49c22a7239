"""The hot path: append, claim, freeze, prove, acknowledge, against the bare floor of the server."""

from __future__ import annotations

import psycopg
from psycopg.types.json import Jsonb

from benchmarks.scripts import run_scripts
from benchmarks.server import empty_tables

ORG = "bench"
RUNS = 2000
SECONDS = 5.0

_FLOOR = """
\\set id random(1, 10000)
update public.bench_floor set n = n + 1 where id = :id;
"""

NAME_FACTS = f"""
\\set r random(0, {RUNS - 1})
\\set e random(1, 9000000000000000)
"""
APPEND = f"""{NAME_FACTS}
select recorded from counterfoil.append_fact(
    '{ORG}', 'run-' || lpad(:r::text, 8, '0'), :e::text, 'run.progress', '{{"done": 1}}');
"""

# One statement in each place; what an append holds for the moment is tried again, twice.
_CLAIM = """
select count(*) as n, coalesce(array_agg(g.org_id), '{}') as orgs,
    coalesce(array_agg(g.run_id), '{}') as runs, coalesce(array_agg(g.seq), '{}') as seqs,
    coalesce(array_agg(g.key), '{}') as keys, coalesce(array_agg(g.events), '{}') as events
from (
    select c.org_id, c.run_id, max(c.seq) as seq, min(c.idempotency_key) as key,
        jsonb_path_query_array(jsonb_agg(c.events order by c.seq), '$[*][*]') as events
    from counterfoil.claim_deliveries(
        p_lease_owner => 'dispatcher-' || :client_id, p_max_runs => %d) as c
    group by c.org_id, c.run_id
) as g \\gset
\\if :n > 0
"""
_FREEZE = """
select count(*) filter (where not f.renewed) as busy from counterfoil.renew_deliveries(
    :orgs::text[], :runs::text[], 'lifecycle', :seqs::bigint[], 'dispatcher-' || :client_id, 30,
    true) as f \\gset
"""
_PROVE = """
select count(*)
from unnest(:orgs::text[], :runs::text[], :keys::text[], :events::jsonb[]) as g (org, run, key, e)
cross join lateral counterfoil.assert_delivery(
    g.org, g.run, 'dispatcher-' || :client_id, g.key, g.e) as p;
"""
_ACKNOWLEDGE = """
select count(*) filter (where not a.acknowledged) as busy
from counterfoil.acknowledge_deliveries(
    :orgs::text[], :runs::text[], 'lifecycle', :seqs::bigint[], 'dispatcher-' || :client_id) as a
\\gset
"""
AGAIN = "\\if :busy > 0\n{0}\\if :busy > 0\n{0}\\endif\n\\endif\n"
# A claim that was not full has emptied the lanes: the next one gathers, as HOTPATH's calls of many
# lanes suppose, instead of taking the processor for a lane or two.
GATHER = "\\endif\n\\if :n < {0}\n\\sleep 40 ms\n\\endif\n"


def floor(dsn: str, clients: int = 8) -> float:
    """Bare updates of one row by its key, each a transaction, a second: the server's best."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop table if exists public.bench_floor")
        connection.execute(
            "create table public.bench_floor (id int primary key, n bigint not null) "
            "with (fillfactor = 50)"
        )
        connection.execute(
            "insert into public.bench_floor select i, 0 from generate_series(1, 10000) as i"
        )
    return run_scripts(dsn, SECONDS, (clients, _FLOOR))[0]


def make_runs(dsn: str, runs: int, *, started: bool = True) -> None:
    """Admit `runs` runs; with `started`, claim them too and take their start facts as delivered."""
    launches = [
        {
            "orgId": ORG,
            "runId": f"run-{i:08d}",
            "playId": "bench",
            "playName": "bench",
            "executorToken": "none",
            "baseUrl": "http://127.0.0.1:1",
        }
        for i in range(runs)
    ]
    with psycopg.connect(dsn, autocommit=True) as connection:
        for first in range(0, runs, 10000):
            connection.execute(
                "select count(*) from counterfoil.admit_launches(%s)",
                (Jsonb(launches[first : first + 10000]),),
            )
        if started:
            while connection.execute(
                "select from counterfoil.claim_attempts('bench', 1000, 300, '{bench}', null)"
            ).rowcount:
                pass
            connection.execute("truncate counterfoil.lanes")
        connection.execute("vacuum analyze")


def cycle(
    dsn: str,
    *,
    appenders: int = 8,
    dispatchers: int = 4,
    lanes: int = 32,
    batch: int = 1,
    freeze: bool = False,
    prove: bool = False,
) -> float:
    """Append, claim and acknowledge side by side; facts acknowledged a second."""
    empty_tables(dsn)
    make_runs(dsn, RUNS)
    parts = [_CLAIM % lanes]
    if freeze:
        parts += [_FREEZE, AGAIN.format(_FREEZE)]
    if prove:
        parts.append(_PROVE)
    parts += [_ACKNOWLEDGE, AGAIN.format(_ACKNOWLEDGE), GATHER.format(lanes)]
    append = APPEND if batch == 1 else _append_facts(batch)
    run_scripts(dsn, SECONDS, (appenders, append), (dispatchers, "".join(parts)))
    with psycopg.connect(dsn) as connection:
        row = connection.execute(
            "select coalesce(sum(d.last_seq - d.first_seq + 1), 0) from counterfoil.deliveries as d"
        ).fetchone()
    return float(row[0] if row else 0) / SECONDS


def _append_facts(batch: int) -> str:
    facts = ", ".join(
        f'{{"eventId": "%1$s-{i}", "eventType": "run.progress", "payload": {{"done": {i}}}}}'
        for i in range(batch)
    )
    return f"""{NAME_FACTS}
select count(*) from counterfoil.append_facts(
    '{ORG}', 'run-' || lpad(:r::text, 8, '0'), format('[{facts}]', :e::text)::jsonb);
"""
