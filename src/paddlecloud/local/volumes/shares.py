"""NFS shares as folders of this machine: `server:/path` is whatever lies at `<data>/nfs/<server>/<path>`.

Mounting NFS needs root, a kernel module and a server; a folder, or a link to one, needs nothing. So manifests written
for a cluster run here unchanged once somebody has said where the data is. What nobody has put there is not made up.
"""

from __future__ import annotations

import os
from pathlib import Path

from paddlecloud.kube.resource import Object
from paddlecloud.local.volumes.errors import VolumeError


def shared_folder(root: Path | None, source: Object) -> Path:
    """The folder for an `nfs` source. Raises `VolumeError` where there is none, saying where one is looked for."""
    server, path = str(source.get("server") or ""), str(source.get("path") or "")
    if root is None:
        raise VolumeError(f"nfs {server}:{path} is not served here")
    parts = [server, *path.split("/")]
    if not server or "/" in server or any(part in (".", "..") for part in parts):
        raise VolumeError(f"nfs {server}:{path}: a server and an absolute path without '..' are needed")
    place = root.joinpath(*filter(None, parts))
    if not os.path.isdir(place):
        raise VolumeError(f"nfs {server}:{path}: this machine mounts no NFS; put its data, or a link to it, at {place}")
    return place.resolve()
