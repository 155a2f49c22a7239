"""Errors name what the caller sent, never the argument of a function behind the gateway."""

from __future__ import annotations

import re
from typing import Any

import pytest

from counterfoil.names import as_sent
from tests.py.driver.scene import ORG, Scene
from tests.py.gateway.client import TOKEN, Client

LONG = "x" * 1001
ARGUMENT = re.compile(r"\bp_")


def receipts(action: str, **item: Any) -> dict[str, Any]:
    first = {"key": "k", "runId": "run", "leaseId": "l"}
    return {"action": action, "receipts": [first, first | item]}


CASES = [
    ({"action": "get_runtime_step_receipt", "key": LONG}, "key"),
    ({"action": "get_runtime_step_receipts", "keys": ["k", LONG]}, "keys[1]"),
    ({"action": "claim_runtime_step_receipt", "key": LONG}, "key"),
    ({"action": "claim_runtime_step_receipt", "key": "k", "leaseId": LONG}, "leaseId"),
    ({"action": "claim_runtime_step_receipts", "keys": ["k", "a\tb"]}, "keys[1]"),
    ({"action": "claim_runtime_step_receipts", "keys": ["k"], "leaseIds": [LONG]}, "leaseIds[0]"),
    ({"action": "claim_runtime_step_receipts", "keys": ["k"], "leaseIds": [{}]}, "leaseIds[0]"),
    ({"action": "claim_runtime_step_receipt", "key": "k", "leaseAware": True}, "leaseId"),
    ({"action": "claim_runtime_step_receipts", "keys": ["k"], "leaseIds": []}, "leaseIds"),
    ({"action": "heartbeat_runtime_step_receipts", "keys": ["k", LONG]}, "keys[1]"),
    ({"action": "heartbeat_runtime_step_receipts", "keys": ["k"], "leaseId": LONG}, "leaseId"),
    (
        {"action": "heartbeat_runtime_step_receipts", "keys": ["k", "l"], "leaseIds": ["l", LONG]},
        "leaseIds[1]",
    ),
    ({"action": "complete_runtime_step_receipt", "key": LONG}, "key"),
    ({"action": "complete_runtime_step_receipt", "key": "k", "leaseId": LONG}, "leaseId"),
    ({"action": "complete_runtime_step_receipt", "key": "k", "ttlSeconds": -1}, "ttlSeconds"),
    ({"action": "claim_runtime_step_receipt", "key": "k", "ttlSeconds": -1}, "ttlSeconds"),
    ({"action": "claim_runtime_step_receipts", "keys": ["k"], "ttlSeconds": 1e10}, "ttlSeconds"),
    ({"action": "claim_runtime_step_receipt", "key": ""}, "key"),
    ({"action": "fail_runtime_step_receipt", "key": "k", "runAttempt": 1.5}, "runAttempt"),
    ({"action": "release_runtime_step_receipt", "key": "k", "leaseId": LONG}, "leaseId"),
    ({"action": "skip_runtime_step_receipt", "key": "k", "leaseId": LONG}, "leaseId"),
    (receipts("complete_runtime_step_receipts", key=LONG), "receipts[1].key"),
    (receipts("complete_runtime_step_receipts", leaseId=LONG), "receipts[1].leaseId"),
    (receipts("fail_runtime_step_receipts", runAttempt=-1), "receipts[1].runAttempt"),
    (receipts("mark_runtime_step_receipts_queued", leaseId=LONG), "receipts[1].leaseId"),
    (receipts("mark_runtime_step_receipts_running", key=LONG), "receipts[1].key"),
    ({"action": "observe_docflow_node", "nodeId": LONG, "status": "started"}, "nodeId"),
]


async def test_a_receipt_error_names_the_field_that_was_sent(client: Client) -> None:
    for sent, named in CASES:
        answer = await client.receipt(sent)
        assert answer.error == (400, "invalid_argument"), (sent, answer.text)
        assert (answer.body["detail"], ARGUMENT.search(answer.text)) == (named, None), (
            sent,
            answer.text,
        )


async def test_what_is_not_there_is_named_as_it_was_sent(client: Client) -> None:
    one = await client.receipt({"action": "complete_runtime_step_receipt", "key": "none"})
    assert (one.error, one.body["error"].split(":")[0]) == ((404, "not_found"), "key")
    many = await client.receipt(receipts("complete_runtime_step_receipts", key="none"))
    assert (many.error, many.body["error"].split(":")[0]) == ((404, "not_found"), "receipts[0]")


async def test_other_endpoints_name_what_was_sent_too(client: Client, scene: Scene) -> None:
    events = {"runId": "run", "idempotencyKey": "k", "leaseOwner": "o", "events": [{}]}
    answers = {
        "events[0].type": await client.ledger("events", events),
        "leaseOwner": await client.ledger("events", events | {"leaseOwner": LONG}),
        "idempotencyKey": await client.ledger("events", events | {"idempotencyKey": LONG * 2}),
        "eventId": await client.internal(
            TOKEN, {"orgId": ORG, "runId": "r", "eventId": LONG, "leaseOwner": "o"}
        ),
        "runId": await client.get(f"/api/v2/runs/{LONG}/events", client.token(run_id=LONG)),
    }
    for named, answer in answers.items():
        assert answer.error == (400, "invalid_argument"), answer.text
        assert (answer.body["detail"], ARGUMENT.search(answer.text)) == (named, None), answer.text


@pytest.mark.parametrize(
    ("said", "members", "is_read", "named"),
    [
        ("p_before is no cursor.", (), True, "cursor is no cursor."),
        ("p_play_name", (), True, "playName"),
        ("p_receipts[2] is odd", ("receipts",), False, "receipts[2] is odd"),
        ("p_receipts[2]: none", ("keys",), False, "keys[2]: none"),
        ("p_launch.orgId", ("launch",), False, "launch.orgId"),
        ("p_options.ttlSeconds is odd", ("ttlSeconds",), False, "ttlSeconds is odd"),
        ("p_output of 'p_key' is odd", ("key",), False, "output of 'p_key' is odd"),
        ("the play's p_key isn't odd", ("key",), False, "the play's key isn't odd"),
        ("a step_p_x and keys[0] of yours", (), False, "a step_p_x and keys[0] of yours"),
    ],
)
def test_names(said: str, members: tuple[str, ...], is_read: bool, named: str) -> None:
    assert as_sent(said, members, is_read=is_read) == named
