"""How browsers reach the dashboard."""

from __future__ import annotations

from typing import NamedTuple


class Exposure(NamedTuple):
    """On a cluster; on one machine it has a name of its own and no TLS."""

    hosts: tuple[str, ...] = ()
    https: bool = False
    proxies: tuple[str, ...] = ()
    """Networks of proxies that hand on the tokens of viewers."""


ON_ONE_MACHINE = Exposure()
