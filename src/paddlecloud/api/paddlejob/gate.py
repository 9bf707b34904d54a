"""The start barrier of a PaddleJob, as kubelets report it.

Pods refer to keys of the ConfigMap named like their job, which is written when every pod has an address. Until then the
kubelet reports the missing ConfigMap or key as CreateContainerConfigError: the expected way to start, not a fault.
"""

from __future__ import annotations

import re

_LACKS = re.compile(r'configmap "(?P<whole>[^"]*)" not found|couldn\'t find key \S+ in ConfigMap [^/\s]*/(?P<key>\S+)')
"""As kubelets say it, those of Kubernetes and the embedded one."""


def is_gate(reason: str, message: str, job: str) -> bool:
    """Whether a container of the job waits only for the job's own ConfigMap, by what its state says."""
    found = _LACKS.search(message) if reason == "CreateContainerConfigError" else None
    return found is not None and (found["whole"] or found["key"]) == job
