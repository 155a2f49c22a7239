"""Who may call the gateway: runs with a scoped token, processes with the internal one."""

from __future__ import annotations

import hmac

from starlette.requests import Request

from counterfoil.errors import TokenError
from counterfoil.receiving.errors import RequestError
from counterfoil.settings import Settings
from counterfoil.tokens import Scope, TokenSigner

DISPATCH = frozenset({"dispatch"})
EXECUTOR = frozenset({"executor"})
READ = frozenset({"executor", "dispatch", "reader"})
SEARCH = frozenset({"reader"})

_NAME_ORG = "name the org once in the query, as orgId"
_NO_BEARER = "there is no bearer token, or more than one Authorization header"
_SEND_ONE = "send one Authorization header with a bearer token"


class Access:
    """Checks the Authorization header."""

    def __init__(self, settings: Settings) -> None:
        self.signer = TokenSigner(settings.signing_keys, settings.schema)
        self._internal = [
            secret.reveal().encode()
            for secret in (settings.internal_token, settings.previous_internal_token)
            if secret
        ]

    def scope(self, request: Request, uses: frozenset[str]) -> Scope:
        """The scope of the request's token. Raises TokenError (401), WrongUseError (403)."""
        scope = self.signer.check(_bearer(request), uses)
        request.state.scope_ids = {"org_id": scope.org_id, "run_id": scope.run_id}
        return scope

    def is_internal(self, request: Request) -> bool:
        """Whether the request carries the internal token; takes the same time either way."""
        try:
            given = _bearer(request).encode("latin-1")
        except TokenError:
            return False
        matches = [hmac.compare_digest(given, known) for known in self._internal]
        return any(matches)

    def require_internal(self, request: Request) -> None:
        """Raise unless the request carries the internal token."""
        if not self._internal:
            raise RequestError(
                503,
                "not_configured",
                "this gateway has no internal token to compare with",
                "start the gateway with the setting internal_token",
            )
        if not self.is_internal(request):
            raise TokenError(
                "the internal token is missing or wrong",
                "send the gateway's internal_token as the bearer token",
            )

    def read_scope(self, request: Request, run_id: str) -> str:
        """The org whose run may be read: the token's, or with the internal token any.

        A run's own token is for that run, a reader's for every run of its org. With the internal
        token the org comes in the query (`orgId`); any other may name its own.
        """
        return self._org(request, READ, run_id)

    def search_scope(self, request: Request) -> str:
        """The org that the query names, which a reader's token is for, or the internal one."""
        return self._org(request, SEARCH, "", named=True)

    def _org(
        self, request: Request, uses: frozenset[str], run_id: str, *, named: bool = False
    ) -> str:
        asked = request.query_params.getlist("orgId")
        if len(asked) > 1 or (asked and "\0" in asked[0]):
            raise RequestError(
                400, "invalid_argument", "orgId must be given once", _NAME_ORG, "orgId"
            )
        is_internal = self.is_internal(request)
        scope = None if is_internal else self.scope(request, uses)
        if (is_internal or named) and not any(asked):
            raise RequestError(400, "invalid_argument", "orgId is missing", _NAME_ORG, "orgId")
        if scope is None:
            return asked[0]
        if scope.run_id not in ("", run_id):
            raise RequestError(
                403,
                "scope_mismatch",
                "the token is for another run",
                "use that run's token, or a reader's",
            )
        if asked and asked[0] != scope.org_id:
            raise RequestError(
                403,
                "scope_mismatch",
                "the token is for another org",
                "leave orgId out, or use a token of that org",
            )
        return scope.org_id


def _bearer(request: Request) -> str:
    headers = request.headers.getlist("authorization")
    if len(headers) != 1:
        raise TokenError(_NO_BEARER, _SEND_ONE)
    kind, _, token = headers[0].partition(" ")
    if kind.lower() != "bearer" or not token.strip():
        raise TokenError(_NO_BEARER, _SEND_ONE)
    return token.strip()
