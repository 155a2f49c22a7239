"""HTTP to a receiver: one guarded POST.

Redirects are never followed, cookies never kept. A protection bypass goes in its own header, and
the request never asks for a bypass cookie. Only addresses of the public internet are reached,
unless the operator allowed private ones or configured the very origin.
"""

from __future__ import annotations

import ipaddress
import json
import logging
import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Literal, Self

import aiohttp
from yarl import URL

from counterfoil.addresses import AddressRefusedError, GuardedResolver, is_public
from counterfoil.errors import ReceiverError, RouteChangedError, SelfProxyError
from counterfoil.settings import NO_SECRET, Secret

ANSWER_MAX_BYTES = 1024 * 1024
MESSAGE_MAX_CHARACTERS = 500
BYPASS_HEADER = "x-vercel-protection-bypass"

Origin = tuple[str, str, int]
"""Scheme, host and port of a URL."""
Watch = Callable[[Origin], AbstractContextManager[None]]

log = logging.getLogger(__name__)

_CONTROL = re.compile(r"[\x00-\x1f\x7f]+")


@dataclass(frozen=True)
class Bypass:
    """A protection-bypass token and where it came from."""

    token: Secret
    source: Literal["launch", "env", "none"]

    @classmethod
    def choose(cls, launch: str | None, environment: Secret) -> Bypass:
        """The launch's token first, then the environment's."""
        if launch and launch.strip():
            return cls(Secret(launch.strip()), "launch")
        if environment.reveal().strip():
            return cls(Secret(environment.reveal().strip()), "env")
        return cls(NO_SECRET, "none")


@dataclass(frozen=True)
class Answer:
    """A 2xx answer; ``body`` is its JSON object, empty where it was none."""

    status: int
    body: dict[str, Any]


def origin_of(url: str) -> Origin:
    """The origin of ``url``. Raises ReceiverError when it is no usable base URL."""
    try:
        parsed = URL(url)
        host, port = (parsed.host or "").lower(), parsed.port
        host.encode("idna")  # as a resolver will
    except (ValueError, IndexError):
        parsed, host, port = URL(), "", None
    credentials = parsed.user is not None or parsed.password is not None
    if parsed.scheme not in ("http", "https") or not host or port is None or credentials:
        raise _no_base_url("is not an http(s) URL without credentials")
    return parsed.scheme, host, port


def base_of(url: str) -> str:
    """A launch's base URL, to put a path behind. Raises ReceiverError when that cannot be."""
    origin_of(url)
    # What follows would become part of the query or the fragment.
    if "?" in url or "#" in url:
        raise _no_base_url("has a query or a fragment")
    return url.rstrip("/")


def host_of(url: str) -> str:
    """``host:port`` of a URL, as a Host header gives it. Raises ReceiverError as origin_of does."""
    _, host, port = origin_of(url)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def refuse_self_proxy(url: str, own_host: str | None) -> None:
    """Raise SelfProxyError when ``url`` leads back to ``own_host`` (a Host header)."""
    own = (own_host or "").strip().lower()
    if not own:
        return
    host, _, port = host_of(url).rpartition(":")
    default = {"http": "80", "https": "443"}[origin_of(url)[0]]
    # A name may end with the dot of the root.
    named, found, given = own.rpartition(":")
    if not found or not given.isdigit():
        named, given = own, default
    if (named.rstrip("."), given) == (host.rstrip("."), port):
        raise SelfProxyError(
            "the upstream is the gateway itself", code="self_proxy", retryable=False
        )


def refuse_changed_route(before: str, after: str) -> None:
    """Raise RouteChangedError when a run's base URL changed."""
    if before.rstrip("/") != after.rstrip("/"):
        raise RouteChangedError(
            "the base URL changed within a run", code="base_url_changed", retryable=False
        )


