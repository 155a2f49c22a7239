"""Where the receipts of one attempt's steps are kept: what `Steps` asks of them, and the database.

A worker talks to the database, or to the gateway (`gateway_receipts`); its plays cannot tell.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from counterfoil.blocking import now
from counterfoil.errors import CounterfoilError
from counterfoil.functions import ClaimedAttempt, Functions, Receipt
from counterfoil.names import as_sent

Document: TypeAlias = Mapping[str, Any]
"""A receipt as the wire spells it: ``key``, ``status``, ``output``, ``failureKind``, ``error``."""

_RECALLED_RECEIPTS = 1000
_RECALLED_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True)
class Recalled:
    """Every settled receipt of the run's own keys, and what settles another without a claim.

    ``record`` takes key and output and gives the receipt: another one's, if that was first.
    ``record_now`` does so without a loop, from a thread that may block, where that can be.
    """

    settled: Mapping[str, Document]
    record: Callable[[str, Any], Awaitable[Document]]
    record_now: Callable[[str, Any], Document] | None = None


class Receipts(Protocol):
    """The receipts of one attempt.

    Errors are those of `counterfoil.errors`, whoever is asked, and of the same words: what they
    name is called as in the documents here, and not as a function calls its arguments.
    """

    async def recall(self, prefix: str) -> Recalled | None:
        """What is known of the run's own keys, which begin with ``prefix``; None: ask for each."""
        ...

    async def claim(
        self, keys: Sequence[str], lease_ids: Sequence[str], options: Mapping[str, Any]
    ) -> Sequence[Receipt]:
        """One answer a key, in that order: claimed, or what there is."""
        ...

    async def complete(self, receipt: Document) -> Document:
        """Complete a claimed receipt; the receipt with its output as it was stored."""
        ...

    async def fail(self, receipt: Document) -> None:
        """Remember the failure of a claimed receipt."""
        ...

    async def heartbeat(self, receipts: Sequence[Document], lease_seconds: int) -> None:
        """Extend the leases that are still held."""
        ...


class DatabaseReceipts:
    """Receipts through the stored functions; ``blocking`` ones may be called from any thread."""

    def __init__(
        self, functions: Functions, claimed: ClaimedAttempt, blocking: Functions | None = None
    ) -> None:
        self._functions = functions
        self._blocking = blocking
        self._at = claimed

    async def recall(self, prefix: str) -> Recalled | None:
        """As in `Receipts`; None when there is too much of it to read at once."""
        found = await self._functions.recall_receipts(
            self._at.org_id, self._at.run_id, prefix, _RECALLED_RECEIPTS, _RECALLED_BYTES
        )
        if found is None:
            return None
        settled = {receipt["key"]: receipt for receipt in found}
        return Recalled(settled, self._record, self._record_now if self._blocking else None)

    async def _record(self, key: str, output: Any, functions: Functions | None = None) -> Document:
        at = self._at
        with _in_these_words():
            return await (functions or self._functions).record_receipt(
                at.org_id, at.run_id, at.attempt, at.lease_id, key, output
            )

    def _record_now(self, key: str, output: Any) -> Document:
        return now(self._record(key, output, self._blocking))

    async def claim(
        self, keys: Sequence[str], lease_ids: Sequence[str], options: Mapping[str, Any]
    ) -> Sequence[Receipt]:
        """As in `Receipts`."""
        at = self._at
        with _in_these_words("keys", "leaseIds"):
            return await self._functions.claim_receipts(
                at.org_id,
                at.run_id,
                at.attempt,
                keys,
                lease_ids,
                dict(options),
                relaxed=True,  # the completion, which counts, is a transaction of its own
            )

    async def complete(self, receipt: Document) -> Document:
        """As in `Receipts`."""
        with _in_these_words():
            found = await self._functions.complete_receipts(
                self._at.org_id, self._at.run_id, [receipt], return_output=True
            )
        return found[0].receipt or {}

    async def fail(self, receipt: Document) -> None:
        """As in `Receipts`."""
        with _in_these_words():
            await self._functions.fail_receipts(self._at.org_id, self._at.run_id, [receipt])

    async def heartbeat(self, receipts: Sequence[Document], lease_seconds: int) -> None:
        """As in `Receipts`."""
        await self._functions.heartbeat_receipts(
            self._at.org_id, self._at.run_id, list(receipts), lease_seconds
        )


@contextmanager
def _in_these_words(*lists: str) -> Iterator[None]:
    """What a function refuses, told as the gateway tells it; ``lists`` are those that are given."""
    try:
        yield
    except CounterfoilError as error:
        message, reason, hint = (
            as_sent(text, lists) for text in (error.message, error.reason, error.hint)
        )
        raise type(error)(message, reason=reason, hint=hint) from None
