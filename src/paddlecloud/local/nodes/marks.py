"""Names by which nodes and pods say what they are. Kept apart so that scheduler and nodes need not know each other."""

from __future__ import annotations

NODE_KIND = "paddlecloud.org/node"
"""Label of nodes that `pdc` made: virtual or simulated. A restart of the platform keeps them."""
VIRTUAL, SIMULATED = "virtual", "simulated"

SIMULATED_TAINT = "paddlecloud.org/simulated"
"""On simulated nodes, so that no pod is simulated that does not ask for it."""

SIMULATE = "paddlecloud.org/simulate"
"""Annotation of pods to be simulated: `run=30s,exit=1,delay=2s`; empty means run for ever."""

CAPACITY = "paddlecloud.org/capacity"
"""Annotation of a virtual node: what it was declared to have, as JSON; the rest comes from the machine."""

FAILED = "paddlecloud.org/failed"
"""Annotation of a node that `pdc node fail` has lost: since when."""
