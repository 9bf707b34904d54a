"""A cluster in a dictionary for the workload controllers: what plans do to it, and what kubelets would do.

A controller is a row of `Cluster.controllers`: how it gathers what it decides on, and its `decide`. One `step` is one
pass over one object: all of its writes or, to play a crash, only the first few. Nothing here knows the rules.
"""

from __future__ import annotations

import copy
import itertools
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import Object, controller_of
from unit.plan_runner import Crash as Crash
from unit.plan_runner import PlanRunner, merge

START = 1_700_000_000.0
NAMESPACE = "default"


class Row(NamedTuple):
    observe: Callable[[Cluster, Object], Any]
    decide: Callable[[Object, Any, float], Plan]


def template(labels: dict[str, str], **spec: Any) -> Object:
    container = {"name": "main", "image": "busybox", **spec.pop("container", {})}
    return {"metadata": {"labels": labels}, "spec": {"containers": [container], **spec}}


def make(kind: str, api_version: str, name: str, spec: Object, **meta: Any) -> Object:
    return {
        "apiVersion": api_version,
        "kind": kind,
        "metadata": {"name": name, "namespace": NAMESPACE, "generation": 1, **meta},
        "spec": spec,
    }


class Cluster(PlanRunner):
    def __init__(self, controllers: dict[str, Row] | None = None) -> None:
        super().__init__()
        self.controllers = controllers or {}
        self._reconciled = ("", "")
        self.now = START
        self.objects: dict[tuple[str, str], Object] = {}
        self.refuse: Callable[[Object], bool] = lambda obj: False
        self._numbers = itertools.count(1)

    # Objects

    def add(self, obj: Object) -> Object:
        obj = copy.deepcopy(obj)
        key = (obj["kind"], obj["metadata"]["name"])
        assert key not in self.objects, f"created twice: {key}"
        number = next(self._numbers)
        meta = obj["metadata"]
        meta.setdefault("uid", f"uid-{number}")
        meta |= {"creationTimestamp": rfc3339(self.now), "resourceVersion": str(number)}
        meta.setdefault("generation", 1)
        if obj["kind"] == "Pod":
            obj["status"] = {"phase": "Pending"}
        self.objects[key] = obj
        return obj

    def get(self, kind: str, name: str) -> Object:
        return self.objects[(kind, name)]

    def all(self, kind: str) -> list[Object]:
        return [obj for (found, _), obj in self.objects.items() if found == kind]

    def owned(self, kind: str, owner: Object) -> tuple[Object, ...]:
        uid = owner["metadata"]["uid"]
        return tuple(obj for obj in self.all(kind) if (controller_of(obj) or {}).get("uid") == uid)

    def orphans(self, kind: str) -> tuple[Object, ...]:
        return tuple(obj for obj in self.all(kind) if controller_of(obj) is None)

    def change(self, kind: str, name: str, patch: Object) -> None:
        """A merge patch by a user or a plan: it counts generations and versions as a server does."""
        obj = copy.deepcopy(self.get(kind, name))
        merge(obj, patch)
        old = self.get(kind, name)
        if obj == old:
            return
        if obj.get("spec") != old.get("spec"):
            obj["metadata"]["generation"] = old["metadata"].get("generation", 1) + 1
        obj["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[(kind, name)] = obj
        self._let_go(kind, name)

    def delete(self, kind: str, name: str, *, grace: int | None = None) -> None:
        obj = self.objects.get((kind, name))
        if obj is None:
            return
        meta = obj["metadata"]
        lingers = kind == "Pod" and grace != 0 and obj["spec"].get("nodeName")
        lingers = lingers and obj["status"]["phase"] not in ("Succeeded", "Failed")
        if lingers or meta.get("finalizers"):
            self.change(kind, name, {"metadata": {"deletionTimestamp": rfc3339(self.now)}})
        else:
            self._remove(kind, name)

    def _let_go(self, kind: str, name: str) -> None:
        meta = self.get(kind, name)["metadata"]
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and kind != "Pod":
            self._remove(kind, name)

    def _remove(self, kind: str, name: str) -> None:
        gone = self.objects.pop((kind, name))
        for (other, child), obj in list(self.objects.items()):  # the garbage collector
            if (controller_of(obj) or {}).get("uid") == gone["metadata"]["uid"]:
                self.delete(other, child)

    # Controllers

    def plan(self, kind: str, name: str) -> Plan:
        row = self.controllers[kind]
        obj = copy.deepcopy(self.get(kind, name))
        return row.decide(obj, row.observe(self, obj), self.now)

    def step(self, kind: str, name: str, *, crash_after: int | None = None) -> Plan:
        """One pass. With `crash_after` only so many writes happen and `Crash` is raised if there were more."""
        plan = self.plan(kind, name)
        self._reconciled = (kind, name)
        self.run_plan(plan, crash_after=crash_after)
        return plan

    def write_status(self, plan: Plan) -> None:
        kind, name = self._reconciled
        obj = self.objects.get((kind, name))
        if plan.status is None or obj is None or (obj.get("status") or {}) == plan.status:
            return
        self.count(f"status of {kind} {name}")
        obj = copy.deepcopy(obj)
        obj["status"] = copy.deepcopy(plan.status)
        obj["metadata"]["resourceVersion"] = str(next(self._numbers))
        self.objects[(kind, name)] = obj

    def delete_planned(self, delete: Delete) -> None:
        victim = self.objects.get((delete.resource.kind, delete.name))
        if victim is not None and delete.uid in (None, victim["metadata"]["uid"]):
            self.delete(delete.resource.kind, delete.name, grace=delete.grace_period)

    def patch_planned(self, patch: Patch) -> None:
        if (patch.resource.kind, patch.name) in self.objects:
            self.change(patch.resource.kind, patch.name, patch.patch)

    def create_planned(self, obj: Object) -> bool:
        if self.refuse(obj):
            return False
        self.count(f"create {obj['kind']} {obj['metadata']['name']}")
        self.add(obj)
        return True

    def settle(self, *kinds: str, passes: int = 30) -> None:
        """Passes of all controllers until none has anything left to do at this moment."""
        for _ in range(passes):
            before = len(self.writes)
            for kind in kinds or tuple(self.controllers):
                for obj in self.all(kind):
                    if (kind, obj["metadata"]["name"]) in self.objects:
                        self.step(kind, obj["metadata"]["name"])
            if len(self.writes) == before:
                return
        raise AssertionError(f"still writing after {passes} passes: {self.writes[-8:]}")

    # Kubelets

    @property
    def pods(self) -> dict[str, Object]:
        return {name: obj for (kind, name), obj in self.objects.items() if kind == "Pod"}

    def assign(self, name: str, node: str = "node-1") -> None:
        self.change("Pod", name, {"spec": {"nodeName": node}})

    def start(self, *names: str) -> None:
        """Scheduled, running and ready."""
        for name in names or tuple(self.pods):
            if self.pods[name]["status"]["phase"] == "Pending":
                self.assign(name)
                self.become(name, "Running", ready=True)

    def become(self, name: str, phase: str, *, ready: bool = False, **status: Any) -> None:
        condition = {"type": "Ready", "status": str(ready), "lastTransitionTime": rfc3339(self.now)}
        body = {"phase": phase, "conditions": [condition], "podIP": "10.0.0.1", **status}
        self.change("Pod", name, {"status": body})

    def finish(self, name: str, *, code: int = 0, **status: Any) -> None:
        ended = {"exitCode": code, "finishedAt": rfc3339(self.now)}
        statuses = [{"name": "main", "restartCount": 0, "state": {"terminated": ended}}]
        phase = "Failed" if code else "Succeeded"
        self.become(name, phase, **{"containerStatuses": statuses, **status})

    def obey(self) -> None:
        """Kubelets end the pods they were asked to."""
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                self._remove("Pod", name)


def names(objects: Iterable[Object]) -> list[str]:
    return sorted(obj["metadata"]["name"] for obj in objects)