class Upstream:
    """A pool of HTTP connections to receivers. ``async with Upstream() as upstream: …``"""

    def __init__(
        self,
        *,
        timeout_seconds: float = 20.0,
        connections: int = 64,
        allow_private: bool = False,
        trusted_urls: Iterable[str] = (),
        watch: Watch = lambda _: nullcontext(),
    ) -> None:
        """``trusted_urls`` are base URLs that the operator chose, private or not.

        ``watch`` is entered around each `post`, with the origin that is asked.
        """
        self._timeout = aiohttp.ClientTimeout(total=timeout_seconds, connect=timeout_seconds / 2)
        self._connections = connections
        self._allow_private = allow_private
        self._watch = watch
        self._trusted = frozenset(origin_of(url) for url in trusted_urls)
        self._session: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Make the pool of connections; opening twice is harmless."""
        if self._session is None:
            allowed = frozenset((host, port) for _, host, port in self._trusted)
            resolver = GuardedResolver(None if self._allow_private else allowed)
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=self._connections, resolver=resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                auto_decompress=False,
                timeout=self._timeout,
            )

    async def close(self) -> None:
        """Close every connection."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    @asynccontextmanager
    async def request(
        self,
        method: str,
        url: str,
        body: bytes | bytearray,
        headers: Mapping[str, str],
        bypass: Bypass,
    ) -> AsyncIterator[aiohttp.ClientResponse]:
        """One request, with its answer not yet read and its encoding left as it came.

        Raises ReceiverError when no answer came, or may not be asked for.
        """
        if self._session is None:
            raise RuntimeError("the upstream has not been opened")
        self._refuse_private_literal(url)
        sent = dict(headers)
        if bypass.token:
            sent[BYPASS_HEADER] = bypass.token.reveal()
        try:
            async with self._session.request(
                method,
                URL(url, encoded=True),
                data=body or None,
                headers=sent,
                allow_redirects=False,
                skip_auto_headers=("user-agent", "accept", "accept-encoding", "content-type"),
            ) as response:
                log.debug(
                    "answered", extra={"status": response.status, "bypass_source": bypass.source}
                )
                yield response
        except AddressRefusedError as error:
            raise error.as_receiver_error() from None
        except (TimeoutError, aiohttp.ServerTimeoutError):
            raise ReceiverError(
                "the receiver did not answer in time", code="receiver_timeout", retryable=True
            ) from None
        except aiohttp.ClientError as error:
            refused = _cause(error, AddressRefusedError)
            if refused is not None:
                raise refused.as_receiver_error() from None
            raise ReceiverError(
                f"no answer from the receiver ({type(error).__name__})",
                code="receiver_unreachable",
                retryable=True,
            ) from None

    async def post(
        self, url: str, body: str, *, bearer: Secret, bypass: Bypass, headers: dict[str, str]
    ) -> Answer:
        """POST JSON text. Raises ReceiverError for anything but a 2xx answer."""
        sent = {
            **headers,
            "content-type": "application/json",
            "accept-encoding": "identity",
            "authorization": f"Bearer {bearer.reveal()}",
        }
        with self._watch(origin_of(url)):
            async with self.request("POST", url, body.encode(), sent, bypass) as response:
                text = (await read_bounded(response, ANSWER_MAX_BYTES)).decode("utf-8", "replace")
                status, location = response.status, "location" in response.headers
        return _judge(status, text, location, (bearer, bypass.token))

    def _refuse_private_literal(self, url: str) -> None:
        # aiohttp asks no resolver about an address in numbers, canonical or not.
        origin = origin_of(url)
        host = origin[1]
        if self._allow_private or origin in self._trusted:
            return
        if ":" not in host and not host.replace(".", "").isdigit():
            return
        try:
            public = is_public(ipaddress.ip_address(host.partition("%")[0]))
        except ValueError:
            public = False
        if not public:
            raise AddressRefusedError(host).as_receiver_error()


async def read_bounded(
    response: aiohttp.ClientResponse, max_bytes: int, came: Callable[[int], None] | None = None
) -> bytes:
    """The answer's body. Raises ReceiverError when it is larger than ``max_bytes``.

    ``came`` is told the size of each part; what it raises ends the reading.
    """
    chunks, size = [], 0
    async for chunk in response.content.iter_chunked(65_536):
        size += len(chunk)
        if came is not None:
            came(len(chunk))
        if size > max_bytes:
            response.close()
            raise ReceiverError(
                "the receiver's answer is too large",
                code="receiver_answer_too_large",
                status=response.status,
            )
        chunks.append(chunk)
    return b"".join(chunks)


def _judge(status: int, text: str, location: bool, secrets: tuple[Secret, ...]) -> Answer:
    try:
        parsed = json.loads(text) if text else {}
    except (ValueError, RecursionError):
        parsed = None
    body = parsed if isinstance(parsed, dict) else {}
    if 300 <= status < 400 or location:
        raise ReceiverError(
            "the receiver redirected; redirects are not followed",
            code="redirect_refused",
            status=status,
        )
    if 200 <= status < 300:
        if parsed is None:
            raise ReceiverError(
                "the receiver's answer is no JSON", code="receiver_answer_invalid", status=status
            )
        return Answer(status, body)
    retry_after = body.get("retry_after_ms")
    retryable = body.get("retryable")
    raise ReceiverError(
        _safe(body.get("error"), secrets) or f"the receiver answered {status}",
        code=_safe(body.get("code"), secrets) or f"http_{status}",
        status=status,
        # A refused token is about who delivers, not about what is delivered.
        retryable=retryable if isinstance(retryable, bool) and status != 401 else None,
        retry_after_ms=retry_after if isinstance(retry_after, int) else None,
    )


def _safe(value: object, secrets: tuple[Secret, ...]) -> str:
    """A receiver's words, bounded, on one line, without the credentials we sent it."""
    if not isinstance(value, str):
        return ""
    for secret in secrets:
        if secret:
            value = value.replace(secret.reveal(), "***")
    return _CONTROL.sub(" ", value).encode("utf-8", "replace").decode()[:MESSAGE_MAX_CHARACTERS]


def _no_base_url(why: str) -> ReceiverError:
    return ReceiverError(f"the launch's base URL {why}", code="base_url_invalid", retryable=False)


def _cause(
    error: BaseException | None, kind: type[AddressRefusedError]
) -> AddressRefusedError | None:
    while error is not None:
        if isinstance(error, kind):
            return error
        error = error.__cause__ or getattr(error, "os_error", None)
    return None
