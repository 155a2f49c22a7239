"""Whose turn the next claim is, while more is pending than a dispatcher can carry."""

from __future__ import annotations

from collections import deque

from counterfoil.functions import Functions


class Turns:
    """Gives every second claim of a busy dispatcher to one org alone, each org in turn.

    The others go to whoever comes first, so a small org's facts are delivered soon though a large
    one's came before them, and nothing is given up where only one org has something pending.
    """

    def __init__(self, functions: Functions) -> None:
        self._functions = functions
        self._orgs: deque[str] = deque()
        self._busy = False
        self._is_first_come = False

    async def next(self) -> str | None:
        """The org that the next claim is for; None: for any."""
        self._is_first_come = not self._is_first_come
        if not self._busy or self._is_first_come:
            return None
        if not self._orgs:
            orgs = await self._functions.list_pending_orgs()
            self._orgs.extend(orgs if len(orgs) > 1 else ())
        return self._orgs.popleft() if self._orgs else None

    def claimed(self, *, took_all: bool) -> None:
        """Tell what a claim for any org found: whether it took as many lanes as it could."""
        self._busy = took_all
