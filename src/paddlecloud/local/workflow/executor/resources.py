"""`resource` templates: a manifest is sent to the API server, and its object waited for.

As Argo's executor with kubectl (workflow/executor/resource.go), with the rights of the pod's own ServiceAccount.
"""

from __future__ import annotations

import json
import time
from typing import Any

from paddlecloud.local.workflow.executor import conditions, jsonpath
from paddlecloud.local.workflow.executor.flags import Flags
from paddlecloud.local.workflow.executor.kubernetes import ApiRefused, Kind, Object, Server
from paddlecloud.local.workflow.executor.orders import ExecutorError

MANAGER = "argo"
_PATCHES = {
    "strategic": "application/strategic-merge-patch+json",
    "merge": "application/merge-patch+json",
    "json": "application/json-patch+json",
}
SOONEST, LATEST = 0.2, 2.0
"""Seconds between two looks at an object that is waited for."""


class Failed(ExecutorError):
    """The failure condition holds."""


def carry_out(order: dict[str, Any], outputs: dict[str, Any]) -> dict[str, str]:
    """The output parameters."""
    server, flags = Server(), Flags.of(order.get("flags") or [])
    manifests = _manifests(order)
    found: tuple[Kind, str, Object] | None = None
    if order["action"] == "delete":
        _delete(server, manifests, flags)
    elif order["action"] == "patch" and (order.get("mergeStrategy") == "json" or not _has_kind(manifests)):
        found = _patch(server, server.kind_called(flags.kind), flags.name, manifests[0], order, flags)
    elif not manifests and flags.kind:
        kind = server.kind_called(flags.kind)
        namespace = flags.namespace or server.namespace
        found = kind, namespace, server.request("GET", kind.path(namespace, flags.name))
    for manifest in manifests if found is None and order["action"] != "delete" else ():
        found = _send(server, manifest, order, flags)
    if found is None:
        return {}
    kind, namespace, obj = found
    print(f"Resource: {namespace}/{kind.name.lower()}/{obj['metadata']['name']}", flush=True)
    obj = _wait(server, kind, namespace, obj, order)
    return {name: _output(each, obj) for name, each in outputs.items()}


def _manifests(order: dict[str, Any]) -> list[Any]:
    import yaml

    text = order.get("manifest") or ""
    if path := order.get("manifestPath"):
        with open(path, encoding="utf-8") as file:
            text = file.read()
    try:
        found = [each for each in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)) if each]
    except yaml.YAMLError as why:
        raise ExecutorError(f"the manifest is no YAML: {why}") from None
    found = json.loads(json.dumps(found, default=str))
    if not found and not order.get("flags"):
        raise ExecutorError("Must provide at least one of flags or manifest.")
    return list(found)


def _has_kind(manifests: list[Any]) -> bool:
    return bool(manifests) and isinstance(manifests[0], dict) and bool(manifests[0].get("kind"))


def _send(server: Server, manifest: Any, order: dict[str, Any], flags: Flags) -> tuple[Kind, str, Object]:
    if not isinstance(manifest, dict):
        raise ExecutorError("the manifest must be an object with apiVersion and kind")
    kind = server.kind_of(manifest)
    meta = manifest.setdefault("metadata", {})
    namespace = flags.namespace or str(meta.get("namespace") or server.namespace)
    name, action = str(meta.get("name") or ""), order["action"]
    if owner := order.get("owner"):
        meta["ownerReferences"] = [*(meta.get("ownerReferences") or ()), owner]
    if not name and (action != "create" or not meta.get("generateName")):
        raise ExecutorError("the manifest needs metadata.name")
    one, options = kind.path(namespace, name), flags.validation
    if action == "get":
        return kind, namespace, server.request("GET", one)
    if action == "patch":
        return _patch(server, kind, name, manifest, order, flags, namespace)
    if action == "create":
        made = server.request("POST", kind.path(namespace), manifest, fieldManager=MANAGER, **options)
    elif action == "apply":
        applied = {"fieldManager": MANAGER, "force": "true", **options}
        made = server.request("PATCH", one, manifest, kind="application/apply-patch+yaml", **applied)
    elif action == "replace":
        if not meta.get("resourceVersion"):
            meta["resourceVersion"] = server.request("GET", one)["metadata"]["resourceVersion"]
        made = server.request("PUT", one, manifest, fieldManager=MANAGER, **options)
    else:
        raise ExecutorError(f"the action {action!r} is not served")
    return kind, namespace, made


def _patch(
    server: Server, kind: Kind, name: str, patch: Any, order: dict[str, Any], flags: Flags, namespace: str = ""
) -> tuple[Kind, str, Object]:
    strategy = order.get("mergeStrategy") or "strategic"
    place = flags.namespace or namespace or server.namespace
    made = server.request("PATCH", kind.path(place, name), patch, kind=_PATCHES[strategy], fieldManager=MANAGER)
    return kind, place, made


def _delete(server: Server, manifests: list[Any], flags: Flags) -> None:
    """What is not there counts as deleted, as Argo asks kubectl for (`--ignore-not-found`)."""
    targets: list[tuple[Kind, str, str]] = []
    for manifest in manifests:
        meta = manifest.get("metadata") or {}
        place = flags.namespace or str(meta.get("namespace") or server.namespace)
        targets.append((server.kind_of(manifest), place, str(meta.get("name") or "")))
    if flags.kind:
        kind, place = server.kind_called(flags.kind), flags.namespace or server.namespace
        names = list(flags.names)
        if flags.selector:
            listed = server.request("GET", kind.path(place), labelSelector=flags.selector)
            names += [each["metadata"]["name"] for each in listed.get("items") or ()]
        targets += [(kind, place, name) for name in names]
    for kind, place, name in targets:
        if not name:
            raise ExecutorError("the manifest needs metadata.name")
        try:
            server.request("DELETE", kind.path(place, name), propagationPolicy="Background")
            print(f"{kind.name.lower()} {place}/{name} deleted", flush=True)
        except ApiRefused as why:
            if why.code != 404:
                raise


def _wait(server: Server, kind: Kind, namespace: str, obj: Object, order: dict[str, Any]) -> Object:
    """As Argo: any requirement of the failure condition fails it, all of the success condition make it succeed."""
    failure, success = (
        conditions.parsed(str(order.get(each) or "")) for each in ("failureCondition", "successCondition")
    )
    if not failure and not success:
        return obj
    name, pause, said = obj["metadata"]["name"], SOONEST, ""
    while True:
        for requirement in failure:
            if conditions.holds(requirement, obj):
                raise Failed(f"The failure condition {order['failureCondition']!r} holds")
        if all(conditions.holds(requirement, obj) for requirement in success):
            return obj
        if (now := obj["metadata"].get("resourceVersion", "")) != said:
            said, pause = now, SOONEST
        time.sleep(pause)
        pause = min(pause * 1.5, LATEST)
        try:
            obj = server.request("GET", kind.path(namespace, name))
        except ApiRefused as why:
            if why.code == 404:
                raise ExecutorError(f"{kind.name.lower()} {name} was deleted while it was waited for") from None
            if why.code < 500 and why.code != 429:
                raise
            print(f"waiting: {why}", flush=True)
        except ExecutorError as why:  # the API server restarts
            print(f"waiting: {why}", flush=True)


def _output(order: dict[str, str], obj: Object) -> str:
    found = jsonpath.jq(order["jqFilter"], obj) if "jqFilter" in order else jsonpath.json_path(order["jsonPath"], obj)
    return found or str(order.get("default") or "")
