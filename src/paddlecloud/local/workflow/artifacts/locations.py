"""Where the artifacts of a pod come from and go to, as orders for its executor. Pure.

As Argo: an output without its own location goes to the archive location of its template (`repositories.py`), by
default the built-in repository under `WORKFLOW/POD/NAME.tgz`; one with an `s3.key` alone goes there under that key; one
that names an endpoint and a bucket goes to that bucket.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.executor.keys import key_problem
from paddlecloud.local.workflow.executor.orders import INPUTS, MAIN_VOLUMES
from paddlecloud.local.workflow.nodes import is_ended
from paddlecloud.local.workflow.templates import Template, TemplateError

Artifact = Mapping[str, Any]
Order = dict[str, Any]

REPOSITORY: Object = {
    "default": True,
    "artifactRepository": {"s3": {"bucket": "built-in", "keyFormat": "{{workflow.name}}/{{pod.name}}"}},
}
"""`status.artifactRepositoryRef` of a workflow: clients of Argo read keys as those of an S3 store."""
SERVED = ("s3", "raw", "http")
UNSERVED = ("artifactory", "azure", "gcs", "git", "hdfs", "oss", "plugin")
_SUFFIXES = {"tar": ".tgz", "zip": ".zip", "none": ""}
_S3_SECRETS = {"accessKeySecret": "access", "secretKeySecret": "secret", "sessionTokenSecret": "session"}
_INTERNAL = frozenset(_S3_SECRETS.values())
_INNER = ("s3", "artifactGC")
NONE = "unserved"
"""Of an archive location: why nothing can be kept there."""
LOG = "-logs"
"""`main-logs` is the log of the container `main`."""
NEVER, ON_COMPLETION, ON_DELETION = "Never", "OnWorkflowCompletion", "OnWorkflowDeletion"


def key_of(artifact: Artifact) -> str | None:
    """The key in the built-in repository; None for what lies elsewhere."""
    place = artifact.get("s3") or {}
    return None if place.get("bucket") or place.get("endpoint") or not place.get("key") else str(place["key"])


def has_location(artifact: Artifact) -> bool:
    """Whether it says where it lies, as Argo's `S3Artifact.HasLocation`; else the archive location says so."""
    place = artifact.get("s3") or {}
    return bool(place.get("endpoint") and place.get("bucket") and place.get("key"))


def strategy_of(artifact: Artifact) -> tuple[str, int]:
    """tar, zip or none, and the level of gzip."""
    given = artifact.get("archive") or {}
    for name in ("none", "zip"):
        if given.get(name) is not None:
            return name, 0
    level = (given.get("tar") or {}).get("compressionLevel")
    return "tar", 6 if level is None else max(0, min(9, int(level)))


def output_orders(template: Template, spec: Mapping[str, Any], workflow: str, pod: str) -> list[Order]:
    archive = template.get("archiveLocation") or {"s3": {"key": f"{workflow}/{pod}"}}
    made = []
    for artifact in (template.get("outputs") or {}).get("artifacts") or ():
        strategy, level = strategy_of(artifact)
        order: Order = {"name": artifact["name"], "path": artifact["path"], "archive": strategy, "level": level}
        order |= {key: artifact[key] for key in ("optional", "globalName", "artifactGC") if artifact.get(key)}
        made.append(_placed(order, artifact, archive, f"{artifact['name']}{_SUFFIXES[strategy]}", spec))
    return made


def log_order(template: Template, spec: Mapping[str, Any], container: str) -> Order | None:
    """For the log of a container, where logs are to be kept."""
    archive = template.get("archiveLocation") or {}
    if not archive.get("archiveLogs"):
        return None
    order: Order = {"name": f"{container}{LOG}", "archive": "none", "log": True}
    return _placed(order, {"name": order["name"]}, archive, f"{container}.log", spec)


def _placed(order: Order, artifact: Artifact, archive: Mapping[str, Any], file: str, spec: Mapping[str, Any]) -> Order:
    """The order with a place: `key` in the built-in repository, or `s3`."""
    place = dict(artifact.get("s3") or {})
    if not has_location(artifact):
        if archive.get(NONE):
            raise TemplateError(f"outputs.artifacts.{artifact['name']}: {archive[NONE]}")
        around = archive["s3"]
        place = {**around, "key": str(place.get("key") or posixpath.join(str(around["key"]), file))}
    if problem := key_problem(str(place["key"])):
        raise TemplateError(f"outputs.artifacts.{artifact['name']}: {problem}")
    if place.get("bucket") or place.get("endpoint"):
        return {**order, "s3": place}
    return {**order, "key": str(place["key"]), "gc": gc_strategy(artifact, spec)}


def gc_strategy(artifact: Artifact, spec: Mapping[str, Any]) -> str:
    """Argo keeps artifacts for ever unless it is asked not to; this repository keeps them as long as the workflow."""
    own = (artifact.get("artifactGC") or {}).get("strategy")
    return str(own or (spec.get("artifactGC") or {}).get("strategy") or ON_DELETION)


