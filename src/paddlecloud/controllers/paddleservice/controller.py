"""The PaddleService controller: its caches, and what it observes of a service.

Both API groups are served by one controller under one key, so that two objects of the same name cannot make the same
things twice: the one that came first has them, the other is refused.

A service that became Deployments stays with them when Knative is installed later: it serves under a name that Knative
would want for itself. One made anew is Knative's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from paddlecloud.api.model.reference import object_name
from paddlecloud.api.names import SERVICE
from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.api.paddleservice.named_model import hub_reference
from paddlecloud.controllers import engines
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.paddleservice import deployment
from paddlecloud.controllers.paddleservice.decide import decide
from paddlecloud.controllers.paddleservice.measures import PodMeasures
from paddlecloud.controllers.paddleservice.observe import (
    Observed,
    Parsed,
    judged_revision,
    retry_of,
    versions_kept,
    view,
)
from paddlecloud.controllers.paddleservice.resolution import Hub, hub_models, named_models, version_meant
from paddlecloud.controllers.paddleservice.template import Site, allowed_folders
from paddlecloud.kube import shared_key
from paddlecloud.kube.cache import by_owner, owned_by
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.informer import Informer
from paddlecloud.kube.plan import Plan, PlanFailed, PlannedEvent
from paddlecloud.kube.resource import (
    DEPLOYMENTS,
    EARLIER_PADDLESERVICES,
    HORIZONTALPODAUTOSCALERS,
    KNATIVE_REVISIONS,
    KNATIVE_SERVICES,
    MODELS,
    MODELVERSIONS,
    PADDLESERVICES,
    SERVICES,
    Key,
    Object,
    Resource,
    key_of,
)
from paddlecloud.modelhub import read_grant

COMPONENT = "paddleservice-controller"
GROUPS = (PADDLESERVICES, EARLIER_PADDLESERVICES)
KNATIVE = (KNATIVE_SERVICES, KNATIVE_REVISIONS)
HUB = (MODELS, MODELVERSIONS)
OPTIONAL = (*KNATIVE, *HUB, HORIZONTALPODAUTOSCALERS)
"""Kinds that not every API server has."""
REFUSED = "Refused"
"""Reason of the event about objects that the API server refuses."""
FINGERPRINT_SECONDS = 5.0
"""For the files of one folder: it may lie on a file server that does not answer."""


async def served_kinds(client: Client) -> list[Resource]:
    """Which of the optional kinds this API server has; what `served` should be on a cluster."""
    return await engines.served(client, own=PADDLESERVICES, optional=OPTIONAL)


class PaddleServiceController(Operator[Observed, Plan]):
    """`run` works until cancelled. Without Knative among `served`, new services become Deployments."""

    def __init__(
        self,
        client: Client,
        *,
        namespace: str | None = None,
        clock: Clock | None = None,
        workers: int = 4,
        hooks: Hooks | None = None,
        served: Collection[Resource] = (*KNATIVE, *HUB),
        site: Site | None = None,
        key_namespace: str = "kube-system",
    ) -> None:
        """`key_namespace` has the Secret with the key that grants for the ModelHub are signed with."""
        super().__init__(
            client,
            "paddleservice",
            component=COMPONENT,
            namespace=namespace,
            clock=clock,
            workers=workers,
            hooks=hooks,
            backoff_cap=10.0,
        )
        self._site = site or Site()
        self._key_namespace = key_namespace
        self._knative = KNATIVE_SERVICES in served
        self._measures = PodMeasures(client)
        self._fingerprints: dict[Key, tuple[tuple[str, int, str], dict[str, str]]] = {}
        """By service: uid, generation and last retry, and its folders as they were then."""

        def informer(resource: Resource, *, labelled: bool = False) -> Informer:
            return self.informer(resource, label_selector=SERVICE if labelled else None, indexers={"owner": by_owner})

        self.primary = [self.informer(resource, indexers={"models": _models_of}) for resource in GROUPS]
        self._owned = {resource: informer(resource, labelled=True) for resource in (SERVICES, DEPLOYMENTS)}
        if HORIZONTALPODAUTOSCALERS in served:
            self._owned[HORIZONTALPODAUTOSCALERS] = informer(HORIZONTALPODAUTOSCALERS)
        self._revisions: Informer | None = None
        if self._knative:
            self._owned[KNATIVE_SERVICES] = informer(KNATIVE_SERVICES)
            self._revisions = informer(KNATIVE_REVISIONS, labelled=True)
        self._models: Informer | None = None
        self._versions: Informer | None = None
        if all(resource in served for resource in HUB):
            self._models = self.informer(MODELS)
            self._versions = self.informer(MODELVERSIONS, indexers={"models": _models_of_version})
        self._watch()

    def _watch(self) -> None:
        for primary in self.primary:
            self.controller.watch(primary, expectations=self.expectations)
        for owned in self._owned.values():
            for resource in GROUPS:
                self.controller.watch_owned(owned, owner_kind=resource, expectations=self.expectations)
        if self._revisions is not None:
            self.controller.watch(self._revisions, map=_service_of, expectations=self.expectations)
        if self._models is not None and self._versions is not None:
            self.controller.watch(self._models, map=self._services_naming)
            self.controller.watch(self._versions, map=self._services_naming)

    def _services_naming(self, found: Object) -> Iterable[Key]:
        """The services that may mean a Model, or the one of a version."""
        meta = found["metadata"]
        model = _name_in_hub(meta["namespace"], meta["name"].partition(".")[0])
        for primary in self.primary:
            for service in primary.cache.by_index("models", model):
                yield key_of(service)

    def objects(self, key: Key) -> Sequence[Object]:
        """The one that has the name first: others of it are refused."""
        found = super().objects(key)
        if len(found) < 2:
            return found
        return sorted(found, key=lambda service: (not self._has_things(service), *_seniority(service)))

    async def observe(self, service: Object) -> Observed:
        holder = next(iter(self.objects(key_of(service))), service)
        if holder["apiVersion"] != service["apiVersion"]:
            return Observed(rival=holder["apiVersion"])
        parsed = Parsed.of(service)
        fingerprints = await self._fingerprinted(service, parsed)
        hub = await self._hub(service, parsed)
        if hub.models or hub.versions:
            await self._ensure_key()
        observed = replace(self._observe(service), parsed=parsed, fingerprints=fingerprints, hub=hub)
        return await self._measured(service, observed)

    def decide(self, service: Object, observed: Observed, now: float) -> Plan:
        return decide(service, observed, now)

    def refused(self, service: Object, failed: PlanFailed) -> Sequence[PlannedEvent]:
        return [PlannedEvent(REFUSED, str(failed), type="Warning")]

    def forget(self, key: Key, uid: str) -> None:
        self._measures.forget(key)
        self._fingerprints.pop(key, None)

    async def _fingerprinted(self, service: Object, parsed: Parsed) -> dict[str, str]:
        """Once for each change of the spec and each retry: a revision is made of what its folder holds then."""
        if self._site.fingerprint is None:
            return {}
        key, meta = key_of(service), service["metadata"]
        asked = str(meta["uid"]), int(meta.get("generation") or 0), retry_of(service)
        known = self._fingerprints.get(key)
        if known is None or known[0] != asked:
            found = {folder: await _within_limit(self._site.fingerprint, folder) for folder in self._folders(parsed)}
            known = self._fingerprints[key] = (asked, found)
        return known[1]

    async def _hub(self, service: Object, parsed: Parsed) -> Hub:
        if self._models is None or self._versions is None or parsed.settings is None:
            return Hub()
        namespace, wanted = service["metadata"]["namespace"], hub_models(parsed.settings)
        models = {name: found for name in wanted if (found := self._models.cache.get(Key(namespace, name)))}
        versions = [
            found for name in wanted for found in self._versions.cache.by_index("models", _name_in_hub(namespace, name))
        ]
        hub = Hub(models, {found["metadata"]["name"]: found for found in versions})
        unknown = named_models(parsed.settings).keys() - versions_kept(service, parsed.settings).keys()
        return await self._fresh(service, parsed.settings, hub) if unknown else hub

    async def _fresh(self, service: Object, settings: ServiceSettings, hub: Hub) -> Hub:
        """As the API server has it: what is found now is kept, and a cache may be behind the user's last command."""
        namespace = service["metadata"]["namespace"]
        models, versions = dict(hub.models), dict(hub.versions)
        for text in named_models(settings).values():
            if (meant := hub_reference(text)) is None:
                continue
            models.update(await self._named(MODELS, namespace, meant.model))
            if version := version_meant(meant, models.get(meant.model)):
                versions.update(await self._named(MODELVERSIONS, namespace, object_name(meant.model, version)))
        lacks = hub_models(settings) - models.keys()
        there = self._models.cache.list(namespace) if lacks and self._models is not None else ()
        return Hub(models, versions, sorted(str(each["metadata"]["name"]) for each in there))

    async def _named(self, resource: Resource, namespace: str, name: str) -> dict[str, Object]:
        found = await self.client.list(resource, namespace, field_selector=f"metadata.name={name}")
        return {obj["metadata"]["name"]: obj for obj in found.items}

    async def _ensure_key(self) -> None:
        """Once: what it signs is part of the pods' environment. Without a server of the hub nothing is signed."""
        hub = self._site.hub
        if hub.url and not hub.key:
            key = await shared_key.ensure_key(self.client, read_grant.KEY_NAME, self._key_namespace)
            self._site = self._site._replace(hub=hub._replace(key=key))

    def _folders(self, parsed: Parsed) -> set[str]:
        return allowed_folders(parsed.settings, self._site) if parsed.settings else set()  # refused by decide

    async def _measured(self, service: Object, observed: Observed) -> Observed:
        """With figures of the revision that a roll-out waits to judge, where its platform left none beside it."""
        key, found = key_of(service), judged_revision(service, observed) if self._knative else None
        if found is None:
            self._measures.forget(key)
            return observed
        measure = await self._measures.of(key, found.name, now=self.clock.now())
        return replace(observed, revisions={**observed.revisions, found.name: found._replace(measure=measure)})

    def _has_things(self, service: Object) -> bool:
        """Whether it made what clients use already: times of creation are whole seconds, and may be equal."""
        return any(informer.cache.by_index("owner", owned_by(service)) for informer in self._owned.values())

    def _observe(self, service: Object) -> Observed:
        meta = service["metadata"]
        owned = {
            resource: {obj["metadata"]["name"]: obj for obj in informer.cache.by_index("owner", owned_by(service))}
            for resource, informer in self._owned.items()
        }
        trouble = self.refusal_of(service)
        if self._revisions is None or (service.get("status") or {}).get("engine") == "Deployment":
            deployments = owned[DEPLOYMENTS]
            views = [deployment.view(obj) for obj in deployments.values()]
            return Observed(
                engine="Deployment",
                revisions={found.name: found for found in views},
                services=owned[SERVICES],
                deployments=deployments,
                autoscalers=owned.get(HORIZONTALPODAUTOSCALERS),
                trouble=trouble,
                site=self._site,
            )
        views = [
            view(obj)
            for obj in self._revisions.cache.list(meta["namespace"])
            if obj["metadata"]["labels"].get(SERVICE) == meta["name"] and not obj["metadata"].get("deletionTimestamp")
        ]
        revisions = {found.name: found for found in views}
        return Observed(
            kservice=owned[KNATIVE_SERVICES].get(meta["name"]),
            revisions=revisions,
            services=owned[SERVICES],
            trouble=trouble,
            site=self._site,
        )


