"""Files of this machine that a container cannot see because its /tmp is its own: found before the start, to be named.

A program whose path is hidden so answers “No such file or directory” for a file that its user has in view. Only words
of the command and the working directory are looked at: what a program opens later is not known here. Standard library
only: the shim imports this.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence

from paddlecloud.local.kubelet.shim.sandbox import TMP, Mount


def hidden(words: Iterable[str], mounts: Sequence[Mount]) -> list[str]:
    """The words, or values of `--flag=value`, that are paths below the machine's /tmp which no mount shows."""
    if not any(mount.target == TMP for mount in mounts):
        return []
    shown = [mount.target.rstrip("/") for mount in mounts if mount.target != TMP]
    paths = dict.fromkeys(os.path.normpath(part) for word in words for part in (word, word.partition("=")[2]))
    return [
        path
        for path in paths
        if path.startswith(f"{TMP}/")
        and not any(f"{path}/".startswith(f"{place}/") for place in shown)
        and os.path.lexists(path)
    ]


def sentence(words: Iterable[str], mounts: Sequence[Mount]) -> str:
    """What is hidden and how to show it; empty where nothing is."""
    paths = hidden(words, mounts)
    if not paths:
        return ""
    folder = paths[0] if os.path.isdir(paths[0]) or os.path.dirname(paths[0]) == TMP else os.path.dirname(paths[0])
    return (
        f"{', '.join(paths)} of this machine cannot be seen in the container, whose {TMP} is its own; "
        f"mount it with a hostPath volume, or: pdc run --volume {folder}:{folder}"
    )
