"""The scalars that a job's program wrote with VisualDL's LogWriter, read without VisualDL's server.

They are read where they lie: in a running pod of the job or, for a job that does not run, in a pod of its image that is
made for it, has the job's volumes read-only, and is deleted afterwards. `visualdl.records` is sent there and run by the
container's own Python; only the scalars come back. Several jobs may run in one folder: files that were written before
the job was created or begun after it had ended are left out, and `problems` names them.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING

from paddlecloud.api.training_pod import training_container
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.sdk import members
from paddlecloud.sdk.object_ref import of_object
from paddlecloud.sdk.outcome import ending
from paddlecloud.sdk.watching import until
from paddlecloud.visualdl import board, folders, records
from paddlecloud.visualdl.records import Curve

if TYPE_CHECKING:
    from paddlecloud.sdk.core import AsyncClient

READER_SECONDS = 300
"""After which a pod that was made for reading ends, whatever became of the program that made it."""
MOST_OUTPUT = 512 << 20
"""Bytes: more than `records.MOST_POINTS` take, whatever their values."""
PYTHON = 'exec "$(command -v python3 || command -v python)" -c "$0" "$@"'
RECEIVE = 'import sys; exec(compile(sys.stdin.buffer.read(int(sys.argv.pop(1))), "records.py", "exec"))'
"""Reads as many bytes as its argument says: older servers cannot pass on the end of the input."""


class MetricsError(Exception):
    """The records of a job cannot be read; the text says why and what to change."""


class Metrics(list[Curve]):
    """Curves by run and tag; `problems` are the files that could not be read to their end, or are of other jobs."""

    def __init__(self, curves: Sequence[Curve] = (), problems: Sequence[str] = ()) -> None:
        super().__init__(curves)
        self.problems = list(problems)


def read_here(logdirs: Sequence[str]) -> Metrics:
    """The same of folders of this machine."""
    return Metrics(*records.curves(logdirs))


async def read(
    client: AsyncClient,
    job: Object,
    logdirs: Sequence[str],
    *,
    rank: int | None = None,
    makes_pod: bool = True,
    most: int = MOST_OUTPUT,
) -> Metrics:
    """Without `makes_pod` only where a pod of the job runs; of more than `most` bytes nothing is read.

    Raises `MetricsError`, and `kube.errors.ApiError` for what the server refuses.
    """
    try:
        chosen = folders.absolute(job, logdirs) or folders.likely(job)
    except folders.FolderError as error:
        raise MetricsError(str(error)) from error
    found = [] if folders.is_claim(job) else await members.members_of(client.api, job)
    ranks = None if rank is None else [rank]
    if ranks and (why := members.missing_ranks(job, found, ranks)):
        raise NotFound(why)
    running = [one for one in members.choose(found, ranks=ranks, everything=False) if _runs(one.pod)]
    if running and not chosen:
        raise MetricsError("the job has no volume that it writes to: name the folder with the records (--logdir)")
    arguments = [*lifetime(job), *chosen]
    if running:
        return await _read_in(client, running[0], arguments, most)
    if not makes_pod:
        raise MetricsError("no pod of the job runs")
    reader = await _start_reader(client, job, chosen)
    try:
        return await _read_in(client, members.member(reader), arguments, most)
    finally:
        meta = reader["metadata"]
        await client.api.delete(PODS, meta["name"], namespace=meta["namespace"], grace_period=0)


def lifetime(job: Object) -> list[str]:
    """The bounds of the job's life, as arguments of `records`; none for a claim, which may be older than it looks: a
    volume that was filled before."""
    if folders.is_claim(job):
        return []
    created = str(job["metadata"].get("creationTimestamp") or "")
    ended = str((job.get("status") or {}).get("completionTime") or "")
    bounds = {"since": created, "until": ended if ending(job) is not None else ""}
    return [f"--{name}={parse_rfc3339(at):.0f}" for name, at in bounds.items() if at]


def found_in(found: Metrics) -> Metrics:
    """Of folders that the caller named. Raises `MetricsError` where there is nothing but problems: such as a folder
    that is not there, of which an empty list would say that nothing was written."""
    if not found and found.problems:
        raise MetricsError("; ".join(found.problems))
    return found


async def _read_in(client: AsyncClient, member: members.Member, arguments: Sequence[str], most: int) -> Metrics:
    program = inspect.getsource(records).encode()
    command = ["sh", "-c", PYTHON, RECEIVE, str(len(program)), *arguments]
    try:
        done = await client.exec(member, command, input=program, most=most)
    except members.TooMuchOutput as error:
        raise MetricsError(f"pod {member.name} printed more than {most >> 20} MiB: name fewer folders") from error
    if done.exit_code:
        last = (done.stderr.strip().splitlines() or [f"exit code {done.exit_code}"])[-1]
        raise MetricsError(f"reading in pod {member.name} failed, which takes a shell and Python 3.7 or later: {last}")
    return parse(done.stdout)


def parse(text: str) -> Metrics:
    """What `visualdl.records` printed. Raises `MetricsError` for anything else."""
    found = Metrics()
    try:
        for line in text.splitlines():
            entry = json.loads(line)
            if "problem" in entry:
                found.problems.append(str(entry["problem"]))
                continue
            curve = Curve(
                str(entry["run"]),
                str(entry["tag"]),
                [int(step) for step in entry["steps"]],
                [int(time) for time in entry["times"]],
                [float(value) for value in entry["values"]],
            )
            if not len(curve.steps) == len(curve.times) == len(curve.values) > 0:
                raise ValueError("a curve has more steps than values")
            found.append(curve)
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
        raise MetricsError(f"the pod printed something else than curves: {error}") from error
    return found


async def _start_reader(client: AsyncClient, job: Object, logdirs: Sequence[str]) -> Object:
    try:
        body = reader_pod(job, logdirs)
    except folders.FolderError as error:
        raise MetricsError(f"no pod of the job runs, and {error}") from error
    pod = await client.api.create(PODS, body)

    def started(now: Object | None) -> Object | None:
        phase = ((now or {}).get("status") or {}).get("phase")
        if now is None or phase in ("Succeeded", "Failed"):
            raise MetricsError(f"the pod that should read the records ended: {phase or 'deleted'}")
        return now if phase == "Running" else None

    try:
        return await until(client.api, of_object(PODS, pod), started, timeout=READER_SECONDS)
    except BaseException:
        meta = pod["metadata"]
        await client.api.delete(PODS, meta["name"], namespace=meta["namespace"], grace_period=0)
        raise


def reader_pod(job: Object, logdirs: Sequence[str]) -> Object:
    """Raises `folders.FolderError`."""
    placement = folders.placed(job, logdirs)
    meta = job["metadata"]
    container = {
        "name": "reader",
        "image": training_container(job)["image"],
        "command": ["sh", "-c", f"sleep {READER_SECONDS}"],
        "volumeMounts": [{**mount, "readOnly": True} for mount in placement.mounts],
    }
    return {
        "apiVersion": PODS.api_version,
        "kind": PODS.kind,
        "metadata": {
            "generateName": f"{meta['name']}-metrics-",
            "namespace": meta["namespace"],
            "ownerReferences": [board.owner(job)],
        },
        "spec": {
            **folders.like_the_job(job),
            "restartPolicy": "Never",
            "activeDeadlineSeconds": READER_SECONDS,
            "automountServiceAccountToken": False,
            "containers": [container],
            "volumes": list(placement.volumes),
        },
    }


def _runs(pod: Object) -> bool:
    return (pod.get("status") or {}).get("phase") == "Running" and not pod["metadata"].get("deletionTimestamp")
