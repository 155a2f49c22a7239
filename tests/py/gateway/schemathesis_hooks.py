"""What schemathesis cannot know: tokens, the run they are for, and lists that must align."""

from __future__ import annotations

import json
import os
from typing import Any

import schemathesis

TOKENS: dict[str, str] = json.loads(os.environ["GATEWAY_TOKENS"])
SCOPE: dict[str, str] = json.loads(os.environ["GATEWAY_SCOPE"])


# One operation's token is not another's: nothing is kept.
@schemathesis.auth(refresh_interval=None)
class Bearer:
    """The token that an operation asks for first."""

    def get(self, case: schemathesis.Case, context: Any) -> str:
        needed = case.operation.definition.raw["security"]
        return TOKENS[next(iter(needed[0]))] if needed else ""

    def set(self, case: schemathesis.Case, data: str, context: Any) -> None:
        if data:
            case.headers["Authorization"] = f"Bearer {data}"


def written(value: Any) -> Any:
    """JSON Schema takes 1.0 for a whole number; the gateway wants it written as 1."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def fits(lease: Any) -> bool:
    """Whether an element of leaseIds is one."""
    return lease is None or (isinstance(lease, str) and len(lease) <= 200)


@schemathesis.hook
def map_body(context: Any, body: Any) -> Any:
    """The body about the token's run where it names one; lists aligned where they are lists."""
    if not isinstance(body, dict):
        return body
    fitted = {name: written(value) for name, value in body.items()}
    for name, value in SCOPE.items():
        if isinstance(fitted.get(name), str) and fitted[name]:
            fitted[name] = value
    if isinstance(fitted.get("receipts"), list):
        fitted["receipts"] = [map_body(context, item) for item in fitted["receipts"]]
    if isinstance(fitted.get("events"), list):
        fitted["events"] = [
            {name: written(value) for name, value in event.items()}
            if isinstance(event, dict)
            else event
            for event in fitted["events"]
        ]
    keys, leases = fitted.get("keys"), fitted.get("leaseIds")
    if isinstance(keys, list) and isinstance(leases, list) and all(map(fits, leases)):
        fitted["leaseIds"] = [f"lease {n}" for n in range(len(keys))]
    chunk, count = fitted.get("chunk"), fitted.get("chunkCount")
    if isinstance(chunk, int) and (count is None or (isinstance(count, int) and chunk > count > 0)):
        fitted["chunkCount"] = chunk
    if isinstance(fitted.get("launch"), dict):
        fitted["launch"] = {**fitted["launch"], "runId": SCOPE["runId"], "orgId": SCOPE["orgId"]}
    return fitted


@schemathesis.hook
def map_path_parameters(context: Any, path_parameters: Any) -> Any:
    """Reads are of the token's run."""
    run_id = path_parameters.get("runId") if path_parameters else None
    if isinstance(run_id, str) and run_id.isprintable() and 1 <= len(run_id) <= 200:
        return {**path_parameters, "runId": SCOPE["runId"]}
    return path_parameters


@schemathesis.hook
def map_query(context: Any, query: Any) -> Any:
    """And of its org."""
    if query and isinstance(query.get("orgId"), str) and query["orgId"]:
        return {**query, "orgId": SCOPE["orgId"]}
    return query


@schemathesis.hook
def map_case(context: Any, case: schemathesis.Case) -> schemathesis.Case:
    """The Idempotency-Key header is the body's, where both are sent."""
    sent = case.headers.get("Idempotency-Key") if case.headers else None
    if isinstance(sent, str) and isinstance(case.body, dict):
        key = case.body.get("idempotencyKey")
        if isinstance(key, str) and key.isascii() and key.isprintable() and key == key.strip():
            case.headers["Idempotency-Key"] = key
        else:
            del case.headers["Idempotency-Key"]
    return case
