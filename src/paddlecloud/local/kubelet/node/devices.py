"""Graphics processors of this machine, and which pod has which.

Found through NVML, the library every driver brings; a machine without one has none, and nothing else changes. A pod
sees its own through CUDA_VISIBLE_DEVICES, and a pod that asked for none sees none. A node that only declares GPUs
(`pdc node add`) has none of them: its pods run on the CPU, whatever the machine has.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterable, Mapping, Sequence

from paddlecloud.kube.quantity import whole
from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError

RESOURCE = "nvidia.com/gpu"
_LIBRARY = "libnvidia-ml.so.1"


def find_gpus() -> tuple[str, ...]:
    """The numbers of the GPUs in the order of their bus addresses; empty where there is no driver.

    Numbers and not UUIDs, which CUDA would accept as well: Paddle reads the variable itself and expects numbers.
    """
    try:
        nvml = ctypes.CDLL(_LIBRARY)
    except OSError:
        return ()
    if nvml.nvmlInit_v2() != 0:
        return ()
    try:
        count = ctypes.c_uint()
        if nvml.nvmlDeviceGetCount_v2(ctypes.byref(count)) != 0:
            return ()
        return tuple(str(number) for number in range(count.value))
    finally:
        nvml.nvmlShutdown()


def wanted(container: Object) -> int:
    resources = container.get("resources") or {}
    limits = resources.get("limits") or resources.get("requests") or {}
    return whole(limits.get(RESOURCE) or 0)


class Devices:
    """Hands out GPUs to containers by pod uid; `taken` is what pods of an earlier kubelet hold.

    `on_release` is called when some are free again: a pod that was put on the node by its name may wait for them.
    """

    def __init__(
        self,
        gpus: Sequence[str],
        *,
        taken: Mapping[str, Mapping[str, Iterable[str]]] | None = None,
        on_release: Callable[[], None] = lambda: None,
    ) -> None:
        self._gpus = tuple(gpus)
        self._on_release = on_release
        self._held: dict[str, dict[str, tuple[str, ...]]] = {
            uid: {name: tuple(held) for name, held in containers.items()} for uid, containers in (taken or {}).items()
        }
        self._declaring: set[str] = set()

    @property
    def capacity(self) -> dict[str, str]:
        return {RESOURCE: str(len(self._gpus))} if self._gpus else {}

    def only_declared_by(self, node: str) -> None:
        """Pods of this node get none of the machine's GPUs: those in its status exist in its object alone."""
        self._declaring.add(node)

    def allocate(self, uid: str, container: Object, *, node: str) -> tuple[str, ...]:
        """The container's GPUs, the same ones at every restart. Raises `ContainerConfigError` when too few are free.

        None at all on a machine that has none, whatever its node declared.
        """
        if not self._gpus or node in self._declaring:
            return ()
        count, name = wanted(container), container["name"]
        pod = self._held.setdefault(uid, {})
        if name in pod:
            return pod[name]
        busy = {gpu for holders in self._held.values() for held in holders.values() for gpu in held}
        free = [gpu for gpu in self._gpus if gpu not in busy]
        if count > len(free):
            raise ContainerConfigError(f"{count} GPUs wanted, {len(free)} of {len(self._gpus)} free on this machine")
        pod[name] = tuple(free[:count])
        return pod[name]

    def held(self, uid: str) -> dict[str, tuple[str, ...]]:
        return dict(self._held.get(uid, {}))

    def release(self, uid: str) -> None:
        if any(self._held.pop(uid, {}).values()):
            self._on_release()

    def env(self, gpus: Sequence[str]) -> dict[str, str]:
        """Nothing on a machine without GPUs: programs there must not find a variable they do not expect."""
        if not self._gpus:
            return {}
        return {
            "CUDA_DEVICE_ORDER": "PCI_BUS_ID",  # the order of NVML; CUDA's own puts the fastest first
            "CUDA_VISIBLE_DEVICES": ",".join(gpus),
            "NVIDIA_VISIBLE_DEVICES": ",".join(gpus) or "void",
        }
