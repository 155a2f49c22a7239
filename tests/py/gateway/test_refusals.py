"""Every refusal there is names what was wrong, for people and for programs, and says what to do.

What the suite provokes over HTTP is looked at by `Answer.error`, and SQL's own refusals by pgTAP.
Here are all others, from the tables and the code that they are made of.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from starlette.responses import Response

import counterfoil
from counterfoil.calls.receipts import FailureClass
from counterfoil.errors import (
    BY_SQLSTATE,
    PoolExhaustedError,
    ReceiverError,
    TokenError,
)
from counterfoil.receiving import proxy
from counterfoil.receiving.errors import RequestError
from counterfoil.receiving.failures import Failures, refusal
from counterfoil.tokens import WrongUseError
from tests.py.driver.scene import Scene

# What makes a refusal, and where among its arguments are code, text and hint.
MAKERS = {
    "RequestError": (1, 2, 3),
    "refusal": (1, 2, 3),
    "TokenError": (0, 0, 1),
    "WrongUseError": (0, 0, 1),
    "_UnfitError": (0, 1, 2),
}


def told(response: Response) -> tuple[int, dict[str, Any]]:
    body = json.loads(bytes(response.body))
    for name in ("code", "error", "hint"):
        assert isinstance(body[name], str), (name, body)
        assert body[name].strip(), (name, body)
    return response.status_code, body


def calls() -> Iterator[tuple[str, ast.Call]]:
    folder = Path(counterfoil.__file__).parent
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
                name = node.func.id if isinstance(node.func, ast.Name) else node.func.attr
                if name in MAKERS:
                    yield f"{path.name}:{node.lineno}", node


def test_every_refusal_in_the_code_has_a_text_and_a_hint() -> None:
    found = dict(calls())
    assert len(found) > 50
    for where, call in found.items():
        name = call.func.id if isinstance(call.func, ast.Name) else call.func.attr  # type: ignore[attr-defined]
        for place in MAKERS[name]:
            given = call.args[place]
            if isinstance(given, ast.Constant):
                assert isinstance(given.value, str), where
                assert given.value.strip(), where


@pytest.fixture
def failures(scene: Scene) -> Failures:
    return Failures(scene.functions)


async def classes(scene: Scene) -> list[FailureClass]:
    found = await scene.functions.failure_classes()
    assert len(found) > 15
    return found


async def test_every_class_of_failures_has_a_hint(scene: Scene, failures: Failures) -> None:
    known = await classes(scene)
    codes = {found.sqlstate_prefix.ljust(5, "0") for found in known}
    for code in sorted(codes | set(BY_SQLSTATE) | {"XX000", "23514", "42501"}):
        kind = BY_SQLSTATE.get(code) or type("Odd", (psycopg.OperationalError,), {"sqlstate": code})
        for operation in ("receipt", "ledger", "token", "read", "proxy"):
            status, body = told(await failures.answer(kind("why"), operation=operation))
            assert status >= 400
            assert body["error"] != body["hint"]


async def test_a_database_that_has_never_answered_is_told_with_a_hint() -> None:
    class Nobody:
        async def failure_classes(self) -> list[FailureClass]:
            raise psycopg.OperationalError("away")

        async def receipt_failure_response(self, *_: object) -> None:
            raise psycopg.OperationalError("away")

    unlearned = Failures(Nobody())  # type: ignore[arg-type]
    for error, expected in (
        (PoolExhaustedError("full"), 503),
        (psycopg.OperationalError("away"), 503),
        (psycopg.errors.UniqueViolation("odd"), 500),
    ):
        status, _ = told(await unlearned.answer(error))
        assert status == expected


@pytest.mark.parametrize(
    "error",
    [
        RequestError(400, "c", "m", "h", "d"),
        TokenError("m", "h"),
        WrongUseError("m", "h"),
        RuntimeError("secret=hunter22"),
    ],
)
async def test_what_the_gateway_itself_refuses_has_a_hint(
    failures: Failures, error: Exception
) -> None:
    _, body = told(await failures.answer(error))
    assert "hunter22" not in str(body)


def test_every_way_in_which_forwarding_fails_has_a_hint() -> None:
    codes = [*proxy._FAILURES, "receiver_answer_invalid", "anything"]
    for code in codes:
        told(proxy._failure(ReceiverError("m", code=code)))


async def test_the_functions_own_hint_is_told_in_the_words_of_the_request(
    failures: Failures,
) -> None:
    error = BY_SQLSTATE["RL002"]("p_run_id is odd", reason="p_run_id", hint="Check p_run_id.")
    _, body = told(await failures.answer(error, renamed=lambda text: text.replace("p_run_i", "I")))
    assert (body["error"], body["detail"], body["hint"]) == ("Id is odd", "Id", "Check Id.")


async def test_what_postgresql_would_have_done_is_not_told(
    scene: Scene, failures: Failures
) -> None:
    with pytest.raises(psycopg.errors.UndefinedFunction) as caught:
        await scene.rows("select no_such_function('hunter22')")
    own = caught.value.diag.message_hint
    assert own
    assert own not in told(await failures.answer(caught.value))[1]["hint"]


async def test_the_path_through_the_database_redacts_a_hint(scene: Scene) -> None:
    answer = await scene.functions.receipt_failure_response(
        "XX000", "m", None, None, "receipt", "Send password=hunter22 once."
    )
    assert answer.body is not None
    assert json.loads(answer.body)["hint"] == "Send password=[redacted] once."


def test_no_text_of_a_refusal_is_endless() -> None:
    _, body = told(refusal(400, "c", "m" * 100_000, "h" * 100_000, "d" * 100_000))
    assert [len(body[name]) for name in ("error", "hint", "detail")] == [2000] * 3
