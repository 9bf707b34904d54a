"""What Kubernetes refuses in a pod, or in the template of one, beyond what its types say.

Not judged: fields that only concern storage or security features this platform does not have; they are stored as given.
"""

from __future__ import annotations

import copy
from functools import cache

from paddlecloud.kube.name_rules import label_value_problems, qualified_name_problems, subdomain_problems
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.types import DEFINITIONS
from paddlecloud.local.apiserver.builtin.validation import fieldref
from paddlecloud.local.apiserver.builtin.validation.container import (
    container_rules,
    relative_path,
    resources,
    restart_rules,
)
from paddlecloud.local.apiserver.builtin.validation.ephemeral import ephemeral_rules
from paddlecloud.local.apiserver.builtin.validation.rules import (
    in_range,
    label_selector,
    labels,
    node_requirement,
    one_of,
    problems,
)
from paddlecloud.local.apiserver.objects.metadata import label_name_problems
from paddlecloud.local.apiserver.schema.causes import Cause, duplicate, forbidden, invalid, required

_MAX_INT32 = 2**31 - 1
MOST_RULES = 256
"""Terms of affinity and constraints on spreading, all together. kube-apiserver has no limit, and no scheduler inside:
here each of them is compared with all pods whenever room becomes free."""
_PROJECTIONS = ("secret", "downwardAPI", "configMap", "serviceAccountToken", "clusterTrustBundle", "podCertificate")
_NAMED_SOURCES = (
    ("hostPath", "path"),
    ("persistentVolumeClaim", "claimName"),
    ("csi", "driver"),
    ("nfs", "server"),
    ("nfs", "path"),
)


def validate_pod(new: Object, old: Object | None) -> list[Cause]:
    found = pod_spec("spec", new.get("spec") or {})
    if old is None and (new.get("spec") or {}).get("ephemeralContainers"):
        found.append(forbidden("spec.ephemeralContainers", "cannot be set on create"))
    if old is not None and not found:
        found = pod_update(new["spec"], old.get("spec") or {})
    return found


def validate_pod_template(new: Object, _: Object | None) -> list[Cause]:
    return pod_template("template", new.get("template") or {})


def pod_template(path: str, template: Object) -> list[Cause]:
    found = labels(f"{path}.metadata.labels", (template.get("metadata") or {}).get("labels") or {})
    if (template.get("spec") or {}).get("ephemeralContainers"):
        found.append(forbidden(f"{path}.spec.ephemeralContainers", "ephemeral containers not allowed in pod template"))
    return found + pod_spec(f"{path}.spec", template.get("spec") or {})


def pod_spec(path: str, spec: Object) -> list[Cause]:
    if not spec.get("containers"):
        return [required(f"{path}.containers")]
    found = _volumes(f"{path}.volumes", spec.get("volumes") or [])
    mounted = {volume.get("name") for volume in spec.get("volumes") or ()}
    taken: set[str] = set()
    for kind in ("containers", "initContainers", "ephemeralContainers"):
        others = set(taken)
        for index, container in enumerate(spec.get(kind) or ()):
            place = f"{path}.{kind}[{index}]"
            if kind == "ephemeralContainers":
                found += ephemeral_rules(place, container, others)
            found += container_rules(place, container, mounted, taken)
            found += restart_rules(place, kind, container)
    found += resources(f"{path}.overhead", {"limits": spec.get("overhead")})  # quotas and the scheduler add it up
    if "activeDeadlineSeconds" in spec:
        field = f"{path}.activeDeadlineSeconds"
        found += in_range(field, spec["activeDeadlineSeconds"], low=1, high=_MAX_INT32)
    found += labels(f"{path}.nodeSelector", spec.get("nodeSelector") or {})
    for name in ("hostname", "subdomain"):
        if spec.get(name):
            found += problems(f"{path}.{name}", spec[name], label_name_problems(spec[name]))
    for name in ("serviceAccountName", "nodeName", "priorityClassName", "runtimeClassName"):
        if spec.get(name):
            found += problems(f"{path}.{name}", spec[name], subdomain_problems(spec[name]))
    if spec.get("dnsPolicy") == "None" and not (spec.get("dnsConfig") or {}).get("nameservers"):
        detail = "must provide at least one DNS nameserver when `dnsPolicy` is None"
        found.append(required(f"{path}.dnsConfig.nameservers", detail))
    found += _host_ports(path, spec)
    found += _tolerations(f"{path}.tolerations", spec.get("tolerations") or [])
    count = _rules_of_placement(spec)
    if count > MOST_RULES:
        why = f"Too many: {count}: must have at most {MOST_RULES} terms, with topologySpreadConstraints"
        return [*found, (f"{path}.affinity", "FieldValueTooMany", why)]
    found += _affinity(f"{path}.affinity", spec.get("affinity") or {})
    for index, constraint in enumerate(spec.get("topologySpreadConstraints") or ()):
        place = f"{path}.topologySpreadConstraints[{index}]"
        if constraint.get("maxSkew", 1) <= 0:
            found.append(invalid(f"{place}.maxSkew", constraint["maxSkew"], "must be greater than zero"))
        found += label_selector(f"{place}.labelSelector", constraint.get("labelSelector") or {})
    return found


