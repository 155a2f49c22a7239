"""The gateway's own description of itself, an OpenAPI 3.1 document, served at /openapi.json."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

from counterfoil.receiving import openapi_schemas as schemas
from counterfoil.receiving.openapi_schemas import Schema
from counterfoil.receiving.reads import CHANNELS, MODES, ORDERS, PAGE_MAX, POSITION_MAX
from counterfoil.receiving.searches import STATUSES

_REASONS = {
    "400": "Malformed: what, and where, is in `detail`.",
    "401": "No token, or one that is forged, expired or unknown.",
    "403": "The token is for another run, play or use.",
    "404": "There is no such thing in this org.",
    "408": "The request came too slowly.",
    "409": "Same id with other content, a lease that is not the caller's, or a wrong state.",
    "413": "Larger than a limit.",
    "415": "Not application/json in UTF-8.",
    "422": "The fact can never be projected.",
    "429": "Over the org's own limit; `retry-after` says when to come back.",
    "500": "Nobody expected this; the reason, redacted, is in `detail`.",
    "502": "The runtime API cannot be reached, redirected, or answered too much.",
    "503": "No capacity, too many connections or bodies, or the database is away; `retry-after` "
    "says when to come back.",
    "504": "The runtime API did not answer in time.",
    "508": "The pinned base is the gateway itself, or leads back to it.",
}
_READ = ("400", "401", "403", "404", "409", "500", "503")
_WRITE = (*_READ, "408", "413", "415", "422", "429")
_RUN_TOKEN: list[dict[str, list[str]]] = [
    {"executorToken": []},
    {"dispatchToken": []},
    {"internalToken": []},
    {"readerToken": []},
]


def document() -> Schema:
    """The whole document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Counterfoil gateway",
            "version": version("counterfoil"),
            "summary": "Ledger appends, dispatch tokens, step receipts and reads over HTTP.",
            "description": "Bodies are JSON objects in UTF-8, without U+0000, lone surrogates or "
            "the same key twice, at most 200 levels deep; whole numbers are written as 1, not 1.0.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": "/"}],
        "paths": {
            **_ledger(),
            **_receipts(),
            **_tokens(),
            **_reads(),
            **_searches(),
            **_control(),
            **_signs(),
        },
        "components": {
            "schemas": {
                "Receipt": schemas.RECEIPT,
                "Error": schemas.ERROR,
            },
            "securitySchemes": {
                name: {"type": "http", "scheme": "bearer", "description": text}
                for name, text in (
                    ("executorToken", "A runner's token for its run: a JWT of use executor."),
                    ("dispatchToken", "A token for a live delivery lease, of use dispatch."),
                    ("internalToken", "The installation's internal token."),
                    ("readerToken", "A token for all of one org, of use reader."),
                )
            },
        },
    }


def _json(schema: Schema) -> Schema:
    return {"application/json": {"schema": schema}}


def _operation(
    identity: str,
    summary: str,
    *,
    answer: Schema,
    errors: tuple[str, ...],
    security: list[dict[str, list[str]]],
    body: Schema | None = None,
    parameters: list[Schema] | None = None,
) -> Schema:
    code = {"x-counterfoil-error-code": {"required": True, "schema": schemas.TEXT}}
    refused = _json({"$ref": "#/components/schemas/Error"})
    found: Schema = {
        "operationId": identity,
        "summary": summary,
        "security": security,
        "parameters": parameters or [],
        "responses": {
            "200": answer,
            **{
                status: {"description": _REASONS[status], "headers": code, "content": refused}
                for status in sorted(errors)
            },
        },
    }
    if body is not None:
        found["requestBody"] = {"required": True, "content": _json(body)}
    return found


def _answer(schema: Schema, headers: tuple[str, ...] = ()) -> Schema:
    described = {name: {"required": True, "schema": schemas.TEXT} for name in headers}
    return {"description": "Done.", "headers": described, "content": _json(schema)}


