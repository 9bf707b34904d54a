"""The Job of one time of a CronJob's schedule: its name, and what identifies it. Pure."""

from __future__ import annotations

import copy
import datetime

from paddlecloud.kube.clock import parse_rfc3339
from paddlecloud.kube.resource import JOBS, Object, owner_reference

SCHEDULED = "batch.kubernetes.io/cronjob-scheduled-timestamp"


def job_name(cron_job: Object, due: float) -> str:
    return f"{cron_job['metadata']['name']}-{int(due) // 60}"


def due_time_of(cron_job: Object, job: Object) -> float | None:
    """The time a Job was made for; None for one that the schedule did not make (`kubectl create job --from`)."""
    meta = job["metadata"]
    stem = f"{cron_job['metadata']['name']}-"
    minutes = meta["name"].removeprefix(stem)
    if not meta["name"].startswith(stem) or not (minutes.isascii() and minutes.isdecimal()):
        return None
    try:
        exact = parse_rfc3339((meta.get("annotations") or {})[SCHEDULED])
    except (KeyError, ValueError):
        return 60.0 * int(minutes)
    return exact if job_name(cron_job, exact) == meta["name"] else 60.0 * int(minutes)


def job_for(cron_job: Object, due: float, zone: datetime.tzinfo) -> Object:
    meta, template = cron_job["metadata"], cron_job["spec"].get("jobTemplate") or {}
    given = template.get("metadata") or {}
    written = datetime.datetime.fromtimestamp(int(due), zone).isoformat().replace("+00:00", "Z")
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "metadata": {
            "name": job_name(cron_job, due),
            "namespace": meta["namespace"],
            **({"labels": dict(given["labels"])} if given.get("labels") else {}),
            "annotations": {**(given.get("annotations") or {}), SCHEDULED: written},
            "ownerReferences": [owner_reference(cron_job)],
        },
        "spec": copy.deepcopy(template.get("spec") or {}),
    }


def reference_to(job: Object) -> Object:
    meta = job["metadata"]
    return {
        "apiVersion": JOBS.api_version,
        "kind": JOBS.kind,
        "name": meta["name"],
        "namespace": meta["namespace"],
        "uid": meta["uid"],
        "resourceVersion": meta["resourceVersion"],
    }
