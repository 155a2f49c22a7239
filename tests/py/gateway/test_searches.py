"""Searches through all of an org, for those who hold the internal token."""

from __future__ import annotations

import json
from urllib.parse import quote

from tests.py.driver.scene import INTERNAL, ORG, Scene
from tests.py.gateway.client import TOKEN as TOKEN_PATH
from tests.py.gateway.client import Client

TOKEN = INTERNAL.reveal()


async def test_an_orgs_journal_is_searched_page_by_page(client: Client, scene: Scene) -> None:
    for name in ("a", "b"):
        await scene.start(name)
        lines = {"lines": [f"line {n} of {name}" for n in range(3)]}
        flags = {"deferredProjection": True, "searchOnly": True}
        await scene.append(f"l-{name}", "runner.logs", flags | lines, name)
    async with scene.dispatching():
        await scene.all_delivered("a")
        await scene.all_delivered("b")
    path = f"/api/v2/journal?orgId={ORG}"
    found = await client.get(f"{path}&query=2+b", TOKEN)
    [entry] = found.body["entries"]
    assert (entry["runId"], entry["line"]) == ("b", "line 2 of b")
    assert entry["highlights"] == [[5, 1], [10, 1]]
    seen: list[str] = []
    query = ""
    while True:
        page = await client.get(f"{path}&query=line&limit=4{query}", TOKEN)
        seen += [entry["line"] for entry in page.body["entries"]]
        if page.body["next"] != "more":
            break
        query = f"&cursor={quote(json.dumps(page.body['cursor']))}"
    assert sorted(seen) == [f"line {n} of {name}" for n in range(3) for name in ("a", "b")]
    other = await client.get("/api/v2/journal?orgId=other&query=line", TOKEN)
    assert other.body["entries"] == []


async def test_an_orgs_runs_are_searched(client: Client, scene: Scene) -> None:
    attempt = await scene.start("a")
    await scene.functions.fail_attempt(
        ORG, "a", 1, attempt.lease_id, {"error": {"message": "disk full", "retryable": False}}
    )
    await scene.launch("b")
    path = f"/api/v2/runs?orgId={ORG}"
    found = await client.get(f"{path}&error=DISK&status=failed&playName=play", TOKEN)
    assert [run["runId"] for run in found.body["runs"]] == ["a"]
    assert found.body["runs"][0]["error"]["message"] == "disk full"
    first = await client.get(f"{path}&limit=1", TOKEN)
    assert ([run["runId"] for run in first.body["runs"]], first.body["next"]) == (["b"], "more")
    cursor = quote(json.dumps(first.body["cursor"]))
    rest = await client.get(f"{path}&cursor={cursor}", TOKEN)
    assert ([run["runId"] for run in rest.body["runs"]], rest.body["next"]) == (["a"], "end")


async def test_who_may_search_and_what_is_refused(client: Client) -> None:
    for path in ("/api/v2/journal", "/api/v2/runs"):
        own = await client.get(f"{path}?orgId={ORG}", client.token())
        assert own.error == (403, "scope_mismatch")
        assert (await client.get(f"{path}?orgId={ORG}", "no token")).status == 401
        assert (await client.get(path, TOKEN)).error == (400, "invalid_argument")
        for bad in ("cursor=x", "cursor=[]", "cursor={}", "since=x", "limit=0", "query=%00"):
            answer = await client.get(f"{path}?orgId={ORG}&{bad}", TOKEN)
            assert answer.error == (400, "invalid_argument"), bad
    answer = await client.get(f"/api/v2/runs?orgId={ORG}&status=done", TOKEN)
    assert answer.error == (400, "invalid_argument")


async def test_an_orgs_reader_reads_and_searches_all_of_it_and_nothing_else(
    client: Client, scene: Scene
) -> None:
    await scene.start("a")
    async with scene.dispatching():
        await scene.all_delivered("a")
    reader = scene.signer.mint(org_id=ORG, use="reader").reveal()
    for path in ("/api/v2/journal", "/api/v2/runs"):
        assert (await client.get(f"{path}?orgId={ORG}", reader)).status == 200
        assert (await client.get(f"{path}?orgId=other", reader)).error == (403, "scope_mismatch")
        assert (await client.get(path, reader)).error == (400, "invalid_argument")
        twice = await client.get(f"{path}?orgId={ORG}&orgId=other", reader)
        assert twice.error == (400, "invalid_argument")
    for path in ("", "/state", "/events", "/journal"):
        assert (await client.get(f"/api/v2/runs/a{path}", reader)).status == 200
        theirs = await client.get(f"/api/v2/runs/a{path}?orgId=other", reader)
        assert theirs.error == (403, "scope_mismatch")
    assert (await client.get("/api/v2/runs/none", reader)).error == (404, "not_found")
    claim = {"action": "claim_runtime_step_receipt", "key": "k"}
    assert (await client.receipt(claim, bearer=reader)).error == (403, "scope_mismatch")
    assert (await client.ledger("events", {}, bearer=reader)).error == (403, "scope_mismatch")
    assert (await client.internal(TOKEN_PATH, {}, bearer=reader)).error == (401, "unauthorized")
    forwarded = await client.get("/api/v2/play-runtime/control/x", reader)
    assert forwarded.error == (403, "scope_mismatch")
