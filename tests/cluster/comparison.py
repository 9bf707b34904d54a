"""What the embedded API server and a real one make of the same thing, and where they part.

Three questions are put to both: which kinds and verbs of Kubernetes itself are served, what becomes of the objects in
`samples.yaml` (a dry run, so nothing is kept), and which fields the published schemas have. A difference is a line such
as `Pod spec.tolerations[x].key only real`; `differences.yaml` explains those that stay.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from paddlecloud.kube import config, errors
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object
from paddlecloud.kube.stdlib import StdlibTransport, drive

SAMPLES = Path(__file__).parent / "samples.yaml"
_AGGREGATED = "application/json;v=v2;g=apidiscovery.k8s.io;as=APIGroupDiscoveryList"
_MISSING = object()
_UNREADABLE: dict[str, Any] = {"": "unreadable"}

_VOLATILE = re.compile(
    r"metadata\.(uid|creationTimestamp|resourceVersion)$"
    r"|\.time$|\.lastTransitionTime$|controller-uid$"
    r"|spec\.clusterIPs?(\[0\])?$"  # addresses of two different networks
)
_RANDOM = re.compile(r"kube-api-access-\w{5}")


def differences(real: Path, embedded: Path) -> list[str]:
    """All lines, sorted. The arguments are kubeconfigs."""
    clients = [Client(StdlibTransport(config.load(str(path)))) for path in (real, embedded)]
    try:
        lines = {*_discovery(*clients), *_objects(*clients), *_schemas(*clients)}
    finally:
        for client in clients:
            drive(client.close())
    return sorted(lines)


def _compare(subject: str, real: dict[str, Any], embedded: dict[str, Any]) -> Iterator[str]:
    if "refused" in {*real, *embedded}:
        real, embedded = ({"refused": each.get("refused", "no")} for each in (real, embedded))
    for path in real.keys() | embedded.keys():
        ours, theirs = embedded.get(path, _MISSING), real.get(path, _MISSING)
        if ours is _MISSING:
            yield f"{subject} {path} only real"
        elif theirs is _MISSING:
            yield f"{subject} {path} only embedded"
        elif ours != theirs:
            yield f"{subject} {path} real {theirs!r} embedded {ours!r}"


# --- which kinds and verbs ---


def _discovery(real: Client, embedded: Client) -> Iterator[str]:
    yield from _compare("served", _served(real), _served(embedded))


def _served(client: Client) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for path in ("/api", "/apis"):
        document = json.loads(drive(client.raw("GET", path, accept=_AGGREGATED)).body)
        for group in document["items"]:
            name = group["metadata"].get("name", "")
            if "." in name and not name.endswith(".k8s.io"):
                continue  # custom kinds: whatever somebody installed
            for version in group["versions"]:
                where = f"{name}/{version['version']}".lstrip("/")
                for resource in version["resources"]:
                    plural = f"{where} {resource['resource']}"
                    found[plural] = {key: resource.get(key) for key in ("scope", "shortNames", "categories")}
                    found[plural]["verbs"] = sorted(resource["verbs"])
                    for sub in resource.get("subresources", ()):
                        found[f"{plural}/{sub['subresource']}"] = sorted(sub["verbs"])
    return found


# --- what becomes of objects ---


def _objects(real: Client, embedded: Client) -> Iterator[str]:
    for sample in yaml.safe_load_all(SAMPLES.read_text()):
        made = [_made(client, sample) for client in (real, embedded)]
        yield from _compare(sample["kind"], *made)


def _made(client: Client, sample: Object) -> dict[str, Any]:
    """The object as the server would keep it, as values by path; or its refusal."""
    resource = drive(client.discover()).for_kind(sample["apiVersion"], sample["kind"])
    namespace = "default" if resource.namespaced else None
    try:
        made = drive(client.create(resource, copy.deepcopy(sample), namespace=namespace, dry_run=True))
    except errors.ApiError as error:
        return {"refused": f"{error.code} {error.reason}"}
    return {path: value for path, value in _flat(made, "") if not _VOLATILE.search(path)}


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _flat(inner, f"{path}.{key}".lstrip("."))
    elif isinstance(value, list) and value:
        # Entries are identified by name, so that one more shifts nothing.
        for number, inner in enumerate(value):
            name = inner.get("name", inner.get("key", number)) if isinstance(inner, dict) else number
            yield from _flat(inner, f"{path}[{_RANDOM.sub('kube-api-access', str(name))}]")
    else:
        yield path, _RANDOM.sub("kube-api-access", value) if isinstance(value, str) else value


# --- what the schemas say ---


def _schemas(real: Client, embedded: Client) -> Iterator[str]:
    theirs, ours = _published(real), _published(embedded)
    yield from (f"schema of {path} cannot be read" for path, schema in ours.items() if schema == _UNREADABLE)
    for name in sorted(theirs.keys() & ours.keys()):
        yield from _compare(f"schema {name}", theirs[name], ours[name])


def _published(client: Client) -> dict[str, dict[str, Any]]:
    """Fields by schema name, and whether they are required."""
    found: dict[str, dict[str, Any]] = {}
    for path in json.loads(drive(client.raw("GET", "/openapi/v3")).body)["paths"]:
        try:
            document = json.loads(drive(client.raw("GET", f"/openapi/v3/{path}")).body)
        except errors.ApiError:
            found[path] = _UNREADABLE
            continue
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            required = schema.get("required", ())
            found[name] = {field: field in required for field in schema.get("properties", ())}
    return found
