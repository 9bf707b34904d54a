"""The VisualDL of one PaddleJob: `<job>-visualdl`, which belongs to the job and is deleted with it.

It reads the job's own volumes, read-only, and runs near its pods where the scheduler can: a volume may be mounted on
their node alone.
"""

from __future__ import annotations

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.kube.resource import Object
from paddlecloud.visualdl import folders, server
from paddlecloud.visualdl.flags import Flags, check

SUFFIX = "-visualdl"
NAME_LENGTH = 63
"""Of a Service's name: it is a label of DNS."""


class BoardError(ValueError):
    """The job cannot have a VisualDL; the text says why."""


def name_of(job: Object) -> str:
    """Raises `BoardError`."""
    name = f"{job['metadata']['name']}{SUFFIX}"
    if len(name) > NAME_LENGTH:
        raise BoardError(f"{name} would be the Service's name and has more than {NAME_LENGTH} characters")
    return name


def objects(job: Object, flags: Flags) -> tuple[Object, Object]:
    """The Service and the Deployment. Paths of the flags are absolute (`folders.absolute`).

    Raises `BoardError`, `flags.FlagError` or `folders.FolderError`.
    """
    meta, name = job["metadata"], name_of(job)
    placement = folders.placed(job, [*flags.logdirs, *filter(None, (flags.model,))])
    check(flags)
    pod = {
        **folders.like_the_job(job),
        "containers": [server.container(flags, placement.mounts)],
        "volumes": list(placement.volumes),
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_near(str(meta["name"]))]}},
    }
    made = server.service(name, meta["namespace"], flags.port), server.deployment(name, meta["namespace"], pod)
    for one in made:
        one["metadata"]["ownerReferences"] = [owner(job)]
    return made


def owner(job: Object) -> Object:
    meta = job["metadata"]
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"]}


def belongs_to(found: Object, job: Object) -> bool:
    owners = found["metadata"].get("ownerReferences") or ()
    return any(one.get("uid") == job["metadata"]["uid"] for one in owners)


def _near(job: str) -> Object:
    term = {"labelSelector": {"matchLabels": {JOB_LABEL: job}}, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": 100, "podAffinityTerm": term}
