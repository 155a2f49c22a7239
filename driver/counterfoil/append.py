"""Appending a delivery to the ledger over HTTP, piece by piece.

Ledger events are JSON text from the database on; bodies are put together from text, so that every
number arrives as it was written.
"""

from __future__ import annotations

import json
from dataclasses import dataclass

from counterfoil.errors import ReceiverError
from counterfoil.functions import Piece
from counterfoil.json_text import JsonText
from counterfoil.settings import Secret
from counterfoil.upstream import Bypass, Upstream

LEDGER_PATH = "/api/v2/play-runtime/run-ledger"
OUTCOMES = ("appended", "replayed")
ENDPOINTS = {"run.created": "created", "run.started": "started"}


@dataclass(frozen=True)
class Destination:
    """Where a run's ledger is, and the credentials for it."""

    base_url: str
    token: Secret
    bypass: Bypass


async def send_piece(
    upstream: Upstream,
    destination: Destination,
    *,
    run_id: str,
    event_type: str,
    idempotency_key: str,
    lease_owner: str,
    piece: Piece,
    launch: JsonText | None = None,
) -> None:
    """Append one piece. Raises ReceiverError when the receiver did not say that it took it.

    ``event_type`` is that of the delivery's first fact: it chooses the endpoint. ``launch`` goes
    with run.started.
    """
    members = {
        "runId": json.dumps(run_id),
        "idempotencyKey": json.dumps(idempotency_key),
        "leaseOwner": json.dumps(lease_owner),
        "chunk": str(piece.chunk),
        "chunkCount": str(piece.chunk_count),
        "events": piece.events,
    }
    if launch is not None:
        members["launch"] = launch
    body = ",".join(f'"{name}":{text}' for name, text in members.items())
    answer = await upstream.post(
        f"{destination.base_url}{LEDGER_PATH}/{ENDPOINTS.get(event_type, 'events')}",
        "{" + body + "}",
        bearer=destination.token,
        bypass=destination.bypass,
        headers={"idempotency-key": _header(idempotency_key)},
    )
    unfinished = piece.chunk == piece.chunk_count and answer.body.get("complete") is not True
    if answer.body.get("outcome") not in OUTCOMES or unfinished:
        # Whoever answers 200 to anything must not make facts vanish.
        raise ReceiverError(
            "the receiver did not say that it has appended this",
            code="receiver_answer_invalid",
            status=answer.status,
        )


def _header(value: str) -> str:
    # A run id may hold any letter; a header only ASCII.
    return value if value.isascii() else json.dumps(value)[1:-1]
