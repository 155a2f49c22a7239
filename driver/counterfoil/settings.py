"""Settings of the processes: flags first, then the environment (``COUNTERFOIL_*``), then a file.

The file is TOML with the same names, at ``--config``, at ``COUNTERFOIL_CONFIG``, or
``counterfoil.toml`` in the working directory. Settings of the installation itself live in the
database (``set_setting``); only what a process needs before or beside the database is here.
"""

from __future__ import annotations

import os
import tomllib
import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Self

import psycopg
from psycopg.conninfo import conninfo_to_dict

from counterfoil.errors import SettingsError

ENVIRONMENT_PREFIX = "COUNTERFOIL_"
DEFAULT_FILE = "counterfoil.toml"
SHORTEST_SIGNING_KEY = 32


class Secret:
    """Text that shows itself nowhere but through `reveal`."""

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value

    def reveal(self) -> str:
        """The text."""
        return self._value

    def __bool__(self) -> bool:
        return bool(self._value)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(self._value)

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__


NO_SECRET = Secret("")


@dataclass(frozen=True)
class Settings:
    """What a process was told. Durations are seconds, sizes bytes."""

    dsn: str = field(default="", repr=False)
    """Connection string of PostgreSQL; empty means the embedded server."""
    schema: str = "counterfoil"
    """Schema of the installation."""
    pool_min: int = 1
    """Database connections kept open."""
    pool_max: int = 10
    """Most database connections of this process."""
    pool_timeout: float = 5.0
    """How long a call waits for a free connection."""
    listen: bool = True
    """Sleep on LISTEN, and prepare the statements of steps. Switch off behind a transaction pooler;
    polling goes on either way."""
    poll_seconds: float = 5.0
    """Longest sleep between two polls."""

    base_url: str = "http://127.0.0.1:8765"
    """Base URL of the gateway, for launches that name none and for workers."""
    host: str = "127.0.0.1"
    """Address the gateway listens on."""
    port: int = 8765
    """Port the gateway listens on; 0 picks one."""
    body_max_bytes: int = 4 * 1024 * 1024
    """Largest request body the gateway reads; escaped, a fact or output of 1 MiB takes up to 3."""
    bodies_max_bytes: int = 64 * 1024 * 1024
    """Most bytes of request bodies held at once, JSON counted twice; above it answers 503."""
    body_max_values: int = 600_000
    """Most values, and names of values, in a body of over 64 KiB: its parsing holds up others."""
    head_timeout: float = 10.0
    """How long a client may take to send a request's head."""
    body_timeout: float = 30.0
    """How long a client may take to send a request body, and to take its answer."""
    call_timeout: float = 15.0
    """How long a call of the gateway into the database may take."""
    max_connections: int = 1024
    """Connections that the gateway serves at once; up to twice as many are told to come back."""
    org_forwards: int = 64
    """Requests of one org that the gateway forwards at once; above it answers 503."""
    ready_delay: float = 0.0
    """How long a gateway that was told to stop still takes requests while /readyz answers 503, so
    that load balancers look away first."""
    ingress_prefix_batching: bool = True
    """Whether the gateway advertises that its ledger takes combined prefixes."""

    token_authority: str = "local_mint"  # noqa: S105 (a choice, not a secret)
    """local_mint (this process holds a signing key) or gateway (it asks for tokens)."""
    signing_keys: tuple[tuple[str, Secret], ...] = ()
    """Key ids and secrets, `id:secret,id:secret` (no comma in a secret): the first signs, all
    verify."""
    internal_token: Secret = NO_SECRET
    """Bearer token of the gateway's internal endpoints."""
    previous_internal_token: Secret = NO_SECRET
    """Also accepted by the gateway while the internal token is being changed."""
    protection_bypass: Secret = NO_SECRET
    """Protection-bypass token for launches that bring none."""
    allow_private_upstreams: bool = False
    """Whether deliveries may go to private, loopback and link-local addresses other than those of
    `base_url`, which the operator chose."""

    worker_name: str = ""
    """What a worker calls itself; empty takes host, process id and a random part."""
    worker_concurrency: int = 8
    """Plays that one worker executes at once."""
    attempt_lease: int = 30
    """How long a run stays a worker's without a sign of life."""
    recover_seconds: float = 10.0
    """How often a worker takes back runs whose worker is gone."""
    receipts: str = "database"
    """Who keeps the receipts of a worker's steps: database, or gateway (at `base_url`)."""
    release_lane: str = "default"
    """Which release's runs a worker takes, and launches are for."""

    dispatcher_name: str = ""
    """Prefix of the lease owner; empty takes host and process id."""
    concurrency: int = 16
    """Runs in flight at once in one dispatcher."""
    slow_seconds: float = 1.0
    """How long a receiver may take to answer a request of a delivery before it counts as slow."""
    slow_places: int = 0
    """Runs in flight at once to slow receivers, all together; 0: half of concurrency."""
    delivery_lease: int = 30
    """Lease of a delivery, renewed before every HTTP piece."""
    append_timeout: float = 20.0
    """How long one HTTP request of a delivery may take."""
    head_priority: str = "admission_first"
    """admission_first or oldest_ready."""
    projector: bool = True
    """Whether the dispatcher also materialises deferred facts and drains the search lane."""
    drain_seconds: float = 20.0
    """How long a stopping process waits for work in hand."""

    def __post_init__(self) -> None:
        _check_dsn(self.dsn)
        if self.token_authority not in ("local_mint", "gateway"):
            raise SettingsError("token_authority must be local_mint or gateway")
        if self.receipts not in ("database", "gateway"):
            raise SettingsError("receipts must be database or gateway")
        if self.head_priority not in ("admission_first", "oldest_ready"):
            raise SettingsError("head_priority must be admission_first or oldest_ready")
        for name in (
            "pool_max",
            "concurrency",
            "worker_concurrency",
            "body_max_bytes",
            "bodies_max_bytes",
            "body_max_values",
            "org_forwards",
            "max_connections",
            "delivery_lease",
            "attempt_lease",
        ):
            if getattr(self, name) < 1:
                raise SettingsError(f"{name} must be at least 1")
        if self.slow_places < 0:
            raise SettingsError("slow_places must be at least 0")
        if self.slow_seconds <= 0:
            raise SettingsError("slow_seconds must be over 0")
        if len(dict(self.signing_keys)) < len(self.signing_keys):
            raise SettingsError("signing_keys: two keys have the same id")
        for key_id, secret in self.signing_keys:
            if not key_id or len(secret.reveal().encode()) < SHORTEST_SIGNING_KEY:
                raise SettingsError(
                    f"signing_keys: key {key_id!r} needs an id and a secret of at least "
                    f"{SHORTEST_SIGNING_KEY} bytes"
                )

    @classmethod
    def load(
        cls,
        flags: Mapping[str, object] | None = None,
        *,
        environment: Mapping[str, str] | None = None,
        file: Path | None = None,
    ) -> Self:
        """Settings from all three places. Flags that are None count as not given.

        Raises SettingsError naming the setting, where it came from and what is allowed.
        """
        environment = os.environ if environment is None else environment
        given: dict[str, object] = {}
        types_by_name = typing.get_type_hints(cls)
        known = {item.name for item in fields(cls)}
        for source, values in (
            ("file", _read_file(file, environment)),
            ("environment", _from_environment(environment, known)),
            ("flag", {k: v for k, v in (flags or {}).items() if v is not None}),
        ):
            for name, value in values.items():
                if name not in known:
                    raise SettingsError(f"unknown setting {name!r} in the {source}")
                given[name] = _convert(name, value, types_by_name[name], source)
        return cls(**typing.cast("dict[str, Any]", given))


