"""What is recorded of the origin of a version that a job makes: gathered with the caller's own rights, never asked for.

In a pod of a PaddleJob (`here`) the pod and its job are read, the SampleSets that it mounts, the metrics that the
program reported or wrote with VisualDL, and the commit of its folder. From outside (`of_job`) the same, as far as
objects say it. What may not be read is left out and named in `missing`: most of an origin is better than none.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import socket
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import PADDLEJOBS, PODS, SAMPLESETS, Object, Resource, is_owned_by
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.modelhub import code_commit, origin

MOST_FILES = 100_000
"""Of a data set, whose paths and sizes are read for its listing."""
MOST_METRICS = 64
_REPORT_PATH = re.compile(r"/report/(?P<namespace>[^/]+)/(?P<job>[^/]+)/\d+/[a-z]+/\d+$")


class Recorded(NamedTuple):
    origin: dict[str, str]
    metrics: dict[str, float]
    job: str = ""
    missing: tuple[str, ...] = ()
    """What could not be read, in sentences."""


async def here(client: Client, namespace: str, environ: Mapping[str, str] | None = None) -> Recorded:
    """Of the pod that this runs in; outside of pods the commit and what was reported are all there is."""
    env = os.environ if environ is None else environ
    missing: list[str] = []
    pod = job = None
    if "KUBERNETES_SERVICE_HOST" in env:
        pod = await _find(client, PODS, env.get("HOSTNAME") or socket.gethostname(), namespace, missing)
        name = _job_name(pod, env)
        job = await _find(client, PADDLEJOBS, name, namespace, missing) if name else None
        if job is None and name:
            job = {"metadata": {"name": name, "namespace": namespace}}
    found: dict[str, str] = origin.of_step(pod) if pod else {}
    sets = await _sets(client, job, namespace, missing) if job else []
    if job is not None:
        found |= origin.of_job(job, pod)
        found |= origin.of_data(sets, job)
        found |= _listings(job, sets)
    found |= code_commit.of_folder(program_folder())
    metrics = _reported() or (_written(job) if job else {})
    return Recorded(origin.bounded(found), metrics, found.get("job", ""), tuple(missing))


async def of_job(client: Client, job: Object, *, namespace: str) -> Recorded:
    """Of a job that the caller names."""
    missing: list[str] = []
    meta = job["metadata"]
    where = str(meta["namespace"])
    try:
        pods = (await client.list(PODS, where, label_selector=f"{JOB_LABEL}={meta['name']}", limit=500)).items
    except ApiError as error:
        missing.append(f"pods of {meta['name']}: {error.message}")
        pods = []
    own = [pod for pod in pods if is_owned_by(pod, meta.get("uid"))]
    ids = sorted(own, key=lambda pod: "-worker-" not in pod["metadata"]["name"])
    sets = await _sets(client, job, where, missing)
    found = origin.of_job(job, ids[0] if ids else None, namespace=namespace) | origin.of_data(sets, job)
    return Recorded(origin.bounded(found), status_metrics(job), str(meta["name"]), tuple(missing))


def status_metrics(job: Object) -> dict[str, float]:
    """What the program reported last."""
    progress = (job.get("status") or {}).get("progress") or {}
    found = {**({"loss": progress["loss"]} if "loss" in progress else {}), **(progress.get("metrics") or {})}
    return _finite(found)


def is_leader(environ: Mapping[str, str] | None = None) -> bool:
    """Whether this process is the one of its job that makes the version: worker 0, or the only one."""
    env = os.environ if environ is None else environ
    role = env.get("TRAINING_ROLE") or env.get("PADDLE_TRAINING_ROLE") or "TRAINER"
    return role == "TRAINER" and env.get("PADDLE_TRAINER_ID", "0") in ("0", "")


def program_folder() -> Path:
    """Where the program lies; the working directory for those that have no file."""
    program = Path(sys.argv[0]) if sys.argv and sys.argv[0] not in ("", "-c", "-m") else None
    return program.resolve().parent if program is not None and program.is_file() else Path.cwd()


def listing(folder: Path) -> tuple[str, int] | None:
    """A digest of the paths and sizes below a folder, and how many files there are; None for too many.

    Not of their content: a data set is larger than a model, and reading it again would take as long as an epoch.
    """
    lines = []
    for path, size in _files(folder):
        lines.append(f"{size} {path}\n")
        if len(lines) > MOST_FILES:
            return None
    digest = hashlib.sha256()
    for line in sorted(lines):
        digest.update(line.encode("utf-8", "surrogateescape"))
    return f"sha256:{digest.hexdigest()}", len(lines)


def _files(folder: Path) -> Iterator[tuple[str, int]]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in files:
            path = os.path.join(root, name)
            try:
                yield os.path.relpath(path, folder), os.stat(path).st_size
            except OSError:
                continue  # removed meanwhile


def _listings(job: Object, sets: list[Object]) -> dict[str, str]:
    reference = (job.get("spec") or {}).get("sampleSetRef") or {}
    name, path = reference.get("name"), reference.get("mountPath")
    if not path or not any(one["metadata"]["name"] == name for one in sets) or not os.path.isdir(path):
        return {}
    found = listing(Path(path))
    if found is None:
        return {}
    return {f"data.{name}.listing": found[0], f"data.{name}.files": str(found[1])}


def _reported() -> dict[str, float]:
    from paddlecloud.data import report

    report.flush()
    return _finite(report.latest())


def _written(job: Object) -> dict[str, float]:
    """The last values of the curves that the program wrote with VisualDL since the job began."""
    from paddlecloud.visualdl import folders, records

    began = str(job["metadata"].get("creationTimestamp") or "")
    since = parse_rfc3339(began) * 1000 if began else 0.0
    curves, _ = records.curves([one for one in folders.likely(job) if os.path.isdir(one)])
    newest: dict[str, tuple[int, float]] = {}
    for curve in curves:
        last = curve.times[-1], curve.values[-1]
        if last[0] >= since and last > newest.get(curve.tag, (-1, 0.0)):
            newest[curve.tag] = last
    return _finite({tag: value for tag, (_, value) in newest.items()})


def _finite(found: Mapping[str, float]) -> dict[str, float]:
    kept = {key: float(value) for key, value in found.items() if math.isfinite(float(value))}
    return dict(list(kept.items())[:MOST_METRICS])


def _job_name(pod: Object | None, env: Mapping[str, str]) -> str:
    """By the pod's owner; where the pod may not be read, by the address to which it reports."""
    for owner in (pod or {}).get("metadata", {}).get("ownerReferences") or ():
        if owner.get("kind") == PADDLEJOBS.kind:
            return str(owner["name"])
    hit = _REPORT_PATH.search(env.get("PADDLECLOUD_REPORT_URL", "")) if pod is None else None
    return hit["job"] if hit else ""


async def _sets(client: Client, job: Object, namespace: str, missing: list[str]) -> list[Object]:
    found = [await _find(client, SAMPLESETS, name, namespace, missing) for name in origin.claims_of(job)]
    return [one for one in found if one is not None]


async def _find(client: Client, resource: Resource, name: str, namespace: str, missing: list[str]) -> Object | None:
    try:
        return await client.get(resource, name, namespace)
    except NotFound:
        return None
    except ApiError as error:
        missing.append(f"{resource.kind} {name}: {error.message}")
        return None