async def _within_limit(fingerprint: Callable[[str], str], folder: str) -> str:
    try:
        return await asyncio.wait_for(asyncio.to_thread(fingerprint, folder), FINGERPRINT_SECONDS)
    except (asyncio.TimeoutError, TimeoutError):  # the same since Python 3.11
        return ""


def _name_in_hub(namespace: str, model: str) -> str:
    return f"{namespace}/{model}"


def _models_of(service: Object) -> Iterable[str]:
    """The Models that a service may mean, for an index: whatever its spec looks like."""
    meta, spec = service["metadata"], service.get("spec") or {}
    for part in (spec, spec.get("default"), spec.get("canary")):
        text = part.get("model") if isinstance(part, dict) else None
        if isinstance(text, str) and (meant := hub_reference(text)) is not None:
            yield _name_in_hub(meta["namespace"], meant.model)


def _models_of_version(version: Object) -> Iterable[str]:
    meta = version["metadata"]
    yield _name_in_hub(meta["namespace"], meta["name"].partition(".")[0])


def _seniority(service: Object) -> tuple[str, bool]:
    """Who came first; of two from the same second, the one in the group of today."""
    return service["metadata"].get("creationTimestamp", ""), service["apiVersion"] != PADDLESERVICES.api_version


def _service_of(revision: Object) -> Iterable[Key]:
    name = (revision["metadata"].get("labels") or {}).get(SERVICE)
    if name:
        yield Key(revision["metadata"]["namespace"], name)
