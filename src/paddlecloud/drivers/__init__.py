"""Volume drivers that this project brings to the embedded kubelet: what a CSI driver does on a cluster.

They stand between the platform, which knows no driver, and the engines of the cache, which know no platform.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from paddlecloud.drivers.folders import FolderDriver
from paddlecloud.drivers.juicefs import JuiceFsDriver
from paddlecloud.local.volumes.drivers import Driver

LOCAL = "local.paddlecloud.org"
JUICEFS = "csi.juicefs.com"


def drivers_of(data: Path) -> Mapping[str, Driver]:
    """The drivers of a platform, by the names that PersistentVolumes call them."""
    return {LOCAL: FolderDriver(data / "samplesets"), JUICEFS: JuiceFsDriver(data / "juicefs")}
