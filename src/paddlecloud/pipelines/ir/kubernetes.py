"""What kfp-kubernetes asks for, as fields of an Argo template. Pure.

Names of secrets, config maps and claims may come from parameters or from other tasks: then the template has an input
for each (`slots`), which the task fills. JSON that comes from a parameter becomes Argo's `podSpecPatch`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

import msgspec

from paddlecloud.pipelines.ir import claims
from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.pipeline_spec import InputParameter, ValueOrParameter
from paddlecloud.pipelines.ir.platform_spec import ExecutorConfig, PvcMount, Requirement
from paddlecloud.pipelines.ir.sources import literal_text
from paddlecloud.pipelines.ir.values import json_of

_SHARED_MEMORY = "/dev/shm"  # noqa: S108 - inside of a container


def slots(config: ExecutorConfig) -> dict[str, InputParameter]:
    """Inputs that a template has for its platform: their names, and where their values come from."""
    return {slot: given for slot, given in _sources(config) if not _is_constant(given)}


def pull_secrets(config: ExecutorConfig) -> list[str]:
    """Those whose names are known. Argo has them for all pods of a workflow, not for one template."""
    named = dict(_sources(config))
    return [_text(slot, named) for slot in named if slot.startswith("k8s-pull-") and _is_constant(named[slot])]


def apply(config: ExecutorConfig, template: dict[str, Any], path: str) -> None:
    """Adds to a template with a container."""
    container = template["container"]
    named = dict(_sources(config))
    volumes, mounts = _volumes(config, named)
    _extend(template, "volumes", volumes)
    _extend(container, "volumeMounts", mounts)
    _extend(container, "env", list(_env(config, named)))
    if config.image_pull_policy:
        container["imagePullPolicy"] = config.image_pull_policy
    if config.node_selector.labels:
        template["nodeSelector"] = dict(config.node_selector.labels)
    if tolerations := list(_tolerations(config)):
        template["tolerations"] = tolerations
    if affinity := _affinity(config):
        template["affinity"] = affinity
    if config.pod_metadata.labels or config.pod_metadata.annotations:
        template["metadata"] = {
            key: dict(value)
            for key, value in (("labels", config.pod_metadata.labels), ("annotations", config.pod_metadata.annotations))
            if value
        }
    if seconds := _whole(config.active_deadline_seconds, f"{path}.activeDeadlineSeconds"):
        template["activeDeadlineSeconds"] = seconds
    if config.security_context is not None:
        container["securityContext"] = {
            key: value if isinstance(value, bool) else _whole(value, f"{path}.securityContext.{key}")
            for key, value in msgspec.to_builtins(config.security_context).items()
            if value is not None
        }
    if patch := _patch(config, named):
        template["podSpecPatch"] = patch
    inputs: list[dict[str, str]] = [{"name": slot} for slot in slots(config)]
    inputs += [{"name": claims.uid_input(slot), "value": ""} for slot in claims_mounted(config)]
    if inputs:
        template.setdefault("inputs", {}).setdefault("parameters", []).extend(inputs)


def claims_mounted(config: ExecutorConfig) -> dict[str, InputParameter]:
    """The slots of claims. Each has an input besides for the claim's uid: it changes nothing but the key under which
    the step is cached, and is empty where no uid is known."""
    found = ((f"k8s-claim-{index}", _claim(claim)) for index, claim in enumerate(config.pvc_mount))
    return {slot: source for slot, source in found if not _is_constant(source)}


def _sources(config: ExecutorConfig) -> Iterator[tuple[str, InputParameter]]:
    for index, claim in enumerate(config.pvc_mount):
        yield f"k8s-claim-{index}", _claim(claim)
    for index, secret in enumerate(config.secret_as_env):
        yield f"k8s-secret-env-{index}", secret.secret_name_parameter or _constant(secret.secret_name)
    for index, mounted in enumerate(config.secret_as_volume):
        yield f"k8s-secret-volume-{index}", mounted.secret_name_parameter or _constant(mounted.secret_name)
    for index, words in enumerate(config.config_map_as_env):
        yield f"k8s-config-env-{index}", words.config_map_name_parameter or _constant(words.config_map_name)
    for index, files in enumerate(config.config_map_as_volume):
        yield f"k8s-config-volume-{index}", files.config_map_name_parameter or _constant(files.config_map_name)
    for index, pull in enumerate(config.image_pull_secret):
        yield f"k8s-pull-{index}", pull.secret_name_parameter or _constant(pull.secret_name)
    for index, toleration in enumerate(config.tolerations):
        if toleration.toleration_json is not None:
            yield f"k8s-toleration-{index}", toleration.toleration_json
    if config.node_selector.node_selector_json is not None:
        yield "k8s-node-selector", config.node_selector.node_selector_json
    for index, term in enumerate(config.node_affinity):
        if term.node_affinity_json is not None:
            yield f"k8s-node-affinity-{index}", term.node_affinity_json


def _claim(mount: PvcMount) -> InputParameter:
    if mount.pvc_name_parameter is not None:
        return mount.pvc_name_parameter
    if mount.task_output_parameter is not None:
        return InputParameter(task_output_parameter=mount.task_output_parameter)
    if mount.component_input_parameter:
        return InputParameter(component_input_parameter=mount.component_input_parameter)
    return _constant(mount.constant)


def _constant(text: str) -> InputParameter:
    return InputParameter(runtime_value=ValueOrParameter(constant=text))


def _is_constant(given: InputParameter) -> bool:
    return given.runtime_value is not None and "{{$" not in str(given.runtime_value.constant)


def _text(slot: str, named: dict[str, InputParameter]) -> str:
    given = named[slot]
    if given.runtime_value is not None and _is_constant(given):
        value = given.runtime_value.constant
        return literal_text(value) if isinstance(value, str) else json_of(value)
    return f"{{{{inputs.parameters.{slot}}}}}"


def _volumes(config: ExecutorConfig, named: dict[str, InputParameter]) -> tuple[list[Any], list[Any]]:
    volumes: list[dict[str, Any]] = []
    mounts: list[dict[str, Any]] = []

    def mount(name: str, path: str, source: dict[str, Any], sub_path: str = "") -> None:
        volumes.append({"name": name, **source})
        mounts.append({"name": name, "mountPath": path, **({"subPath": sub_path} if sub_path else {})})

    for index, claim in enumerate(config.pvc_mount):
        slot = f"k8s-claim-{index}"
        mount(slot, claim.mount_path, {"persistentVolumeClaim": {"claimName": _text(slot, named)}}, claim.sub_path)
    for index, secret in enumerate(config.secret_as_volume):
        slot = f"k8s-secret-volume-{index}"
        mount(slot, secret.mount_path, {"secret": {"secretName": _text(slot, named), "optional": secret.optional}})
    for index, words in enumerate(config.config_map_as_volume):
        slot = f"k8s-config-volume-{index}"
        mount(slot, words.mount_path, {"configMap": {"name": _text(slot, named), "optional": words.optional}})
    for folder in config.empty_dir_mounts:
        given = {key: value for key, value in (("medium", folder.medium), ("sizeLimit", folder.size_limit)) if value}
        mount(folder.volume_name, folder.mount_path, {"emptyDir": given})
    if shared := config.enabled_shared_memory:
        limit = {"sizeLimit": shared.size} if shared.size else {}
        mount(shared.volume_name or "shm", _SHARED_MEMORY, {"emptyDir": {"medium": "Memory", **limit}})
    for volume in config.generic_ephemeral_volume:
        spec: dict[str, Any] = {
            "accessModes": list(volume.access_modes),
            "resources": {"requests": {"storage": volume.size}},
            **({} if volume.default_storage_class else {"storageClassName": volume.storage_class_name}),
        }
        meta = msgspec.to_builtins(volume.metadata)
        claim_template = {"spec": spec, **({"metadata": meta} if any(meta.values()) else {})}
        mount(volume.volume_name, volume.mount_path, {"ephemeral": {"volumeClaimTemplate": claim_template}})
    return volumes, mounts


def _env(config: ExecutorConfig, named: dict[str, InputParameter]) -> Iterator[dict[str, Any]]:
    for index, secret in enumerate(config.secret_as_env):
        name = _text(f"k8s-secret-env-{index}", named)
        for pair in secret.key_to_env:
            source = {"name": name, "key": pair.secret_key, "optional": secret.optional}
            yield {"name": pair.env_var, "valueFrom": {"secretKeyRef": source}}
    for index, words in enumerate(config.config_map_as_env):
        name = _text(f"k8s-config-env-{index}", named)
        for one in words.key_to_env:
            source = {"name": name, "key": one.config_map_key, "optional": words.optional}
            yield {"name": one.env_var, "valueFrom": {"configMapKeyRef": source}}
    for field in config.field_path_as_env:
        yield {"name": field.name, "valueFrom": {"fieldRef": {"fieldPath": field.field_path}}}


def _tolerations(config: ExecutorConfig) -> Iterator[dict[str, Any]]:
    for each in config.tolerations:
        if each.toleration_json is not None:
            continue
        made: dict[str, Any] = {
            key: value
            for key, value in (
                ("key", each.key),
                ("operator", each.operator),
                ("value", each.value),
                ("effect", each.effect),
            )
            if value
        }
        if each.toleration_seconds is not None:
            made["tolerationSeconds"] = int(each.toleration_seconds)
        yield made


def _affinity(config: ExecutorConfig) -> dict[str, Any]:
    """As the driver of Kubeflow Pipelines reads them: terms with a weight are preferred, others are alternatives."""
    made: dict[str, Any] = {}
    for term in config.node_affinity:
        if term.node_affinity_json is not None:
            continue
        wanted = {
            key: [_requirement(one) for one in each]
            for key, each in (("matchExpressions", term.match_expressions), ("matchFields", term.match_fields))
            if each
        }
        kind = made.setdefault("nodeAffinity", {})
        if term.weight is not None:
            kind.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(
                {"weight": term.weight, "preference": wanted}
            )
        else:
            required = kind.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
            required["nodeSelectorTerms"].append(wanted)
    for pods in config.pod_affinity:
        selected: dict[str, Any] = {"topologyKey": pods.topology_key}
        if pods.match_pod_expressions or pods.match_pod_labels:
            selected["labelSelector"] = _selector(pods.match_pod_expressions, pods.match_pod_labels)
        if pods.namespaces:
            selected["namespaces"] = list(pods.namespaces)
        if pods.match_namespace_expressions or pods.match_namespace_labels:
            selected["namespaceSelector"] = _selector(pods.match_namespace_expressions, pods.match_namespace_labels)
        kind = made.setdefault("podAntiAffinity" if pods.anti else "podAffinity", {})
        if pods.weight is not None:
            weighted = {"weight": pods.weight, "podAffinityTerm": selected}
            kind.setdefault("preferredDuringSchedulingIgnoredDuringExecution", []).append(weighted)
        else:
            kind.setdefault("requiredDuringSchedulingIgnoredDuringExecution", []).append(selected)
    return made


def _selector(expressions: Sequence[Requirement], labels: dict[str, str]) -> dict[str, Any]:
    made: dict[str, Any] = {}
    if labels:
        made["matchLabels"] = dict(labels)
    if expressions:
        made["matchExpressions"] = [_requirement(one) for one in expressions]
    return made


def _requirement(one: Requirement) -> dict[str, Any]:
    return {"key": one.key, "operator": one.operator, **({"values": list(one.values)} if one.values else {})}


def _patch(config: ExecutorConfig, named: dict[str, InputParameter]) -> str:
    """JSON text, into which Argo puts values that are JSON themselves."""
    fields: list[str] = []
    pulls = [_text(slot, named) for slot in named if slot.startswith("k8s-pull-") and not _is_constant(named[slot])]
    if pulls:
        fields.append(f'"imagePullSecrets": {json.dumps([{"name": name} for name in pulls])}')
    tolerations = [slot for slot in named if slot.startswith("k8s-toleration-")]
    if tolerations:
        fixed = [json.dumps(each) for each in _tolerations(config)]
        fields.append(f'"tolerations": [{", ".join([*fixed, *(_text(slot, named) for slot in tolerations)])}]')
    if "k8s-node-selector" in named:
        fields.append(f'"nodeSelector": {_text("k8s-node-selector", named)}')
    affinities = [slot for slot in named if slot.startswith("k8s-node-affinity-")]
    if affinities:
        fields.append(f'"affinity": {{"nodeAffinity": {_text(affinities[0], named)} }}')
    return f"{{{', '.join(fields)}}}" if fields else ""


def _whole(value: Any, path: str) -> int:
    """64-bit numbers come as texts in the JSON of protobuf."""
    try:
        return int(value or 0)
    except (TypeError, ValueError):
        raise InvalidPipeline(path, f"{str(value)[:60]!r} is no whole number") from None


def _extend(target: dict[str, Any], field: str, more: list[Any]) -> None:
    if more:
        target[field] = [*(target.get(field) or ()), *more]
