"""A new run of the same pipeline, with other values for some of its parameters. Pure.

As Argo's `FormulateResubmitWorkflow` (workflow/util/util.go): the spec of a workflow as it was submitted, under a new
name. Nothing of what the earlier run did is taken over; its steps may be answered from the cache.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.generated_names import ALPHABET, SUFFIX_LENGTH
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import ir, names
from paddlecloud.pipelines.runs import submission
from paddlecloud.pipelines.runs.package import PackageError
from paddlecloud.pipelines.runs.submission import RunRequest

_OF_ARGO = "workflows.argoproj.io/"
"""Labels and annotations that begin with it are written by Argo about one workflow."""
_OF_ONE_RUN = frozenset(
    {names.RUN_ID, names.RECURRING_ID, names.STORAGE_STATE, "kubectl.kubernetes.io/last-applied-configuration"}
)
_LONGEST_LABEL = 63
_UUID_LENGTH = 36


def resubmitted(
    workflow: Object, parameters: Mapping[str, Any], *, run_id: str, suffix: str, name: str = "", cache: bool = True
) -> Object:
    """Raises `PackageError` for what the pipeline does not accept."""
    meta = workflow["metadata"]
    labels, annotations = meta.get("labels") or {}, meta.get("annotations") or {}
    before = _given_before(annotations)
    request = RunRequest(
        name=name or annotations.get(names.RUN_NAME) or meta["name"],
        namespace=meta["namespace"],
        run_id=run_id,
        parameters={**before, **parameters},
        experiment_id=labels.get(names.EXPERIMENT_ID, ""),
        pipeline_id=labels.get(names.PIPELINE_ID, ""),
        version_id=labels.get(names.VERSION_ID, ""),
        description=annotations.get(names.DESCRIPTION, ""),
    )
    spec = _with_id(workflow["spec"], labels.get(names.RUN_ID, ""), run_id, kept=before)
    for field in ("shutdown", "suspend"):
        spec.pop(field, None)
    if spec.get("activeDeadlineSeconds") == 0:
        del spec["activeDeadlineSeconds"]  # as `argo terminate` of old wrote it
    _set_arguments(workflow, spec, parameters)
    new_labels, new_annotations = submission.marks(request)
    if len(meta["name"]) <= _LONGEST_LABEL:
        new_labels[names.RESUBMITTED_FROM] = meta["name"]
    return {
        "apiVersion": names.WORKFLOWS.api_version,
        "kind": names.WORKFLOWS.kind,
        "metadata": {
            "name": submission.dns_prefix(_stem(meta)) + suffix,
            "namespace": meta["namespace"],
            "labels": {**_carried(labels), **new_labels},
            "annotations": {**_carried(annotations), **new_annotations},
        },
        "spec": spec if cache else submission.without_cache(spec),
    }


def _given_before(annotations: Mapping[str, str]) -> dict[str, Any]:
    """The values that users gave to the earlier run, where they are kept."""
    found = _decoded(annotations.get(names.PARAMETERS))
    return found if isinstance(found, dict) else {}


def _with_id(spec: Object, old: str, new: str, *, kept: Mapping[str, Any]) -> Object:
    """The earlier run's id was put in place of `{{workflow.uid}}`: the new one's comes there. A value that a user gave
    may name that run and stays."""
    text = msgspec.json.encode(spec).decode()
    made: Object = msgspec.json.decode(text.replace(old, new) if len(old) == _UUID_LENGTH else text)
    for before, now in zip(_arguments(spec), _arguments(made), strict=True):
        if before.get("name") in kept and "value" in before:
            now["value"] = before["value"]
    return made


def _set_arguments(workflow: Object, spec: Object, parameters: Mapping[str, Any]) -> None:
    """Of a workflow that refers to a template, only arguments that differ from the template's are in its spec."""
    template = (workflow.get("status") or {}).get("storedWorkflowTemplateSpec") or {}
    own = {each["name"]: each for each in _arguments(spec) if "name" in each}
    known = {*own, *(each["name"] for each in _arguments(template) if "name" in each)} - {names.STARTER_PARAMETER}
    annotations = workflow["metadata"].get("annotations") or {}
    inputs = _decoded(annotations.get(names.INPUTS))
    for name in parameters:
        if isinstance(inputs, dict) and name in inputs and name not in known:
            raise PackageError(
                f"the run was made without a value for {name!r}, which the pipeline may leave out; "
                "run the pipeline itself to give one"
            )
    submission.check_names(known, parameters)
    for name, value in parameters.items():
        if name not in own:
            own[name] = {"name": name}
            spec.setdefault("arguments", {}).setdefault("parameters", []).append(own[name])
        own[name].pop("valueFrom", None)
        own[name]["value"] = _text(name, value, inputs)


def _text(name: str, value: Any, inputs: Any) -> str:
    if not isinstance(inputs, dict):
        return submission.text_of(value)
    try:
        return ir.argument_of(name, value, inputs)
    except ir.InvalidPipeline as error:
        raise PackageError(str(error)) from error


def _arguments(spec: Mapping[str, Any]) -> list[Object]:
    found: list[Object] = (spec.get("arguments") or {}).get("parameters") or []
    return found


def _carried(marks: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in marks.items() if not key.startswith(_OF_ARGO) and key not in _OF_ONE_RUN}


def _stem(meta: Object) -> str:
    """The name without the suffix that it got as a run: names do not grow from one resubmission to the next."""
    if meta.get("generateName"):
        return str(meta["generateName"])
    stem, _, end = str(meta["name"]).rpartition("-")
    is_suffix = names.RUN_ID in (meta.get("labels") or {}) and len(end) == SUFFIX_LENGTH and set(end) <= set(ALPHABET)
    return stem if stem and is_suffix else str(meta["name"])


def _decoded(text: str | None) -> Any:
    """None for an annotation that is absent, or that somebody wrote otherwise."""
    try:
        return msgspec.json.decode(text) if text else None
    except (msgspec.DecodeError, RecursionError):
        return None
