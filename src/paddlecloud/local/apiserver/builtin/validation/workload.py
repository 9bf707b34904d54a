"""What Kubernetes refuses in objects that make pods: deployments, sets, budgets and revisions. Jobs: `job.py`."""

from __future__ import annotations

import re
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.kube.selectors import LabelSelector
from paddlecloud.local.apiserver.builtin.validation.core import validate_claim
from paddlecloud.local.apiserver.builtin.validation.pod import pod_template
from paddlecloud.local.apiserver.builtin.validation.rules import (
    immutable,
    label_selector,
    not_negative,
    one_of,
    problems,
)
from paddlecloud.local.apiserver.objects.metadata import label_name_problems
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, invalid, not_supported, required

_PERCENT = re.compile(r"[0-9]{1,9}%")
"""Kubernetes' expression has no limit; the controllers that read longer numbers there fail for good."""
_STATEFUL_SET_MUTABLE = (
    "replicas",
    "ordinals",
    "template",
    "updateStrategy",
    "revisionHistoryLimit",
    "persistentVolumeClaimRetentionPolicy",
    "minReadySeconds",
)


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


def validate_replication_controller(new: Object, old: Object | None) -> list[Cause]:
    """Unlike in newer kinds the selector is a map of labels and may change."""
    spec = new.get("spec") or {}
    found = not_negative(spec, "spec", "replicas", "minReadySeconds")
    if not spec.get("selector"):
        found.append(required("spec.selector"))
    if spec.get("template") is None:
        return [*found, required("spec.template")]
    if spec.get("selector"):
        found += _matches_template(LabelSelector.of_workload(new), spec["template"])
    return found + pod_template("spec.template", spec["template"]) + _always_restarted(spec, "ReplicationController")


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


def validate_daemon_set(new: Object, old: Object | None) -> list[Cause]:
    spec = new.get("spec") or {}
    found = not_negative(spec, "spec", "minReadySeconds", "revisionHistoryLimit")
    found += _selected_template(spec, "daemonset") + _always_restarted(spec, "DaemonSet")
    strategy = spec.get("updateStrategy") or {}
    if strategy.get("type") == "RollingUpdate":
        found += _rolling_daemons("spec.updateStrategy.rollingUpdate", strategy.get("rollingUpdate") or {})
    if old is not None:
        found += immutable(spec, old.get("spec") or {}, "spec", "selector")
    return found


def _rolling_daemons(path: str, rolling: Object) -> list[Cause]:
    """A node either lacks its pod for a while or has two of them: one of the numbers is zero, and only one."""
    unavailable, surge = rolling.get("maxUnavailable", 0), rolling.get("maxSurge", 0)
    found = _int_or_percent(f"{path}.maxUnavailable", unavailable) + _int_or_percent(f"{path}.maxSurge", surge)
    if isinstance(surge, str) and not found and int(surge[:-1]) > 100:
        found.append(invalid(f"{path}.maxSurge", surge, "must not be greater than 100%"))
    if not _is_zero(unavailable) and not _is_zero(surge):
        found.append(invalid(f"{path}.maxSurge", surge, "may not be set when maxUnavailable is non-zero"))
    elif _is_zero(unavailable) and _is_zero(surge):
        found.append(required(f"{path}.maxUnavailable", "cannot be 0 when maxSurge is 0"))
    return found


def _selected_template(spec: Object, kind: str, *, claims: bool = False) -> list[Cause]:
    """The selector says which pods are ours, so it must find the ones the template makes."""
    selector, template = spec.get("selector") or {}, spec.get("template") or {}
    found = label_selector("spec.selector", selector)
    if not selector.get("matchLabels") and not selector.get("matchExpressions"):
        found.append(invalid("spec.selector", selector, f"empty selector is invalid for {kind}"))
    elif not found:
        found += _matches_template(LabelSelector.from_dict(selector), template)
    if claims:  # pods of a set may mount the claims made for them as if they were volumes
        names = [(claim.get("metadata") or {}).get("name") for claim in spec.get("volumeClaimTemplates") or ()]
        template = _with_volumes(template, [name for name in names if name])
    return found + pod_template("spec.template", template)


def _matches_template(selector: LabelSelector, template: Object) -> list[Cause]:
    labels = (template.get("metadata") or {}).get("labels") or {}
    if selector.matches(labels):
        return []
    return [invalid("spec.template.metadata.labels", labels, "`selector` does not match template `labels`")]


def _with_volumes(template: Object, names: list[str]) -> Object:
    pod = dict(template.get("spec") or {})
    kept = [volume for volume in pod.get("volumes") or () if volume.get("name") not in names]
    pod["volumes"] = kept + [{"name": name, "persistentVolumeClaim": {"claimName": name}} for name in names]
    return {**template, "spec": pod}


def _always_restarted(spec: Object, kind: str = "ReplicaSet") -> list[Cause]:
    pod = (spec.get("template") or {}).get("spec") or {}
    found = []
    if pod.get("restartPolicy") != "Always":
        found.append(not_supported("spec.template.spec.restartPolicy", pod.get("restartPolicy", ""), ["Always"]))
    if pod.get("activeDeadlineSeconds") is not None:
        detail = f"activeDeadlineSeconds in {kind} is not Supported"
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
