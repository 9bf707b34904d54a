"""How many file descriptors of this process one purpose may hold: it needs the rest to accept connections."""

from __future__ import annotations

import resource

_UNLIMITED = 1 << 20


def share(*, one_of: int) -> int:
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (_UNLIMITED if soft == resource.RLIM_INFINITY else soft) // one_of
