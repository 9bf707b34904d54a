"""A PaddleService and the Knative that carries it, in a dictionary: plans are carried out, pods get ready."""

from __future__ import annotations

import copy
from typing import Any

from paddlecloud.api.names import ENDPOINT, SERVICE
from paddlecloud.controllers.paddleservice.decide import decide
from paddlecloud.controllers.paddleservice.observe import Measure, Observed, view
from paddlecloud.controllers.paddleservice.resolution import Hub
from paddlecloud.controllers.paddleservice.template import Site
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object

START = 1_700_000_000.0


def endpoint(tag: str) -> Object:
    return {"containerImage": "image", "tag": tag, "port": 9292, "arg": "serve"}


class ServiceCluster:
    """One service in `ns`, called `m`. `settle` runs the controller and Knative until neither has anything to do."""

    def __init__(self, **spec: Any) -> None:
        self.now = START
        self.service: Object = {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "m", "namespace": "ns", "uid": "u", "generation": 1, "labels": {"team": "a"}},
            "spec": {"default": endpoint("one"), "runtimeVersion": "paddleserving", **spec},
        }
        self.kservice: Object | None = None
        self.revisions: dict[str, Object] = {}
        self.services: dict[str, Object] = {}
        self.measures: dict[str, Measure] = {}
        self.hub = Hub()
        self.site = Site()
        self.events: list[str] = []
        self.history: list[dict[str, int]] = []
        """Every traffic that was ever asked for."""

    # The user

    def change(self, **spec: Any) -> None:
        self.service["spec"] = {k: v for k, v in {**self.service["spec"], **spec}.items() if v is not None}
        self.service["metadata"]["generation"] += 1

    # The controller

    def plan(self) -> Plan:
        observed = Observed(
            kservice=copy.deepcopy(self.kservice),
            revisions={
                name: view(found)._replace(measure=self.measures.get(name)) for name, found in self.revisions.items()
            },
            services=copy.deepcopy(self.services),
            hub=copy.deepcopy(self.hub),
            site=self.site,
        )
        return decide(copy.deepcopy(self.service), observed, self.now)

    def step(self) -> bool:
        plan = self.plan()
        before = copy.deepcopy((self.service, self.kservice, self.services, self.revisions))
        for obj in plan.create:
            if obj["kind"] == "Service" and obj["apiVersion"] == "v1":
                self.services[obj["metadata"]["name"]] = {**obj, "metadata": {**obj["metadata"], "uid": "x"}}
            else:
                assert self.kservice is None
                self.kservice = {**obj, "metadata": {**obj["metadata"], "generation": 1}}
                self._traffic_changed()
        for patch in plan.patch:
            target = self.kservice if patch.resource.group else self.services[patch.name]
            assert target is not None
            for operation in patch.patch:
                field = operation["path"].rpartition("/")[2]
                if field == "template":
                    old = target["spec"]["template"]
                    new = operation["value"]
                    assert old["metadata"]["name"] != new["metadata"]["name"], "Knative wants another name"
                    taken = self.revisions.get(new["metadata"]["name"])
                    assert taken is None or taken["spec"] == new["spec"], "and no revision's, but with its very spec"
                target["spec"][field] = operation["value"]
            if patch.resource.group:
                self._traffic_changed()
        for delete in plan.delete:
            if delete.resource.kind == "Revision":
                assert delete.name not in self.shares, "a revision with traffic was deleted"
                del self.revisions[delete.name]
            else:
                del self.services[delete.name]
        if plan.status is not None:
            self.service["status"] = plan.status
        self.events += [f"{event.reason}: {event.message}" for event in plan.events]
        return before != (self.service, self.kservice, self.services, self.revisions)

    def _traffic_changed(self) -> None:
        if not self.history or self.history[-1] != self.shares:
            self.history.append(self.shares)

    @property
    def shares(self) -> dict[str, int]:
        return {
            t["revisionName"]: t["percent"] for t in (self.kservice or {"spec": {"traffic": []}})["spec"]["traffic"]
        }

    @property
    def status(self) -> Object:
        return dict(self.service["status"])

    def condition(self, kind: str) -> Object:
        return next(c for c in self.status["conditions"] if c["type"] == kind)

    # Knative

    def knative(self) -> None:
        """A revision for a template that has none; a route that is ready when what it names is."""
        assert self.kservice is not None
        template = self.kservice["spec"]["template"]
        name = template["metadata"]["name"]
        if name not in self.revisions:
            self.revisions[name] = {
                "metadata": {
                    "name": name,
                    "uid": f"uid-{name}",
                    "labels": template["metadata"]["labels"],
                    "annotations": template["metadata"]["annotations"],
                    "creationTimestamp": rfc3339(self.now + len(self.revisions)),
                },
                "spec": {**template["spec"], "enableServiceLinks": False},
            }
            assert self.revisions[name]["metadata"]["labels"][SERVICE] == "m"
        good = all(self._is_ready(found) for found in self.shares)
        self.kservice["status"] = {
            "url": "http://m.ns.example.com",
            "address": {"url": "http://m.ns.svc.cluster.local"},
            "conditions": [{"type": "RoutesReady", "status": str(good) if good else "Unknown"}],
            "traffic": copy.deepcopy(self.kservice["spec"]["traffic"]),
        }

    def _is_ready(self, name: str) -> bool:
        conditions = self.revisions.get(name, {}).get("status", {}).get("conditions", [])
        return any(c["status"] == "True" for c in conditions)

    def ready(self, name: str, state: str = "True", **more: str) -> None:
        condition = {"type": "Ready", "status": state, **more}
        self.revisions[name]["status"] = {"conditions": [condition], "actualReplicas": int(state == "True")}

    def names(self, which: str) -> list[str]:
        """Revisions of an endpoint, oldest first."""
        return [name for name, found in self.revisions.items() if found["metadata"]["labels"][ENDPOINT] == which]

    def settle(self, *, start: bool = True) -> None:
        """`start` lets every new revision become ready."""
        for _ in range(30):
            moved = self.step()
            self.knative()
            for name, found in self.revisions.items():
                if start and "status" not in found:
                    self.ready(name)
                    moved = True
            if not moved:
                return
        raise AssertionError("it does not come to rest")

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.settle()
