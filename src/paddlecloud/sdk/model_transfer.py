"""Files of models between this machine and a store, and the objects that say so: what the SDK and `pdc model` share.

Coroutines that await the client and `run`, which the caller gives: it runs what blocks, in a thread or right away. The
store is the caller's choice and never the address that an object has: keys of the environment are sent to it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.api.model import reference
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.errors import Damaged, HubError
from paddlecloud.modelhub.facts import check_facts
from paddlecloud.modelhub.manifest import Facts, Manifest
from paddlecloud.modelhub.pull import Pulled
from paddlecloud.modelhub.pull import pull as fetch
from paddlecloud.modelhub.push import Progress, Pushed, push_next, read_local
from paddlecloud.modelhub.push import push as put
from paddlecloud.sdk import models
from paddlecloud.storage.stores import Store

VARIABLE = "PADDLECLOUD_MODEL_STORE"
"""The address of the store, where it is not that of the embedded platform."""
FOLDER = "models"
"""The store of the embedded platform, in its data directory."""

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]


class OtherStore(HubError):
    """The version is not in the store that was named."""

    reason = "Conflict"


class Place(NamedTuple):
    """Where versions are registered and where their files are."""

    client: Client
    namespace: str
    store: Store
    address: str
    """Of the store; empty for that of the embedded platform."""
    run: RunBlocking


def silent(count: int) -> None:
    """No progress."""


async def push(
    place: Place, name: str, path: Path, facts: Facts, *, alias: str = "", reason: str = "", latest: bool = True,
    reading: Progress = silent, progress: Callable[[int], Progress] = lambda total: silent,
) -> Pushed:  # fmt: skip
    """`NAME` or `NAME:VERSION`. `progress` is called with the number of bytes and gives what counts them."""
    model, _, version = name.partition(":")
    reference.model_name(model)
    if alias:
        reference.alias_name(alias)
    check_facts(facts)
    which = catalogue.version_key(place.namespace, model, version) if version else None
    local = await place.run(lambda: read_local(path, reading))
    count = progress(sum(file.size for file in local.files))
    if which is not None:
        done: Pushed = await place.run(lambda: put(place.store, which, local, facts, count))
    else:
        known = await models.versions(place.client, place.namespace, model)
        taken = {str(obj["spec"]["version"]) for obj in known}
        done = await place.run(lambda: push_next(place.store, place.namespace, model, local, facts, taken, count))
    await models.register(place.client, done.manifest, store=place.address, latest=latest)
    if alias:
        await models.move_alias(
            place.client, place.namespace, model, alias, done.manifest.version,
            by=facts.created_by, at=facts.created_at, reason=reason,
        )  # fmt: skip
    return done


async def find(place: Place, text: str) -> Manifest:
    """The manifest of `NAME:VERSION`, `NAME@ALIAS` or `NAME`, which must be what its ModelVersion says."""
    wanted = reference.parse(text)
    version = await models.resolve(place.client, place.namespace, wanted)
    obj = await models.get_version(place.client, place.namespace, wanted.model, version)
    check_store(place, obj)
    which = catalogue.version_key(place.namespace, wanted.model, version)
    found: Manifest = await place.run(lambda: catalogue.get(place.store, which))
    if found.digest != obj["spec"]["digest"]:
        raise Damaged(
            f"the store has other files for {wanted.model}:{version} than its ModelVersion says: "
            f"{found.digest[:19]}… instead of {obj['spec']['digest'][:19]}…"
        )
    return found


async def pull(place: Place, found: Manifest, folder: Path, progress: Progress = silent) -> Pulled:
    done: Pulled = await place.run(lambda: fetch(place.store, found, folder, progress))
    return done


async def remove(place: Place, text: str, *, force: bool = False) -> list[str]:
    """`NAME:VERSION`, or `NAME` for a model with all its versions; which versions were removed. The objects go first:
    what is left of a removal that was killed is removed by the next."""
    model, colon, version = text.partition(":")
    reference.model_name(model)
    which = catalogue.version_key(place.namespace, model, version) if colon else None
    for obj in await models.versions(place.client, place.namespace, model):
        if which is None or obj["spec"]["version"] == version:
            check_store(place, obj)
    if which is not None:
        registered = await models.remove_version(place.client, place.namespace, model, version)
        stored = await place.run(lambda: catalogue.remove(place.store, which))
        return [version] if registered or stored else []
    removed = set(await models.remove_model(place.client, place.namespace, model, force=force))
    removed |= {one.version for one in await place.run(lambda: list(_stored(place, model)))}
    for one in removed:
        key = catalogue.version_key(place.namespace, model, one)
        await place.run(lambda key=key: catalogue.remove(place.store, key))  # type: ignore[misc]
    return sorted(removed)


def _stored(place: Place, model: str) -> Any:
    return catalogue.versions(place.store, place.namespace, model)


def check_store(place: Place, version: Object) -> None:
    """A version is in the store where it was pushed. Raises `OtherStore`."""
    address = str(version["spec"].get("store") or "")
    if address != place.address:
        shown = f"{version['spec']['model']}:{version['spec']['version']}"
        there = f"name it with --store, {VARIABLE} or store=" if address else "name no other store"
        raise OtherStore(
            f"{shown} is in {address or 'the store of the embedded platform'}, not in "
            f"{place.address or 'that of the embedded platform'}; {there}"
        )
