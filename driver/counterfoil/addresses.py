"""Which addresses a request may go to: those of the public internet, checked when connecting."""

from __future__ import annotations

import ipaddress
import socket

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from counterfoil.errors import ReceiverError

_GLOBAL_UNICAST = ipaddress.ip_network("2000::/3")


class AddressRefusedError(OSError):
    """A host leads to an address that is not of the public internet."""

    def as_receiver_error(self) -> ReceiverError:
        """The same, as a delivery failure. It is never final: settings decide, not the fact."""
        return ReceiverError(
            "the receiver's address is private and not that of this process's base_url: give it "
            "the gateway's base_url, or set allow_private_upstreams",
            code="upstream_address_refused",
        )


class GuardedResolver(AbstractResolver):
    """Resolves names, and refuses those that lead to private addresses.

    The check is on the address that is then connected to, so a name that changes in between gains
    nothing. ``trusted`` hosts pass at their ports; None lets everything pass.
    """

    def __init__(self, trusted: frozenset[tuple[str, int]] | None) -> None:
        self._inner = aiohttp.ThreadedResolver()
        self._trusted = trusted

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        """Addresses of ``host``; AddressRefusedError when any of them is private."""
        found = await self._inner.resolve(host, port, family)
        if self._trusted is not None and (host.lower(), port) not in self._trusted:
            for result in found:
                if not is_public(ipaddress.ip_address(result["host"].partition("%")[0])):
                    raise AddressRefusedError(host)
        return found

    async def close(self) -> None:
        """Nothing is held."""
        await self._inner.close()


def is_public(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Whether an address belongs to the public internet, however it is wrapped."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is None and address in ipaddress.ip_network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_public(inner)
        # Beyond it lie IPv4 in other wrappings and site-local addresses, which is_global passes.
        if address not in _GLOBAL_UNICAST:
            return False
    return address.is_global and not address.is_multicast
