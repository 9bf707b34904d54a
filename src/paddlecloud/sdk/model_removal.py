"""Removal of versions and models: what is in use is refused at once, with the names of its users.

Coroutines that await only the client and `run`. Where a controller keeps the object with its finalizer, the controller
removes the manifest and this waits for it; elsewhere the objects go first and the manifests after them, so what is left
of a removal that was killed is removed by the next.
"""

from __future__ import annotations

import time

from paddlecloud.api.conditions import has_condition
from paddlecloud.api.model import reference
from paddlecloud.api.model.reference import object_name
from paddlecloud.api.names import MODEL_FINALIZER
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, Object, Resource
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.errors import HubError
from paddlecloud.modelhub.users import VersionUser, named, users_of, users_of_model
from paddlecloud.sdk import model_aliases, model_objects
from paddlecloud.sdk.model_transfer import Place, check_store, remove_stored, stored_versions

WAIT = 30.0
"""Seconds for the controller, which usually takes a moment."""
PAUSE = 0.05


class InUse(HubError):
    """Something uses what should be removed; the message names it."""

    reason = "Conflict"


async def remove(place: Place, text: str, *, force: bool = False) -> list[str]:
    """`NAME:VERSION`, or `NAME` for a model with all its versions; which versions were removed. Raises `InUse`."""
    model, colon, version = text.partition(":")
    reference.model_name(model)
    return await (_remove_version(place, model, version) if colon else _remove_model(place, model, force=force))


async def _remove_version(place: Place, model: str, version: str) -> list[str]:
    which = catalogue.version_key(place.namespace, model, version)
    client, namespace = place.client, place.namespace
    obj = await client.find(MODELVERSIONS, object_name(model, version), namespace)
    if obj is not None:
        check_store(place, obj)
    found = await client.find(MODELS, model, namespace)
    spec = model_objects.spec_of(found) if found is not None else None
    if users := users_of(model, version, spec, await model_objects.services(client, namespace)):
        raise InUse(f"{model}:{version} is in use by {named(users)}: {_remedy(users)}")
    if obj is not None:
        await client.delete(MODELVERSIONS, obj["metadata"]["name"], namespace=namespace, uid=obj["metadata"]["uid"])
        if _is_kept(obj):
            await _wait_until_gone(place, MODELVERSIONS, obj)
            return [version]
    stored = await place.run(lambda: remove_stored(place, which))
    return [version] if obj is not None or stored else []


async def _remove_model(place: Place, model: str, *, force: bool) -> list[str]:
    client, namespace = place.client, place.namespace
    found = await model_objects.find_model(client, namespace, model)
    registered = await model_objects.versions(client, namespace, model)
    for obj in registered:
        check_store(place, obj)
    users = users_of_model(model, model_objects.spec_of(found), await model_objects.services(client, namespace))
    pointing = [user.name for user in users if user.kind == "alias"]
    if users and not (force and len(pointing) == len(users)):
        raise InUse(f"model {model} is in use by {named(users)}: {_remedy(users)}")
    if pointing and _is_kept(found):
        by, at = await model_objects.user_name(client), rfc3339(time.time())
        for alias in pointing:
            await model_aliases.remove_alias(client, namespace, model, alias, by=by, at=at, reason="model removed")
    names = {str(obj["spec"]["version"]) for obj in registered}
    if not _is_kept(found):
        for obj in registered:
            await client.delete(MODELVERSIONS, obj["metadata"]["name"], namespace=namespace)
    await client.delete(MODELS, model, namespace=namespace, uid=found["metadata"]["uid"])
    if _is_kept(found):
        await _wait_until_gone(place, MODELS, found)
    stored = await place.run(lambda: stored_versions(place, model))
    for version in names | set(stored):
        key = catalogue.version_key(namespace, model, version)
        await place.run(lambda key=key: remove_stored(place, key))  # type: ignore[misc]
        names.add(version)
    return sorted(names)


async def _wait_until_gone(place: Place, kind: Resource, obj: Object) -> None:
    """Raises `InUse` if the controller finds a user that came meanwhile, or does not answer."""
    name, uid = obj["metadata"]["name"], obj["metadata"]["uid"]
    deadline = time.monotonic() + WAIT
    while True:
        current = await place.client.find(kind, name, place.namespace)
        if current is None or current["metadata"]["uid"] != uid:
            return
        if has_condition(current, "InUse"):
            raise InUse(f"{kind.kind} {name} is {current['status'].get('message') or 'in use'}")
        if time.monotonic() > deadline:
            raise InUse(f"{kind.kind} {name} is deleted, but its controller has not removed it within {WAIT:.0f} s")
        await place.run(lambda: time.sleep(PAUSE))


def _is_kept(obj: Object) -> bool:
    return MODEL_FINALIZER in (obj["metadata"].get("finalizers") or ())


def _remedy(users: list[VersionUser]) -> str:
    """What would free it."""
    texts = []
    if pointing := [user for user in users if user.kind == "alias"]:
        texts.append(f"move or remove {'it' if len(pointing) == 1 and len(users) == 1 else 'the aliases'}")
    if len(pointing) < len(users):
        texts.append("let the services use another version")
    return " and ".join(texts) + " first"
