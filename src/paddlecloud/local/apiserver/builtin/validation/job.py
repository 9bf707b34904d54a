"""What Kubernetes refuses in Jobs, and in CronJobs, which are templates of Jobs with a schedule."""

from __future__ import annotations

import copy

from paddlecloud.api.cron import BadSchedule
from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.kube.timetable import UnknownZone, timetable, zone_of
from paddlecloud.local.apiserver.builtin.validation.job_policies import job_policies
from paddlecloud.local.apiserver.builtin.validation.pod import pod_template
from paddlecloud.local.apiserver.builtin.validation.rules import immutable, label_selector, not_negative
from paddlecloud.local.apiserver.schema.causes import Cause, invalid, not_supported, required

_JOB_IMMUTABLE = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_LONGEST_JOB_NAME = 63
_LONGEST_CRON_JOB_NAME = 52
"""The time of a run, added to it, makes the name of the run's Job."""


def validate_job(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = _job_spec("spec", spec)
    selector = spec.get("selector")
    if selector is not None:
        found += label_selector("spec.selector", selector)
        labels = ((spec.get("template") or {}).get("metadata") or {}).get("labels") or {}
        if not found and old is None and not LabelSelector.from_dict(selector).matches(labels):
            detail = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", labels, detail))
    elif spec.get("manualSelector"):
        found.append(required("spec.selector"))
    name = (new.get("metadata") or {}).get("name", "")
    if old is None and len(name) > _LONGEST_JOB_NAME:  # the name becomes a label of its pods
        found.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_JOB_NAME} characters"))
    if old is not None:
        found += _job_update(spec, old)
    return found


def _job_spec(path: str, spec: Object) -> list[Cause]:
    """What holds for a Job and for the template of one, at `path`."""
    numbers = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    found = not_negative(spec, path, *numbers, "backoffLimitPerIndex", "maxFailedIndexes")
    found += pod_template(f"{path}.template", spec.get("template") or {})
    return found + _job_restart(path, spec) + job_policies(path, spec)


def _job_restart(path: str, spec: Object) -> list[Cause]:
    field = f"{path}.template.spec.restartPolicy"
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "Always")
    if policy == "Always":
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy != "Never" and spec.get("podFailurePolicy") is not None:
        return [invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _job_update(spec: Object, old: Object) -> list[Cause]:
    was = old.get("spec") or {}
    found = immutable(spec, was, "spec", *(name for name in _JOB_IMMUTABLE if name in was))
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    if not elastic:  # an indexed job may change both together
        found += immutable(spec, was, "spec", "completions")
    template, before = spec.get("template") or {}, was.get("template") or {}
    if was.get("suspend") and not (old.get("status") or {}).get("startTime"):
        template, before = _without_placement(template), _without_placement(before)
    if template != before:
        found.append(invalid("spec.template", spec.get("template"), "field is immutable"))
    return found


def _without_placement(template: Object) -> Object:
    """The node selection of a suspended job may still change: queueing controllers set it."""
    template = copy.deepcopy(template)
    for name in ("labels", "annotations"):
        (template.get("metadata") or {}).pop(name, None)
    pod = template.get("spec") or {}
    for name in ("nodeSelector", "tolerations", "schedulingGates"):
        pod.pop(name, None)
    affinity = pod.get("affinity") or {}
    affinity.pop("nodeAffinity", None)
    if not affinity:
        pod.pop("affinity", None)
    return template


# --- on a schedule --------------------------------------------------------------------------------------------------


def validate_cron_job(new: Object, old: Object | None) -> list[Cause]:
    spec, was = new.get("spec") or {}, (old or {}).get("spec") or {}
    found = _schedule(spec, was)
    limits = ("startingDeadlineSeconds", "successfulJobsHistoryLimit", "failedJobsHistoryLimit")
    found += not_negative(spec, "spec", *limits)
    if spec.get("timeZone") is not None and spec["timeZone"] != was.get("timeZone"):
        found += _time_zone(spec["timeZone"])
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    found += _job_spec("spec.jobTemplate.spec", job)
    if job.get("selector") is not None:
        found.append(invalid("spec.jobTemplate.spec.selector", job["selector"], "`selector` will be auto-generated"))
    if job.get("manualSelector"):
        found.append(not_supported("spec.jobTemplate.spec.manualSelector", "true", ["nil", "false"]))
    name = (new.get("metadata") or {}).get("name", "")
    if old is None and len(name) > _LONGEST_CRON_JOB_NAME:
        found.append(invalid("metadata.name", name, f"must be no more than {_LONGEST_CRON_JOB_NAME} characters"))
    return found


def _schedule(spec: Object, was: Object) -> list[Cause]:
    text = spec.get("schedule", "")
    if not text:
        return [required("spec.schedule")]
    if "TZ" in text:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        return [invalid("spec.schedule", text, detail)]
    if text == was.get("schedule"):
        return []
    try:
        timetable(text)
    except BadSchedule as why:
        return [invalid("spec.schedule", text, str(why))]
    return []


def _time_zone(name: str) -> list[Cause]:
    if not name:
        return [invalid("spec.timeZone", name, "timeZone must be nil or non-empty string")]
    if name.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [invalid("spec.timeZone", name, detail)]
    try:
        zone_of(name)
    except UnknownZone as why:
        return [invalid("spec.timeZone", name, str(why))]
    return []