def _parameter(name: str, schema: Schema, where: str = "query", **more: Any) -> Schema:
    required = {"required": True} if where == "path" else {}
    return {"name": name, "in": where, "schema": schema, **required, **more}


def _ledger() -> Schema:
    starts = {"created": "run.created", "started": "run.started", "events": None}
    key = _parameter(
        "Idempotency-Key",
        {"type": "string"},
        "header",
        description="Where it is sent, the same as idempotencyKey.",
    )
    return {
        f"/api/v2/play-runtime/run-ledger/{action}": {
            "post": _operation(
                f"append_{action}",
                f"Append a delivery, or one piece of it, through the {action} endpoint.",
                answer=_answer(schemas.APPEND_ANSWER),
                errors=_WRITE,
                security=[{"dispatchToken": []}],
                body=schemas.append_request(event_type),
                parameters=[key],
            )
        }
        for action, event_type in starts.items()
    }


def _receipts() -> Schema:
    header = "x-counterfoil-receipt-wire-format"
    wire = _parameter(
        header,
        {"type": "integer", "minimum": 1, "maximum": 9999},
        "header",
        description="Before 3, a completion returns its outputs. 3 where it is not sent.",
    )
    return {
        "/api/v2/play-runtime/receipts": {
            "post": _operation(
                "receipt_action",
                "Do one of the fourteen receipt actions for the run of the token.",
                answer=_answer(schemas.RECEIPT_ANSWER, (header,)),
                errors=_WRITE,
                security=[{"executorToken": []}],
                body={"anyOf": schemas.RECEIPT_ACTIONS},
                parameters=[wire],
            )
        }
    }


def _tokens() -> Schema:
    return {
        f"/api/v2/internal/play-runtime/{path}": {
            "post": _operation(
                path.replace("-", "_"),
                summary,
                answer=_answer(schemas.TOKEN_ANSWER, ("cache-control",)),
                errors=_WRITE,
                security=[{"internalToken": []}],
                body=schemas.TOKEN_REQUEST,
            )
        }
        for path, summary in (
            ("run-ledger-dispatch-token", "A dispatch token, for a live delivery lease."),
            (
                "compute-billing-dispatch-token",
                "A compute-billing token, for a live lease on a fact with a work-counter segment.",
            ),
        )
    }


def _reads() -> Schema:
    text = {"type": "string", "pattern": r"^[^\u0000]*$"}
    time = {"type": "string", "pattern": schemas.TIME_PATTERN}
    page = {"type": "integer", "minimum": 1, "maximum": PAGE_MAX}
    reads: list[tuple[str, str, str, Schema, list[Schema]]] = [
        ("", "snapshot", "The run as its ledger tells it.", schemas.SNAPSHOT, []),
        ("/state", "state", "The run as it stands where it executes.", schemas.STATE, []),
        (
            "/events",
            "events",
            "Ledger events in order; `nextAfter` is the next page's `after`, null at the end.",
            schemas.EVENTS_PAGE,
            [
                _parameter("after", {"type": "integer", "minimum": 0, "maximum": POSITION_MAX}),
                _parameter("limit", page),
            ],
        ),
        (
            "/journal",
            "journal",
            "Journal entries that match; `cursor` goes on while `next` is more, and later "
            "while it is pending.",
            schemas.JOURNAL_PAGE,
            [
                _parameter("query", text),
                _parameter("mode", {"enum": list(MODES)}),
                _parameter("channel", {"enum": list(CHANNELS)}),
                _parameter("level", text),
                _parameter("since", time),
                _parameter("until", time),
                _parameter("order", {"enum": list(ORDERS)}),
                _parameter("limit", page),
                {"name": "cursor", "in": "query", "content": _json(schemas.CURSOR)},
            ],
        ),
    ]
    org = _parameter(
        "orgId",
        {"type": "string", "minLength": 1},
        description="The run's org; needed with the internal token, which names none.",
    )
    return {
        f"/api/v2/runs/{{runId}}{path}": {
            "get": _operation(
                f"read_{identity}",
                summary,
                answer=_answer(answer),
                errors=_READ,
                security=_RUN_TOKEN,
                parameters=[_parameter("runId", schemas.ID, "path"), org, *parameters],
            )
        }
        for path, identity, summary, answer, parameters in reads
    }


