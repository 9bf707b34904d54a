"""Tokens that a proxy hands on: of requests that come from its networks, and of no others.

The proxy signs people in (OIDC) and sends each request on with the person's own token, which the API server accepts:
`Authorization: Bearer TOKEN`. A name alone (`X-Forwarded-User`) is not taken: to act for a name the dashboard would
need the right to impersonate everybody.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import ip_address, ip_network

from aiohttp import web


class TrustedProxies:
    def __init__(self, networks: Sequence[str] = ()) -> None:
        """Raises `ValueError` for what is no network."""
        self._networks = [ip_network(each) for each in networks]

    def token_of(self, request: web.BaseRequest) -> str:
        """Empty where there is none, and where the header comes from somewhere else."""
        scheme, _, token = request.headers.get("Authorization", "").partition(" ")
        return token.strip() if scheme.lower() == "bearer" and self._includes(request) else ""

    def _includes(self, request: web.BaseRequest) -> bool:
        """By the address of the connection itself: headers that name another one are written by anybody."""
        peer = request.transport.get_extra_info("peername") if request.transport is not None else None
        if not self._networks or not peer:
            return False
        address = ip_address(str(peer[0]).partition("%")[0])
        mapped = getattr(address, "ipv4_mapped", None)
        return any((mapped or address) in network for network in self._networks)
