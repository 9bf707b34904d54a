"""What Kubernetes refuses in objects that make pods: deployments, sets, jobs, budgets and revisions."""

from __future__ import annotations

import copy
import re
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.builtin.validation.core import validate_claim
from paddlecloud.local.apiserver.builtin.validation.pod import pod_template
from paddlecloud.local.apiserver.builtin.validation.rules import (
    immutable,
    in_range,
    label_selector,
    not_negative,
    one_of,
    problems,
)
from paddlecloud.local.apiserver.objects.metadata import label_name_problems
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

_PERCENT = re.compile(r"[0-9]+%")
_JOB_IMMUTABLE = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
)
_STATEFUL_SET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)
_LONGEST_JOB_NAME = 63


def validate_deployment(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = not_negative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit", "progressDeadlineSeconds")
    found += _selected_template(spec, "deployment") + _always_restarted(spec)
    strategy = spec.get("strategy") or {}
    rolling = strategy.get("rollingUpdate")
    if strategy.get("type") == "Recreate" and rolling is not None:
        detail = "may not be specified when strategy `type` is 'Recreate'"
        found.append(forbidden("spec.strategy.rollingUpdate", detail))
    elif rolling is not None:
        found += _rolling_update("spec.strategy.rollingUpdate", rolling)
    if 0 <= spec.get("progressDeadlineSeconds", 600) <= spec.get("minReadySeconds", 0):
        detail = "must be greater than minReadySeconds"
        found.append(invalid("spec.progressDeadlineSeconds", spec["progressDeadlineSeconds"], detail))
    if old is not None:
        found += immutable(spec, old.get("spec") or {}, "spec", "selector")
    return found


def validate_replica_set(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = not_negative(spec, "spec", "replicas", "minReadySeconds")
    found += _selected_template(spec, "deployment") + _always_restarted(spec)
    if old is not None:
        found += immutable(spec, old.get("spec") or {}, "spec", "selector")
    return found


def validate_stateful_set(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = not_negative(spec, "spec", "replicas", "minReadySeconds", "revisionHistoryLimit")
    found += not_negative(spec.get("ordinals") or {}, "spec.ordinals", "start")
    rolling = (spec.get("updateStrategy") or {}).get("rollingUpdate") or {}
    found += not_negative(rolling, "spec.updateStrategy.rollingUpdate", "partition")
    found += _selected_template(spec, "statefulset", claims=True) + _always_restarted(spec)
    for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
        name = (claim.get("metadata") or {}).get("name", "")
        place = f"spec.volumeClaimTemplates[{index}]"
        named = f"{place}.metadata.name"
        found += problems(named, name, label_name_problems(name)) if name else [required(named)]
        found += [(f"{place}.{field}", reason, text) for field, reason, text in validate_claim(claim, None)]
    if old is not None:
        was = old.get("spec") or {}
        fixed = {*spec, *was} - set(_STATEFUL_SET_MUTABLE)
        if any(spec.get(name) != was.get(name) for name in fixed):
            *first, last = (f"'{name}'" for name in _STATEFUL_SET_MUTABLE)
            detail = f"updates to statefulset spec for fields other than {', '.join(first)} and {last} are forbidden"
            found.append(forbidden("spec", detail))
    return found


def _selected_template(spec: Object, kind: str, *, claims: bool = False) -> list[Cause]:
    """The selector says which pods are ours, so it must find the ones the template makes."""
    selector, template = spec.get("selector") or {}, spec.get("template") or {}
    found = label_selector("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        found.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    elif not found:
        labels = (template.get("metadata") or {}).get("labels") or {}
        if not LabelSelector.from_dict(selector).matches(labels):
            detail = "`selector` does not match template `labels`"
            found.append(invalid("spec.template.metadata.labels", labels, detail))
    if claims:  # pods of a set may mount the claims made for them as if they were volumes
        names = [(claim.get("metadata") or {}).get("name") for claim in spec.get("volumeClaimTemplates") or ()]
        template = _with_volumes(template, [name for name in names if name])
    return found + pod_template("spec.template", template)


def _with_volumes(template: Object, names: list[str]) -> Object:
    pod = dict(template.get("spec") or {})
    kept = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    pod["volumes"] = kept + [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**template, "spec": pod}


def _always_restarted(spec: Object) -> list[Cause]:
    pod = (spec.get("template") or {}).get("spec") or {}
    found = []
    if pod.get("restartPolicy") != "Always":
        found.append(not_supported("spec.template.spec.restartPolicy", pod.get("restartPolicy", ""), ["Always"]))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = "activeDeadlineSeconds in ReplicaSet is not Supported"
        found.append(forbidden("spec.template.spec.activeDeadlineSeconds", detail))
    return found


def _rolling_update(path: str, rolling: Object) -> list[Cause]:
    found: list[Cause] = []
    for name in ("maxUnavailable", "maxSurge"):
        found += _int_or_percent(f"{path}.{name}", rolling.get(name, 0))
    if _is_zero(rolling.get("maxUnavailable", 0)) and _is_zero(rolling.get("maxSurge", 0)):
        detail = "may not be 0 when `maxSurge` is 0"
        found.append(invalid(f"{path}.maxUnavailable", rolling.get("maxUnavailable", 0), detail))
    return found


def _int_or_percent(field: str, value: Any) -> list[Cause]:
    if isinstance(value, int):
        return [invalid(field, value, "must be greater than or equal to 0")] if value < 0 else []
    if not _PERCENT.fullmatch(value):
        detail = (
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex "
            "used for validation is '[0-9]+%')"
        )
        return [invalid(field, value, detail)]
    if field.endswith("maxUnavailable") and int(value[:-1]) > 100:
        return [invalid(field, value, "must not be greater than 100%")]
    return []


def _is_zero(value: Any) -> bool:
    return value in (0, "0%")


# --- jobs -----------------------------------------------------------------------------------------------------------


def validate_job(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    numbers = ("parallelism", "completions", "backoffLimit", "activeDeadlineSeconds", "ttlSecondsAfterFinished")
    found = not_negative(spec, "spec", *numbers, "backoffLimitPerIndex", "maxFailedIndexes")
    found += pod_template("spec.template", spec.get("template") or {})
    found += _job_restart(spec) + _job_indexes(spec)
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


def _job_restart(spec: Object) -> list[Cause]:
    field = "spec.template.spec.restartPolicy"
    policy = ((spec.get("template") or {}).get("spec") or {}).get("restartPolicy", "Always")
    if policy == "Always":
        return [required(field, 'valid values: "OnFailure", "Never"')]
    if policy != "Never" and spec.get("podFailurePolicy") is not None:
        return [invalid(field, policy, 'only "Never" is supported when podFailurePolicy is specified')]
    return []


def _job_indexes(spec: Object) -> list[Cause]:
    if spec.get("completionMode") == "Indexed":
        if "completions" not in spec:
            return [required("spec.completions", "when completion mode is Indexed")]
        found = in_range("spec.parallelism", spec.get("parallelism", 1), low=0, high=100_000)
        return found if spec["completions"] > 100_000 else []
    if spec.get("backoffLimitPerIndex") is not None:
        return [invalid("spec.backoffLimitPerIndex", spec["backoffLimitPerIndex"], "requires indexed completion mode")]
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


# --- budgets, revisions ---------------------------------------------------------------------------------------------


def validate_disruption_budget(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    chosen = one_of(spec, ("minAvailable", "maxUnavailable"))
    found = [cause for name in chosen for cause in _int_or_percent(f"spec.{name}", spec[name])]
    if len(chosen) == 2:
        found.append(invalid("spec", spec, "minAvailable and maxUnavailable cannot be both set"))
    return found + label_selector("spec.selector", spec.get("selector") or {})


def validate_revision(new: Object, old: Object | None) -> list[Cause]:
    found = not_negative(new, "", "revision")
    return found + (immutable(new, old, "", "data") if old is not None else [])
