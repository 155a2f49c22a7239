"""The secrets of this machine's stack: `counterfoil up` makes them once and keeps them in its
folder, so that tokens outlive a restart, and what runs beside the stack signs as it does."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from counterfoil.embedded import EmbeddedServer
from counterfoil.settings import Secret, Settings

_FILE = "secrets.json"
_DATABASE = "database"
"""Beside the secrets: which database the stack was last started for."""


def local_secrets() -> dict[str, str]:
    """Fresh secrets for a stack of one machine, as environment variables."""
    return {
        "COUNTERFOIL_SIGNING_KEYS": f"local:{secrets.token_urlsafe(32)}",
        "COUNTERFOIL_INTERNAL_TOKEN": secrets.token_urlsafe(32),
    }


def keep_secrets(folder: Path, dsn: str) -> dict[str, str]:
    """The secrets of the stack in ``folder`` as environment variables, made if there are none.

    ``dsn``: the stack's database, for which they are from now on.
    """
    known = _known(folder)
    kept = (_secrets(known) or local_secrets()) | {_DATABASE: _place(dsn)}
    if kept != known:
        folder.mkdir(parents=True, exist_ok=True)
        written = folder / f"{_FILE}.{os.getpid()}"
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(kept, file)
        written.replace(folder / _FILE)
    return _secrets(kept)


def signing_keys(settings: Settings) -> tuple[tuple[str, Secret], ...]:
    """The keys to sign with: those of the settings, else of this machine's stack; may be none.

    The stack's are for its own database: none where the settings name another.
    """
    if settings.signing_keys:
        return settings.signing_keys
    known = _known(EmbeddedServer.default().home)
    if settings.dsn and known.get(_DATABASE) != _place(settings.dsn):
        return ()
    return Settings.load(environment=_secrets(known)).signing_keys if known else ()


def _place(dsn: str) -> str:
    """Which database ``dsn`` leads to: host, port and name, as libpq takes them."""
    defaults = {
        option.keyword.decode(): (option.val or b"").decode()
        for option in pq.Conninfo.get_defaults()
    }
    given = defaults | {name: str(value) for name, value in conninfo_to_dict(dsn).items()}
    host = given["host"] or given["hostaddr"]
    return f"{host} {given['port']} {given['dbname'] or given['user']}"


def _secrets(known: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in known.items() if name != _DATABASE}


def _known(folder: Path) -> dict[str, str]:
    try:
        known: dict[str, str] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return known
