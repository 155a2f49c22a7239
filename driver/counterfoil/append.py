"""Appending a delivery to the ledger over HTTP: cutting it into pieces and sending them.

Ledger events are JSON text from the database on; bodies are put together from text, so that every
number arrives as it was written.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from counterfoil.functions import ClaimedFact
from counterfoil.json_text import JsonText
from counterfoil.settings import Secret
from counterfoil.upstream import Bypass, Upstream

LEDGER_PATH = "/api/v2/play-runtime/run-ledger"
ENDPOINTS = {"run.created": "created", "run.started": "started"}

_JSON_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]')


@dataclass(frozen=True)
class PieceLimits:
    """Where a delivery is cut: settings of the installation, the same for every dispatcher.

    A delivery that one dispatcher began and another repeats must be cut alike.
    """

    max_events: int = 200
    """Ledger events that one HTTP piece holds at most (`delivery_piece_max_events`)."""
    max_bytes: int = 256 * 1024
    """Size of a piece (`delivery_piece_max_bytes`); one event larger than that travels alone."""


@dataclass(frozen=True)
class Piece:
    """One HTTP request's part of a delivery: a JSON array of ledger events, numbered from 1."""

    events: str
    number: int
    count: int


def cut(facts: Sequence[ClaimedFact], limits: PieceLimits) -> list[Piece]:
    """The pieces of a delivery of these facts; none when they have no ledger events."""
    arrays = [fact.events for fact in facts if fact.event_count and fact.events]
    if not arrays:
        return []
    total = sum(fact.event_count for fact in facts)
    size = sum(_size(array) for array in arrays)
    if total <= limits.max_events and size <= limits.max_bytes:
        inner = ", ".join(array.strip()[1:-1] for array in arrays)
        return [Piece(f"[{inner}]", 1, 1)]
    packed = list(_pack((event for array in arrays for event in elements(array)), limits))
    return [Piece(text, number, len(packed)) for number, text in enumerate(packed, 1)]


def _pack(events: Iterator[str], limits: PieceLimits) -> Iterator[str]:
    held: list[str] = []
    size = 0
    for event in events:
        length = _size(event)
        if held and (len(held) == limits.max_events or size + length > limits.max_bytes):
            yield f"[{', '.join(held)}]"
            held, size = [], 0
        held.append(event)
        size += length
    if held:
        yield f"[{', '.join(held)}]"


def elements(array: str) -> Iterator[str]:
    """The elements of a JSON array's text, each as it stands there."""
    depth, start = 0, 0
    for token in _JSON_TOKEN.finditer(array):
        mark = token.group()
        if mark in "[{":
            depth += 1
            if depth == 1:
                start = token.end()
        elif mark in "]}":
            depth -= 1
        if depth == 0 or (depth == 1 and mark == ","):
            element = array[start : token.start()].strip()
            if element:
                yield element
            start = token.end()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


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
    """Append one piece. Raises ReceiverError when the receiver did not take it.

    ``event_type`` is that of the delivery's first fact: it chooses the endpoint. ``launch`` goes
    with run.started.
    """
    members = {
        "runId": json.dumps(run_id),
        "idempotencyKey": json.dumps(idempotency_key),
        "leaseOwner": json.dumps(lease_owner),
        "chunk": str(piece.number),
        "chunkCount": str(piece.count),
        "events": piece.events,
    }
    if launch is not None:
        members["launch"] = launch
    body = ",".join(f'"{name}":{text}' for name, text in members.items())
    await upstream.post(
        f"{destination.base_url}{LEDGER_PATH}/{ENDPOINTS.get(event_type, 'events')}",
        "{" + body + "}",
        bearer=destination.token,
        bypass=destination.bypass,
        headers={"idempotency-key": _header(idempotency_key)},
    )


def _header(value: str) -> str:
    # A run id may hold any letter; a header only ASCII.
    return value if value.isascii() else json.dumps(value)[1:-1]
