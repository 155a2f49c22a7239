"""What the machine of deliveries knows: facts, what they become, and who believes to hold what."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field
from typing import Any, ClassVar

import psycopg
from hypothesis import strategies as st
from psycopg.rows import dict_row

ORG = "org"
DISPATCHERS = ("d1", "d2")
CANCELLER = "canceller"
LEASE_LOST, INVALID_STATE = "RL004", "RL005"

holders = st.sampled_from((*DISPATCHERS, CANCELLER))

DEFERRED = {"deferredProjection": True}
ROWS = [{"type": f"row.n{n}", "n": n} for n in range(5)]
KINDS: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "progress": ("run.progress", {"n": 1}, ["run.progress"]),
    "raw progress": ("run.progress", {"n": 1} | DEFERRED, ["run.progress"]),
    "batch": ("run.events", {"events": ROWS[:1]}, ["row.n0"]),
    "large batch": ("run.events", {"events": ROWS}, [str(row["type"]) for row in ROWS]),
    "wait": ("run.waiting", {"reason": "why"}, ["run.waiting"]),
    "park": ("run.waiting", {"kind": "detached_runner"}, []),
    "resume": ("run.resumed", {"n": 1}, ["run.resumed"]),
    "receipt": ("step.receipt", {"n": 1}, []),
    "late logs": ("runner.logs", {"lines": ["a line"]} | DEFERRED, []),
    "search": ("runner.logs", {"lines": ["a line"], "searchOnly": True} | DEFERRED, []),
}
"""What producers record: event type, payload, and the types of its ledger events."""
FATES = ("sent", "twice", "ahead", "late", "lost", "failed", "refused")
ACCIDENTS = (
    "nothing",
    "everybody_crashes",
    "everybody_gives_back",
    "leases_lapse",
    "leases_lapse",
    "backoff_ends",
    "backoff_ends",
    "facts_are_repeated",
    "the_run_completes",
    "the_run_is_cancelled",
)
several = st.lists(st.sampled_from(sorted(KINDS)), max_size=5)


@dataclass
class Fact:
    """A recorded fact and the types of its ledger events."""

    event_id: str
    event_type: str
    payload: Any
    becomes: list[str]
    is_search: bool = False
    delivered: bool = False


@dataclass
class Hand:
    """What a dispatcher believes that it holds."""

    facts: list[dict[str, Any]]
    pieces: list[dict[str, Any]] = field(default_factory=list)
    key: str = ""
    sent: int = 0

    @property
    def event_ids(self) -> list[str]:
        return [fact["event_id"] for fact in self.facts]

    @property
    def frozen(self) -> bool:
        return bool(self.key)


class Model:
    """One run: its facts as they were recorded, and calls of the stored functions about it."""

    connection: ClassVar[psycopg.Connection]

    def __init__(self) -> None:
        super().__init__()
        self.run = uuid.uuid4().hex
        self.facts: list[Fact] = []
        self.hands: dict[str, Hand] = {}
        self.holder: str | None = None
        """Who has the live lease."""
        self.must_wait = False
        """Whether the head waits for its backoff or an operator."""

    def can_be_claimed(self) -> bool:
        """Whether whoever asks next must get something, the lease aside."""
        pending = any(not (fact.is_search or fact.delivered) for fact in self.facts)
        return pending and not self.must_wait

    def expected(self) -> list[tuple[str, str]]:
        facts = [fact for fact in self.facts if not fact.is_search]
        return [(fact.event_id, name) for fact in facts for name in fact.becomes]

    def ledger(self) -> list[tuple[str, str]]:
        rows = self.call("read_run_events", ORG, self.run, 0, 1000)
        assert [row["position"] for row in rows] == list(range(1, len(rows) + 1))
        return [(row["event_id"], row["event_type"]) for row in rows]

    def id_of(self, name: str) -> str:
        [row] = self.execute(
            "select event_id from counterfoil.outbox where run_id = %s and event_type = %s", name
        )
        return str(row["event_id"])

    def launch(self) -> dict[str, str]:
        names = ("runId", "playId", "playName")
        return {"orgId": ORG, "executorToken": "t", "baseUrl": "https://receiver.example"} | {
            name: self.run for name in names
        }

    def attempted(self, owner: str, function: str, *arguments: Any) -> Any:
        """Call as ``owner``, who drops what it held when the lease turns out to be lost."""
        try:
            answer = self.call(function, *arguments)
        except psycopg.Error as error:
            if error.sqlstate != LEASE_LOST:
                raise
            self.hands.pop(owner, None)
            return None
        # A ledger knows a repeat, whoever sends it; all else is the holder's.
        assert owner == self.holder or function.startswith("append_run")
        return answer

    def refusal(self, function: str, *arguments: Any) -> str | None:
        try:
            self.call(function, *arguments)
        except psycopg.Error as error:
            return error.sqlstate
        return None

    def call(self, function: str, *arguments: Any) -> list[dict[str, Any]]:
        marks = ", ".join(["%s"] * len(arguments))
        with self.connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(f"select * from counterfoil.{function}({marks})".encode(), arguments)
            return cursor.fetchall()

    def execute(self, query: str, *more: Any) -> list[dict[str, Any]]:
        with self.connection.cursor(row_factory=dict_row) as cursor:
            cursor.execute(query.encode(), (self.run, *more))
            return cursor.fetchall() if cursor.description else []
