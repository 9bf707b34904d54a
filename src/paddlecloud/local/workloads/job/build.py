"""The pods a Job makes, with or without an index. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from paddlecloud.kube.generated_names import SUFFIX_LENGTH
from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.job.indexes import LABEL
from paddlecloud.local.workloads.pods import fresh_names, pod_from

VARIABLE = "JOB_COMPLETION_INDEX"
LONGEST_HOSTNAME = 63


def plain_pods(job: Object, count: int, taken: Iterable[str]) -> Iterator[Object]:
    for name in islice(fresh_names(job, taken), count):
        yield pod_from(job["spec"]["template"], name=name, owner=job)


def indexed_pods(
    job: Object, indexes: Iterable[int], taken: Iterable[str], annotations: Callable[[int], dict[str, str]]
) -> Iterator[Object]:
    """`annotations` are those of an index, beside the index itself."""
    taken = set(taken)
    for index in indexes:
        name = next(fresh_names(job, taken, stem=f"{job['metadata']['name'][: 253 - SUFFIX_LENGTH - 8]}-{index}"))
        pod = _with_index(pod_from(job["spec"]["template"], name=name, owner=job), job, index)
        pod["metadata"]["annotations"] |= annotations(index)
        yield pod


def _with_index(pod: Object, job: Object, index: int) -> Object:
    """Its index as a label, an annotation and a variable, and a host name that peers can work out."""
    meta, spec = pod["metadata"], pod["spec"]
    for kind in ("labels", "annotations"):
        meta[kind] = {**meta.get(kind, {}), LABEL: str(index)}
    ending = f"-{index}"
    spec["hostname"] = job["metadata"]["name"][: LONGEST_HOSTNAME - len(ending)] + ending
    source = {"fieldRef": {"fieldPath": f"metadata.labels['{LABEL}']"}}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        env = container.setdefault("env", [])
        if not any(variable.get("name") == VARIABLE for variable in env):
            env.append({"name": VARIABLE, "valueFrom": source})
    return pod
