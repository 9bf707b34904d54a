"""Artifacts in the spec of a workflow: which cannot be carried out, by the name of the field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.artifacts.locations import NEVER, ON_COMPLETION, ON_DELETION, SERVED, UNSERVED
from paddlecloud.local.workflow.validation.problems import (
    Problem,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_FIELDS = frozenset((
    "name", "path", "mode", "recurseMode", "from", "fromExpression", "subPath", "optional", "archive", "globalName",
    "artifactGC", *SERVED,
))  # fmt: skip
_S3 = frozenset((
    "key", "bucket", "endpoint", "region", "insecure", "accessKeySecret", "secretKeySecret", "sessionTokenSecret",
))  # fmt: skip
_HTTP = frozenset(("url", "headers", "auth"))
_GC_STRATEGIES = (NEVER, ON_COMPLETION, ON_DELETION)


def artifact_problems(artifacts: Any, path: str, use: str) -> Iterator[Problem]:
    """`use`: argument, inputs or outputs, `pod inputs` or `pod outputs` for those of a template that has a pod."""
    if artifacts is None:
        return
    if not isinstance(artifacts, list) or not all(isinstance(each, dict) and each.get("name") for each in artifacts):
        yield invalid(path, "must be a list of artifacts with names")
        return
    seen: set[str] = set()
    for index, artifact in enumerate(artifacts):
        here = f"{path}[{index}]"
        if str(artifact["name"]) in seen:
            yield duplicate(f"{here}.name", str(artifact["name"])[:60])
        seen.add(str(artifact["name"]))
        yield from _artifact(artifact, here, use)


def archive_problems(template: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """`archiveLocation` of a template: an S3 store, and whether logs go there."""
    location = template.get("archiveLocation")
    if location is None:
        return
    here = f"{path}.archiveLocation"
    place = location.get("s3") if isinstance(location, dict) else None
    if not isinstance(location, dict) or (place is not None and not isinstance(place, dict)):
        yield invalid(here, "must be a map with s3 or archiveLogs")
        return
    for name, value in location.items():
        if name not in ("s3", "archiveLogs") and value not in (None, {}, []):
            why = "; this platform stores artifacts itself, or in S3"
            yield forbidden(f"{here}.{name}", f"this platform does not serve it{why}")
    if location.get("archiveLogs") not in (None, True, False):
        yield invalid(f"{here}.archiveLogs", "must be true or false")
    yield from _inner(place or {}, _S3, f"{here}.s3")


def repository_problems(spec: Mapping[str, Any]) -> Iterator[Problem]:
    """`artifactRepositoryRef` and `archiveLogs` of a workflow."""
    reference = spec.get("artifactRepositoryRef")
    if reference is not None and not isinstance(reference, dict):
        yield invalid("spec.artifactRepositoryRef", "must be a map with configMap and key")
    if spec.get("archiveLogs") not in (None, True, False):
        yield invalid("spec.archiveLogs", "must be true or false")


def _inner(place: Mapping[str, Any], served: frozenset[str], path: str) -> Iterator[Problem]:
    for name, value in place.items():
        if name not in served and value not in (None, {}, [], "", False):
            yield forbidden(f"{path}.{name}")


def _artifact(artifact: Mapping[str, Any], path: str, use: str) -> Iterator[Problem]:
    for name, value in artifact.items():
        if name in _FIELDS or value in (None, {}, [], "", False):
            continue
        reason = "; this platform stores artifacts itself, or in S3" if name in UNSERVED else ""
        yield forbidden(f"{path}.{name}", f"this platform does not serve it{reason}")
    for name, kind in (("archive", dict), ("artifactGC", dict), ("s3", dict), ("raw", dict), ("http", dict)):
        if artifact.get(name) is not None and not isinstance(artifact[name], kind):
            yield invalid(f"{path}.{name}", "must be a map")
            return
    place = artifact.get("path")
    if use.startswith("pod "):
        if not place:
            yield required(f"{path}.path", "the path in the container")
        elif not isinstance(place, str) or not place.startswith(("/", "{{")):
            yield invalid(f"{path}.path", f"{str(place)[:60]!r}: must be an absolute path")
    for name, fields in (("s3", _S3), ("http", _HTTP)):
        yield from _inner(artifact.get(name) or {}, fields, f"{path}.{name}")
    if use == "pod outputs":
        for name in ("http", "raw"):
            if artifact.get(name):
                yield forbidden(f"{path}.{name}", "outputs are stored in the repository or in S3")
    mode = artifact.get("mode")
    if mode is not None and (type(mode) is not int or not 0 <= mode <= 0o777):
        yield invalid(f"{path}.mode", f"{str(mode)[:60]!r}: must be between 0 and 0777")
    strategy = (artifact.get("artifactGC") or {}).get("strategy")
    if strategy and strategy not in _GC_STRATEGIES:
        allowed = ", ".join(_GC_STRATEGIES)
        yield not_supported(f"{path}.artifactGC.strategy", f"must be one of {allowed}")


def is_missing(artifact: Mapping[str, Any]) -> bool:
    """An input that needs an argument."""
    located = [artifact[each] for each in (*SERVED, *UNSERVED) if artifact.get(each)]
    empty = all(isinstance(each, dict) and each.get("url") == "" for each in located)
    return not artifact.get("optional") and empty
