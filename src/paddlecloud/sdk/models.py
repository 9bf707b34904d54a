"""Models and versions as objects of the API server, for the SDK and `pdc`: coroutines that await only the client.

The files are in a store (`paddlecloud.modelhub`), and a version is registered here after it was stored there. Every
function may be repeated after a crash: what is there already is left as it is.
"""

from __future__ import annotations

import getpass
from collections.abc import Iterable

from paddlecloud.api import model as kinds
from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST, Reference, object_name
from paddlecloud.api.model.spec import ModelSpec, ModelVersionSpec
from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.api.problems import encode
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import AlreadyExists, ApiError, Conflict
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, Object, Resource, owner_reference
from paddlecloud.modelhub.errors import HubError, UnknownVersion, VersionExists
from paddlecloud.modelhub.manifest import Manifest

ATTEMPTS = 20
"""Writers of one Model that meet; each loses at most once to every other."""
_SHARED = ("kubernetes-admin", "admin")
"""Users that several people are."""
_REVIEWS = Resource("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class InUse(HubError):
    """Something points to what should be removed; the message names it."""

    reason = "Conflict"


async def user_name(client: Client) -> str:
    """Who the API server takes the caller for; the user of this machine where that is nobody in particular."""
    try:
        found = await client.create(_REVIEWS, {"apiVersion": _REVIEWS.api_version, "kind": _REVIEWS.kind})
        name = str(((found.get("status") or {}).get("userInfo") or {}).get("username") or "")
    except ApiError:  # older than Kubernetes 1.28, or not allowed
        name = ""
    return getpass.getuser() if not name or name in _SHARED or name.startswith("system:") else name


async def find_model(client: Client, namespace: str, name: str) -> Object:
    """Raises `UnknownVersion`."""
    found = await client.find(MODELS, name, namespace)
    if found is None:
        raise UnknownVersion(f"there is no model {name} in namespace {namespace}")
    return found


async def versions(client: Client, namespace: str | None, model: str = "") -> list[Object]:
    """Newest first. Of one model, or of all in a namespace, or of all."""
    selector = f"{MODEL_LABEL}={model}" if model else None
    found = (await client.list(MODELVERSIONS, namespace, label_selector=selector, limit=500)).items
    return sorted(found, key=_age_and_name, reverse=True)


async def resolve(client: Client, namespace: str, reference: Reference) -> str:
    """The version that is meant. Raises `UnknownVersion`."""
    if reference.version:
        return reference.version
    spec = spec_of(await find_model(client, namespace, reference.model))
    known = spec.aliases or {}
    if reference.alias not in known:
        there = f"it has {', '.join(sorted(known))}" if known else "it has none"
        raise UnknownVersion(f"model {reference.model} has no alias {reference.alias}; {there}")
    return known[reference.alias]


async def get_version(client: Client, namespace: str, model: str, version: str) -> Object:
    """Raises `UnknownVersion`."""
    found = await client.find(MODELVERSIONS, object_name(model, version), namespace)
    if found is None:
        raise UnknownVersion(f"model {model} has no version {version} in namespace {namespace}")
    return found


async def register(client: Client, manifest: Manifest, *, store: str = "", latest: bool = True) -> Object:
    """Make a stored version visible, and the alias latest point to it unless a later one was pushed meanwhile, or it
    is not meant to be the latest: one that was made from another version."""
    namespace = manifest.namespace
    owner = await _ensure_model(client, namespace, manifest.model)
    obj: Object = {
        "apiVersion": MODELVERSIONS.api_version,
        "kind": MODELVERSIONS.kind,
        "metadata": {
            "name": object_name(manifest.model, manifest.version),
            "namespace": namespace,
            "labels": {MODEL_LABEL: manifest.model},
            "ownerReferences": [{**owner_reference(owner), "controller": False, "blockOwnerDeletion": False}],
        },
        "spec": encode(_version_spec(manifest, store)),
    }
    try:
        found = await client.create(MODELVERSIONS, obj, namespace=namespace)
    except AlreadyExists:
        found = await get_version(client, namespace, manifest.model, manifest.version)
        if found["spec"].get("digest") != manifest.digest:
            raise VersionExists(
                f"{manifest.model}:{manifest.version} is registered with other files, in the store "
                f"{found['spec'].get('store') or 'of the platform'}; push it as another version"
            ) from None
    if latest:
        await _move_latest(client, manifest)
    return found


async def move_alias(
    client: Client, namespace: str, model: str, alias: str, version: str, *, by: str, at: str, reason: str = ""
) -> tuple[Object, str]:
    """Point an alias to a version; returns the Model and where it pointed before. Raises `UnknownVersion`."""
    await get_version(client, namespace, model, version)
    for _ in range(ATTEMPTS):
        found = await find_model(client, namespace, model)
        spec = spec_of(found)
        before = (spec.aliases or {}).get(alias, "")
        wanted = aliases.moved(spec, alias, version, by=by, at=at, reason=reason)
        if wanted is None:
            return found, before
        try:
            return await client.update(MODELS, {**found, "spec": encode(wanted)}), before
        except Conflict:
            continue  # somebody else changed the model: decide again on what it is now
    raise InUse(f"model {model} is changed by others again and again; try again")


async def remove_version(client: Client, namespace: str, model: str, version: str) -> bool:
    """False if it was not registered. Raises `InUse` while an alias points to it."""
    found = await client.find(MODELS, model, namespace)
    if found is not None and (pointing := aliases.aliases_of(spec_of(found), version)):
        raise InUse(f"{model}:{version} is {' and '.join(pointing)}: move {_them(pointing)} to another version first")
    obj = await client.find(MODELVERSIONS, object_name(model, version), namespace)
    if obj is None:
        return False
    await client.delete(MODELVERSIONS, obj["metadata"]["name"], namespace=namespace, uid=obj["metadata"]["uid"])
    return True


async def remove_model(client: Client, namespace: str, model: str, *, force: bool = False) -> list[str]:
    """The Model and all its versions, whose names are returned. Raises `InUse` while it has an alias besides latest."""
    found = await find_model(client, namespace, model)
    pointing = sorted(set(spec_of(found).aliases or {}) - {LATEST})
    if pointing and not force:
        raise InUse(f"model {model} has versions in use: {', '.join(pointing)}")
    names = [str(obj["spec"]["version"]) for obj in await versions(client, namespace, model)]
    for version in names:
        await client.delete(MODELVERSIONS, object_name(model, version), namespace=namespace)
    await client.delete(MODELS, model, namespace=namespace, uid=found["metadata"]["uid"])
    return names


def spec_of(obj: Object) -> ModelSpec:
    return kinds.decode(obj).spec or ModelSpec()


async def _ensure_model(client: Client, namespace: str, name: str) -> Object:
    found = await client.find(MODELS, name, namespace)
    if found is not None:
        return found
    new: Object = {"apiVersion": MODELS.api_version, "kind": MODELS.kind, "metadata": {"name": name}, "spec": {}}
    try:
        return await client.create(MODELS, new, namespace=namespace)
    except AlreadyExists:
        return await find_model(client, namespace, name)


async def _move_latest(client: Client, manifest: Manifest) -> None:
    namespace, model = manifest.namespace, manifest.model
    current = (spec_of(await find_model(client, namespace, model)).aliases or {}).get(LATEST)
    if current and current != manifest.version:
        obj = await client.find(MODELVERSIONS, object_name(model, current), namespace)
        if obj is not None and str(obj["spec"].get("createdAt") or "") > manifest.created_at:
            return
    by, at = manifest.created_by, manifest.created_at
    await move_alias(client, namespace, model, LATEST, manifest.version, by=by, at=at, reason="pushed")


def _version_spec(manifest: Manifest, store: str) -> ModelVersionSpec:
    return ModelVersionSpec(
        model=manifest.model,
        version=manifest.version,
        digest=manifest.digest,
        size=manifest.size,
        files=len(manifest.files),
        store=store or None,
        framework=manifest.framework or None,
        description=manifest.description or None,
        metrics=manifest.metrics or None,
        origin=manifest.origin or None,
        created_by=manifest.created_by or None,
        created_at=manifest.created_at or None,
    )


def _age_and_name(version: Object) -> tuple[str, str]:
    return str(version["spec"].get("createdAt") or ""), version["metadata"]["name"]


def _them(names: Iterable[str]) -> str:
    return "it" if len(list(names)) == 1 else "them"
