"""What a ResourceQuota may limit, as Kubernetes' validation has it (`IsStandardQuotaResourceName`).

A name without a slash is one of these, and others are qualified (`requests.nvidia.com/gpu`, `count/jobs.batch`).
"""

from __future__ import annotations

from paddlecloud.kube.nearest import question

COUNTED = frozenset(
    (
        "pods", "services", "replicationcontrollers", "resourcequotas", "secrets", "configmaps",
        "persistentvolumeclaims", "services.nodeports", "services.loadbalancers",
    )
)  # fmt: skip
"""Objects, of which there are whole numbers."""
_AMOUNTS = ("cpu", "memory", "ephemeral-storage")
STANDARD = COUNTED | {
    "requests.storage",
    *(f"{part}{name}" for part in ("", "requests.", "limits.") for name in _AMOUNTS),
}
NOT_STANDARD = "must be a standard resource for quota"


def is_quota_name(name: str) -> bool:
    return "/" in name or name in STANDARD or name.removeprefix("requests.").startswith("hugepages-")


def quota_name_problem(name: str) -> str:
    """Why nothing would be limited by it, and what was meant; empty when it is a name."""
    if is_quota_name(name):
        return ""
    hint = "" if "gpu" in name else question(name, STANDARD)  # "cpu" is near it, and not what was meant
    hint = hint or "it limits cpu, memory, pods, requests.storage, requests.nvidia.com/gpu and the like"
    return f'"{name}" is nothing that a quota limits; {hint}'
