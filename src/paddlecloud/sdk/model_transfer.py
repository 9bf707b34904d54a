"""Files of models between this machine and a store, and the objects that say so: what the SDK and `pdc model` share.

Coroutines that await the client and `run`, which the caller gives: it runs what blocks, in a thread or right away. The
store is the caller's choice and never the address that an object has: keys of the environment are sent to it.
"""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.api.model import reference
from paddlecloud.kube.client import Client
from paddlecloud.kube.config import Config
from paddlecloud.kube.resource import Object
from paddlecloud.modelhub import catalogue, discovery, names, signature
from paddlecloud.modelhub.catalogue import VersionKey
from paddlecloud.modelhub.errors import Damaged, HubError, Refused
from paddlecloud.modelhub.facts import check_facts
from paddlecloud.modelhub.manifest import Facts, Manifest
from paddlecloud.modelhub.pull import Pulled, pull_by
from paddlecloud.modelhub.pull import pull as fetch
from paddlecloud.modelhub.push import Progress, Pushed, push_next, read_local
from paddlecloud.modelhub.push import push as put
from paddlecloud.modelhub.remote import RemoteHub
from paddlecloud.sdk import model_aliases, model_objects
from paddlecloud.storage.errors import Denied
from paddlecloud.storage.stores import Store

RunBlocking = Callable[[Callable[[], Any]], Awaitable[Any]]


class OtherStore(HubError):
    """The version is not in the store that was named."""

    reason = "Conflict"


class Place(NamedTuple):
    """Where versions are registered and where their files are."""

    client: Client
    namespace: str
    store: Store | None
    """None where files go through the hub's server."""
    address: str
    """Of the store; empty for that of the platform, which is also the one behind the hub's server."""
    run: RunBlocking
    hub: RemoteHub | None = None

    def files(self) -> Store:
        """For work on the store itself."""
        if self.store is None:
            raise Refused("this works on the store itself, not through the hub's server: name it with --store")
        return self.store


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
    read = await place.run(lambda: signature.read(local.root, [file.path for file in local.files]))
    facts = facts._replace(signature=signature.agreed(read, facts.signature))
    count = progress(sum(file.size for file in local.files))
    done: Pushed
    if (hub := place.hub) is not None:
        done = await place.run(lambda: hub.push(place.namespace, model, version, local, facts, count))
    elif which is not None:
        done = await place.run(lambda: put(place.files(), which, local, facts, count))
    else:
        known = await model_objects.versions(place.client, place.namespace, model)
        taken = {str(obj["spec"]["version"]) for obj in known}
        done = await place.run(lambda: push_next(place.files(), place.namespace, model, local, facts, taken, count))
    registered = await model_objects.register(place.client, done.manifest, store=place.address)
    if latest:
        await model_aliases.move_latest(place.client, done.manifest, registered)
    if alias:
        await model_aliases.move_alias(
            place.client, place.namespace, model, alias, done.manifest.version,
            by=facts.created_by, at=facts.created_at, reason=reason,
        )  # fmt: skip
    return done


async def find(place: Place, text: str) -> Manifest:
    """The manifest of `NAME:VERSION`, `NAME@ALIAS` or `NAME`, which must be what its ModelVersion says."""
    wanted = reference.parse(text)
    version = await model_objects.resolve(place.client, place.namespace, wanted)
    obj = await model_objects.get_version(place.client, place.namespace, wanted.model, version)
    check_store(place, obj)
    which = catalogue.version_key(place.namespace, wanted.model, version)
    hub = place.hub
    found: Manifest = await place.run(lambda: hub.manifest(which) if hub else catalogue.get(place.files(), which))
    if found.digest != obj["spec"]["digest"]:
        raise Damaged(
            f"the store has other files for {wanted.model}:{version} than its ModelVersion says: "
            f"{found.digest[:19]}… instead of {obj['spec']['digest'][:19]}…"
        )
    return found


async def pull(place: Place, found: Manifest, folder: Path, progress: Progress = silent) -> Pulled:
    done: Pulled
    if (hub := place.hub) is not None:
        which = catalogue.version_key(found.namespace, found.model, found.version)
        done = await place.run(lambda: pull_by(partial(hub.read, which), found, folder, progress))
    else:
        done = await place.run(lambda: fetch(place.files(), found, folder, progress))
    return done


def remove_stored(place: Place, which: VersionKey) -> bool:
    """The manifest of a version; whether there was one."""
    return place.hub.remove(which) if place.hub else catalogue.remove(place.files(), which)


def stored_versions(place: Place, model: str) -> list[str]:
    """Those that the store has, registered or not."""
    if place.hub is not None:
        return place.hub.versions(place.namespace, model)
    return [one.version for one in catalogue.versions(place.files(), place.namespace, model)]


def find_hub(config: Config) -> RemoteHub | None:
    """That of `discovery.address`, with the token of the environment or of the kubeconfig. Raises `Denied`."""
    address = discovery.address(os.environ)
    if not address:
        return None
    token = os.environ.get(names.TOKEN_VARIABLE) or config.source.fetch().token
    if not token:
        raise Denied(
            f"the model hub at {address} takes tokens, and the kubeconfig has none: set {names.TOKEN_VARIABLE}, "
            "for example to what `kubectl create token ACCOUNT` prints"
        )
    return RemoteHub(address, token)


def check_store(place: Place, version: Object) -> None:
    """A version is in the store where it was pushed. Raises `OtherStore`."""
    address = str(version["spec"].get("store") or "")
    if address != place.address:
        shown = f"{version['spec']['model']}:{version['spec']['version']}"
        there = f"name it with --store, {names.STORE_VARIABLE} or store=" if address else "name no other store"
        raise OtherStore(
            f"{shown} is in {address or 'the store of the platform'}, not in "
            f"{place.address or 'that of the platform'}; {there}"
        )
