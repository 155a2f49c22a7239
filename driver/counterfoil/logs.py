"""Structured logs: one line a record, with the ids that came with it. For people at a terminal,
`time level message key=value …`; for machines, JSON."""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import Any, TextIO

from counterfoil.errors import SettingsError

LEVELS = ("debug", "info", "warning", "error")
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


def configure(level: str = "info", stream: TextIO | None = None) -> None:
    """Send the package's logs, and warnings of everything else, to ``stream`` (standard error).

    Raises SettingsError for a ``level`` that is none of `LEVELS`.
    """
    if level.lower() not in LEVELS:
        raise SettingsError(f"log level {level!r} is none of {', '.join(LEVELS)}")
    stream = stream or sys.stderr
    handler = logging.StreamHandler(stream)
    handler.setFormatter(_ForPeople() if stream.isatty() else _ForMachines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.WARNING)
    logging.getLogger("counterfoil").setLevel(level.upper())


def _extras(record: logging.LogRecord) -> dict[str, Any]:
    return {key: value for key, value in vars(record).items() if key not in _STANDARD}


class _ForMachines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created, UTC)
        found = {
            "time": when.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **_extras(record),
        }
        if record.exc_info:
            found["exception"] = self.formatException(record.exc_info)
        return json.dumps(found, default=str)


class _ForPeople(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = datetime.fromtimestamp(record.created).astimezone()
        extras = "".join(f" {key}={value}" for key, value in _extras(record).items())
        text = f"{when:%H:%M:%S} {record.levelname.lower():7} {record.getMessage()}{extras}"
        if record.exc_info:
            text += "\n" + self.formatException(record.exc_info)
        return text
