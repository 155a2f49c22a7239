"""Many clients race for the last places under a limit: exactly as many get in as there are."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest
from psycopg.types.json import Jsonb

CLIENTS = 100


def launch(run: str) -> Jsonb:
    """A small launch of the org."""
    return Jsonb(
        {
            "orgId": "org",
            "runId": run,
            "playId": "play",
            "playName": "play",
            "executorToken": "none",
            "baseUrl": "http://127.0.0.1:1",
        }
    )


def race(dsn: str, act: Callable[[psycopg.Connection, int], str]) -> Counter[str]:
    """What each call of ``act`` by all clients at once answers, counted."""
    barrier = threading.Barrier(CLIENTS)
    answers: Counter[str] = Counter()
    lock = threading.Lock()

    def client(number: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as connection:
            barrier.wait()
            answer = act(connection, number)
            with lock:
                answers[answer] += 1

    threads = [threading.Thread(target=client, args=(number,)) for number in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def admit(connection: psycopg.Connection, number: int) -> str:
    """The outcome, or SQLSTATE and limit of the refusal."""
    try:
        row = connection.execute(
            "select a.outcome from counterfoil.admit_launch(%s) as a", (launch(f"run-{number}"),)
        ).fetchone()
    except psycopg.Error as error:
        detail = json.loads(error.diag.message_detail or "")
        assert 1 <= detail["retryAfterMs"] <= 60000
        return f"{error.sqlstate} {detail['limit']}"
    assert row is not None
    return str(row[0])


@pytest.mark.parametrize(
    ("scope", "limit", "refusal"),
    [
        ("org", "maxQueued", "RL007 maxQueued"),
        ("installation", "maxQueued", "RL006 maxQueued"),
    ],
)
def test_a_hundred_clients_for_ten_places(
    installed: str, scope: str, limit: str, refusal: str
) -> None:
    """Ten are admitted and ninety refused, beside 190 that were there before."""
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(
            "select counterfoil.set_admission_limits(%s, %s, %s)",
            ("org" if scope == "org" else None, scope, Jsonb({limit: 200})),
        )
        for number in range(190):
            admit(connection, 1000 + number)
        assert race(installed, admit) == {"admitted": 10, refusal: 90}
        row = connection.execute(
            "select (select count(*) from counterfoil.runs),"
            " (select sum(c.queued) from counterfoil.admission_counters as c where c.org_id = %s)",
            ("org" if scope == "org" else "",),
        ).fetchone()
    assert row == (200, 200)


def test_no_more_run_than_may(installed: str) -> None:
    """A hundred claims for ten places among the active: ten runs at most, and all in the end."""
    with psycopg.connect(installed, autocommit=True) as connection:
        connection.execute(
            "select counterfoil.set_admission_limits('org', 'org', '{\"maxActive\": 10}')"
        )
        for number in range(100):
            admit(connection, number)

        def claim(client: psycopg.Connection, number: int) -> str:
            return str(
                client.execute(
                    "select c.run_id from counterfoil.claim_attempts(%s, 1, 60, null, 'default')"
                    " as c",
                    (f"worker-{number}",),
                ).rowcount
            )

        answers = race(installed, claim)
        # A claim waits for nobody, so some find a place that another is just about to take.
        assert answers["1"] <= 10
        while claim(connection, 0) == "1":
            answers["1"] += 1
        active = connection.execute(
            "select count(*) from counterfoil.runs as r where r.status = 'running'"
        ).fetchone()
    assert answers["1"] == 10
    assert active == (10,)
