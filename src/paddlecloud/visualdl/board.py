"""The VisualDL of a PaddleJob: `<job>-visualdl`, which belongs to the job and is deleted with it.

It reads the job's own volumes, read-only, and runs near its pods where the scheduler can: a volume may be mounted on
their node alone. Requests from elsewhere in the cluster need the job's uid, which those know who may read the job.

It may show other jobs and claims beside the job. Then the folders of each job are below /jobs/NAME: runs of two jobs
that write to the same path have two names.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.kube.resource import Object, is_owned_by
from paddlecloud.visualdl import folders, server
from paddlecloud.visualdl.flags import Flags, check

SUFFIX = "-visualdl"
JOBS = "/jobs"
"""Below it the folders of each job are mounted where several are shown."""
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


class Shown(NamedTuple):
    """A job, and the folders that are shown of it: absolute, as its program has them."""

    job: Object
    logdirs: tuple[str, ...]


class Board(NamedTuple):
    service: Object
    deployment: Object
    flags: Flags
    """As VisualDL gets them."""


def plan(shown: Sequence[Shown], flags: Flags) -> Board:
    """The VisualDL of the first job, with the others beside it. `logdirs` of the flags are not read; their `model` is
    an absolute path of the first job.

    Raises `BoardError`, `flags.FlagError` or `folders.FolderError`.
    """
    first = shown[0].job
    meta, name = first["metadata"], name_of(first)
    placements = [_placed(each, flags.model if each is shown[0] else "", alone=len(shown) == 1) for each in shown]
    logdirs = [one.folders[: len(each.logdirs)] for each, one in zip(shown, placements, strict=True)]
    model = placements[0].folders[-1] if flags.model else ""
    flags = replace(flags, logdirs=tuple(folder for found in logdirs for folder in found), model=model)
    check(flags)
    placement = folders.together(placements)
    pod = {
        **folders.like_the_job(first),
        "containers": [server.container(flags, placement.mounts, key=str(meta["uid"]))],
        "volumes": list(placement.volumes),
        "affinity": {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [_near(str(meta["name"]))]}},
    }
    service = server.service(name, meta["namespace"], flags.port)
    deployment = server.deployment(name, meta["namespace"], pod)
    for one in (service, deployment):
        one["metadata"]["ownerReferences"] = [owner(first)]
    return Board(service, deployment, flags)


def _placed(each: Shown, model: str, *, alone: bool) -> folders.Placement:
    name = str(each.job["metadata"]["name"])
    below = "" if alone or folders.is_claim(each.job) else f"{JOBS}/{name}"
    paths = [*each.logdirs, *filter(None, [model])] if each.logdirs else []
    try:
        return folders.placed(each.job, paths, below=below)
    except folders.FolderError as error:
        raise error if alone else folders.FolderError(f"{name}: {error}") from error


def owner(job: Object) -> Object:
    meta = job["metadata"]
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"]}


def belongs_to(found: Object, job: Object) -> bool:
    return is_owned_by(found, job["metadata"]["uid"])


def _near(job: str) -> Object:
    term = {"labelSelector": {"matchLabels": {JOB_LABEL: job}}, "topologyKey": "kubernetes.io/hostname"}
    return {"weight": 100, "podAffinityTerm": term}
