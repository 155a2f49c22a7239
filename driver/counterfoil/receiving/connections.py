"""Connections of the gateway: how many there may be, how slow a client may be, what it is told.

uvicorn bounds the size of a request's head and takes bodies in pieces. This adds a time for the
head and for taking the answer, refusals in the gateway's own shape, and the refusal of a request
that a proxy in front could read differently.
"""

from __future__ import annotations

import contextlib
import logging
from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from counterfoil.receiving.failures import AGAIN, refusal

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from starlette.responses import Response
    from starlette.types import Message, Receive, Scope, Send

log = logging.getLogger(__name__)

BUSY = "gateway_busy"
INVALID = "invalid_http"

_SPEAK_HTTP = "Speak HTTP of version 1.1, with one Host header and a small head."
_ONE_LENGTH = "Send Content-Length or Transfer-Encoding, not both."
_FASTER = "Send the whole head at once."


class _Lingering:
    """What an answer is written to when the connection ends with it, but not in the midst of it."""

    def __init__(self, transport: asyncio.Transport, close: Callable[[], None]) -> None:
        self.write, self.is_closing = transport.write, transport.is_closing
        self.close = close


class Connection(H11Protocol):
    """One connection. Above `limit_concurrency` it only says so; far above, not even that."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        # uvicorn's own answer at this limit is plain text, and says nothing of when to come back.
        self._most, self.limit_concurrency = self.limit_concurrency, None
        self._served, self.app = self.app, self._front
        self._one_too_many = self._refused = False
        self._idle_since = self._unread_since = 0.0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection."""
        super().connection_made(transport)
        self._idle_since = self.loop.time()
        if self._most is not None and len(self.connections) > self._most:
            self._one_too_many = True
            if len(self.connections) > 2 * self._most:
                transport.abort()

    def data_received(self, data: bytes) -> None:
        """What follows a refusal is let go: closing at once could cost the client its answer."""
        if not self._refused:
            super().data_received(data)

    def shutdown(self) -> None:
        """End the connection; what it has been refused needs no farewell."""
        if self._refused:
            self.transport.close()
        else:
            super().shutdown()

    def on_response_complete(self) -> None:
        """The time of the next request's head begins; a body that nobody waits for goes unread."""
        self._idle_since = self.loop.time()
        super().on_response_complete()
        if self.conn.their_state is h11.SEND_BODY and not self.transport.is_closing():
            self._linger()

    def send_400_response(self, msg: str) -> None:
        """Answer what is no HTTP."""
        self._close_with(refusal(400, INVALID, "This is no HTTP request.", _SPEAK_HTTP))

    def look(self, *, head_seconds: float, answer_seconds: float) -> None:
        """Give up a client that sends no request, or does not take its answer. Call it often."""
        now = self.loop.time()
        if not self.transport.get_write_buffer_size():
            self._unread_since = 0.0
        elif not self._unread_since:
            self._unread_since = now
        if self._unread_since and now - self._unread_since >= answer_seconds:
            log.warning("a client did not take its answer")
            self.transport.abort()
        elif now - self._idle_since >= head_seconds and self._is_idle():
            # Where nothing came, a 408 could be taken for the answer to what comes next.
            if self.conn.trailing_data[0] and not self._refused:
                late = "The request did not come in time."
                self._close_with(refusal(408, "head_too_slow", late, _FASTER, retryable=True))
            else:
                self.transport.close()

    def _is_idle(self) -> bool:
        return self._refused or self.cycle is None or self.cycle.response_complete

    async def _front(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None
        if self._one_too_many:
            answer = refusal(
                503,
                BUSY,
                "The gateway has too many connections.",
                AGAIN,
                retryable=True,
                retry_after_ms=1000,
            )
        elif {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            answer = refusal(400, INVALID, "The body's length is given twice.", _ONE_LENGTH)
        elif scope["http_version"] not in ("1.0", "1.1"):
            answer = refusal(400, INVALID, "This is another version of HTTP.", _SPEAK_HTTP)
        if answer is None:

            async def send_or_end(message: Message) -> None:
                await send(self._ending(message) if self._is_early(message) else message)

            await self._served(scope, receive, send_or_end)
        else:
            answer.headers["connection"] = "close"
            await answer(scope, receive, send)

    def _is_early(self, message: Message) -> bool:
        """Whether an answer begins before the body has come, which is then not read any more."""
        begins = message["type"] == "http.response.start"
        return begins and self.conn.their_state is h11.SEND_BODY

    def _ending(self, message: Message) -> Message:
        """The answer's beginning, for a client that must not take the connection for another."""
        held = _Lingering(self.transport, self._linger)
        self.cycle.transport = held  # type: ignore[assignment]
        return {**message, "headers": [*message["headers"], (b"connection", b"close")]}

    def _close_with(self, answer: Response) -> None:
        if self._refused or self.transport.is_closing():
            return
        # There is no room for one where an answer has begun, or the last body still comes.
        with contextlib.suppress(h11.LocalProtocolError):
            head = [*answer.raw_headers, (b"connection", b"close")]
            sent = self.conn.send(h11.Response(status_code=answer.status_code, headers=head)) or b""
            sent += self.conn.send(h11.Data(data=bytes(answer.body))) or b""
            self.transport.write(sent + (self.conn.send(h11.EndOfMessage()) or b""))
            self._linger()
            return
        self.transport.close()

    def _linger(self) -> None:
        """Say nothing more; let go what still comes, unparsed, for as long as a head may take."""
        self._unset_keepalive_if_required()
        self.transport.write_eof()
        self._refused, self._idle_since = True, self.loop.time()