# --- host ports, volumes ---------------------------------------------------------------------------------------------


def _host_ports(path: str, spec: Object) -> list[Cause]:
    """A template may leave the port of the host out: its pods get it (validateHostNetwork of kubernetes)."""
    if not spec.get("hostNetwork"):
        return []
    found = []
    for index, container in enumerate(spec.get("containers") or ()):
        for at, entry in enumerate(container.get("ports") or ()):
            port = entry.get("hostPort", 0)
            if port != entry.get("containerPort") and (port or path == "spec"):
                detail = "must match `containerPort` when `hostNetwork` is true"
                found.append(invalid(f"{path}.containers[{index}].ports[{at}].hostPort", port, detail))
    return found


@cache
def _volume_sources() -> tuple[str, ...]:
    return tuple(name for name in DEFINITIONS["io.k8s.api.core.v1.Volume"]["properties"] if name != "name")


def _volumes(path: str, volumes: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    names: set[str] = set()
    for index, volume in enumerate(volumes):
        place, name = f"{path}[{index}]", volume.get("name", "")
        if not name:
            found.append(required(f"{place}.name"))
        elif name in names:
            found.append(duplicate(f"{place}.name", name))
        elif problem := label_name_problems(name):
            found += problems(f"{place}.name", name, problem)
        names.add(name)
        sources = one_of(volume, _volume_sources())
        if not sources:
            found.append(required(place, "must specify a volume type"))
        found += [forbidden(f"{place}.{kind}", "may not specify more than 1 volume type") for kind in sources[1:]]
        if sources:
            found += _volume_source(place, sources[0], volume[sources[0]])
    return found


def _volume_source(path: str, kind: str, source: Object) -> list[Cause]:
    found = [required(f"{path}.{of}.{field}") for of, field in _NAMED_SOURCES if of == kind and not source.get(field)]
    if kind == "configMap" and not source.get("name"):
        found.append(required(f"{path}.configMap.name"))
    if kind == "secret" and not source.get("secretName"):
        found.append(required(f"{path}.secret.secretName"))
    if kind == "hostPath" and ".." in source.get("path", "").split("/"):
        found.append(invalid(f"{path}.hostPath.path", source["path"], "must not contain '..'"))
    found += _modes(f"{path}.{kind}", source)
    if kind == "downwardAPI":
        found += fieldref.files(f"{path}.{kind}", source.get("items") or [])
    if kind == "projected":
        for index, part in enumerate(source.get("sources") or ()):
            place = f"{path}.projected.sources[{index}]"
            chosen = one_of(part, _PROJECTIONS)
            found += [forbidden(f"{place}.{of}", "may not specify more than 1 volume type") for of in chosen[1:]]
            if chosen:
                found += _modes(f"{place}.{chosen[0]}", part[chosen[0]])
            if chosen == ["downwardAPI"]:
                found += fieldref.files(f"{place}.downwardAPI", part["downwardAPI"].get("items") or [])
    return found


def _modes(path: str, source: Object) -> list[Cause]:
    """File modes of projected files, and where each file goes."""
    detail = "must be a number between 0 and 0777 (octal), both inclusive"
    found: list[Cause] = []
    if not 0 <= source.get("defaultMode", 0) <= 0o777:
        found.append(invalid(f"{path}.defaultMode", source["defaultMode"], detail))
    for index, item in enumerate(source.get("items") or ()):
        place = f"{path}.items[{index}]"
        if not item.get("path"):
            found.append(required(f"{place}.path"))
        else:
            found += relative_path(f"{place}.path", item["path"])
        if not 0 <= item.get("mode", 0) <= 0o777:
            found.append(invalid(f"{place}.mode", item["mode"], detail))
    return found


# --- placement ------------------------------------------------------------------------------------------------------


def _tolerations(path: str, tolerations: list[Object]) -> list[Cause]:
    found: list[Cause] = []
    for index, toleration in enumerate(tolerations):
        place, key = f"{path}[{index}]", toleration.get("key")
        exists = toleration.get("operator") == "Exists"
        if key:
            found += problems(f"{place}.key", key, qualified_name_problems(key))
        elif not exists:
            detail = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            found.append(invalid(f"{place}.operator", toleration.get("operator", ""), detail))
        if exists and toleration.get("value"):
            found.append(invalid(f"{place}.operator", toleration, "value must be empty when `operator` is 'Exists'"))
        elif toleration.get("value"):
            found += problems(f"{place}.operator", toleration["value"], label_value_problems(toleration["value"]))
        if toleration.get("tolerationSeconds") is not None and toleration.get("effect") != "NoExecute":
            detail = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            found.append(invalid(f"{place}.effect", toleration.get("effect", ""), detail))
    return found


def _rules_of_placement(spec: Object) -> int:
    affinity = spec.get("affinity") or {}
    kinds = [affinity.get(kind) or {} for kind in ("nodeAffinity", "podAffinity", "podAntiAffinity")]
    hard = [kind.get("requiredDuringSchedulingIgnoredDuringExecution") or () for kind in kinds]
    soft = [kind.get("preferredDuringSchedulingIgnoredDuringExecution") or () for kind in kinds]
    terms = [rules.get("nodeSelectorTerms") or () if isinstance(rules, dict) else rules for rules in hard]
    return sum(map(len, (*terms, *soft, spec.get("topologySpreadConstraints") or ())))


def _affinity(path: str, affinity: Object) -> list[Cause]:
    found: list[Cause] = []
    node = affinity.get("nodeAffinity") or {}
    hard = node.get("requiredDuringSchedulingIgnoredDuringExecution")
    if hard is not None:
        place = f"{path}.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms"
        if not hard.get("nodeSelectorTerms"):
            found.append(required(place, "must have at least one node selector term"))
        for index, term in enumerate(hard.get("nodeSelectorTerms") or ()):
            found += _node_term(f"{place}[{index}]", term)
    place = f"{path}.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for index, entry in enumerate(node.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
        found += _weight(f"{place}[{index}]", entry)
        found += _node_term(f"{place}[{index}].preference", entry.get("preference") or {})
    for kind in ("podAffinity", "podAntiAffinity"):
        rules = affinity.get(kind) or {}
        for index, term in enumerate(rules.get("requiredDuringSchedulingIgnoredDuringExecution") or ()):
            found += _pod_term(f"{path}.{kind}.requiredDuringSchedulingIgnoredDuringExecution[{index}]", term)
        for index, entry in enumerate(rules.get("preferredDuringSchedulingIgnoredDuringExecution") or ()):
            place = f"{path}.{kind}.preferredDuringSchedulingIgnoredDuringExecution[{index}]"
            found += _weight(place, entry)
            found += _pod_term(f"{place}.podAffinityTerm", entry.get("podAffinityTerm") or {})
    return found


def _weight(path: str, entry: Object) -> list[Cause]:
    weight = entry.get("weight", 0)
    return [] if 1 <= weight <= 100 else [invalid(f"{path}.weight", weight, "must be in the range 1-100")]


def _node_term(path: str, term: Object) -> list[Cause]:
    found: list[Cause] = []
    for index, expression in enumerate(term.get("matchExpressions") or ()):
        found += node_requirement(f"{path}.matchExpressions[{index}]", expression)
    for index, expression in enumerate(term.get("matchFields") or ()):
        if expression.get("key") != "metadata.name":
            detail = "not a valid field selector key"
            found.append(invalid(f"{path}.matchFields[{index}].key", expression.get("key", ""), detail))
    return found


def _pod_term(path: str, term: Object) -> list[Cause]:
    found = label_selector(f"{path}.labelSelector", term.get("labelSelector") or {})
    found += label_selector(f"{path}.namespaceSelector", term.get("namespaceSelector") or {})
    if not term.get("topologyKey"):
        found.append(required(f"{path}.topologyKey", "can not be empty"))
    return found


# --- updates --------------------------------------------------------------------------------------------------------

_UPDATABLE = (
    "`spec.containers[*].image`,`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` "
    "(only additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to be set to 1 if it was "
    "previously negative)"
)


def pod_update(new: Object, old: Object) -> list[Cause]:
    """A pod is what it was made: only images, a shorter deadline, more tolerations and fewer gates are changes.

    The node may be set once as well, because binding is an update here.
    """
    if new == old:
        return []
    found = [
        forbidden(f"spec.{kind}", "pod updates may not add or remove containers")
        for kind in ("containers", "initContainers")
        if len(new.get(kind) or ()) != len(old.get(kind) or ())
    ]
    if found:
        return found
    deadline, before = new.get("activeDeadlineSeconds"), old.get("activeDeadlineSeconds")
    if before is not None and deadline is None:
        detail = "must not update from a positive integer to nil value"
        found.append(invalid("spec.activeDeadlineSeconds", None, detail))
    elif before is not None and deadline > before:
        detail = "must be less than or equal to previous value"
        found.append(invalid("spec.activeDeadlineSeconds", deadline, detail))
    kept = {_lasting(toleration) for toleration in new.get("tolerations") or ()}
    if any(_lasting(toleration) not in kept for toleration in old.get("tolerations") or ()):
        detail = "existing toleration can not be modified except its tolerationSeconds"
        found.append(forbidden("spec.tolerations", detail))
    gates = old.get("schedulingGates") or []
    if any(gate not in gates for gate in new.get("schedulingGates") or ()):
        found.append(forbidden("spec.schedulingGates", "only deletion is allowed, but found new scheduling gates"))
    fixed, was = _fixed_part(new, old), _fixed_part(old, old)
    changed = sorted(key for key in {*fixed, *was} if fixed.get(key) != was.get(key))
    if changed:
        detail = f"pod updates may not change fields other than {_UPDATABLE}; changed: {', '.join(changed)}"
        found.append(forbidden("spec", detail))
    return found


def _lasting(toleration: Object) -> frozenset[tuple[str, str]]:
    return frozenset((key, value) for key, value in toleration.items() if key != "tolerationSeconds")


def _fixed_part(spec: Object, old: Object) -> Object:
    fixed = copy.copy(spec)
    for name in ("activeDeadlineSeconds", "tolerations", "schedulingGates", "ephemeralContainers"):
        fixed.pop(name, None)
    for kind in ("containers", "initContainers"):
        if kind in fixed:
            fixed[kind] = [{**container, "image": ""} for container in fixed[kind]]
    if not old.get("nodeName"):
        fixed.pop("nodeName", None)
    if (old.get("terminationGracePeriodSeconds") or 0) < 0:
        fixed.pop("terminationGracePeriodSeconds", None)
    return fixed
