"""The Workflow of a run: a package, the values of its parameters, and what the run is called. Pure.

What KFP's API server does to a manifest before it creates the workflow: parameters are checked
and set, `{{workflow.uid}}` becomes the run's id, labels and annotations are added.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import ir, names
from paddlecloud.pipelines.runs.package import Package, PackageError

MAX_ANNOTATION = 64 * 1024
"""Of what is kept beside a run for people to read; Kubernetes takes 256 KiB for all annotations of an object."""
_LONGEST_PREFIX = 45
"""With its suffix within the 52 characters that Argo allows for names of CronWorkflows."""
_UID = "{{workflow.uid}}"
_SHOWN, _MOST_SHOWN = 100, 50
"""Characters of a parameter's name, and parameters, in a message."""


class RunRequest(NamedTuple):
    name: str
    namespace: str
    run_id: str = ""
    """Empty for workflows of which more than one is made: each one's uid is its id then."""
    parameters: Mapping[str, Any] = {}
    experiment_id: str = ""
    pipeline_id: str = ""
    version_id: str = ""
    recurring_id: str = ""
    description: str = ""
    service_account: str = ""
    cache: bool = True
    """Whether steps that allow it are answered from earlier runs; without it none is, and nothing is kept for later."""


def workflow_of(package: Package, request: RunRequest, *, suffix: str) -> Object:
    """`suffix` makes the workflow's name unique. Raises `PackageError` for what the package does not accept."""
    check_parameters(package, request.parameters)
    written = package.spec.get("metadata") or {} if package.format == "workflow" else {}
    name = dns_prefix(str(written.get("generateName") or written.get("name") or package.name)) + suffix
    made = _translated(package, request, name) if package.format == "ir" else _substituted(package, request)
    meta = made.get("metadata") or {}
    labels, annotations = marks(request)
    return {
        "apiVersion": names.WORKFLOWS.api_version,
        "kind": names.WORKFLOWS.kind,
        "metadata": {
            "name": name,
            "namespace": request.namespace,
            "labels": {**(meta.get("labels") or {}), **labels},
            "annotations": {**(meta.get("annotations") or {}), **annotations},
        },
        "spec": _spec(made, request),
    }


def marks(request: RunRequest) -> tuple[dict[str, str], dict[str, str]]:
    """Labels and annotations by which a run is found and shown."""
    labels = {
        names.RUN_ID: request.run_id,
        names.EXPERIMENT_ID: request.experiment_id,
        names.PIPELINE_ID: request.pipeline_id,
        names.VERSION_ID: request.version_id,
        names.RECURRING_ID: request.recurring_id,
    }
    annotations = {names.RUN_NAME: request.name, names.DESCRIPTION: request.description}
    given = msgspec.json.encode(dict(request.parameters)).decode()
    if request.parameters and len(given) <= MAX_ANNOTATION:
        annotations[names.PARAMETERS] = given
    return {key: value for key, value in labels.items() if value}, {k: v for k, v in annotations.items() if v}


def check_parameters(package: Package, given: Mapping[str, Any]) -> None:
    check_names({parameter.name for parameter in package.parameters}, given)


def check_names(known: Collection[str], given: Iterable[str]) -> None:
    for name in given:
        if name not in known:
            meant = question(name, known)
            listed = ", ".join(each[:_SHOWN] for each in sorted(known)[:_MOST_SHOWN]) or "none"
            more = f" and {len(known) - _MOST_SHOWN:,} more" if len(known) > _MOST_SHOWN else ""
            shown = f"the pipeline has no parameter {name[:_SHOWN]!r} (it has: {listed}{more})"
            raise PackageError(f"{shown}; {meant}" if meant else shown)


def dns_prefix(text: str) -> str:
    """The beginning of an object's name, with the `-` that its suffix follows."""
    plain = re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-") or "run"
    return f"{plain[:_LONGEST_PREFIX].strip('-')}-"


def text_of(value: Any) -> str:
    """A parameter as Argo takes it: texts as they are, everything else as JSON."""
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def _substituted(package: Package, request: RunRequest) -> Object:
    if not isinstance(package.spec.get("spec"), dict):
        raise PackageError("the workflow has no spec")
    text = msgspec.json.encode(package.spec).decode()
    if request.run_id:
        text = text.replace(_UID, request.run_id)
    made: Object = msgspec.json.decode(text)
    spec = made["spec"]
    for parameter in (spec.get("arguments") or {}).get("parameters") or ():
        if parameter["name"] in request.parameters:
            parameter["value"] = text_of(request.parameters[parameter["name"]])
            parameter.pop("valueFrom", None)
    return made


def _translated(package: Package, request: RunRequest, name: str) -> Object:
    documents = [package.spec, package.platforms] if package.platforms else [package.spec]
    try:
        return ir.workflow_of(
            ir.read_documents(documents), request.parameters, name, ir.PipelineOptions(cache=request.cache)
        )
    except ir.InvalidPipeline as error:
        raise PackageError(str(error)) from error


def _spec(made: Object, request: RunRequest) -> Object:
    spec = dict(made["spec"])
    if request.service_account:
        spec["serviceAccountName"] = request.service_account
    return spec if request.cache else without_cache(spec)


def without_cache(spec: Object) -> Object:
    """Argo's `memoize` is a field of templates, and of the defaults of all templates."""
    made = dict(spec)
    if isinstance(spec.get("templates"), list):
        made["templates"] = [_without_memoize(each) for each in spec["templates"]]
    if "templateDefaults" in spec:
        made["templateDefaults"] = _without_memoize(spec["templateDefaults"])
    return made


def _without_memoize(template: Any) -> Any:
    """What is no template is left to Argo, which refuses it by name."""
    return {k: v for k, v in template.items() if k != "memoize"} if isinstance(template, dict) else template