def stored(order: Mapping[str, Any]) -> dict[str, Any]:
    """An output as the status of its node has it."""
    place = {key: value for key, value in (order.get("s3") or {"key": order["key"]}).items() if key not in _INTERNAL}
    made: dict[str, Any] = {"name": order["name"], "s3": place}
    if order.get("path"):
        made["path"] = order["path"]
    if order["archive"] != "tar":
        made["archive"] = {order["archive"]: {}}
    return {**made, **{key: order[key] for key in ("optional", "globalName", "artifactGC") if key in order}}


def input_orders(template: Template, main: Object) -> list[Order]:
    """Orders for the init container; those that the main container has to mount have a `mount`."""
    made = []
    for number, artifact in enumerate((template.get("inputs") or {}).get("artifacts") or ()):
        location = _location(artifact, template.get("archiveLocation") or {})
        if location is None:
            if artifact.get("optional"):
                continue
            raise TemplateError(f"inputs.artifacts.{artifact['name']} has no location")
        path = posixpath.normpath(str(artifact.get("path") or ""))
        if not path.startswith("/"):
            raise TemplateError(f"inputs.artifacts.{artifact['name']}.path must be an absolute path")
        order: Order = {"name": artifact["name"], "archive": (strategy_of(artifact)[0]), **location}
        if volume := _volume_around(path, main):
            order["target"], order["volume"] = f"{MAIN_VOLUMES}{path}", volume
        else:
            order["target"], order["mount"] = f"{INPUTS}/{number}", {"mountPath": path, "subPath": str(number)}
        order |= {key: artifact[key] for key in ("mode", "recurseMode", "optional") if artifact.get(key) is not None}
        made.append(order)
    return made


def _location(artifact: Artifact, archive: Mapping[str, Any]) -> Order | None:
    """As Argo's `Relocate`: what has a key alone lies where the template keeps its artifacts."""
    if place := artifact.get("s3"):
        if not has_location(artifact):
            if archive.get(NONE):
                raise TemplateError(f"inputs.artifacts.{artifact['name']}: {archive[NONE]}")
            place = {**(archive.get("s3") or {}), "key": place.get("key") or ""}
        if not place["key"]:
            return None
        key = posixpath.join(str(place["key"]), str(artifact.get("subPath") or "")).rstrip("/")
        return {"s3": {**place, "key": key}} if place.get("endpoint") or place.get("bucket") else {"key": key}
    if artifact.get("raw") is not None:
        return {"raw": str(artifact["raw"].get("data", ""))}
    if artifact.get("http"):
        return {"http": dict(artifact["http"])}
    return None


def paths_order(source: Artifact, template: Template) -> Order:
    """Where the paths of a data template are listed: `s3` with a key, or `key`, below which they lie."""
    archive = template.get("archiveLocation") or {}
    place = dict(source.get("s3") or {})
    if not (place.get("endpoint") and place.get("bucket")):
        if archive.get(NONE):
            raise TemplateError(f"data.source.artifactPaths: {archive[NONE]}")
        place = {**(archive.get("s3") or {}), "key": str(place.get("key") or "")}
    return {"s3": place} if place.get("endpoint") or place.get("bucket") else {"key": place["key"]}


def _volume_around(path: str, main: Object) -> Object | None:
    """The volume mount of the main container that an artifact would lie in, as in Argo's `FindOverlappingVolume`."""
    around = [
        mount
        for mount in main.get("volumeMounts") or ()
        if f"{path}/".startswith(f"{posixpath.normpath(str(mount['mountPath']))}/")
    ]
    return max(around, key=lambda mount: len(mount["mountPath"]), default=None)


def secret_variables(orders: list[Order]) -> list[Object]:
    """Variables with the credentials that orders need, from Secrets of the pod's namespace; the orders then name the
    variables. The kubelet reads the Secrets: the controller never does."""
    variables: list[Object] = []

    def variable(selector: Object) -> str:
        name = f"ARGO_CREDENTIAL_{len(variables)}"
        variables.append({"name": name, "valueFrom": {"secretKeyRef": dict(selector)}})
        return name

    for order in orders:
        if place := order.get("s3"):
            for field, short in _S3_SECRETS.items():
                if place.get(field):
                    place[short] = variable(place[field])
        for header in order.get("headers") or ():
            if selector := (header.pop("valueFrom", None) or {}).get("secretKeyRef"):
                header["variable"] = variable(selector)
        if place := order.get("http"):
            basic = (place.pop("auth", None) or {}).get("basicAuth") or {}
            for field, short in (("usernameSecret", "user"), ("passwordSecret", "password")):
                if basic.get(field):
                    place[short] = variable(basic[field])
    return variables


def due(workflow: Object) -> Iterator[tuple[dict[str, Any], str]]:
    """The artifacts that go when the workflow is over (`OnWorkflowCompletion`), and their keys in the repository.

    One that is marked as deleted is not named again.
    """
    if not is_ended(workflow):
        return
    status, spec = workflow["status"], workflow.get("spec") or {}
    for node in _map(status.get("nodes")).values():
        artifacts = _map(_map(node).get("outputs")).get("artifacts")
        for artifact in artifacts if isinstance(artifacts, list) else ():
            if not isinstance(artifact, dict) or not all(isinstance(artifact.get(at) or {}, dict) for at in _INNER):
                continue  # users write the status too
            if artifact.get("deleted") or (key := key_of(artifact)) is None:
                continue
            if gc_strategy(artifact, spec) == ON_COMPLETION:
                yield artifact, key


def _map(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
