"""How many file descriptors of this process one purpose may hold: it needs the rest to accept connections."""

from __future__ import annotations

import resource

_UNLIMITED = 1 << 20


MOST = 1 << 16
"""Enough for thousands of connections. More is for nobody: there are programs that close every number up to the limit
when they start, and pods inherit it."""


def raise_limit() -> None:
    """As far as the machine allows: the usual 1024 are used up by some hundred connections to Services."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def share(*, one_of: int) -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (_UNLIMITED if soft == resource.RLIM_INFINITY else soft) // one_of
