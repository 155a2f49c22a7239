"""What the endpoints answer: tokens, appends, receipts, reads, signs of life."""

from __future__ import annotations

import json
import time
from dataclasses import replace
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from yarl import URL

from counterfoil.database import Database
from counterfoil.functions import ClaimedFact
from counterfoil.gateway import create_app
from counterfoil.receiving import issuing
from tests.py.driver.scene import ORG, Scene, serving
from tests.py.gateway.client import BILLING, TOKEN, Client

OWNER = "owner"


async def claim(scene: Scene) -> list[ClaimedFact]:
    return await scene.functions.claim_deliveries(OWNER, 60, 64, 1)


def append_of(facts: list[ClaimedFact], **changes: Any) -> bytes:
    members = {
        "runId": json.dumps(facts[0].run_id),
        "idempotencyKey": json.dumps(facts[0].idempotency_key),
        "leaseOwner": json.dumps(OWNER),
        "events": facts[0].events or "[]",
    } | {name: json.dumps(value) for name, value in changes.items()}
    return ("{" + ",".join(f'"{k}":{v}' for k, v in members.items()) + "}").encode()


async def test_an_append_is_answered_and_its_repeat_too(client: Client, scene: Scene) -> None:
    await scene.launch()
    facts = await claim(scene)
    first = await client.ledger("created", append_of(facts))
    assert first.status == 200
    assert first.body["outcome"] == "appended"
    again = await client.ledger("created", append_of(facts))
    assert again.body == first.body | {"outcome": "replayed"}
    assert await scene.ledger() == ["run.created"]


async def test_the_idempotency_key_header_must_agree(client: Client, scene: Scene) -> None:
    await scene.launch()
    facts = await claim(scene)
    headers = {"idempotency-key": "another"}
    answer = await client.ledger("created", append_of(facts), headers=headers)
    assert answer.error == (400, "invalid_argument")
    headers = {"idempotency-key": facts[0].idempotency_key}
    assert (await client.ledger("created", append_of(facts), headers=headers)).status == 200


async def test_an_append_without_a_lease_is_refused(client: Client, scene: Scene) -> None:
    await scene.launch()
    facts = await claim(scene)
    stranger = await client.ledger("created", append_of(facts, leaseOwner="a stranger"))
    assert stranger.error == (409, "lease_lost")
    assert stranger.body["retryable"] is True
    assert stranger.body["detail"] == "head_lease_owner_mismatch"
    edited = await client.ledger(
        "created", append_of(facts, events=[json.loads(facts[0].events or "")[0] | {"seq": 7}])
    )
    assert edited.error == (409, "lease_lost")
    assert edited.body["detail"] == "projected_events_mismatch"


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"runId": "other"}, (403, "scope_mismatch")),
        ({"playName": "other"}, (403, "scope_mismatch")),
        ({"events": {}}, (400, "invalid_argument")),
        ({"leaseOwner": 7}, (400, "invalid_argument")),
        ({"idempotencyKey": None}, (400, "invalid_argument")),
        ({"chunk": 1.5}, (400, "invalid_argument")),
        ({"chunk": 2, "chunkCount": 1}, (400, "invalid_argument")),
        ({"chunk": "1"}, (400, "invalid_argument")),
    ],
)
async def test_a_malformed_append_is_named(
    client: Client, scene: Scene, changes: dict[str, Any], error: tuple[int, str]
) -> None:
    await scene.launch()
    facts = await claim(scene)
    assert (await client.ledger("created", append_of(facts, **changes))).error == error
    assert await scene.rows("select * from counterfoil.ledgers") == []


async def test_an_unknown_ledger_action_is_404(client: Client) -> None:
    assert (await client.ledger("deleted", {"runId": "run"})).error == (404, "unknown_action")


