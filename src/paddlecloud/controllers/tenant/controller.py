"""The controller of Profiles: what it observes. What it does is `decide`'s."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from paddlecloud.api.names import PROFILE_LABEL
from paddlecloud.api.profile import ProfileSpec
from paddlecloud.controllers import engines
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.tenant.decide import Observed, ParsedProfile, decide, is_of
from paddlecloud.controllers.tenant.objects import ACCOUNTS, TenantSettings
from paddlecloud.kube.client import Client
from paddlecloud.kube.clock import Clock
from paddlecloud.kube.controller import Hooks
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import (
    LIMITRANGES,
    NAMESPACES,
    NETWORKPOLICIES,
    PROFILES,
    QUEUES,
    RESOURCEQUOTAS,
    ROLEBINDINGS,
    SERVICEACCOUNTS,
    Key,
    Object,
    Resource,
)

COMPONENT = "Tenant"
OPTIONAL = (QUEUES, NETWORKPOLICIES)
_ALWAYS = (ROLEBINDINGS, SERVICEACCOUNTS, RESOURCEQUOTAS, LIMITRANGES)
_IN = "namespace"


async def served_kinds(client: Client) -> list[Resource]:
    """Which of the optional kinds this API server has."""
    return await engines.served(client, own=PROFILES, optional=OPTIONAL)


class TenantController(Operator[Observed, Plan]):
    """It serves all Profiles: they and their namespaces belong to the whole cluster."""

    def __init__(
        self,
        client: Client,
        *,
        served: Collection[Resource] = (QUEUES,),
        settings: TenantSettings | None = None,
        clock: Clock | None = None,
        workers: int = 4,
        hooks: Hooks | None = None,
    ) -> None:
        super().__init__(
            client, "tenant", component=COMPONENT, namespace=None, clock=clock, workers=workers, hooks=hooks
        )
        self._served = served
        self._settings = settings or TenantSettings()
        profiles = self.informer(PROFILES)
        self.primary = (profiles,)
        self.controller.watch(profiles, expectations=self.expectations)
        self._namespaces = self.informer(NAMESPACES, transform=_slim)
        self.controller.watch(
            self._namespaces, when=lambda old, new: _shape(old) != _shape(new), expectations=self.expectations
        )
        kinds = [*_ALWAYS, *(kind for kind in OPTIONAL if kind in served)]
        self._children = {
            kind: self.informer(kind, label_selector=PROFILE_LABEL, indexers={_IN: _namespace_of}) for kind in kinds
        }
        for informer in self._children.values():
            self.controller.watch(informer, map=_profile_of, expectations=self.expectations)

    async def observe(self, obj: Object) -> Observed:
        name = obj["metadata"]["name"]
        inside = [
            each
            for kind, informer in self._children.items()
            if kind.namespaced
            for each in informer.cache.by_index(_IN, name)
        ]
        queues, parsed = QUEUES in self._served, ParsedProfile.of(obj)
        namespace = self._namespaces.cache.get(Key("", name))
        changes_hands = obj["metadata"].get("deletionTimestamp") or (namespace and not is_of(obj, namespace))
        return Observed(
            parsed,
            namespace=namespace,
            children={(each["kind"], each["metadata"]["name"]): each for each in inside},
            accounts=await self._accounts(name) if changes_hands else (),
            queue=await self._queue(name) if queues else None,
            queues=queues,
            policies=NETWORKPOLICIES in self._served,
            owner_missing=await self._lacks_owner(parsed.profile.spec),
            settings=self._settings,
            refusal=self.refusal_of(obj),
        )

    def decide(self, obj: Object, observed: Observed, now: float) -> Plan:
        return decide(obj, observed, now)

    async def _queue(self, name: str) -> Object | None:
        """One without the label is not in the cache, and keeps its name all the same."""
        return self._children[QUEUES].cache.get(Key("", name)) or await self.client.find(QUEUES, name)

    async def _accounts(self, namespace: str) -> list[Object]:
        """From the API server: one whose label was taken off is not in the cache."""
        found = [await self.client.find(SERVICEACCOUNTS, name, namespace) for name in ACCOUNTS]
        return [each for each in found if each is not None]

    async def _lacks_owner(self, spec: ProfileSpec | None) -> bool:
        owner = spec.owner if spec is not None else None
        if owner is None or owner.kind != SERVICEACCOUNTS.kind or not owner.namespace or not owner.name:
            return False
        return await self.client.find(SERVICEACCOUNTS, owner.name, owner.namespace) is None


def _profile_of(obj: Object) -> Iterable[Key]:
    """That of its namespace, and of a Queue that of its name: people may write any label."""
    yield Key("", obj["metadata"].get("namespace") or obj["metadata"]["name"])


def _namespace_of(obj: Object) -> Iterable[str]:
    return (obj["metadata"].get("namespace", ""),)


def _slim(namespace: Object) -> Object:
    """There may be thousands, most of them nobody's tenants."""
    meta = namespace["metadata"]
    kept = ("name", "uid", "resourceVersion", "labels", "annotations", "ownerReferences", "deletionTimestamp")
    slim = {name: meta[name] for name in kept if name in meta}
    return {"apiVersion": NAMESPACES.api_version, "kind": NAMESPACES.kind, "metadata": slim}


def _shape(namespace: Object | None) -> object:
    """What is decided on: statuses of namespaces change besides."""
    return None if namespace is None else {**namespace["metadata"], "resourceVersion": ""}
