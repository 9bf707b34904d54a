"""Places in this machine's own cgroup trees, for tests alone: found, lent to pods, and empty again afterwards."""

from __future__ import annotations

import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path

from paddlecloud.local.kubelet.node import limits
from paddlecloud.local.kubelet.node.limits import Enforcement, Hierarchy, PodCgroups
from paddlecloud.local.kubelet.shim import cgroups, wire
from unit.local.kubelet.conftest import ShimHarness

NAME = f"pdc-test-{os.getpid()}"


def trees() -> list[Hierarchy]:
    return limits.hierarchies(
        mountinfo=Path("/proc/self/mountinfo").read_text(), membership=Path("/proc/self/cgroup").read_text()
    )


@contextlib.asynccontextmanager
async def lent_to_pods(found: Enforcement, shims: ShimHarness) -> AsyncIterator[PodCgroups]:
    """Ends the pods that the test left, and sees that nothing of them stays in the tree."""
    pods = PodCgroups(found, data=str(shims.folder))
    pods.start()
    place = pods.enforcement.place
    assert place is not None, pods.enforcement.reason
    yield pods
    for folder in shims.folder.iterdir():
        spec = wire.read_json(str(folder / wire.SPEC)) or {}
        if left := cgroups.place_from(spec.get("cgroup")):
            await shims.ended(folder)
            assert cgroups.remove(left)
    pods.stop()
    assert not any(os.path.exists(path) for path in place.below(pods._part).paths)
