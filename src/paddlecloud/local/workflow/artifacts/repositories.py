"""Which repository the artifacts of a workflow and of one of its pods go to. Pure.

As Argo (workflow/artifactrepositories, `addArchiveLocation` of workflow/controller/workflowpod.go): a workflow names a
key of a ConfigMap; without one, the ConfigMap `artifact-repositories` of its namespace has a default key; without that
it is the built-in repository. The answer is kept in the status of the workflow and does not change while it runs. A
template's own `archiveLocation` counts before it.

Only ConfigMaps of the workflow's namespace are read, and a repository is an S3 store or the namespace's own built-in
one: a status that a tenant wrote leads to nothing that the spec could not name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.artifacts.locations import NONE, REPOSITORY, UNSERVED, has_location
from paddlecloud.local.workflow.pods.spec_patch import parsed
from paddlecloud.local.workflow.templates import Template, TemplateError
from paddlecloud.local.workflow.variables import substitute, unresolved

CONFIG_MAP = "artifact-repositories"
DEFAULT_KEY = "workflows.argoproj.io/default-artifact-repository"
USUAL_KEY = "{{workflow.name}}/{{pod.name}}"
STATUS = "artifactRepositoryRef"

ConfigMap = Callable[[str], "Object | None"]


class Unresolved(TemplateError):
    """The workflow names a repository that there is not."""


def resolved(spec: Mapping[str, Any], status: Mapping[str, Any], namespace: str, config_map: ConfigMap) -> Object:
    """`status.artifactRepositoryRef`, as it is stored or as it is found now."""
    if isinstance(known := status.get(STATUS), dict) and isinstance(known.get("artifactRepository"), dict):
        return known
    reference = spec.get(STATUS) or {}
    name = str(reference.get("configMap") or CONFIG_MAP)
    found = config_map(name)
    usual = ((found or {}).get("metadata") or {}).get("annotations") or {}
    key = str(reference.get("key") or usual.get(DEFAULT_KEY) or "")
    text = ((found or {}).get("data") or {}).get(key)
    if text is None:
        if not reference:
            return REPOSITORY
        shown = f"{reference.get('configMap') or ''}#{reference.get('key') or ''}"
        raise Unresolved(
            "failed to resolve artifact repository: failed to find any artifact repository for artifact repository "
            f'ref "{shown[:200]}"'
        )
    repository = parsed(text, f"key {key} of ConfigMap {name}") if text.strip() else {}
    return {"namespace": namespace, "configMap": name, "key": key, "artifactRepository": repository}


def with_archive_location(
    template: Template, spec: Mapping[str, Any], reference: Mapping[str, Any], variables: Mapping[str, Any]
) -> Template:
    """The template with the location that it keeps artifacts and logs in, its key without variables."""
    own = template.get("archiveLocation") or {}
    if has_location(own):
        location = dict(own)
    else:
        repository = reference["artifactRepository"]
        location = {**_location(repository), "archiveLogs": _archives_logs(own, spec, repository)}
    made: Object = substitute(location, variables, lenient=True)
    if tag := unresolved(made, ""):
        raise TemplateError(f"failed to resolve {{{{{tag[:200]}}}}} of the archive location")
    return {**template, "archiveLocation": made}


def is_built_in(reference: Mapping[str, Any]) -> bool:
    """Of `status.artifactRepositoryRef`: whether a key alone is one of the built-in repository."""
    place = _location(reference["artifactRepository"]).get("s3")
    return place is not None and not place.get("bucket") and not place.get("endpoint")


def _location(repository: Mapping[str, Any]) -> Object:
    other = next((kind for kind in UNSERVED if repository.get(kind)), None)
    if other is not None:
        return {
            NONE: f"the artifact repository is of the kind {other}: this platform stores artifacts itself, or in S3"
        }
    place = repository.get("s3")
    if not isinstance(place, dict):
        return {NONE: "key unsupported: cannot get key for artifact location, because it is invalid"}
    key = str(place.get("keyFormat") or "/".join(filter(None, (str(place.get("keyPrefix") or ""), USUAL_KEY))))
    bucket = {name: value for name, value in place.items() if name not in ("keyFormat", "keyPrefix")}
    if bucket.get("bucket") == REPOSITORY["artifactRepository"]["s3"]["bucket"] and not bucket.get("endpoint"):
        bucket = {}
    return {"s3": {**bucket, "key": key}}


def _archives_logs(own: Mapping[str, Any], spec: Mapping[str, Any], repository: Mapping[str, Any]) -> bool:
    """A repository that archives logs takes precedence, then the template, then the workflow."""
    if repository.get("archiveLogs"):
        return True
    return bool(own["archiveLogs"] if own.get("archiveLogs") is not None else spec.get("archiveLogs"))
