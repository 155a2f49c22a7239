"""Paths whose segments may hold a slash, written %2F: an id is any text."""

from __future__ import annotations

from urllib.parse import quote, unquote

from starlette.types import ASGIApp, Receive, Scope, Send

_SLASH = "\U0010ffff"
"""Stands for a slash inside a segment; it is no character that text may hold for good."""
_QUOTED = quote(_SLASH)


class WholeSegments:
    """ASGI middleware: a %2F in the path of a request no longer parts it."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        raw = scope.get("raw_path") or b""
        if scope["type"] == "http" and b"%2f" in raw.lower():
            parts = raw.decode("ascii", "replace").split("/")
            path = "/".join(unquote(part).replace("/", _SLASH) for part in parts)
            scope = {**scope, "path": path}
        await self._app(scope, receive, send)


def segment(value: str) -> str:
    """A segment of a path as it was meant."""
    return value.replace(_SLASH, "/")


def quoted(path: str, safe: str) -> str:
    """A path written again, with what was written as %2F."""
    return quote(path, safe=safe).replace(_QUOTED, "%2F")
