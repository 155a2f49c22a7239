"""The JSON documents of the gateway's requests and answers, as JSON Schema (2020-12)."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_SPACE = r"\u0020\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_PRINTED = rf"[^\u0000-\u001f\u007f-\u009f{_SPACE}]"
_KEY_PATTERN = (
    rf"^[\t-\r{_SPACE}]*{_PRINTED}(?:[^\u0000-\u001f\u007f-\u009f]*{_PRINTED})?[\t-\r{_SPACE}]*$"
)
_ID_PATTERN = r"^[^\u0000-\u001f\u007f-\u009f]+$"
_DAY = r"(?:(?:0[1-9]|1[0-2])-(?:0[1-9]|1\d|2[0-8])|(?:0[13-9]|1[0-2])-30)"
TIME_PATTERN = (
    rf"^(?:19|20)\d\d-{_DAY}T(?:[01]\d|2[0-3]):[0-5]\d:[0-5]\d(?:\.\d{{1,6}})?"
    r"(?:Z|[+-](?:0\d|1[0-4]):[0-5]\d)$"
)

ANYTHING: Schema = {}
OBJECT: Schema = {"type": "object"}
TEXT: Schema = {"type": "string"}
BOOLEAN: Schema = {"type": "boolean"}
WHOLE: Schema = {"type": "integer", "minimum": 0}
ID: Schema = {"type": "string", "minLength": 1, "maxLength": 200, "pattern": _ID_PATTERN}
KEY: Schema = {
    "type": "string",
    "maxLength": 1000,
    "pattern": _KEY_PATTERN,
    "description": "Key of a step, 1800 bytes at most; white space around it does not count.",
}
_TYPES = ("null", "boolean", "number", "string", "array", "object")


def maybe(schema: Schema) -> Schema:
    """``schema`` or null."""
    return {"anyOf": [schema, {"type": "null"}]}


def lenient(schema: Schema, kind: str, description: str) -> Schema:
    """``schema`` for values of type ``kind``; a value of any other type counts as absent."""
    others = [name for name in _TYPES if name != kind]
    return {
        "anyOf": [schema, {"type": others}],
        "description": f"{description} A value of another type counts as absent.",
    }


def record(
    required: dict[str, Schema], optional: dict[str, Schema] | None = None, **more: Any
) -> Schema:
    """An object with these members, and perhaps others."""
    return {
        "type": "object",
        "properties": {**required, **(optional or {})},
        "required": list(required),
        **more,
    }


ATTEMPT = lenient(
    {"type": "integer", "minimum": 0, "maximum": 999_999_999}, "number", "Attempt of the run."
)
LEASE_ID = lenient({"type": "string", "maxLength": 200}, "string", "Lease id of the claim.")
TTL = lenient(
    {"type": "number", "minimum": 0.001, "maximum": 3_155_760_000},
    "number",
    "Seconds after which the result counts as absent.",
)
_FLAG: Schema = {"description": "On only where it is true."}
_LEASE_IDS: Schema = {
    "type": "array",
    "items": {"type": ["string", "number", "null"], "maxLength": 200},
    "description": "One lease id for each key, or null where the database makes one.",
}
_OPTIONS = {
    name: _FLAG
    for name in ("reclaimRunning", "reclaimOwnRun", "forceRefresh", "forceFailedRefresh")
}
_CLAIM: dict[str, Schema] = {
    "runAttempt": ATTEMPT,
    "leaseSeconds": ANYTHING,
    "ttlSeconds": {**TTL, "description": f"What the completion is to give. {TTL['description']}"},
    **_OPTIONS,
}
_WRITE: dict[str, Schema] = {"runAttempt": ATTEMPT, "leaseId": LEASE_ID}
_RESULT: dict[str, Schema] = {"output": ANYTHING, "ttlSeconds": TTL}
_FAILURE: dict[str, Schema] = {
    "error": ANYTHING,
    "errorPayload": {"description": "Kept where it is an object."},
    "failureKind": {"description": "repairable; anything else means terminal."},
}


def _action(name: str, required: dict[str, Schema], optional: dict[str, Schema]) -> Schema:
    return record(
        {"action": {"const": name}, "playName": TEXT, **required}, {"runId": TEXT, **optional}
    )


def _batch(name: str, optional: dict[str, Schema]) -> Schema:
    item = record({"key": KEY, "runId": TEXT}, {**_WRITE, **optional})
    return _action(name, {"receipts": {"type": "array", "items": item}}, {})


_UNAWARE: dict[str, Schema] = {"leaseAware": {"not": {"const": True}}}
_AWARE: dict[str, Schema] = {"leaseAware": {"const": True}}
_KEYS: Schema = {"type": "array", "items": KEY}
_PROOF: Schema = {"type": "string", "minLength": 1, "maxLength": 200}
_PROOFS: Schema = {"type": "array", "items": {**_PROOF, "type": ["string", "number"]}}

RECEIPT_ACTIONS: list[Schema] = [
    _action("get_runtime_step_receipt", {"key": KEY}, {}),
    _action("get_runtime_step_receipts", {"keys": _KEYS}, {}),
    _action(
        "claim_runtime_step_receipt", {"key": KEY}, {**_CLAIM, **_UNAWARE, "leaseId": LEASE_ID}
    ),
    _action("claim_runtime_step_receipt", {"key": KEY, **_AWARE, "leaseId": _PROOF}, _CLAIM),
    _action("claim_runtime_step_receipts", {"keys": _KEYS}, {**_CLAIM, **_UNAWARE}),
    _action(
        "claim_runtime_step_receipts",
        {"keys": _KEYS, **_AWARE, "leaseIds": _PROOFS},
        _CLAIM,
    ),
    _batch("mark_runtime_step_receipts_running", {}),
    _batch("mark_runtime_step_receipts_queued", {}),
    _action("complete_runtime_step_receipt", {"key": KEY}, {**_WRITE, **_RESULT}),
    _batch("complete_runtime_step_receipts", _RESULT),
    _action("release_runtime_step_receipt", {"key": KEY}, _WRITE),
    _action("fail_runtime_step_receipt", {"key": KEY}, {**_WRITE, **_FAILURE}),
    _batch("fail_runtime_step_receipts", _FAILURE),
    _action(
        "heartbeat_runtime_step_receipts",
        {"keys": _KEYS},
        {"runAttempt": ATTEMPT, "leaseId": LEASE_ID, "leaseSeconds": ANYTHING},
    ),
    _action("skip_runtime_step_receipt", {"key": KEY}, {**_WRITE, **_RESULT}),
    _action(
        "observe_docflow_node",
        {
            "nodeId": {**KEY, "maxLength": 200, "description": "Node of the play's graph."},
            "status": {"enum": ["started", "completed", "failed"]},
        },
        {
            name: ANYTHING
            for name in (
                *("attempt", "invocationSeq", "inputs", "outputs", "error", "at"),
                *("inputsTruncated", "outputsTruncated", "invocationId"),
            )
        },
    ),
]
for _listed in RECEIPT_ACTIONS:
    if "keys" in _listed["properties"]:
        # An action's own branch may demand them; they align with the keys.
        _listed["properties"].setdefault("leaseIds", lenient(_LEASE_IDS, "array", "Lease ids."))

RECEIPT: Schema = record(
    {
        "key": TEXT,
        "status": {"enum": ["queued", "running", "completed", "failed", "skipped"]},
        "runId": TEXT,
        "leaseOwnerAttempt": maybe(WHOLE),
        "claims": {"type": "integer", "minimum": 1},
        "updatedAt": TEXT,
    },
    {
        "claimed": {"type": "boolean", "description": "Whether the caller computes it now."},
        "leaseId": {"type": "string", "description": "Told to its holder alone."},
        "leaseExpiresAt": TEXT,
        "retryAfterMs": {"type": "integer", "minimum": 1, "maximum": 1000},
        "settledAt": TEXT,
        "expiresAt": TEXT,
        "output": ANYTHING,
        "error": TEXT,
        "errorPayload": ANYTHING,
        "failureKind": {"enum": ["repairable", "terminal"]},
    },
)
_ONE: Schema = {"$ref": "#/components/schemas/Receipt"}
RECEIPT_ANSWER: Schema = {
    "description": "What the action says: a receipt or null, a list in the order asked, or ok.",
    "anyOf": [
        maybe(_ONE),
        {"type": "array", "items": maybe(_ONE)},
        record({"ok": {"const": True}}, additionalProperties=False),
    ],
}

_LEDGER_EVENT = record(
    {
        "type": TEXT,
        "eventId": TEXT,
        "seq": {"type": "integer", "minimum": 0, "maximum": 10**18 - 1},
        "item": {"type": "integer", "minimum": 0, "maximum": 999_999_999},
        "occurredAt": TEXT,
    },
    {"runId": TEXT, "data": OBJECT},
)


def append_request(event_type: str | None) -> Schema:
    """A ledger append: of one start event of that type, or of any others."""
    kind = (
        {"const": event_type} if event_type else {"not": {"enum": ["run.created", "run.started"]}}
    )
    of_type = {"properties": {"type": {**TEXT, **kind}}}
    events: Schema = {"type": "array", "items": {"allOf": [_LEDGER_EVENT, of_type]}}
    if event_type:
        events |= {"minItems": 1, "maxItems": 1}
    piece = maybe({"type": "integer", "minimum": 1, "maximum": 1_000_000})
    return record(
        {
            "runId": TEXT,
            "idempotencyKey": {**ID, "maxLength": 300},
            "leaseOwner": ID,
            "events": events,
        },
        {
            "playName": TEXT,
            "orgId": TEXT,
            "chunk": {**piece, "description": "Which piece of the delivery, at most chunkCount."},
            "chunkCount": piece,
            "launch": {**maybe(OBJECT), "description": "The run's launch; read with started."},
        },
    )


APPEND_ANSWER = record(
    {
        "outcome": {"enum": ["appended", "replayed", "partial"]},
        "firstPosition": maybe(WHOLE),
        "lastPosition": maybe(WHOLE),
        "complete": BOOLEAN,
        "runLedgerIngressPrefixBatching": BOOLEAN,
    }
)
TOKEN_REQUEST = record(
    {"runId": ID, "eventId": ID, "leaseOwner": ID},
    {
        "orgId": maybe(ID),
        "schedulerSchema": {"description": "The schema that this gateway serves, or null."},
    },
)
TOKEN_ANSWER = record({"executorToken": TEXT}, {"runLedgerIngressPrefixBatching": BOOLEAN})
SNAPSHOT = record(
    {"orgId": TEXT, "runId": TEXT, "status": TEXT, "playName": TEXT, "lastPosition": WHOLE}
)
STATE = record(
    {
        "orgId": TEXT,
        "runId": TEXT,
        "status": {"enum": ["queued", "running", "waiting", "completed", "failed", "cancelled"]},
        "playName": TEXT,
        "attempt": WHOLE,
        "attempts": {"type": "array", "items": OBJECT},
        "result": ANYTHING,
    }
)
EVENTS_PAGE = record(
    {
        "events": {
            "type": "array",
            "items": record({"position": WHOLE, "appendedAt": TEXT, "event": _LEDGER_EVENT}),
        },
        "nextAfter": maybe(WHOLE),
    }
)
JOURNAL_PAGE = record(
    {
        "entries": {
            "type": "array",
            "items": record(
                {
                    "channel": {"enum": ["log", "progress", "receipt"]},
                    "position": {"type": "integer"},
                    "occurredAt": maybe(TEXT),
                    "level": maybe(TEXT),
                    "eventId": maybe(TEXT),
                    "line": maybe(TEXT),
                    "highlights": maybe({"type": "array"}),
                    "context": ANYTHING,
                    "details": ANYTHING,
                }
            ),
        },
        "next": {"enum": ["more", "pending", "end"]},
        "cursor": maybe(OBJECT),
    }
)
CURSOR = record(
    {
        "at": {"type": "string", "pattern": TIME_PATTERN},
        "runId": TEXT,
        "channel": TEXT,
        "position": {"type": "integer", "minimum": -(10**18) + 1, "maximum": 10**18 - 1},
    }
)
ORG_JOURNAL_PAGE = record(
    {
        "entries": {
            "type": "array",
            "items": record({"runId": TEXT, "channel": TEXT, "position": {"type": "integer"}}),
        },
        "next": {"enum": ["more", "end"]},
        "cursor": ANYTHING,
    }
)
RUNS_PAGE = record(
    {
        "runs": {"type": "array", "items": record({"orgId": TEXT, "runId": TEXT, "status": TEXT})},
        "next": {"enum": ["more", "end"]},
        "cursor": ANYTHING,
    }
)
RUN_CURSOR = record({"at": {"type": "string", "pattern": TIME_PATTERN}, "runId": TEXT})
ERROR = record(
    {
        "error": {"type": "string", "minLength": 1, "description": "For people."},
        "code": {"type": "string", "minLength": 1, "description": "For programs."},
        "retryable": {"type": "boolean", "description": "Whether the same request may succeed."},
        "hint": {"type": "string", "minLength": 1, "description": "What to do about it."},
    },
    {
        "retry_after_ms": WHOLE,
        "detail": {"type": "string", "description": "The reason, a field or a JSON path."},
        "action": maybe(TEXT),
        "playName": TEXT,
    },
)
