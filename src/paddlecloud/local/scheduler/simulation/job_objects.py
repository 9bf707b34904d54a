"""A job of a trace as the objects that the scheduler knows: its pods and, for more than one, their PodGroup. Pure."""

from __future__ import annotations

from paddlecloud.api.names import GROUP_NAME
from paddlecloud.kube.resource import PODGROUPS, Object
from paddlecloud.local.scheduler.simulation.traces import Job

NAMESPACE = "simulation"


def objects_of(job: Job) -> tuple[Object | None, list[Object]]:
    created = f"{job.arrival:020.6f}"  # compared as text: in order of time
    annotations = {"scheduling.volcano.sh/queue-name": job.queue} if job.queue else {}
    group: Object | None = None
    if job.pods > 1:
        annotations[GROUP_NAME] = job.name
        group = {
            "apiVersion": PODGROUPS.api_version,
            "kind": PODGROUPS.kind,
            "metadata": {"name": job.name, "namespace": NAMESPACE, "creationTimestamp": created},
            "spec": {"minMember": job.least, **({"queue": job.queue} if job.queue else {})},
        }
    return group, [_pod(job, f"{job.name}-{number}", annotations, created) for number in range(job.pods)]


def _pod(job: Job, name: str, annotations: dict[str, str], created: str) -> Object:
    main = {"name": "main", "resources": {"requests": dict(job.requests)}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": NAMESPACE,
            "uid": name,
            "annotations": annotations,
            "creationTimestamp": created,
        },
        "spec": {"priority": job.priority, "containers": [main]},
        "status": {"phase": "Pending"},
    }