async def test_a_dispatch_token_is_given_for_a_live_lease(client: Client, scene: Scene) -> None:
    await scene.launch()
    [fact] = await claim(scene)
    asked = {
        "orgId": ORG,
        "runId": "run",
        "eventId": fact.event_id,
        "leaseOwner": OWNER,
        "schedulerSchema": "counterfoil",
    }
    answer = await client.internal(TOKEN, asked)
    assert answer.status == 200
    assert answer.body["runLedgerIngressPrefixBatching"] is True
    assert answer.headers["cache-control"] == "no-store"
    scope = scene.signer.check(answer.body["executorToken"], frozenset({"dispatch"}))
    assert (scope.org_id, scope.run_id, scope.play_name) == (ORG, "run", "play")
    for changes, error in (
        ({"leaseOwner": "a stranger"}, (409, "lease_lost")),
        ({"eventId": "another"}, (404, "not_found")),
        ({"orgId": "another"}, (404, "not_found")),
        ({"schedulerSchema": "another"}, (404, "schema_mismatch")),
        ({"runId": ""}, (400, "invalid_argument")),
        ({"eventId": 7}, (400, "invalid_argument")),
        ({"leaseOwner": "x" * 300}, (400, "invalid_argument")),
    ):
        assert (await client.internal(TOKEN, asked | changes)).error == error, changes
    del asked["orgId"]
    found = await client.internal(TOKEN, asked)
    scope = scene.signer.check(found.body["executorToken"], frozenset({"dispatch"}))
    assert (scope.org_id, scope.run_id) == (ORG, "run")
    unknown = await client.internal(TOKEN, asked | {"eventId": "another"})
    assert unknown.error == (404, "not_found")
    assert (await client.internal(TOKEN, asked | {"orgId": 7})).error == (400, "invalid_argument")
    await scene.expire_leases()
    assert (await client.internal(TOKEN, asked)).error == (409, "lease_lost")


async def test_a_gateway_that_cannot_batch_does_not_say_so(client: Client, scene: Scene) -> None:
    await scene.launch()
    [fact] = await claim(scene)
    app = create_app(scene.database, replace(scene.settings, ingress_prefix_batching=False))
    async with serving(app, scene.settings) as url:
        client.url = url
        asked = {"orgId": ORG, "runId": "run", "eventId": fact.event_id, "leaseOwner": OWNER}
        answer = await client.internal(TOKEN, asked)
    assert answer.body.keys() == {"executorToken"}


async def test_the_lifetime_of_tokens_is_a_setting(
    client: Client, scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issuing, "LIFETIME_KNOWN_SECONDS", 0.0)
    await scene.functions.set_setting("dispatch_token_seconds", 17)
    await scene.launch()
    [fact] = await claim(scene)
    asked = {"orgId": ORG, "runId": "run", "eventId": fact.event_id, "leaseOwner": OWNER}
    before = time.time()
    token = (await client.internal(TOKEN, asked)).body["executorToken"]
    expires_at = scene.signer.check(token, frozenset({"dispatch"})).expires_at
    assert 15 <= expires_at - before <= time.time() - before + 17
    await scene.functions.set_setting("dispatch_token_seconds", 170)
    token = (await client.internal(TOKEN, asked)).body["executorToken"]
    assert scene.signer.check(token, frozenset({"dispatch"})).expires_at - before > 100
    refused = await client.internal(BILLING, asked)
    assert refused.error == (409, "invalid_state")


async def test_a_receipt_goes_its_way(client: Client, scene: Scene) -> None:
    attempt = await scene.start()
    lease = {"leaseId": "l1", "runAttempt": attempt.attempt}
    claimed = await client.receipt(
        {"action": "claim_runtime_step_receipt", "key": "k", "leaseAware": True} | lease
    )
    assert (claimed.status, claimed.body["status"]) == (200, "running")
    number = "12345678901234567890.1234567890"
    body = (
        '{"action": "complete_runtime_step_receipt", "playName": "play", "key": "k",'
        f' "leaseId": "l1", "runAttempt": 1, "output": {{"n": {number}}}}}'
    )
    done = await client.receipt(body.encode(), headers={"x-counterfoil-receipt-wire-format": "2"})
    assert done.headers["x-counterfoil-receipt-wire-format"] == "2"
    assert number in done.text
    read = await client.receipt({"action": "get_runtime_step_receipt", "key": "k"})
    assert read.headers["x-counterfoil-receipt-wire-format"] == "3"
    assert number in read.text
    none = await client.receipt({"action": "get_runtime_step_receipt", "key": "other"})
    assert (none.status, none.text) == (200, "null")


