"""What the demo's runs came to, read from the database and judged."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, LiteralString

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

TERMINALS = ("run.completed", "run.failed", "run.cancelled")

_COUNTS: LiteralString = """
with step as (
    select count(*) filter (where r.status = 'completed') as completed,
           count(*) filter (where r.status = 'completed' and r.run_attempt < u.attempt) as memoised
    from {schema}.step_receipts as r
    join {schema}.runs as u on u.org_id = r.org_id and u.run_id = r.run_id
    where r.org_id = %(org)s
),
fact as (
    select count(*) as written,
           count(*) filter (where o.lane = 'lifecycle') as to_deliver,
           count(*) filter (where o.seq >= l.head_seq) as pending
    from {schema}.outbox as o
    left join {schema}.lanes as l
        on l.org_id = o.org_id and l.run_id = o.run_id and l.lane = o.lane and l.lane = 'lifecycle'
    where o.org_id = %(org)s
),
event as (
    select count(*) as events,
           count(*) - count(distinct (e.run_id, e.event_id, e.item)) as duplicates
    from {schema}.ledger_events as e
    where e.org_id = %(org)s
),
gap as (
    select coalesce(sum(g.last - g.found), 0) as gaps
    from (
        select max(e.position) as last, count(*) as found
        from {schema}.ledger_events as e
        where e.org_id = %(org)s
        group by e.run_id
    ) as g
)
select (select count(*) from {schema}.runs as u where u.org_id = %(org)s) as runs,
       (select count(*) from {schema}.attempts as a where a.org_id = %(org)s) as attempts,
       (select count(*) from {schema}.ledger_appends as p where p.org_id = %(org)s) as appends,
       (select count(*) from {schema}.deliveries as d
        where d.org_id = %(org)s and d.lane = 'lifecycle') as deliveries,
       step.completed, step.memoised,
       fact.written, fact.to_deliver, fact.pending,
       event.events, event.duplicates, gap.gaps
from step, fact, event, gap
"""

_STATUSES: LiteralString = """
select u.status, count(*) as runs
from {schema}.runs as u where u.org_id = %(org)s group by u.status order by count(*) desc
"""

# Every fact's own projection, in order, against what the ledger holds.
_DIFFERENCES: LiteralString = """
select count(*) as differences
from (
    select o.run_id, p.item, o.event_id, p.event,
           row_number() over (partition by o.run_id order by o.seq, p.item) as position
    from {schema}.outbox as o
    cross join lateral {schema}.project_fact(o.org_id, o.run_id, o.event_id) as p
    where o.org_id = %(org)s and o.lane = 'lifecycle'
) as f
full join (
    select e.run_id, e.position, e.event_id, e.item, e.event
    from {schema}.ledger_events as e
    where e.org_id = %(org)s
) as e on e.run_id = f.run_id and e.position = f.position
where (e.event_id, e.item, e.event) is distinct from (f.event_id, f.item, f.event)
"""

_TERMINALS: LiteralString = """
select count(*) as wrong
from (
    select u.run_id, count(e.position) as terminals
    from {schema}.runs as u
    left join {schema}.ledger_events as e
        on e.org_id = u.org_id and e.run_id = u.run_id and e.event_type = any(%(terminals)s)
    where u.org_id = %(org)s
    group by u.run_id
) as t
where t.terminals <> 1
"""

_LATENCY: LiteralString = """
select percentile_cont(0.5) within group (order by t.seconds) as p50,
       percentile_cont(0.99) within group (order by t.seconds) as p99
from (
    select extract(epoch from e.appended_at - u.created_at)::float8 as seconds
    from {schema}.runs as u
    join {schema}.ledger_events as e
        on e.org_id = u.org_id and e.run_id = u.run_id and e.event_type = any(%(terminals)s)
    where u.org_id = %(org)s
) as t
"""

_RESULTS: LiteralString = """
select u.run_id, u.status, u.attempt, u.result, u.error
from {schema}.runs as u where u.org_id = %(org)s order by u.run_id
"""


@dataclass(frozen=True)
class Account:
    """Everything the demo says about an org's runs. Times are seconds."""

    statuses: dict[str, int]
    counts: dict[str, int]
    differences: int
    wrong_terminals: int
    p50: float
    p99: float
    results: list[dict[str, Any]]

    def problems(self, launched: int) -> list[str]:
        """What is wrong, in sentences; empty when every promise was kept."""
        counts = self.counts
        found = [
            (counts["runs"] != launched, f"{launched} launched, {counts['runs']} runs found"),
            (
                self.statuses.get("completed", 0) != launched,
                f"{self.statuses.get('completed', 0)} of {launched} runs completed",
            ),
            (counts["pending"] > 0, f"{counts['pending']} facts were not delivered"),
            (counts["duplicates"] > 0, f"{counts['duplicates']} duplicates in the ledger"),
            (counts["gaps"] > 0, f"{counts['gaps']} gaps in the ledger"),
            (self.differences > 0, f"{self.differences} ledger events differ from their facts"),
            (self.wrong_terminals > 0, f"{self.wrong_terminals} runs have not one terminal"),
            (
                any(not isinstance(r["result"], dict) for r in self.results),
                "a run has no result",
            ),
        ]
        return [text for wrong, text in found if wrong]

    @property
    def findings(self) -> list[dict[str, Any]]:
        """What each completed run returned."""
        return [row["result"] for row in self.results if isinstance(row["result"], dict)]

    @property
    def licences(self) -> Counter[str]:
        """How many distributions name which licence."""
        return Counter(found["licence"] for found in self.findings)


def read_account(connection: psycopg.Connection, schema: str, org: str) -> Account:
    """The account of an org. Reads tables, so it needs the owner's rights."""
    parameters = {"org": org, "terminals": list(TERMINALS)}

    def rows(query: LiteralString) -> list[dict[str, Any]]:
        composed = sql.SQL(query).format(schema=sql.Identifier(schema))
        with connection.cursor(row_factory=dict_row) as cursor:
            return cursor.execute(composed, parameters).fetchall()

    latency = rows(_LATENCY)[0]
    return Account(
        statuses={row["status"]: row["runs"] for row in rows(_STATUSES)},
        counts={name: int(value) for name, value in rows(_COUNTS)[0].items()},
        differences=rows(_DIFFERENCES)[0]["differences"],
        wrong_terminals=rows(_TERMINALS)[0]["wrong"],
        p50=latency["p50"] or 0.0,
        p99=latency["p99"] or 0.0,
        results=rows(_RESULTS),
    )
