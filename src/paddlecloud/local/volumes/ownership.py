"""Who owns a pod's volumes besides the user of the platform."""

from __future__ import annotations

import os

from paddlecloud.kube.resource import Object


def owning_group(pod: Object) -> int | None:
    """The pod's fsGroup, where this process may give files away."""
    group = (pod["spec"].get("securityContext") or {}).get("fsGroup")
    return int(group) if group is not None and os.getuid() == 0 else None
