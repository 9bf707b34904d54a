"""What a platform that was killed has left: pods that run on under their shims, and what is mounted for them.

`pdc down` ends it here, without starting the platform once more. A platform that starts instead takes all of it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from paddlecloud.kube.clock import SystemClock
from paddlecloud.local.kubelet.node.kubelet import pod_specs
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.supervised import SupervisedPod
from paddlecloud.local.volumes.drivers import Driver


async def end(data: Path, drivers: Iterable[Driver]) -> int:
    """Records and logs stay. How many pods were still running. Raises `VolumeError`."""
    clock = SystemClock()
    pods = [SupervisedPod(PodPaths(data / "pods" / uid), clock, on_change=lambda: None) for uid, _ in pod_specs(data)]
    await asyncio.gather(*(pod.recover() for pod in pods))  # all, before the first is ended: others may fail for that
    running = [pod for pod in pods if pod.runtime is not None]
    await asyncio.gather(*(pod.switch_off() for pod in running))
    await asyncio.gather(*(pod.detach() for pod in pods))
    for driver in drivers:
        await driver.keep_only(())
    return len(running)
