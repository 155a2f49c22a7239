"""What a killed worker had in hand is counted when nothing that it sent is under way any more."""

from __future__ import annotations

import threading

import psycopg

from counterfoil.demonstration.killing import wait_until_gone, wait_until_quiet


def test_a_statement_that_was_sent_is_waited_for(database: str) -> None:
    ended = threading.Event()
    with (
        psycopg.connect(database, autocommit=True) as watcher,
        psycopg.connect(
            database, autocommit=True, application_name="counterfoil worker victim"
        ) as victim,
    ):

        def work() -> None:
            victim.execute("select pg_sleep(0.7)")
            ended.set()

        begun = "select from pg_stat_activity where application_name like %s and state = 'active'"
        thread = threading.Thread(target=work)
        thread.start()
        while watcher.execute(begun, ["%worker victim"]).fetchone() is None:
            assert thread.is_alive()
        wait_until_quiet(watcher, "victim")
        assert ended.wait(0.2), "the statement still ran"
        thread.join()


def test_sessions_that_end_are_waited_for(database: str) -> None:
    with psycopg.connect(database, autocommit=True) as watcher:
        victim = psycopg.connect(
            database, autocommit=True, application_name="counterfoil worker victim"
        )
        timer = threading.Timer(0.4, victim.close)
        timer.start()
        wait_until_gone(watcher, "victim")
        left = watcher.execute(
            "select count(*) from pg_stat_activity where application_name like '%worker victim'"
        ).fetchone()
        timer.join()
        assert left == (0,)
