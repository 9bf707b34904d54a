"""Whether a server is the embedded platform of this machine. Pure, and cheap to import."""

from __future__ import annotations

from urllib.parse import urlsplit

from paddlecloud.kube.resource import Object

MARK = "-paddlecloud."
"""In the version that the embedded API server reports."""


def local_port(server: str) -> int | None:
    """The port of a server at a loopback address; None for servers elsewhere."""
    parts = urlsplit(server)
    host = parts.hostname or ""
    local = host in ("localhost", "::1") or host.startswith("127.")
    return parts.port if local else None


def is_embedded(server: str, version: Object) -> bool:
    """Both at this machine's own address and one of ours: a tunnel to another cluster has the first alone."""
    return local_port(server) is not None and MARK in str(version.get("gitVersion"))
