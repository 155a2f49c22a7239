"""Putting another schema's name into SQL text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.schema.errors import SchemaNameError
from counterfoil.schema.sql import check_schema_name, statements, tokens, with_schema

QUOTED = '"o\'b""x"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("select counterfoil.f()", "select {q}.f()"),
        ("(counterfoil.t)", "({q}.t)"),
        ("1-Counterfoil.f()/counterfoil.g()", "1-{q}.f()/{q}.g()"),
        ('counterfoil."Odd"', '{q}."Odd"'),
        ('"counterfoil".t', "{q}.t"),
        ("grant usage on schema counterfoil to x", "grant usage on schema {q} to x"),
        ("create schema if not exists counterfoil;", "create schema if not exists {q};"),
        ("grant x to counterfoil_worker", "grant x to counterfoil_worker"),
        ("my_counterfoil.t", "my_counterfoil.t"),
        ("x.counterfoil.t", "x.counterfoil.t"),
        ("counterfoil", "counterfoil"),
        ("-- of counterfoil.t and counterfoil. Next", "-- of {q}.t and counterfoil. Next"),
        ("/* counterfoil.t */", "/* {q}.t */"),
        ("'counterfoil.t'::regclass", "'{s}.t'::regclass"),
        ("e'counterfoil.t\\n'", "e'{s}.t\\n'"),
        ("'see ''counterfoil.t'' now'", "'see ''{n}.t'' now'"),
        ("$b$ select 'counterfoil.t' $b$", "$b$ select '{s}.t' $b$"),
        ("format('counterfoil.%I', x)", "format('{s}.%I', x)"),
        ("'https://counterfoil.example/'", "'https://counterfoil.example/'"),
        ("comment on table counterfoil.t is 'of counterfoil.t'", None),
    ],
)
def test_only_the_qualifier_is_replaced(text: str, expected: str | None) -> None:
    if expected is None:
        expected = "comment on table {q}.t is 'of {s}.t'"
    expected = expected.format(q=QUOTED, s=QUOTED.replace("'", "''"), n=QUOTED.replace("'", "''''"))
    assert with_schema(text, QUOTED) == expected


def test_the_shipped_name_changes_nothing() -> None:
    text = "select 'counterfoil.t' from counterfoil.t -- counterfoil.t"
    assert with_schema(text, "counterfoil") == text


def test_a_comment_stays_one_comment() -> None:
    assert with_schema("/* counterfoil.t */ x", '"a*/b"') == '/* "a* /b".t */ x'


@given(st.text(alphabet="ab'\"$-/*\\eE\n;. counterfoil_", max_size=60))
def test_tokens_join_to_the_source(text: str) -> None:
    assert "".join(token.text for token in tokens(text)) == text


def test_statements_end_at_semicolons_outside_strings() -> None:
    script = "select ';' ; -- x;\n create function f() as $$ a; b; $$;/* ; */ select \"a;b\""
    assert list(statements(script)) == [
        "select ';'",
        "create function f() as $$ a; b; $$",
        'select "a;b"',
    ]


@pytest.mark.parametrize(
    "name",
    [
        *("", "a" * 49, "é" * 25, "a\nb", "a\x00b", "a%s", "a\\b", "$a$"),
        *("public", "pg_x", "information_schema", "a\u200bb"),
    ],
)
def test_names_that_cannot_be_carried_are_refused(name: str) -> None:
    with pytest.raises(SchemaNameError) as error:
        check_schema_name(name)
    assert error.value.hint


@pytest.mark.parametrize("name", ["a", "a" * 48, 'we"ird; drop', "o'brien", "a$b", "user", "Ünï"])
def test_other_names_are_accepted(name: str) -> None:
    check_schema_name(name)
