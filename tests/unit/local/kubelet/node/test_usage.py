"""What a container uses, all its processes counted."""

from __future__ import annotations

import sys

from harness import eventually
from paddlecloud.local.kubelet.node.usage import pod_usage
from unit.local.kubelet.conftest import ShimHarness

EATER = """
import os, time
pid = os.fork()
kept = b'x' * (20 << 20)
end = time.process_time() + 0.1
while time.process_time() < end: pass
print("full", flush=True)
time.sleep(600)
"""


async def test_memory_and_time_of_all_processes_are_counted(shims: ShimHarness) -> None:
    root = shims.pod_dir()
    runtime = await shims.spawn(root)
    await runtime.start(shims.container(root, "", argv=(sys.executable, "-c", EATER)))
    await shims.running(runtime)

    await eventually(lambda: (root / "logs" / "main" / "0.log").read_text().count("full"), 2)
    usage = pod_usage(root)["main"]
    assert usage.memory_bytes > 40 << 20
    assert usage.cpu_seconds > 0.15, "both of them, whatever the clock ticks"
    await runtime.stop("main", grace=0)
    await shims.exited(runtime)
    assert pod_usage(root) == {}
