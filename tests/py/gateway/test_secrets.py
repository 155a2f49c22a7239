"""Nothing that is secret shows: not in logs, answers, metrics or what objects say of themselves."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from counterfoil.gateway import Gateway, create_app
from counterfoil.logs import configure
from counterfoil.receiving.metrics import Metrics
from counterfoil.settings import Secret
from tests.py.driver.scene import INTERNAL, KEY, Scene, serving
from tests.py.gateway.client import BILLING, LEDGER, RECEIPTS, TOKEN, Answer, Client

BYPASS = "bypass-hunter2"
STORED = "stored-hunter2"
PAYLOAD = "payload-hunter2"
CONTROL = "/api/v2/play-runtime/control"


@pytest.fixture
async def loud(client: Client, scene: Scene) -> AsyncIterator[Client]:
    """A gateway with a bypass of its own, in front of a run with a token and a bypass."""
    settings = replace(
        scene.settings, protection_bypass=Secret(BYPASS), allow_private_upstreams=True
    )
    await scene.start(executorToken=STORED, vercelProtectionBypassToken="launch-" + BYPASS)
    async with serving(create_app(scene.database, settings), settings) as url:
        client.url = url
        yield client


async def ask_everything(client: Client) -> list[Answer]:
    """Requests that succeed, that are refused and that fail, each with something secret in it."""
    given = client.token()
    body = {"password": PAYLOAD, "leaseOwner": PAYLOAD, "key": PAYLOAD, "error": PAYLOAD}
    answers = []
    for bearer in (given, client.token("dispatch"), INTERNAL.reveal(), PAYLOAD, given + "x"):
        for path in (RECEIPTS, f"{LEDGER}/events", TOKEN, BILLING, CONTROL + "/x"):
            for data in (body, {"runId": "run", "playName": "play", "action": "x", **body}):
                answers.append(await client.call("POST", path, data, bearer=bearer))
            answers.append(
                await client.call("POST", path, b'{"a": "%s' % b"hunter2", bearer=bearer)
            )
        for path in ("", "/state", "/events", "/journal?query=x", "/journal?cursor=hunter2"):
            answers.append(await client.get(f"/api/v2/runs/run{path}", bearer))
    claim = {"action": "claim_runtime_step_receipt", "key": "k", "runAttempt": 1}
    answers.append(await client.receipt(claim))
    done = claim | {"action": "complete_runtime_step_receipt", "output": {"password": PAYLOAD}}
    wire = {"x-counterfoil-receipt-wire-format": "1"}
    answers.append(await client.receipt(done, headers=wire))
    answers.append(await client.get("/metrics"))
    return answers


async def test_nothing_secret_shows(
    loud: Client, scene: Scene, caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    configure("debug")
    try:
        root.addHandler(caplog.handler)
        answers = await ask_everything(loud)
    finally:
        root.handlers[:], level = before
        root.setLevel(level)
        logging.getLogger("counterfoil").setLevel(logging.NOTSET)
    shown = capsys.readouterr().err
    assert '"message": "request"' in shown
    assert '"bypass_source": "launch"' in shown
    assert len(answers) > 100
    assert {200, 400, 401, 403} <= {answer.status for answer in answers}
    words = [shown, *(f"{record.__dict__}" for record in caplog.records)]
    words += [answer.text + str(answer.headers) for answer in answers]
    words += [
        repr(scene.settings),
        repr(scene.signer),
        repr(Gateway(scene.database, scene.settings, Metrics())),
    ]
    secrets = (INTERNAL.reveal(), KEY[1].reveal(), BYPASS, STORED, PAYLOAD, "eyJ", "hunter2")
    for secret in secrets:
        assert not [text[:500] for text in words if secret in text], secret
