"""The embedded Knative of a platform, put together: four controllers, the gateway's table, the autoscaler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable
from typing import Any

from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import CONFIGMAPS, PODS, Key, Object, key_of
from paddlecloud.kube.resource import SERVICES as CORE_SERVICES
from paddlecloud.local.knative import configuration, revision, route, service
from paddlecloud.local.knative.autoscaler import Autoscaler, Scene
from paddlecloud.local.knative.coldstart import ColdStarts, stages_of
from paddlecloud.local.knative.conditions import YES, Verdict
from paddlecloud.local.knative.h2c.envoy import find_envoy
from paddlecloud.local.knative.measures import Measures
from paddlecloud.local.knative.names import (
    COLD_START,
    CONFIGURATIONS,
    MEASURES,
    REVISION,
    REVISIONS,
    ROUTES,
    SERVICES,
    deployment_of,
)
from paddlecloud.local.knative.routing import (
    Entries,
    is_split,
    named_in,
    revision_entry,
    revisions_of,
    route_entries,
    takes_requests,
)
from paddlecloud.local.knative.settings import Defaults
from paddlecloud.local.knative.supervisor import Gateways, Report
from paddlecloud.local.knative.validation import judge
from paddlecloud.local.platform import Platform
from paddlecloud.local.workloads.endpoints import SLICES
from paddlecloud.local.workloads.loop import OWNER, Loop
from paddlecloud.local.workloads.resources import DEPLOYMENTS

CONFIG = Key("knative-serving", "config-autoscaler")
OF_REVISION = "revision"
LEADS_TO, NAMED = "leads to", "named"


class Knative:
    """`run` works until cancelled; `stop` ends the gateways, or leaves them to the next control plane."""

    def __init__(
        self, platform: Platform, *, gateways: int | None = None, warm: Callable[[str], None] = lambda image: None
    ) -> None:
        """`warm` is told the images whose pods may be wanted at any moment: those of revisions that sleep."""
        self._warm = warm
        self._envoy = find_envoy()
        self._clock = platform.clock
        self.manager = manager = Manager(platform.client(user_agent="knative"), clock=self._clock)
        self.gateways = Gateways(
            platform.data / "gateway",
            changed=self._gateways_changed,
            report=self._heard,
            wake=self._wake,
            count=gateways,
        )
        self._routes = manager.informer(ROUTES, indexers={LEADS_TO: revisions_of, NAMED: named_in})
        self._configurations = manager.informer(CONFIGURATIONS)
        self._pods = manager.informer(PODS, label_selector=REVISION, indexers={OF_REVISION: _revision_of})
        self._config = manager.informer(CONFIGMAPS, namespace=CONFIG.namespace)
        self._published: dict[Key, Entries] = {}
        self._measures = Measures(platform.metrics.registry)
        self._cold_starts = ColdStarts(platform.metrics.registry)
        self._asking: set[asyncio.Task[None]] = set()
        self._declare_service()
        self._configuration_loop = self._declare_configuration()
        self._revision_loop = self._declare_revision()
        self._revisions = self._revision_loop.primary
        self._route_loop = self._declare_route()
        self._declare_table()
        self.autoscaler = Autoscaler(
            manager.client, clock=self._clock, scenes=self._scenes, defaults=lambda: self._defaults
        )
        manager.add_service("autoscaler", self.autoscaler.run)
        platform.admission.policies.append(judge)

    async def run(self) -> None:
        await self.manager.run()

    async def stop(self, *, gateways: bool) -> None:
        await self.gateways.stop(processes=gateways)

    @property
    def _defaults(self) -> Defaults:
        return Defaults.of(self._config.cache.get(CONFIG))

    # Controllers

    def _declare_service(self) -> None:
        def observe(obj: Object) -> service.Observed:
            uid = obj["metadata"]["uid"]
            return service.Observed(
                next(iter(configurations.cache.by_index(OWNER, uid)), None),
                next(iter(routes.cache.by_index(OWNER, uid)), None),
            )

        loop = Loop(
            self.manager, SERVICES, name="service-controller", observe=observe, decide=service.decide, clock=self._clock
        )
        configurations = loop.owns(CONFIGURATIONS, adopting=False)
        routes = loop.owns(ROUTES, adopting=False)

    def _declare_configuration(self) -> Loop[configuration.Observed]:
        def observe(obj: Object) -> configuration.Observed:
            made = tuple(revisions.cache.by_index(OWNER, obj["metadata"]["uid"]))
            return configuration.Observed(made, {r["metadata"]["name"] for r in made if self._is_routed(key_of(r))})

        loop = Loop(
            self.manager,
            CONFIGURATIONS,
            name="configuration-controller",
            observe=observe,
            decide=configuration.decide,
            clock=self._clock,
        )
        revisions = loop.owns(REVISIONS, adopting=False)
        return loop

    def _declare_revision(self) -> Loop[revision.Observed]:
        def observe(obj: Object) -> revision.Observed:
            uid = obj["metadata"]["uid"]
            return revision.Observed(
                next(iter(deployments.cache.by_index(OWNER, uid)), None),
                tuple(self._pods.cache.by_index(OF_REVISION, _path(key_of(obj)))),
                tuple(services.cache.by_index(OWNER, uid)),
                self._defaults,
                self._remarks(obj),
            )

        loop = Loop(
            self.manager,
            REVISIONS,
            name="revision-controller",
            observe=observe,
            decide=revision.decide,
            clock=self._clock,
        )
        deployments = self._deployments = loop.owns(DEPLOYMENTS, adopting=False)
        services = loop.owns(CORE_SERVICES, adopting=False)
        loop.controller.watch(self._pods, map=_revision_key)
        return loop

    def _declare_route(self) -> Loop[route.Observed]:
        def observe(obj: Object) -> route.Observed:
            namespace, uid = obj["metadata"]["namespace"], obj["metadata"]["uid"]
            found, made = {}, {}
            for target in (obj.get("spec") or {}).get("traffic") or ():
                name, source = target.get("revisionName"), target.get("configurationName", "")
                if (known := self._configurations.cache.get(Key(namespace, source))) is not None:
                    found[source] = known
                    name = name or (known.get("status") or {}).get("latestReadyRevisionName")
                if name and (version := self._revisions.cache.get(Key(namespace, name))) is not None:
                    made[name] = version
            return route.Observed(
                revisions=made,
                configurations=found,
                service=next(iter(services.cache.by_index(OWNER, uid)), None),
                slice=next(iter(slices.cache.by_index(OWNER, uid)), None),
                **self._way_in(made.values()),
            )

        def concerned(obj: Object) -> list[Key]:
            return [key_of(found) for found in self._routes.cache.by_index(NAMED, _path(key_of(obj)))]

        loop = Loop(
            self.manager, ROUTES, name="route-controller", observe=observe, decide=route.decide, clock=self._clock
        )
        services = loop.owns(CORE_SERVICES, adopting=False)
        slices = loop.owns(SLICES, adopting=False)
        for informer in (self._revisions, self._configurations):
            loop.controller.watch(informer, map=concerned)
        return loop

    def _way_in(self, revisions: Iterable[Object]) -> dict[str, Any]:
        """Of a route to these revisions: the port its clients come to, and whether HTTP/2 is taken there."""
        port = self.gateways.port if self.gateways.ready else None
        if not any(map(revision.speaks_h2c, revisions)):
            return {"port": port}
        if self._envoy is None:
            return {"port": port, "http2": Verdict("False", "EnvoyMissing", route.NO_ENVOY)}
        port = self.gateways.h2c_port
        return {"port": port, "http2": Verdict("Unknown", "GatewayStarting") if port is None else YES}

    # The gateway's table

    def _declare_table(self) -> None:
        routes = self.manager.controller("gateway-routes", self._publish_route, workers=1)
        routes.watch(self._routes)
        pods = self._pods_controller = self.manager.controller("gateway-pods", self._publish_revision, workers=1)
        pods.watch(self._revisions)
        pods.watch(self._pods, map=_revision_key)
        self._pods.on_change(self._pod_changed)

    async def _publish_route(self, key: Key) -> float | None:
        found = self._routes.cache.get(key)
        if found is not None:
            await asyncio.gather(self._revisions.wait_synced(), self._pods.wait_synced())
            await self.gateways.ensure(self._publish_everything)
        self._replace(key, route_entries(found) if found else {})
        return None

    def _publish_everything(self) -> None:
        for led in self._routes.cache.list():
            self._replace(key_of(led), route_entries(led))
        for found in self._revisions.cache.list():
            self._replace(_place(key_of(found)), self._entry_of(found))

    def _entry_of(self, found: Object) -> Entries:
        pods = self._pods.cache.by_index(OF_REVISION, _path(key_of(found)))
        return revision_entry(found, pods, self.gateways.slots)

    async def _publish_revision(self, key: Key) -> float | None:
        found = self._revisions.cache.get(key)
        if found is None:
            self._replace(_place(key), {})
            self._measures.forget(_path(key))
            self._cold_starts.forget(_path(key))
        elif self.gateways.port is not None:
            self._replace(_place(key), self._entry_of(found))
            if self._envoy is not None and revision.speaks_h2c(found):
                self.gateways.ensure_h2c(self._envoy)
            if not self._pods.cache.by_index(OF_REVISION, _path(key)) and revision.is_reached(found):
                for container in found["spec"].get("containers") or ():
                    self._warm(str(container.get("image", "")))
        else:
            return 0.1  # until the first route has the gateway started
        return None

    def _replace(self, place: Key, entries: Entries) -> None:
        before = self._published.get(place, {})
        self.gateways.publish({**dict.fromkeys(before), **entries})
        self._published[place] = entries

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self.gateways.forget_slots(str(old["metadata"]["uid"]))
        elif new is not None:
            for key in _revision_key(new):
                if self._cold_starts.pod_changed(_path(key), new, self._clock.monotonic()) is not None:
                    task = asyncio.ensure_future(self._learn(key, new))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)

    async def _learn(self, key: Key, pod: Object) -> None:
        """A revision has just got up: let the program tell how it spent its time."""
        found = self._revisions.cache.get(key)
        stages = await stages_of(pod["status"]["podIP"], revision.port_of(found)) if found is not None else {}
        self._cold_starts.learned(_path(key), stages)
        self._revision_loop.controller.queue.add(key)

    def _gateways_changed(self) -> None:
        """Gateways came or went: what routes say of them, and what they are told, may be another."""
        concerned = ((self._route_loop.controller, self._routes), (self._pods_controller, self._revisions))
        for controller, informer in concerned:
            for key in informer.cache:
                controller.queue.add(key)

    # News from the gateways

    def _heard(self, report: Report) -> None:
        self.autoscaler.heard(report)
        now = self._clock.monotonic()
        self._measures.heard(report, now)
        for name in report:
            if self._shares_a_route(name) and self._measures.due(name, now):
                self._revision_loop.controller.queue.add(Key(*name.split("/", 1)))

    def _wake(self, name: str) -> None:
        self._cold_starts.woken(name, self._clock.monotonic())
        self.autoscaler.wake(name)

    def _is_routed(self, key: Key) -> bool:
        return bool(self._routes.cache.by_index(LEADS_TO, _path(key)))

    def _shares_a_route(self, name: str) -> bool:
        return any(is_split(found) for found in self._routes.cache.by_index(LEADS_TO, name))

    def _remarks(self, obj: Object) -> dict[str, str]:
        name = _path(key_of(obj))
        remarks = {}
        if (cold := self._cold_starts.of(name)) is not None:
            remarks[COLD_START] = json.dumps(cold, sort_keys=True)
        if self._shares_a_route(name) and (seen := self._measures.of(name)) is not None:
            remarks[MEASURES] = json.dumps(seen, sort_keys=True)
        return remarks

    def _scenes(self, name: str | None) -> Iterable[Scene]:
        if name is None:
            found = self._revisions.cache.list()
        else:
            namespace, _, own = name.partition("/")
            one = self._revisions.cache.get(Key(namespace, own))
            found = [one] if one is not None else []
        for obj in found:
            namespace, own = obj["metadata"]["namespace"], obj["metadata"]["name"]
            deployment = self._deployments.cache.get(Key(namespace, deployment_of(own)))
            if deployment is None or obj["metadata"].get("deletionTimestamp"):
                continue
            pods = self._pods.cache.by_index(OF_REVISION, f"{namespace}/{own}")
            yield Scene(
                obj,
                deployment,
                ready=sum(takes_requests(pod) for pod in pods),
                reachable=self._is_routed(Key(namespace, own)) or not revision.is_reached(obj),
            )


def _revision_of(pod: Object) -> Iterable[str]:
    return [_path(key) for key in _revision_key(pod)]


def _revision_key(pod: Object) -> Iterable[Key]:
    name = (pod["metadata"].get("labels") or {}).get(REVISION)
    if name:
        yield Key(pod["metadata"].get("namespace", ""), name)


def _place(revision: Key) -> Key:
    """Under which a revision's entry is kept: a route may have the same name."""
    return Key(f"revision {revision.namespace}", revision.name)


def _path(key: Key) -> str:
    return f"{key.namespace}/{key.name}"
