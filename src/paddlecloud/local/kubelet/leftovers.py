"""What a platform that was killed has left: pods that run on under their shims, and what is mounted for them.

`pdc down` ends it here, without starting the platform once more. A platform that starts instead takes all of it up.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path

from paddlecloud.kube.clock import SystemClock
from paddlecloud.local.kubelet.kubelet import pod_specs
from paddlecloud.local.kubelet.paths import PodPaths
from paddlecloud.local.kubelet.supervised import SupervisedPod
from paddlecloud.local.volumes.drivers import Driver


async def end(data: Path, drivers: Iterable[Driver]) -> int:
    """As in a power cut: records and logs stay. How many pods were still running. Raises `VolumeError`."""
    ended = await asyncio.gather(*(_end_pod(data / "pods" / uid) for uid, _ in pod_specs(data)))
    for driver in drivers:
        await driver.keep_only(())
    return sum(ended)


async def _end_pod(folder: Path) -> bool:
    pod = SupervisedPod(PodPaths(folder), SystemClock(), on_change=lambda: None)
    await pod.recover()
    was_running = pod.runtime is not None
    await pod.shutdown()
    await pod.detach()
    return was_running
