"""The controller of Models and ModelVersions: what it observes, and what it does in the store.

Both kinds share one queue: a Model is called NAME, its version NAME.VERSION, and names of models have no dots.

Before a manifest is removed the Model and the services are read from the API server, not from the cache, when the
version is already marked as deleted; who moves an alias reads the version after the move (`sdk.model_aliases`).
Whatever the order, one of the two sees the other.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

from paddlecloud.api.model import ModelSpec, decode
from paddlecloud.api.model.reference import LATEST, BadReference, object_name
from paddlecloud.api.problems import DecodeError
from paddlecloud.controllers.model.decide import LOOK_AGAIN, ModelPlan, Observed, decide
from paddlecloud.controllers.model.stored import ModelStore
from paddlecloud.controllers.operator import Operator
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.errors import AlreadyExists, ApiError, Forbidden, NotFound
from paddlecloud.kube.resource import (
    EARLIER_PADDLESERVICES,
    MODELS,
    MODELVERSIONS,
    NAMESPACES,
    PADDLESERVICES,
    Key,
    Object,
    key_of,
)
from paddlecloud.kube.times import parse_rfc3339
from paddlecloud.modelhub import users
from paddlecloud.modelhub.catalogue import VersionKey, version_key
from paddlecloud.modelhub.errors import Damaged
from paddlecloud.modelhub.objects import model_object, version_object
from paddlecloud.storage.errors import StorageError

log = logging.getLogger(__name__)

COMPONENT = "Model"
SCAN = 600.0
"""Seconds between two lists of the store."""
YOUNG = 600.0
"""Seconds that a push has to register what it stored, before the controller does."""
RETRY = 1.0
SYSTEM = "kube-system"
"""The namespace that is as old as its platform."""


class ModelController(Operator[Observed, ModelPlan]):
    """`store` is None where the controller has none: then nothing keeps versions, and retention removes nothing."""

    def __init__(
        self,
        client: Client,
        *,
        store: ModelStore | None,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 4,
        hooks: Hooks | None = None,
    ) -> None:
        super().__init__(
            client, "model", component=COMPONENT, namespace=namespace, clock=clock, workers=workers, hooks=hooks
        )
        self._store = store
        self._models = self.informer(MODELS)
        self._versions = self.informer(MODELVERSIONS, transform=_slim_version, indexers={"model": _model_of_version})
        self._services = [
            self.informer(kind, transform=users.slim, indexers={"namespace": _namespace}, optional=True)
            for kind in (PADDLESERVICES, EARLIER_PADDLESERVICES)
        ]
        self.primary = (self._models, self._versions)
        self.controller.watch(self._models, expectations=self.expectations)
        self.controller.watch(self._models, map=lambda model: self._deleted_versions(key_of(model)))
        self.controller.watch(self._versions, expectations=self.expectations)
        self.controller.watch(self._versions, map=_model_key, expectations=self.expectations)
        for informer in self._services:
            self.controller.watch(informer, map=self._used_by, when=_uses_others)

    async def run(self) -> None:
        scans = asyncio.ensure_future(self._scan_for_ever()) if self._store is not None else None
        try:
            await super().run()
        finally:
            if scans is not None:
                scans.cancel()
                await asyncio.gather(scans, return_exceptions=True)

    # Which keys a change concerns

    def _deleted_versions(self, model: Key) -> Iterable[Key]:
        """Those whose deletion may have waited for what has changed."""
        for version in self._versions.cache.by_index("model", str(model)):
            if version["metadata"].get("deletionTimestamp"):
                yield key_of(version)

    def _used_by(self, service: Object) -> Iterable[Key]:
        namespace = service["metadata"]["namespace"]
        for name in {reference.model for reference in users.references(service)}:
            yield Key(namespace, name)
            yield from self._deleted_versions(Key(namespace, name))

    # What there is

    async def observe(self, obj: Object) -> Observed:
        return await (self._observe_version(obj) if obj["kind"] == MODELVERSIONS.kind else self._observe_model(obj))

    def decide(self, obj: Object, observed: Observed, now: float) -> ModelPlan:
        return decide(obj, observed, now)

    async def _observe_version(self, version: Object) -> Observed:
        meta, spec = version["metadata"], version["spec"]
        key = Key(meta["namespace"], spec["model"])
        model = self._models.cache.get(key)
        if not self._keeps(version):
            return Observed(keeps=False, model=model)
        if not meta.get("deletionTimestamp"):
            return Observed(stored=await self._is_stored(version), model=model)
        model = await self.client.find(MODELS, key.name, key.namespace)
        found = users.users_of(key.name, spec["version"], _spec_of(model), await self._live_services(key.namespace))
        if model is not None and model["metadata"].get("deletionTimestamp"):
            found = [user for user in found if user != users.VersionUser("alias", LATEST)]  # it goes with its model
        return Observed(users=await self._unless_namespace_goes(key.namespace, found), model=model)

    async def _observe_model(self, model: Object) -> Observed:
        key = key_of(model)
        versions = self._versions.cache.by_index("model", str(key))
        kept = [version for version in versions if self._keeps(version)]
        observed = Observed(keeps=self._store is not None, versions=versions, kept_versions=kept)
        if model["metadata"].get("deletionTimestamp"):
            services = await self._live_services(key.namespace)
            found = users.users_of_model(key.name, _spec_of(model), services)
            return replace(observed, users=await self._unless_namespace_goes(key.namespace, found))
        services = [each for informer in self._services for each in informer.cache.by_index("namespace", key.namespace)]
        return replace(observed, services=services, broken=await self._broken_aliases(key, model, versions))

    async def _broken_aliases(self, key: Key, model: Object, versions: Sequence[Object]) -> list[str]:
        """The caches of the two kinds are not filled at the same moment, so what is missing here is asked for."""
        here = {str(version["spec"]["version"]) for version in versions}
        known = (_spec_of(model) or ModelSpec()).aliases or {}
        lacking = {version for version in known.values() if version not in here}
        gone = {
            each for each in lacking
            if await self.client.find(MODELVERSIONS, object_name(key.name, each), key.namespace) is None
        }  # fmt: skip
        return sorted(alias for alias, version in known.items() if version in gone)

    async def _live_services(self, namespace: str) -> list[Object]:
        found: list[Object] = []
        for kind in (PADDLESERVICES, EARLIER_PADDLESERVICES):
            try:
                found += (await self.client.list(kind, namespace, limit=500)).items
            except NotFound:  # the kind is not served
                continue
        return found

    async def _unless_namespace_goes(self, namespace: str, found: list[users.VersionUser]) -> list[users.VersionUser]:
        """In a namespace that is being deleted everything goes: nothing is left for a version to be kept for."""
        if not found:
            return found
        try:
            current = await self.client.get(NAMESPACES, namespace)
        except NotFound:
            return []
        return [] if current["metadata"].get("deletionTimestamp") else found

    def _keeps(self, version: Object) -> bool:
        return self._store is not None and (version["spec"].get("store") or "") in self._store.addresses

    async def _is_stored(self, version: Object) -> bool | None:
        which = _which(version)
        if self._store is None or which is None:
            return None
        try:
            return await self._store.has(which)
        except StorageError as error:
            log.warning("cannot look for the manifest of %s: %s", which, error)
            return None

    # What is done

    async def act(self, obj: Object, observed: Observed, plan: ModelPlan) -> float | None:
        if plan.delete and not obj["metadata"].get("deletionTimestamp"):
            live = await self.client.find(MODELS, obj["metadata"]["name"], obj["metadata"]["namespace"])
            if live is None or live["metadata"]["resourceVersion"] != obj["metadata"]["resourceVersion"]:
                return RETRY  # an alias may have moved to what retention would remove: decide on what is there now
            services = await self._live_services(obj["metadata"]["namespace"])
            plan = self.decide(obj, replace(observed, services=services), self.clock.now())
        if plan.forget and self._store is not None and (which := _which(obj)) is not None:
            try:
                await self._store.remove(which)
            except StorageError as error:
                await self.recorder.record(obj, "StoreUnreachable", f"its manifest stays: {error}", type="Warning")
                return LOOK_AGAIN
        return await super().act(obj, observed, plan)

    # What is in the store and nowhere else

    async def _scan_for_ever(self) -> None:
        for informer in (self._models, self._versions):
            await informer.wait_synced()
        while True:
            try:
                await self.scan()
            except (StorageError, ApiError) as error:
                log.warning("the model store is not compared with the objects, next try in %g s: %s", SCAN, error)
            await self.clock.sleep(SCAN)

    async def scan(self) -> None:
        """Compare the store with the objects: look at versions whose manifest is gone, register what has no object."""
        if self._store is None:
            return
        found = await self._store.scan()
        for which in found.gone:
            self.controller.queue.add(Key(which.namespace, object_name(which.model, which.version)))
        began: dict[str, tuple[float, float]] = {}
        for which, written in found.found.items():
            key = Key(which.namespace, object_name(which.model, which.version))
            served = self._namespace in (None, which.namespace)
            if not served or self._versions.cache.get(key) is not None or self.clock.now() - written < YOUNG:
                continue
            if which.namespace not in began:
                began[which.namespace] = await self._began(which.namespace)
            platform, namespace = began[which.namespace]
            if written < platform or written >= namespace:
                await self._register(which)

    async def _began(self, namespace: str) -> tuple[float, float]:
        """When the platform and the namespace were made. What was stored in between is of an earlier namespace of the
        name, and nobody's any more; what was stored before is of a platform that was set up anew."""
        try:
            own = await self._created(namespace)
        except NotFound:
            return 0.0, math.inf
        try:
            return await self._created(SYSTEM), own
        except Forbidden:  # a controller of one namespace
            return 0.0, own

    async def _created(self, namespace: str) -> float:
        found = await self.client.get(NAMESPACES, namespace)
        return parse_rfc3339(str(found["metadata"]["creationTimestamp"]))

    async def _register(self, which: VersionKey) -> None:
        """A push was killed before it did this, or the API server was set up anew. Aliases are not guessed."""
        assert self._store is not None
        try:
            manifest = await self._store.manifest(which)
        except Damaged as error:
            log.warning("%s is not registered: %s", which, error)
            return
        if manifest is None:
            return
        try:
            model = await self._model(which)
            await self.client.create(MODELVERSIONS, version_object(manifest, model, store=self._store.addresses[0]))
        except (AlreadyExists, NotFound):
            return  # somebody else registers it; or its namespace is gone
        except ApiError as error:
            log.warning("%s is not registered: %s", which, error)
            return
        text = f"{which.model}:{which.version} was in the store and had no object; no alias was moved"
        await self.recorder.record(model, "VersionRegistered", text)

    async def _model(self, which: VersionKey) -> Object:
        found = await self.client.find(MODELS, which.model, which.namespace)
        return found or await self.client.create(MODELS, model_object(which.namespace, which.model))


