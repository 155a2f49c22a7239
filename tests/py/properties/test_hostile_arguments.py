"""Whatever a public function is given, it works or says what is wrong, where, and what to do."""

from __future__ import annotations

import json
import random

import psycopg

CALLS = 40
"""Calls of each function."""

PUBLIC = """
select p.oid::regprocedure::text, p.proname, p.proargtypes::oid[]::regtype[]::text[]
from pg_proc as p
where
    p.pronamespace = 'counterfoil'::regnamespace
    and exists (
        select from aclexplode(p.proacl) as a
        where a.grantee <> p.proowner and a.privilege_type = 'EXECUTE'
    )
order by 1
"""
FACT = json.dumps([{"eventId": "e", "eventType": "run.progress", "payload": {}}])
VALUES: dict[str, tuple[str, ...]] = {
    "text": (
        *("''", "' '", "'org'", "'run'", "repeat('x', 201)", "E'a\\u0001'", "'lifecycle'"),
        *("'search'", "'oldest_ready'", "'run.progress'", "'{'", "'%'"),
    ),
    "integer": ("0", "-1", "1", "64", "2147483647"),
    "bigint": ("0", "-1", "1", "9223372036854775807"),
    "boolean": ("true", "false"),
    "jsonb": (
        *("'null'", "'[]'", "'{}'", "'[1]'", "'[null]'", "'[[]]'", "'\"x\"'", "'1e400'"),
        *('\'{"message": "m"}\'', "'{\"events\": [null]}'", f"'{FACT}'"),
    ),
    "interval": ("'-1 day'", "'1 s'", "'1000 years'"),
    "timestamp with time zone": ("'infinity'", "'-infinity'", "now()"),
    "uuid": ("gen_random_uuid()",),
}
ARRAYS = ("'{}'", "array[@]", "array[@, null]", "array[@, @]", "array[[@], [@]]")


def value(dice: random.Random, kind: str) -> str:
    """A value of a type, as SQL."""
    element = kind.removesuffix("[]")
    if dice.random() < 0.2:
        found = "null"
    elif element == kind:
        found = dice.choice(VALUES[kind])
    else:
        item = f"{dice.choice(VALUES[element])}::{element}"
        found = dice.choice(ARRAYS).replace("@", item)
    return f"{found}::{kind}"


def test_bad_arguments_get_an_error_that_helps(installed: str) -> None:
    dice = random.Random(8)
    unhelpful = []
    with psycopg.connect(installed, autocommit=True) as connection:
        launch = dict.fromkeys(("runId", "playId", "playName"), "run") | {
            "orgId": "org",
            "executorToken": "t",
            "baseUrl": "https://receiver.example",
        }
        connection.execute("select counterfoil.admit_launch(%s)", [json.dumps(launch)])
        connection.execute("select counterfoil.claim_attempts('w', 1, 300, null, 'default')")
        functions = connection.execute(PUBLIC.encode()).fetchall()
        assert len(functions) > 80
        for signature, name, kinds in functions:
            for _ in range(CALLS):
                arguments = ", ".join(value(dice, kind) for kind in kinds)
                try:
                    connection.execute(f"select * from counterfoil.{name}({arguments})".encode())
                except psycopg.Error as error:
                    says = error.diag.message_detail and error.diag.message_hint
                    if not (error.sqlstate or "").startswith("RL") or not says:
                        unhelpful.append((signature, arguments, error.sqlstate, str(error)))
    assert unhelpful == []
