"""What a container says about its end: the file it wrote, or the end of its log."""

from __future__ import annotations

from paddlecloud.api.outputs import after_the_exception
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.pod.pod_state import ContainerRun
from paddlecloud.local.kubelet.streams.logreader import read_end

MAX_BYTES = 4096
LOG_LINES, LOG_BYTES = 80, 2048
"""The end of a log that a message holds, as in Kubernetes (`kubelet/kuberuntime/kuberuntime_container.go`)."""
EXCEPTION_LINES, EXCEPTION_BYTES = 2000, 256 * 1024
"""The end of a log in which the line of an exception is looked for, whose text fills the rest. No more is read, however
long the log is."""


def termination_message(container: Object, run: ContainerRun, paths: PodPaths) -> str:
    """The message for a run that ended; the platform's own (a failed start, a memory limit) comes first."""
    if run.message:
        return run.message
    try:
        with open(paths.termination(container["name"], run.attempt), "rb") as handle:
            written = handle.read(MAX_BYTES).decode(errors="replace")
    except OSError:
        written = ""
    if written or not run.failed or container.get("terminationMessagePolicy") != "FallbackToLogsOnError":
        return written
    lines = read_end(paths.log(container["name"], run.attempt), EXCEPTION_BYTES).splitlines(keepends=True)
    log, tail = b"".join(lines[-EXCEPTION_LINES:]), b"".join(lines[-LOG_LINES:])
    return after_the_exception(log.decode(errors="replace"), tail[-LOG_BYTES:].decode(errors="replace"))
