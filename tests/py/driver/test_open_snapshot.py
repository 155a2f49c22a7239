"""An open snapshot keeps what was delivered from being cleaned away; hot calls pass over it."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, LiteralString

import psycopg
import pytest
from psycopg import IsolationLevel
from psycopg.errors import SerializationFailure

ROUNDS = 150
"""Facts of one run, each delivered before the next comes."""
CALLS: dict[str, LiteralString] = {
    "append_fact": "select counterfoil.append_fact('acme', 'r', %(id)s, 'run.progress', '{}')",
    "append_facts": "select counterfoil.append_facts('acme', 'r', jsonb_build_array("
    "jsonb_build_object('eventId', %(id)s::text, 'eventType', 'run.progress',"
    " 'payload', '{}'::jsonb)))",
    "claim_deliveries": "select counterfoil.claim_deliveries("
    "'d', p_marks => array_fill(%(mark)s::timestamptz, array[4]))",
    "renew_deliveries": "select counterfoil.renew_deliveries("
    "'{acme}', '{r}', 'lifecycle', array[%(seq)s::bigint], 'd', 30, true)",
    "assert_delivery": "select counterfoil.assert_delivery('acme', 'r', 'd', %(key)s)",
    "acknowledge_deliveries": "select counterfoil.acknowledge_deliveries("
    "'{acme}', '{r}', 'lifecycle', array[%(seq)s::bigint], 'd')",
}


def test_the_hot_calls_pass_over_what_was_delivered(installed: str) -> None:
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(
            "select counterfoil.admit_launch(jsonb_build_object('orgId', 'acme', 'runId', 'r',"
            " 'playId', 'p', 'playName', 'p', 'executorToken', 'none',"
            " 'baseUrl', 'http://127.0.0.1:1'))"
        )
        _deliver(connection)
        connection.execute("select counterfoil.claim_attempts('w', 1, 300, '{p}', null)")
        _deliver(connection)
        _pages(connection, "first")
        calm = _pages(connection, "calm")
        with psycopg.connect(installed) as holder:
            holder.isolation_level = IsolationLevel.REPEATABLE_READ
            holder.execute("select count(*) from counterfoil.lanes")
            for n in range(ROUNDS):
                connection.execute(CALLS["append_fact"], {"id": f"fact {n}"})
                _deliver(connection)
            held = _pages(connection, "held")
    # An index that has grown a level costs a page for each look-up; what was delivered, hundreds.
    assert {name: (calm[name], n) for name, n in held.items() if n > calm[name] + 12} == {}


@pytest.mark.parametrize(
    "isolation", [IsolationLevel.READ_COMMITTED, IsolationLevel.REPEATABLE_READ]
)
def test_a_snapshot_older_than_retention_gives_no_position(
    installed: str, isolation: IsolationLevel
) -> None:
    """It would give the position of a fact once more that it does not see and that is gone."""
    with psycopg.connect(installed) as connection:
        connection.isolation_level = isolation
        for hours, fails in ((0.9, False), (1.1, isolation is IsolationLevel.REPEATABLE_READ)):
            with pytest.raises(SerializationFailure) if fails else nullcontext() as failure:
                connection.execute(
                    "select counterfoil.queue_lane('acme', 'r', 'lifecycle', 1, 1, null, null,"
                    " transaction_timestamp() + make_interval(secs => 3600 * %s))",
                    (hours,),
                )
            assert not fails or failure.value.diag.message_detail == "snapshot_too_old"
            connection.rollback()


def _deliver(connection: psycopg.Connection) -> None:
    row = connection.execute("select max(c.seq) from counterfoil.claim_deliveries('d') as c")
    done = connection.execute(
        "select a.acknowledged from counterfoil.acknowledge_deliveries("
        "'{acme}', '{r}', 'lifecycle', array[%s::bigint], 'd') as a",
        row.fetchone(),
    )
    assert done.fetchone() == (True,)


def _pages(connection: psycopg.Connection, name: str) -> dict[str, int]:
    """Pages that each hot call reads on the way of two facts."""
    pages: dict[str, int] = {}
    now = connection.execute("select clock_timestamp()").fetchone()
    given: dict[str, Any] = {"mark": now and now[0], "seq": None, "key": None}
    for call, statement in CALLS.items():
        explained = connection.execute(
            "explain (analyze, buffers, format json) " + statement,
            given | {"id": f"{name} {call}"},
        ).fetchone()
        assert explained is not None
        plan = explained[0][0]["Plan"]
        pages[call] = plan["Shared Hit Blocks"] + plan["Shared Read Blocks"]
        lane = connection.execute(
            "select l.tail_seq, l.receipt_key from counterfoil.lanes as l"
        ).fetchone()
        given["seq"], given["key"] = lane or (None, None)
    assert lane is None, "what was claimed is acknowledged"
    return pages
