"""How much a pod may put into its emptyDir volumes, and whether it put more."""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.kube.quantity import whole
from paddlecloud.kube.resource import Object


def has_limits(pod: Object) -> bool:
    return any((volume.get("emptyDir") or {}).get("sizeLimit") for volume in pod["spec"].get("volumes") or ())


def over_limit(pod: Object, folder: Path) -> str:
    """The message of an eviction, or nothing. Volumes in memory are held to their limit by the kernel."""
    for volume in pod["spec"].get("volumes") or ():
        source = volume.get("emptyDir") or {}
        limit = source.get("sizeLimit")
        if limit and source.get("medium") != "Memory" and used_bytes(folder / volume["name"]) > whole(limit):
            return f'Usage of EmptyDir volume "{volume["name"]}" exceeds the limit "{limit}". '
    return ""


def disk_volumes_bytes(pod: Object, folder: Path) -> int:
    """What the pod keeps in emptyDir volumes on disk."""
    return sum(
        used_bytes(folder / volume["name"])
        for volume in pod["spec"].get("volumes") or ()
        if "emptyDir" in volume and (volume["emptyDir"] or {}).get("medium") != "Memory"
    )


def used_bytes(folder: Path) -> int:
    """Space on disk, which for a sparse file is less than its length; what vanishes meanwhile counts nothing."""
    total = 0
    for place, _, names in os.walk(folder):
        for name in names:
            try:
                total += os.lstat(os.path.join(place, name)).st_blocks * 512
            except OSError:
                continue
    return total
