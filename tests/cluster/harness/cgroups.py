"""The cgroups in which nodes keep their pods: made before the kubelet starts, removed when its pods are dead.

Version 1 has a tree per controller, version 2 one tree; a hybrid host has both, the second beside the others and
without controllers. The kubelet wants its root to exist in each of them, and runc puts pods into all.
"""

from __future__ import annotations

import time
from pathlib import Path

from .errors import HarnessError
from .layout import CGROUP, Node

ROOT = Path("/sys/fs/cgroup")


def hierarchies(root: Path = ROOT) -> list[Path]:
    if (root / "cgroup.controllers").exists():
        return [root]
    trees = {tree.resolve() for tree in root.glob("*") if (tree / "cgroup.procs").exists()}
    return sorted(trees)


def make(node: Node, root: Path = ROOT) -> None:
    trees = hierarchies(root)
    for tree in trees:
        above = tree
        for part in Path(node.cgroup).parts:
            if trees == [root]:  # a tree of version 2 beside others is used without controllers, whatever it could have
                _open_controllers(above)
            below = above / part
            below.mkdir(exist_ok=True)
            _fill_cpuset(above, below)
            above = below


def _open_controllers(group: Path) -> None:
    """Version 2: children have a controller only if it is passed on to them."""
    switch = group / "cgroup.subtree_control"
    if switch.exists():
        controllers = (group / "cgroup.controllers").read_text().split()
        switch.write_text(" ".join(f"+{name}" for name in controllers))


def _fill_cpuset(above: Path, below: Path) -> None:
    """Version 1: an empty cpuset admits no process."""
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (below / name).exists() and not (above / "cgroup.controllers").exists():
            (below / name).write_text((above / name).read_text())


def remove(root: Path = ROOT, *, below: str = CGROUP, patience: float = 20) -> None:
    """Remove the whole tree, or a node's; dying processes keep their groups for a moment."""
    deadline = time.monotonic() + patience
    while left := [tree / below for tree in hierarchies(root) if (tree / below).exists()]:
        for top in left:
            for group in sorted((path for path in top.rglob("*") if path.is_dir()), reverse=True):
                _try_remove(group)
            _try_remove(top)
        if time.monotonic() > deadline:
            raise HarnessError(f"cgroups stay occupied: {', '.join(map(str, left))}", reason="CgroupsBusy")
        time.sleep(0.02)


def _try_remove(group: Path) -> None:
    try:
        group.rmdir()
    except OSError:
        pass  # still occupied or already gone; the caller looks again