def _searches() -> Schema:
    text = {"type": "string", "pattern": r"^[^\u0000]*$"}
    time = {"type": "string", "pattern": schemas.TIME_PATTERN}
    common = [
        _parameter("orgId", {"type": "string", "minLength": 1, "maxLength": 200}, required=True),
        _parameter("query", text),
        _parameter("since", time),
        _parameter("until", time),
        _parameter("limit", {"type": "integer", "minimum": 1, "maximum": PAGE_MAX}),
    ]
    searches: list[tuple[str, str, Schema, Schema, list[Schema]]] = [
        (
            "journal",
            "Journal entries of an org that match, the latest first; `cursor` goes on while `next` "
            "is more.",
            schemas.ORG_JOURNAL_PAGE,
            schemas.CURSOR,
            [
                _parameter("mode", {"enum": list(MODES)}),
                _parameter("channel", {"enum": list(CHANNELS)}),
                _parameter("level", text),
            ],
        ),
        (
            "runs",
            "Runs of an org that match, the latest first; `cursor` goes on while `next` is more.",
            schemas.RUNS_PAGE,
            schemas.RUN_CURSOR,
            [
                _parameter("status", {"enum": list(STATUSES)}),
                _parameter("playName", text),
                _parameter("error", text),
            ],
        ),
    ]
    return {
        f"/api/v2/{name}": {
            "get": _operation(
                f"search_{name}",
                summary,
                answer=_answer(answer),
                errors=_READ,
                security=[{"readerToken": []}, {"internalToken": []}],
                parameters=[
                    *common,
                    *parameters,
                    {"name": "cursor", "in": "query", "content": _json(cursor)},
                ],
            )
        }
        for name, summary, answer, cursor, parameters in searches
    }


def _control() -> Schema:
    path = _parameter(
        "path",
        {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
        "path",
        description="Path below the base that the launch pinned; it may have several segments.",
    )
    errors = ("400", "401", "403", "404", "408", "409", "413", "500", "502", "503", "504", "508")
    own = {"description": "The runtime API's own answer.", "content": {"*/*": {}}}
    methods = {
        method: _operation(
            f"control_{method}",
            "Forward to the runtime API of the token's run; any other answer is its own.",
            answer=own,
            errors=errors,
            security=[{"executorToken": []}],
            parameters=[path],
        )
        for method in ("get", "post", "put", "patch", "delete")
    }
    for operation in methods.values():
        operation["responses"]["default"] = own
    return {"/api/v2/play-runtime/control/{path}": methods}


def _signs() -> Schema:
    ready = schemas.record({"status": {"const": "ready"}, "schemaVersion": schemas.WHOLE})
    signs = [
        ("healthz", "Whether the process runs.", schemas.record({"status": {"const": "ok"}}), ()),
        ("readyz", "Whether the database answers and fits.", ready, ("503",)),
        ("openapi.json", "This document.", schemas.record({"openapi": schemas.TEXT}), ()),
    ]
    metrics = {"description": "Done.", "content": {"text/plain": {"schema": schemas.TEXT}}}
    return {
        **{
            f"/{path}": {
                "get": _operation(
                    path.partition(".")[0],
                    summary,
                    answer=_answer(answer),
                    errors=errors,
                    security=[],
                )
            }
            for path, summary, answer, errors in signs
        },
        "/metrics": {
            "get": _operation(
                "metrics",
                "Counts of requests and seconds, for Prometheus.",
                answer=metrics,
                errors=(),
                security=[],
            )
        },
    }
