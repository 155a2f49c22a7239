"""What a play says while it runs, gathered into facts: log lines and progress.

Plays say things from any thread, often many lines at once; one fact a line would cost a
transaction each. Lines and progress wait here, in the order they were said, until they are sent.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from counterfoil.json_text import clean_log_line
from counterfoil.values import plain

MAX_LINE = 16_384
"""Characters of a log line that are kept; what is cut off is marked."""

MAX_WAITING = 10_000
"""Lines and progress events that may wait before ``add_*`` says that it is time to send."""

_LINES_PER_EVENT = 200
_CHARACTERS_PER_FACT = 200_000
_FACTS_PER_CALL = 100
_CUT = " … (cut)"


@dataclass
class _Lines:
    lines: list[str] = field(default_factory=list)
    contexts: list[dict[str, Any] | None] = field(default_factory=list)
    characters: int = 0


@dataclass
class _Progress:
    data: dict[str, Any]


class Outgoing:
    """Gathers what a play says; ``take`` hands it out as facts. Safe to use from any thread."""

    def __init__(self, attempt: int, fact_id_prefix: str, *, with_line_ids: bool) -> None:
        self._attempt = attempt
        self._prefix = fact_id_prefix
        self._with_line_ids = with_line_ids
        self._lock = threading.Lock()
        self._entries: list[_Lines | _Progress] = []
        self._waiting = 0
        self._facts = 0
        self._closed = False

    @property
    def waiting(self) -> int:
        """How many lines and progress events have not been taken yet."""
        return self._waiting

    def close(self) -> None:
        """Take nothing more: what is said from now on could not be stored."""
        with self._lock:
            self._closed = True

    def add_log(self, text: str, context: Mapping[str, Any]) -> bool:
        """Keep ``text``, one entry a line; ``context`` goes with each of its lines.

        False when it was closed. What was kept before is taken, and sent, after it.
        """
        cleaned = clean_log_line(text).removesuffix("\n").split("\n")
        lines = [_bounded(line.removesuffix("\r")) for line in cleaned]
        kept = plain(dict(context), "the context of a log line") if context else None
        with self._lock:
            if self._closed:
                return False
            for line in lines:
                block = self._entries[-1] if self._entries else None
                if (
                    not isinstance(block, _Lines)
                    or len(block.lines) >= _LINES_PER_EVENT
                    or block.characters >= _CHARACTERS_PER_FACT
                ):
                    block = _Lines()
                    self._entries.append(block)
                block.lines.append(line)
                block.contexts.append(kept)
                block.characters += len(line)
            self._waiting += len(lines)
            return True

    def add_progress(self, data: Mapping[str, Any]) -> None:
        """Keep one progress event; ``data`` is a dictionary of plain values."""
        if not isinstance(data, Mapping):
            raise TypeError("run.progress() takes a dictionary, such as {'done': 3}")
        kept = plain(dict(data), "progress")
        with self._lock:
            self._entries.append(_Progress(kept))
            self._waiting += 1

    def take(self) -> list[dict[str, Any]]:
        """The next facts to append, as ``append_facts`` takes them; empty when nothing waits.

        A fact keeps its id however often it is sent, so a send whose reply was lost is repeated
        with what was taken then.
        """
        with self._lock:
            entries, self._entries = (
                self._entries[:_FACTS_PER_CALL],
                self._entries[_FACTS_PER_CALL:],
            )
            self._waiting -= sum(
                len(entry.lines) if isinstance(entry, _Lines) else 1 for entry in entries
            )
            return [self._fact(entry) for entry in entries]

    def _fact(self, entry: _Lines | _Progress) -> dict[str, Any]:
        self._facts += 1
        event_id = f"{self._prefix}.{self._facts}"
        if isinstance(entry, _Progress):
            return {"eventId": event_id, "eventType": "run.progress", "payload": entry.data}
        event: dict[str, Any] = {
            "type": "log.appended",
            "channel": "log",
            "producerAttempt": self._attempt,
            "lines": entry.lines,
            "lineContexts": entry.contexts,
        }
        if self._with_line_ids:
            event["lineIds"] = [f"{event_id}.{n}" for n in range(len(entry.lines))]
        # Deferred: the projector puts the lines into the journal before the ledger gets them.
        payload = {"deferredProjection": True, "events": [event]}
        return {"eventId": event_id, "eventType": "run.events", "payload": payload}


def _bounded(line: str) -> str:
    return line if len(line) <= MAX_LINE else line[: MAX_LINE - len(_CUT)] + _CUT