def _which(version: Object) -> VersionKey | None:
    """None for a name that cannot be in a store."""
    spec = version["spec"]
    try:
        return version_key(version["metadata"]["namespace"], spec["model"], spec["version"])
    except BadReference:
        return None


def _spec_of(model: Object | None) -> ModelSpec | None:
    try:
        return decode(model).spec if model is not None else None
    except DecodeError:
        return None


def _slim_version(version: Object) -> Object:
    """There may be tens of thousands: only what is decided on."""
    meta, spec = version["metadata"], version["spec"]
    kept = ("name", "namespace", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")
    slim = {name: meta[name] for name in (*kept, "finalizers") if name in meta}
    described = {name: spec[name] for name in ("model", "version", "store", "createdAt") if name in spec}
    found = {"apiVersion": version["apiVersion"], "kind": version["kind"], "metadata": slim, "spec": described}
    return {**found, "status": version["status"]} if version.get("status") else found


def _model_key(version: Object) -> Iterable[Key]:
    return (Key(version["metadata"]["namespace"], str(version["spec"]["model"])),)


def _model_of_version(version: Object) -> Iterable[str]:
    return (str(key) for key in _model_key(version))


def _namespace(obj: Object) -> Iterable[str]:
    return (obj["metadata"]["namespace"],)


def _uses_others(old: Object | None, new: Object | None) -> bool:
    """Statuses of services change all the time; what they name seldom does."""
    before, after = (set(users.references(service)) if service is not None else set() for service in (old, new))
    return before != after
