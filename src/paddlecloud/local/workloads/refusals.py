"""Fields of workloads that nothing here acts on are refused when they are written: better than being ignored."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo

INSTEAD = {
    "spec.backoffLimitPerIndex": "use backoffLimit, which counts for all indexes together",
    "spec.maxFailedIndexes": "use backoffLimit, which counts for all indexes together",
    "spec.successPolicy": "the job completes when all its completions have succeeded",
    "spec.podFailurePolicy.rules": "use the actions FailJob, Ignore and Count",
    "spec.updateStrategy.rollingUpdate.maxUnavailable": "pods are replaced one at a time",
}

_JOB_TEMPLATE = "spec.jobTemplate.spec"


def refuse_unserved(info: KindInfo, new: Object, old: Object | None, options: WriteOptions) -> None:
    """An admission policy."""
    find = _FINDERS.get((info.resource.group, info.kind))
    if find is None:
        return
    causes = [
        (field, "FieldValueForbidden", f"Forbidden: this platform does not serve it: {_instead(field)}")
        for field in find(new.get("spec") or {})
    ]
    if causes:
        raise errors.invalid(info.kind, str(new["metadata"].get("name", "")), causes, group=info.resource.group)


def _instead(field: str) -> str:
    return INSTEAD[field.replace(f"{_JOB_TEMPLATE}.", "spec.", 1)]


def _in_job(spec: Object) -> Iterable[str]:
    for name in ("backoffLimitPerIndex", "maxFailedIndexes", "successPolicy"):
        if spec.get(name) is not None:
            yield f"spec.{name}"
    rules = (spec.get("podFailurePolicy") or {}).get("rules") or ()
    if any(rule.get("action") == "FailIndex" for rule in rules):
        yield "spec.podFailurePolicy.rules"


def _in_cron_job(spec: Object) -> Iterable[str]:
    job = (spec.get("jobTemplate") or {}).get("spec") or {}
    return (field.replace("spec.", f"{_JOB_TEMPLATE}.", 1) for field in _in_job(job))


def _in_stateful_set(spec: Object) -> Iterable[str]:
    if ((spec.get("updateStrategy") or {}).get("rollingUpdate") or {}).get("maxUnavailable") is not None:
        yield "spec.updateStrategy.rollingUpdate.maxUnavailable"


_FINDERS: dict[tuple[str, str], Callable[[Object], Iterable[str]]] = {
    ("batch", "Job"): _in_job,
    ("batch", "CronJob"): _in_cron_job,
    ("apps", "StatefulSet"): _in_stateful_set,
}
