"""Names, labels and annotations: everything by which a PaddleJob finds its own objects again.

Names are derived, never random, so that a repeated pass finds what an interrupted one has made. The first group of
labels is paddle-operator's and users select by it; the second says the same in full.
"""

from __future__ import annotations

from paddlecloud.api import names

RESOURCE_NAME = "paddle-res-name"
RESOURCE_TYPE = names.ORIGINAL_ROLE_LABEL
RESOURCE = "paddle-resource"

ORIGINAL_FINALIZER = "finalizers.paddlepaddle.org"
"""That the original operator put on jobs, and took off again; where it is gone, somebody else must."""

JOB, ROLE, INDEX = names.JOB_LABEL, names.ROLE_LABEL, names.INDEX_LABEL
GENERATION = "paddlepaddle.org/generation"
"""Which incarnation of the gang a pod belongs to. A label, never part of a name: ranks keep their names for life."""

PORT = "paddlepaddle.org/port"
"""Annotation of pods: the first port of their job."""

NUDGED = "paddlepaddle.org/nudged"
"""Annotation that is changed for no other reason than to make a kubelet look at the pod again."""

KUBEFLOW_LABELS = {
    "training.kubeflow.org/job-name": JOB,
    "training.kubeflow.org/replica-type": ROLE,
    "training.kubeflow.org/replica-index": INDEX,
}

NO_SIDECAR = "sidecar.istio.io/inject"


def pod_name(job: str, role: str, index: int) -> str:
    return f"{job}-{role}-{index}"


def host_name(job: str, role: str, index: int, *, namespace: str) -> str:
    """What peers call a pod in Service mode: a name under the job's headless Service.

    It has dots on purpose. `paddle.distributed.launch` takes POD_IP as the node's own address only when it contains
    one; with a bare pod name no rank recognises itself as the rendezvous master and all wait for ever.
    """
    return f"{pod_name(job, role, index)}.{job}.{namespace}.svc"


def selector(job: str, role: str) -> str:
    """The label selector of one role, as the scale subresource reports it."""
    return f"{JOB}={job},{ROLE}={role}"
