"""The embedded Knative of a platform, put together: four controllers, the gateway's table, the autoscaler."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping

from paddlecloud.api.names import COLD_START, MEASURES
from paddlecloud.kube.cache import owned_by
from paddlecloud.kube.conditions import ConditionState
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import CONFIGMAPS, DEPLOYMENTS, ENDPOINTSLICES, PODS, Key, Object, key_of
from paddlecloud.kube.resource import SERVICES as CORE_SERVICES
from paddlecloud.local.apiserver.auth.identities import KNATIVE
from paddlecloud.local.control_plane import ControlPlane
from paddlecloud.local.knative import configuration, revision, route, service
from paddlecloud.local.knative.autoscaler import Autoscaler, Scene
from paddlecloud.local.knative.coldstart import ColdStarts, stages_of
from paddlecloud.local.knative.conditions import YES
from paddlecloud.local.knative.h2c.envoy import find_envoy
from paddlecloud.local.knative.measures import Measures
from paddlecloud.local.knative.names import CONFIGURATIONS, REVISION, REVISIONS, ROUTES, SERVICES, deployment_of
from paddlecloud.local.knative.publisher import TablePublisher
from paddlecloud.local.knative.routing import (
    LEADS_TO,
    NAMED,
    NO_PORTS,
    OF_REVISION,
    is_split,
    labels_of,
    named_in,
    path_of,
    revision_keys,
    revision_of,
    revisions_of,
    takes_requests,
)
from paddlecloud.local.knative.settings import Defaults
from paddlecloud.local.knative.supervisor import Gateways, Report
from paddlecloud.local.knative.validation import judge
from paddlecloud.local.workloads.reconciler import OWNER, WorkloadReconciler

CONFIG = Key("knative-serving", "config-autoscaler")


class Knative:
    """`run` works until cancelled; `stop` ends the gateways, or leaves them to the next control plane."""

    def __init__(
        self,
        control_plane: ControlPlane,
        *,
        gateways: int | None = None,
        warm: Callable[[str], None] = lambda image: None,
    ) -> None:
        """`warm` is called with the images of revisions without pods: one may be needed at any moment."""
        self._warm = warm
        self._envoy = find_envoy()
        self._clock = control_plane.clock
        self.manager = manager = Manager(control_plane.client(KNATIVE, user_agent="knative"), clock=self._clock)
        self.gateways = Gateways(
            control_plane.data / "gateway",
            changed=self._gateways_changed,
            report=self._receive,
            wake=self._wake,
            acknowledged=self._gateways_acknowledged,
            count=gateways,
            clock=self._clock,
        )
        self._routes = manager.informer(ROUTES, indexers={LEADS_TO: revisions_of, NAMED: named_in})
        self._configurations = manager.informer(CONFIGURATIONS)
        self._pods = manager.informer(PODS, label_selector=REVISION, indexers={OF_REVISION: revision_of})
        self._config = manager.informer(CONFIGMAPS, namespace=CONFIG.namespace)
        self._measures = Measures(control_plane.metrics.registry)
        self._cold_starts = ColdStarts(control_plane.metrics.registry)
        self._unacknowledged: set[Key] = set()
        """Routes whose traffic gateways had not acknowledged at the last look."""
        self._asking: set[asyncio.Task[None]] = set()
        self._declare_service()
        self._configuration_reconciler = self._declare_configuration()
        self._revision_reconciler = self._declare_revision()
        self._revisions = self._revision_reconciler.primary[0]
        self._route_reconciler = self._declare_route()
        self._table = TablePublisher(
            manager,
            self.gateways,
            routes=self._routes,
            revisions=self._revisions,
            pods=self._pods,
            envoy=self._envoy,
            asleep=self._fell_asleep,
            gone=self._forget,
        )
        self._pods.on_change(self._pod_changed)
        self.autoscaler = Autoscaler(
            manager.client, clock=self._clock, scenes=self._scenes, defaults=lambda: self._defaults
        )
        manager.add_service("autoscaler", self.autoscaler.run)
        control_plane.admission.policies.append(judge)

    async def run(self) -> None:
        await self.manager.run()

    async def wait_listening(self) -> None:
        """Until requests are taken for the routes that there are; none are waited for where there are none."""
        await asyncio.gather(self._routes.wait_synced(), self._revisions.wait_synced())
        if routes := self._routes.cache.list():
            led_to = [
                self._revisions.cache.get(Key(*path.split("/", 1))) for one in routes for path in revisions_of(one)
            ]
            h2c = self._envoy is not None and any(found is not None and revision.uses_h2c(found) for found in led_to)
            await self.gateways.wait_ready(h2c=h2c)

    async def stop(self, *, gateways: bool) -> None:
        await self.gateways.stop(processes=gateways)

    @property
    def _defaults(self) -> Defaults:
        return Defaults.of(self._config.cache.get(CONFIG))

    # Controllers

    def _declare_service(self) -> None:
        def observe(obj: Object) -> service.Observed:
            own = owned_by(obj)
            return service.Observed(
                next(iter(configurations.cache.by_index(OWNER, own)), None),
                next(iter(routes.cache.by_index(OWNER, own)), None),
            )

        reconciler = WorkloadReconciler(
            self.manager, SERVICES, name="service-controller", observe=observe, decide=service.decide, clock=self._clock
        )
        configurations = reconciler.owns(CONFIGURATIONS, adopting=False)
        routes = reconciler.owns(ROUTES, adopting=False)

    def _declare_configuration(self) -> WorkloadReconciler[configuration.Observed]:
        def observe(obj: Object) -> configuration.Observed:
            made = tuple(revisions.cache.by_index(OWNER, owned_by(obj)))
            return configuration.Observed(made, {r["metadata"]["name"] for r in made if self._is_routed(key_of(r))})

        reconciler = WorkloadReconciler(
            self.manager,
            CONFIGURATIONS,
            name="configuration-controller",
            observe=observe,
            decide=configuration.decide,
            clock=self._clock,
        )
        revisions = reconciler.owns(REVISIONS, adopting=False)
        return reconciler

    def _declare_revision(self) -> WorkloadReconciler[revision.Observed]:
        def observe(obj: Object) -> revision.Observed:
            own = owned_by(obj)
            return revision.Observed(
                next(iter(deployments.cache.by_index(OWNER, own)), None),
                tuple(self._pods.cache.by_index(OF_REVISION, path_of(key_of(obj)))),
                tuple(services.cache.by_index(OWNER, own)),
                self._defaults,
                self._remarks(obj),
            )

        reconciler = WorkloadReconciler(
            self.manager,
            REVISIONS,
            name="revision-controller",
            observe=observe,
            decide=revision.decide,
            clock=self._clock,
        )
        deployments = self._deployments = reconciler.owns(DEPLOYMENTS, adopting=False)
        services = reconciler.owns(CORE_SERVICES, adopting=False)
        reconciler.controller.watch(self._pods, map=revision_keys)
        return reconciler

    def _declare_route(self) -> WorkloadReconciler[route.Observed]:
        def observe(obj: Object) -> route.Observed:
            namespace, own = obj["metadata"]["namespace"], owned_by(obj)
            found, made = {}, {}
            for target in (obj.get("spec") or {}).get("traffic") or ():
                name, source = target.get("revisionName"), target.get("configurationName", "")
                if (known := self._configurations.cache.get(Key(namespace, source))) is not None:
                    found[source] = known
                    name = name or (known.get("status") or {}).get("latestReadyRevisionName")
                if name and (version := self._revisions.cache.get(Key(namespace, name))) is not None:
                    made[name] = version
            port, http2 = self._way_in(made.values())
            return route.Observed(
                revisions=made,
                configurations=found,
                service=next(iter(services.cache.by_index(OWNER, own)), None),
                slice=next(iter(slices.cache.by_index(OWNER, own)), None),
                port=port,
                ports=self._ports_of(obj) if port is not None else NO_PORTS,
                http2=http2,
                published=self._is_acknowledged(obj, port),
                settled=self.gateways.settled,
            )

        def concerned(obj: Object) -> list[Key]:
            return [key_of(found) for found in self._routes.cache.by_index(NAMED, path_of(key_of(obj)))]

        reconciler = WorkloadReconciler(
            self.manager, ROUTES, name="route-controller", observe=observe, decide=route.decide, clock=self._clock
        )
        services = reconciler.owns(CORE_SERVICES, adopting=False)
        slices = reconciler.owns(ENDPOINTSLICES, adopting=False)
        for informer in (self._revisions, self._configurations):
            reconciler.controller.watch(informer, map=concerned)
        return reconciler

    def _way_in(self, revisions: Iterable[Object]) -> tuple[int | None, ConditionState | None]:
        """Of a route to these revisions: the port its clients come to, and whether HTTP/2 is taken there."""
        port = self.gateways.port if self.gateways.ready else None
        if not any(map(revision.uses_h2c, revisions)):
            return port, None
        if self._envoy is None:
            return port, ConditionState("False", "EnvoyMissing", route.NO_ENVOY)
        port = self.gateways.h2c_port
        return port, ConditionState("Unknown", "GatewayStarting") if port is None else YES

    def _ports_of(self, obj: Object) -> Mapping[str, int]:
        namespace = obj["metadata"]["namespace"]
        return self.gateways.hold_ports([f"{namespace}/{label}" for label in labels_of(obj)])

    def _is_acknowledged(self, obj: Object, port: int | None) -> bool:
        """Whether the gateways on `port` route by this status. If not, their acknowledgements requeue the route."""
        if port is None or not (obj.get("status") or {}).get("traffic"):
            return False
        follows = self._table.follows(obj, port)
        (self._unacknowledged.discard if follows else self._unacknowledged.add)(key_of(obj))
        return follows

    # News from the pods

    def _pod_changed(self, old: Object | None, new: Object | None) -> None:
        if new is None and old is not None:
            self.gateways.forget_slots(str(old["metadata"]["uid"]))
        elif new is not None:
            for key in revision_keys(new):
                if self._cold_starts.pod_changed(path_of(key), new, self._clock.monotonic()) is not None:
                    task = asyncio.ensure_future(self._learn(key, new))
                    self._asking.add(task)
                    task.add_done_callback(self._asking.discard)

    async def _learn(self, key: Key, pod: Object) -> None:
        """A revision has just become ready: ask the program how it spent its start."""
        found = self._revisions.cache.get(key)
        stages = await stages_of(pod["status"]["podIP"], revision.port_of(found)) if found is not None else {}
        self._cold_starts.learned(path_of(key), stages)
        self._revision_reconciler.controller.queue.add(key)

    # News from the gateways

    def _gateways_changed(self) -> None:
        """Gateways came or went: the addresses in Routes, and the tables of gateways, may change."""
        for key in self._routes.cache:
            self._route_reconciler.controller.queue.add(key)
        self._table.look_again()

    def _gateways_acknowledged(self) -> None:
        """Routes that still wait after this are entered again by the pass that finds so."""
        waiting, self._unacknowledged = self._unacknowledged, set()
        for key in waiting:
            self._route_reconciler.controller.queue.add(key)

    def _receive(self, report: Report) -> None:
        self.autoscaler.receive(report)
        now = self._clock.monotonic()
        self._measures.receive(report, now)
        written = [name for name in report if self._shares_a_route(name) and self._measures.due(name, now)]
        for name in (*written, *self._measures.expired(now)):
            self._revision_reconciler.controller.queue.add(Key(*name.split("/", 1)))

    def _wake(self, name: str) -> None:
        self._cold_starts.woken(name, self._clock.monotonic())
        self.autoscaler.wake(name)

    def _fell_asleep(self, obj: Object) -> None:
        if revision.is_reached(obj):
            for container in obj["spec"].get("containers") or ():
                self._warm(str(container.get("image", "")))

    def _forget(self, name: str) -> None:
        self._measures.forget(name)
        self._cold_starts.forget(name)

    # What the caches say

    def _is_routed(self, key: Key) -> bool:
        return bool(self._routes.cache.by_index(LEADS_TO, path_of(key)))

    def _shares_a_route(self, name: str) -> bool:
        return any(is_split(found) for found in self._routes.cache.by_index(LEADS_TO, name))

    def _remarks(self, obj: Object) -> dict[str, str]:
        name = path_of(key_of(obj))
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
