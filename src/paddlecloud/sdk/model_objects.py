"""Models and versions as objects of the API server, for the SDK and `pdc`: coroutines that await only the client.

The files are in a store (`paddlecloud.modelhub`), and a version is registered here after it was stored there. Every
function may be repeated after a crash: what is there already is left as it is.
"""

from __future__ import annotations

import getpass

from paddlecloud.api import model as kinds
from paddlecloud.api.model.reference import Reference, object_name
from paddlecloud.api.model.spec import ModelSpec
from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.kube import access
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import AlreadyExists, ApiError
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import (
    EARLIER_PADDLESERVICES,
    MODELS,
    MODELVERSIONS,
    PADDLESERVICES,
    Object,
)
from paddlecloud.modelhub.errors import UnknownVersion, VersionExists
from paddlecloud.modelhub.manifest import Manifest
from paddlecloud.modelhub.objects import model_object, version_object

_SHARED = ("kubernetes-admin", "admin")
"""Users that several people are."""


async def user_name(client: Client) -> str:
    """Who the API server takes the caller for; the user of this machine where that is nobody in particular."""
    try:
        name = await access.user_name(client)
    except ApiError:  # older than Kubernetes 1.28, or not allowed
        name = ""
    return getpass.getuser() if not name or name in _SHARED or name.startswith("system:") else name


async def find_model(client: Client, namespace: str, name: str) -> Object:
    """Raises `UnknownVersion`."""
    found = await client.find(MODELS, name, namespace)
    if found is None:
        raise UnknownVersion(f"there is no model {name} in namespace {namespace}{await _like(client, namespace, name)}")
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
        raise unknown_alias(reference.model, reference.alias, spec)
    return known[reference.alias]


def unknown_alias(model: str, alias: str, spec: ModelSpec) -> UnknownVersion:
    known = sorted(spec.aliases or ())
    there = f"it has {', '.join(known)}" if known else "it has none"
    return UnknownVersion(f"model {model} has no alias {alias}; {there}{_meant(alias, known)}")


async def get_version(client: Client, namespace: str, model: str, version: str) -> Object:
    """Raises `UnknownVersion`."""
    found = await client.find(MODELVERSIONS, object_name(model, version), namespace)
    if found is None:
        await find_model(client, namespace, model)
        near = await _other_version(client, namespace, model, version)
        raise UnknownVersion(f"model {model} has no version {version} in namespace {namespace}{near}")
    return found


async def register(client: Client, manifest: Manifest, *, store: str = "") -> Object:
    """Make a stored version visible."""
    namespace = manifest.namespace
    owner = await _ensure_model(client, namespace, manifest.model)
    obj = version_object(manifest, owner, store=store)
    try:
        found = await client.create(MODELVERSIONS, obj, namespace=namespace)
    except AlreadyExists:
        found = await get_version(client, namespace, manifest.model, manifest.version)
        if found["spec"].get("digest") != manifest.digest:
            raise VersionExists(
                f"{manifest.model}:{manifest.version} is registered with other files, in the store "
                f"{found['spec'].get('store') or 'of the platform'}; push it as another version"
            ) from None
    return found


async def services(client: Client, namespace: str) -> list[Object]:
    """Those that may use versions. Who may not list them relies on the controller, which keeps what they use."""
    found: list[Object] = []
    for kind in (PADDLESERVICES, EARLIER_PADDLESERVICES):
        try:
            found += (await client.list(kind, namespace, limit=500)).items
        except ApiError:  # the kind is not served, or the user may not see it
            continue
    return found


def spec_of(obj: Object) -> ModelSpec:
    return kinds.decode(obj).spec or ModelSpec()


async def _ensure_model(client: Client, namespace: str, name: str) -> Object:
    found = await client.find(MODELS, name, namespace)
    if found is not None:
        return found
    try:
        return await client.create(MODELS, model_object(namespace, name), namespace=namespace)
    except AlreadyExists:
        return await find_model(client, namespace, name)


async def _like(client: Client, namespace: str, name: str) -> str:
    """For a model that is not there: one that may have been meant."""
    try:
        known = [obj["metadata"]["name"] for obj in (await client.list(MODELS, namespace, limit=500)).items]
    except ApiError:  # who may read one model by its name need not be allowed to list them
        return ""
    return _meant(name, known)


async def _other_version(client: Client, namespace: str, model: str, version: str) -> str:
    """For a version that is not there: one that may have been meant; of mere numbers, all are alike."""
    try:
        known = [str(obj["spec"]["version"]) for obj in await versions(client, namespace, model)]
    except ApiError:
        return ""
    meant = "" if version.isdigit() else _meant(version, known)
    return meant or (f"; its newest is {known[0]}" if known else "; it has none")


def _meant(word: str, known: list[str]) -> str:
    found = question(word, known)
    return f"; {found}" if found else ""


def _age_and_name(version: Object) -> tuple[str, str]:
    return str(version["spec"].get("createdAt") or ""), version["metadata"]["name"]
