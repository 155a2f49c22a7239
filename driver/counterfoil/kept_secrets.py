"""The secrets of this machine's stack: `counterfoil up` makes them once and keeps them in its
folder, so that tokens outlive a restart, and what runs beside the stack signs as it does."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from counterfoil.embedded import EmbeddedServer
from counterfoil.settings import Secret, Settings

_FILE = "secrets.json"


def local_secrets() -> dict[str, str]:
    """Fresh secrets for a stack of one machine, as environment variables."""
    return {
        "COUNTERFOIL_SIGNING_KEYS": f"local:{secrets.token_urlsafe(32)}",
        "COUNTERFOIL_INTERNAL_TOKEN": secrets.token_urlsafe(32),
    }


def keep_secrets(folder: Path) -> dict[str, str]:
    """The secrets of the stack in ``folder`` as environment variables, made if there are none."""
    known = _known(folder)
    if not known:
        known = local_secrets()
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _FILE, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(known, file)
    return known


def signing_keys(settings: Settings) -> tuple[tuple[str, Secret], ...]:
    """The keys to sign with: those of the settings, else of this machine's stack; may be none."""
    if settings.signing_keys:
        return settings.signing_keys
    known = _known(EmbeddedServer.default().home)
    return Settings.load(environment=known).signing_keys if known else ()


def _known(folder: Path) -> dict[str, str]:
    try:
        known: dict[str, str] = json.loads((folder / _FILE).read_text(encoding="utf-8"))
    except FileNotFoundError:
        return {}
    return known