def _check_dsn(dsn: str) -> None:
    try:
        conninfo_to_dict(dsn)
    except psycopg.ProgrammingError:
        # What libpq says repeats a part of it, which may be a password.
        raise SettingsError(
            "dsn is no connection string: it takes postgresql://user@host/database "
            "or host=… user=… dbname=…"
        ) from None


def _read_file(file: Path | None, environment: Mapping[str, str]) -> Mapping[str, object]:
    named = file or (
        Path(environment[ENVIRONMENT_PREFIX + "CONFIG"])
        if environment.get(ENVIRONMENT_PREFIX + "CONFIG")
        else None
    )
    path = named or Path(DEFAULT_FILE)
    if named is None and not path.exists():
        return {}
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"cannot read {path}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"{path} is not TOML: {error}") from None


def _from_environment(environment: Mapping[str, str], known: set[str]) -> dict[str, str]:
    # Unknown COUNTERFOIL_ variables belong to other programs of the package, such as the tests.
    return {
        name: environment[ENVIRONMENT_PREFIX + name.upper()]
        for name in known
        if ENVIRONMENT_PREFIX + name.upper() in environment
    }


def _convert(name: str, value: object, wanted: object, source: str) -> object:
    try:
        if wanted is bool:
            return _boolean(value)
        if wanted is int:
            if isinstance(value, bool):
                raise ValueError
            return int(str(value))
        if wanted is float:
            return float(str(value))
        if wanted is Secret:
            return value if isinstance(value, Secret) else Secret(str(value).strip())
        if isinstance(typing.get_origin(wanted), type) and wanted is not types.NoneType:
            return _signing_keys(value)
        return str(value)
    except ValueError:
        shown = {bool: "true or false", int: "a whole number", float: "a number"}
        what = shown.get(typing.cast("Any", wanted), "a list id:secret,id:secret")
        raise SettingsError(f"{name} (from the {source}) must be {what}") from None


def _boolean(value: object) -> bool:
    words = {"true": True, "1": True, "yes": True, "on": True}
    words |= {"false": False, "0": False, "no": False, "off": False}
    if isinstance(value, bool):
        return value
    if str(value).lower() not in words:
        raise ValueError
    return words[str(value).lower()]


def _signing_keys(value: object) -> tuple[tuple[str, Secret], ...]:
    if isinstance(value, tuple):
        return value
    pairs = value.items() if isinstance(value, dict) else _pairs(str(value))
    return tuple((str(key), Secret(str(secret))) for key, secret in pairs)


def _pairs(text: str) -> list[tuple[str, str]]:
    pairs = []
    for part in filter(None, (piece.strip() for piece in text.split(","))):
        key, found, secret = part.partition(":")
        if not found:
            raise ValueError
        pairs.append((key, secret))
    return pairs
