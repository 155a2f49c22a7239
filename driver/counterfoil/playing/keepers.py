"""Who keeps the receipts of a worker's steps, as its settings say: the database or the gateway."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from counterfoil.blocking import BlockingConnections
from counterfoil.functions import Functions
from counterfoil.kept_secrets import signing_keys
from counterfoil.playing.gateway_receipts import GatewayReceipts, RunToken
from counterfoil.playing.receipts import DatabaseReceipts
from counterfoil.playing.session import Session
from counterfoil.playing.steps import Steps
from counterfoil.settings import Settings
from counterfoil.tokens import TokenSigner
from counterfoil.upstream import Upstream


def connections_for_steps(settings: Settings) -> int:
    """How many of the process's connections are for steps of plain plays alone."""
    return settings.pool_max // 2 if settings.receipts == "database" else 0


@asynccontextmanager
async def keeper(
    settings: Settings, dsn: str, application_name: str
) -> AsyncIterator[Callable[[Session], Steps]]:
    """What makes the steps of an attempt, while the block lasts.

    Raises SettingsError where the gateway keeps them and there is nothing to sign tokens with.
    """
    if settings.receipts == "gateway":
        # Who has tokens from elsewhere and no key of its own takes those of the launches.
        signs = settings.token_authority == "local_mint" or bool(settings.signing_keys)  # noqa: S105
        signer = TokenSigner(signing_keys(settings), settings.schema) if signs else None
        async with Upstream(trusted_urls=(settings.base_url,)) as upstream:

            def through_the_gateway(session: Session) -> Steps:
                token = RunToken(session.claimed, signer)
                receipts = GatewayReceipts(
                    upstream,
                    settings.base_url,
                    session.claimed,
                    token,
                    settings.protection_bypass,
                )
                return Steps(session, receipts)

            yield through_the_gateway
        return
    connections = BlockingConnections(
        dsn,
        schema=settings.schema,
        most=connections_for_steps(settings),
        application_name=application_name,
        prepare=settings.listen,  # off behind a transaction pooler, as LISTEN is
    )
    blocking = Functions(connections)
    try:
        yield lambda session: Steps(
            session, DatabaseReceipts(session.functions, session.claimed, blocking)
        )
    finally:
        connections.close()