async def test_a_receipts_scope_is_the_tokens(client: Client) -> None:
    get = {"action": "get_runtime_step_receipt", "key": "k"}
    for changes in ({"playName": "other"}, {"runId": "other"}, {"playName": None}):
        assert (await client.receipt(get | changes)).error == (403, "scope_mismatch")
    assert (await client.receipt({"action": "steal"})).error == (400, "unsupported_action")
    for body in (b"[]", b"[0]", b"[" + b'{"playName":"play"},' * 5000 + b"0]"):
        assert (await client.receipt(body)).error == (403, "scope_mismatch")
    for run_id in (0, False, None):
        assert (await client.receipt(get | {"runId": run_id})).status == 200


async def test_a_receipt_request_of_another_run_is_told_in_the_log(
    client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    get = {"action": "get_runtime_step_receipt", "key": "k"}
    for changes in ({"runId": "run"}, {"runId": ""}, {"runId": "other" * 100}):
        await client.receipt(get | changes)
    warned = [r.__dict__ for r in caplog.records if r.levelname == "WARNING"]
    assert [(w["action"], w["run_id"], w["asked_run_id"]) for w in warned] == [
        (get["action"], "run", "other" * 40)
    ]


@pytest.mark.parametrize("given", ["", "x", "-1", "0", "3.0", "99999"])
async def test_a_wire_format_is_a_number(client: Client, given: str) -> None:
    headers = {"x-counterfoil-receipt-wire-format": given}
    answer = await client.receipt({"action": "x"}, headers=headers)
    assert answer.error == (400, "invalid_argument")


async def test_every_answer_to_a_receipt_request_names_its_format_and_failures_the_action(
    client: Client, scene: Scene, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("DEBUG", "counterfoil.gateway")
    complete = {"action": "complete_runtime_step_receipt", "key": "none"}
    failed = await client.receipt(complete)
    assert (failed.error, failed.body["action"]) == ((404, "not_found"), complete["action"])
    foreign = await client.receipt(complete | {"runId": "other"})
    told = [record.__dict__ for record in caplog.records if record.__dict__.get("status") == 403]
    assert [(t["org_id"], t["run_id"], t["action"]) for t in told] == [
        (ORG, "run", complete["action"])
    ]
    for answer in (
        failed,
        foreign,
        await client.receipt(b"{oops"),
        await client.receipt(complete, bearer="nonsense"),
        await client.receipt(complete, headers={"content-type": "text/plain"}),
        await client.receipt(complete | {"output": "x" * 300_000}),
        await client.receipt(complete | {"action": "steal"}),
    ):
        assert answer.headers["x-counterfoil-receipt-wire-format"] == "3", answer.text


async def test_a_lost_attempt_lease_is_409(client: Client, scene: Scene) -> None:
    await scene.start()
    answer = await client.receipt(
        {"action": "claim_runtime_step_receipt", "key": "k", "runAttempt": 7}
    )
    assert answer.error == (409, "lease_lost")
    assert answer.body["detail"] == "attempt_lease_not_current"


async def test_a_run_is_read_with_keyset_paging(client: Client, scene: Scene) -> None:
    attempt = await scene.start()
    await scene.progress("p1", amount=1)
    await scene.finish(attempt)
    async with scene.dispatching():
        await scene.all_delivered()
    snapshot = await client.get("/api/v2/runs/run", client.token())
    assert (snapshot.status, snapshot.body["status"]) == (200, "completed")
    state = await client.get("/api/v2/runs/run/state", client.token())
    assert (state.body["result"], len(state.body["attempts"])) == ({"ok": True}, 1)
    assert attempt.lease_id not in state.text
    seen: list[str] = []
    after: int | None = 0
    while after is not None:
        page = await client.get(f"/api/v2/runs/run/events?after={after}&limit=2", client.token())
        seen += [entry["event"]["type"] for entry in page.body["events"]]
        after = page.body["nextAfter"]
    assert seen == ["run.created", "run.started", "run.progress", "run.completed"]


@pytest.mark.parametrize(
    "query", ["after=-1", "after=x", "limit=1001", "after=1e3", "limit=", "limit=0"]
)
async def test_a_bad_page_is_named(client: Client, query: str) -> None:
    answer = await client.get(f"/api/v2/runs/run/events?{query}", client.token())
    assert answer.error == (400, "invalid_argument")
    assert answer.body["detail"] == query.partition("=")[0]


async def test_a_runs_journal_is_searched(client: Client, scene: Scene) -> None:
    await scene.start()
    lines = [f"line {n} of {'seven' if n == 7 else 'many'}" for n in range(9)]
    logs = {"lines": lines, "lineContexts": [{"n": n} for n in range(9)], "producerAttempt": 1}
    await scene.append("l1", "runner.logs", logs | {"deferredProjection": True, "searchOnly": True})
    async with scene.dispatching():
        await scene.all_delivered()
    path = "/api/v2/runs/run/journal?channel=log"
    found = await client.get(f"{path}&query=seven", client.token())
    assert [entry["line"] for entry in found.body["entries"]] == ["line 7 of seven"]
    assert found.body["entries"][0]["context"] == {"n": 7}
    assert found.body["entries"][0]["highlights"] == [[10, 5]]
    part = await client.get(f"{path}&query=seve&mode=substring&order=newest", client.token())
    assert len(part.body["entries"]) == 1
    later = await client.get(f"{path}&since=2100-02-28T00:00:00%2B02:00", client.token())
    assert later.body["entries"] == []
    seen: list[str] = []
    query = ""
    while True:
        page = await client.get(f"{path}&limit=4{query}", client.token())
        seen += [entry["line"] for entry in page.body["entries"]]
        if page.body["next"] != "more":
            break
        query = f"&cursor={quote(json.dumps(page.body['cursor']))}"
    assert seen == lines
    for bad in (
        "cursor=x",
        "cursor=[]",
        "cursor={}",
        "channel=x",
        "order=x",
        "limit=x",
        "mode=x",
        "since=yesterday",
        "until=2026-02-30T00:00:00Z",
        "query=a&query=b",
        "query=%00",
    ):
        answer = await client.get(f"/api/v2/runs/run/journal?{bad}", client.token())
        assert answer.error == (400, "invalid_argument"), bad


async def test_what_is_not_there_is_404_and_wrong_methods_405(client: Client) -> None:
    assert (await client.get("/nothing")).error == (404, "not_found")
    wrong = await client.get("/api/v2/play-runtime/receipts")
    assert wrong.error == (405, "method_not_allowed")
    assert wrong.headers["allow"] == "POST"
    assert (await client.get("/api/v2/runs/run", client.token())).error == (404, "not_found")


async def test_a_run_of_any_name_is_read(client: Client, scene: Scene) -> None:
    for name in ("a/b", "x/events", "/", "ä %2F?#", "..", "\U0001f600"):
        await scene.launch(name)
        path = f"/api/v2/runs/{quote(name, safe='').replace('.', '%2E')}/state"
        headers = {"authorization": f"Bearer {client.token(run_id=name)}"}
        url = URL(client.url + path, encoded=True)
        async with client.session.get(url, headers=headers) as state:
            assert (state.status, (await state.json())["runId"]) == (200, name)
    assert (await client.get("/api/v2/runs/x/events/state", client.token())).status == 404


async def test_a_slash_too_many_leads_nowhere(client: Client) -> None:
    answer = await client.call("GET", "/healthz/", headers={"host": "evil.example"})
    assert answer.error == (404, "not_found")
    assert "location" not in answer.headers


async def test_signs_of_life(client: Client) -> None:
    assert (await client.get("/healthz")).body == {"status": "ok"}
    ready = await client.get("/readyz")
    assert (ready.status, ready.body["status"]) == (200, "ready")
    await client.get("/nothing")
    metrics = await client.get("/metrics")
    assert 'requests_total{route="/healthz",status="200"} 1' in metrics.text
    assert 'requests_total{route="(none)",status="404"} 1' in metrics.text
    assert 'request_seconds_bucket{route="/readyz",le="+Inf"} 1' in metrics.text
    assert 'request_seconds_count{route="/readyz"} 1' in metrics.text
    assert "counterfoil_gateway_body_bytes_held 0" in metrics.text


async def test_a_gateway_that_drains_is_not_ready_and_still_answers(
    client: Client, scene: Scene
) -> None:
    app = create_app(scene.database, scene.settings)
    async with serving(app, scene.settings) as url:
        client.url = url
        app.state.draining = True
        ready = await client.get("/readyz")
        assert ready.error == (503, "draining")
        assert ready.headers["retry-after"] == "1"
        assert (await client.get("/healthz")).status == 200
        read = await client.receipt({"action": "get_runtime_step_receipt", "key": "k"})
        assert read.status == 200


async def test_a_pool_that_is_exhausted_answers_503_at_once(client: Client, scene: Scene) -> None:
    async with Database(scene.dsn, max_size=1, acquire_seconds=0.05) as narrow:
        app = create_app(narrow, scene.settings)
        async with serving(app, scene.settings) as url, narrow._connection():
            client.url = url
            for answer in (
                await client.receipt({"action": "get_runtime_step_receipt", "key": "k"}),
                await client.ledger("events", {"runId": "run"}),
                await client.get("/api/v2/runs/run", client.token()),
            ):
                assert answer.error == (503, "runtime_postgres_admission_backpressure")
                assert answer.headers["retry-after"] == "1"
                assert answer.body["retry_after_ms"] == 1000
                assert answer.body["retryable"] is True
                assert answer.body["detail"] == "no database connection came free in time"
            assert (await client.get("/readyz")).status == 503
            assert (await client.get("/healthz")).status == 200


async def test_a_call_that_waits_too_long_is_given_up_and_its_connection_is_free(
    client: Client, scene: Scene
) -> None:
    hurried = replace(scene.settings, call_timeout=0.3)
    claim = {"action": "claim_runtime_step_receipt", "key": "k", "leaseId": "l"}
    assert (await client.receipt(claim)).status == 200
    async with Database(scene.dsn, max_size=1, acquire_seconds=5.0) as narrow:
        app = create_app(narrow, hurried)
        async with (
            serving(app, hurried) as url,
            await psycopg.AsyncConnection.connect(scene.dsn) as other,
        ):
            client.url = url
            await other.execute("select * from counterfoil.step_receipts for update")
            answer = await client.receipt(
                {"action": "complete_runtime_step_receipt", "key": "k", "leaseId": "l"}
            )
            assert answer.error == (503, "upstream_service_unavailable")
            assert answer.headers["retry-after"] == "1"
            assert answer.headers["x-counterfoil-error-detail"] == answer.body["detail"]
            read = await client.receipt({"action": "get_runtime_step_receipt", "key": "k"})
            assert read.body["status"] == "running"


async def test_a_database_that_is_away_is_503(client: Client, scene: Scene) -> None:
    doomed = Database(scene.dsn, max_size=1, acquire_seconds=0.5)
    await doomed.open()
    async with serving(create_app(doomed, scene.settings), scene.settings) as url:
        client.url = url
        await doomed.close()
        answer = await client.receipt({"action": "get_runtime_step_receipt", "key": "k"})
        assert answer.status == 503
        assert answer.body["retryable"] is True
        assert answer.headers["retry-after"] == "1"
        assert (await client.get("/readyz")).status == 503


async def test_a_failure_nobody_expected_is_500_without_secrets(
    client: Client, scene: Scene
) -> None:
    await scene.rows(
        "create or replace function counterfoil.run_snapshot(p_org_id text, p_run_id text)"
        " returns jsonb language plpgsql as $$ begin raise exception using errcode = 'XX000',"
        " message = E'broken\\npassword=hunter2'; end $$"
    )
    answer = await client.get("/api/v2/runs/run", client.token())
    assert answer.error == (500, "runtime_durability_internal")
    assert answer.body["retryable"] is False
    assert "hunter2" not in answer.text
    assert "hunter2" not in str(answer.headers)
    assert answer.headers["x-counterfoil-error-detail"].startswith("broken password=")
