"""A cluster in a dictionary: what plans do to it, what a kubelet would do, and every write counted.

`JobCluster.step` is one pass of the controller: decide on what is there, then carry the plan out, all of it or (to play
a crash) only its first writes. Nothing here knows the rules of PaddleJob.
"""

from __future__ import annotations

import copy
from typing import Any

from paddlecloud.controllers.paddlejob import JobOptions, Observed, decide, view
from paddlecloud.controllers.paddlejob.gang.podgroup import ENGINES
from paddlecloud.controllers.paddlejob.reports.report import Reports
from paddlecloud.controllers.paddlejob.status import drifted, essence, hold_back
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent
from paddlecloud.kube.resource import Object
from unit.plan_runner import Crash as Crash
from unit.plan_runner import PlanRunner, merge

START = 1_700_000_000.0


def template(**spec: Any) -> Object:
    container = {"name": "paddle", "image": "paddlecloud/paddle:3.3", **spec.pop("container", {})}
    return {"spec": {"containers": [container], **spec}}


def paddlejob(name: str = "job", **spec: Any) -> Object:
    """A PaddleJob as the API server stores it. Roles are given as numbers or as whole blocks."""
    for role in ("ps", "worker", "heter"):
        if isinstance(spec.get(role), int):
            spec[role] = {"replicas": spec[role], "template": template()}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {
            "name": name,
            "namespace": "default",
            "uid": f"uid-{name}",
            "generation": 1,
            "creationTimestamp": rfc3339(START),
            "resourceVersion": "1",
        },
        "spec": spec,
    }


class JobCluster(PlanRunner):
    def __init__(self, job: Object, *, options: JobOptions | None = None) -> None:
        super().__init__()
        self.job = job
        self.options = options or JobOptions()
        self.now = START
        self.objects: dict[tuple[str, str], Object] = {}
        self.claim: Object | None = None
        self.sample_set: Object | None = None
        self.mounted_sets: tuple[Object, ...] = ()
        self.cache_nodes: dict[int, tuple[str, str]] = {}
        self.ports_in_use: frozenset[int] = frozenset()
        self.leftovers = 0
        self.last_log_line: float | None = None
        self.reports: Reports | None = None
        self.blockers: tuple[str, ...] = ()
        self.trouble = ""
        self.retry_at: float | None = None
        self._uids = 0
        self._drifts, self._written = 0, 0.0
        self._subnet = 0

    # The controller's side

    @property
    def status(self) -> Object:
        return self.job.get("status") or {}

    @property
    def phase(self) -> str:
        return str(self.status.get("phase", ""))

    @property
    def pods(self) -> dict[str, Object]:
        return {name: obj for (kind, name), obj in self.objects.items() if kind == "Pod"}

    def get(self, kind: str, name: str | None = None) -> Object | None:
        return self.objects.get((kind, name or self.job["metadata"]["name"]))

    def observed(self) -> Observed:
        views = [view(pod) for pod in self.pods.values()]
        group = self.get("PodGroup")
        kinds = {engine.resource.api_version: engine.resource for engine in ENGINES}
        return Observed(
            pods=tuple(sorted((v for v in views if v), key=lambda v: (v.role, v.index))),
            config=self.get("ConfigMap"),
            service=self.get("Service"),
            pod_groups={kinds[group["apiVersion"]]: group} if group else {},
            claim=self.claim,
            sample_set=self.sample_set,
            mounted_sets=self.mounted_sets,
            cache_nodes=self.cache_nodes,
            leftovers=self.leftovers,
            blockers=self.blockers,
            ports_in_use=self.ports_in_use,
            last_log_line=self.last_log_line,
            reports=self.reports,
            trouble=self.trouble,
            retry_at=self.retry_at,
        )

    def plan(self) -> Plan:
        return decide(copy.deepcopy(self.job), self.observed(), self.now, self.options)

    def step(self, *, crash_after: int | None = None) -> Plan:
        """One pass. With `crash_after` only so many writes happen and `Crash` is raised if there were more."""
        plan = self.plan()
        self._pace(plan)
        self.run_plan(plan, crash_after=crash_after)
        return plan

    def forget(self) -> None:
        """A new controller takes over: what the old one kept in memory is gone."""
        self._drifts, self._written = 0, 0.0

    def settle(self, passes: int = 10) -> None:
        """Passes until nothing is left to do at this moment."""
        for _ in range(passes):
            before = len(self.writes)
            plan = self.step()
            if len(self.writes) == before and (plan.after is None or plan.after > 0):
                return
        raise AssertionError(f"still writing after {passes} passes: {self.writes[-6:]}")

    def _pace(self, plan: Plan) -> None:
        if plan.status is None or plan.status_first:
            return
        workers = int((plan.status.get("worker") or {}).get("ready", "0/0").partition("/")[2] or 0)
        wait = hold_back(
            self.status, plan.status, written=self._written, drifts=self._drifts, workers=workers, now=self.now
        )
        if wait > 0:
            plan.status = None

    def write_status(self, plan: Plan) -> None:
        if plan.status is None:
            return
        self.count("status")
        if essence(self.status) != essence(plan.status):
            self._drifts = 0
        elif drifted(self.status, plan.status):
            self._drifts += 1
        self._written = self.now
        self.job["status"] = copy.deepcopy(plan.status)

    def delete_planned(self, delete: Delete) -> None:
        kind, name, grace = delete.resource.kind, delete.name, delete.grace_period
        obj = self.objects.get((kind, name))
        if obj is None:
            return
        if kind != "Pod" or grace == 0 or not obj["spec"].get("nodeName"):
            del self.objects[(kind, name)]
        else:
            obj["metadata"]["deletionTimestamp"] = rfc3339(self.now + (30 if grace is None else grace))

    def patch_planned(self, patch: Patch) -> None:
        if (target := self.objects.get((patch.resource.kind, patch.name))) is not None:
            merge(target, patch.patch)

    def create_planned(self, obj: Object) -> bool:
        key = (obj["kind"], obj["metadata"]["name"])
        assert key not in self.objects, f"created twice: {key}"
        self.count(f"create {key[0]} {key[1]}")
        self._uids += 1
        created = copy.deepcopy(obj)
        created["metadata"] |= {"uid": f"u{self._uids}", "creationTimestamp": rfc3339(self.now), "resourceVersion": "1"}
        if key[0] == "Pod":
            created["status"] = {"phase": "Pending"}
        if key[0] == "PodGroup" and "volcano" in created["apiVersion"]:
            created["status"] = {"phase": "Inqueue"}
        self.objects[key] = created
        return True

    def record(self, event: PlannedEvent) -> None:
        self.count(f"event {event.reason}")
        super().record(event)

    # The cluster's side

    def assign(self, *names: str, node: str = "node-1", waiting: str = "CreateContainerConfigError") -> None:
        """The pods get a node and an address; their containers wait for the ConfigMap."""
        for name in names or tuple(self.pods):
            pod = self.pods[name]
            if pod["spec"].get("nodeName"):
                continue
            self._subnet += 1
            pod["spec"]["nodeName"] = node
            address = f"10.0.0.{self._subnet}"
            lacks = f'configmap "{self.job["metadata"]["name"]}" not found'
            state = {"waiting": {"reason": waiting, "message": lacks}}
            pod["status"] |= {"podIP": address, "podIPs": [{"ip": address}], "hostIP": "192.168.0.1"}
            pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": False, "state": state}]

    def may_start(self, name: str) -> bool:
        """Whether a kubelet could start the container: every ConfigMap key it refers to exists."""
        container = self.pods[name]["spec"]["containers"][0]
        data = (self.get("ConfigMap") or {}).get("data")
        keys = [
            e["valueFrom"]["configMapKeyRef"]["key"]
            for e in container["env"]
            if "configMapKeyRef" in e.get("valueFrom", {})
        ]
        if not keys and not container.get("envFrom"):
            return True  # without addresses: its launcher finds the others by itself
        return data is not None and all(key in data for key in keys)

    def run(self, *names: str) -> None:
        for name in names or tuple(self.pods):
            pod = self.pods[name]
            assert self.may_start(name), f"{name} has nothing to start with"
            pod["status"]["phase"] = "Running"
            pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": True, "state": {"running": {}}}]

    def succeed(self, *names: str) -> None:
        for name in names:
            self._end(name, "Succeeded", {"exitCode": 0, "reason": "Completed"})

    def fail(
        self, name: str, *, code: int = 1, reason: str = "Error", message: str = "", pod: Object | None = None
    ) -> None:
        """The training container ends with `code`; `pod` is what the pod's own status says besides."""
        ended = {"exitCode": code, "reason": reason, "message": message, "finishedAt": rfc3339(self.now)}
        self._end(name, "Failed", ended)
        self.pods[name]["status"] |= pod or {}

    def _end(self, name: str, phase: str, ended: Object) -> None:
        status = self.pods[name]["status"]
        status["phase"] = phase
        status["containerStatuses"] = [{"name": "paddle", "ready": False, "state": {"terminated": ended}}]

    def obey(self) -> None:
        """The kubelet carries out deletions and deadlines that are due."""
        for name, pod in list(self.pods.items()):
            if "deletionTimestamp" in pod["metadata"]:
                del self.objects[("Pod", name)]
            elif pod["spec"].get("activeDeadlineSeconds") == 1 and pod["status"]["phase"] in ("Pending", "Running"):
                self.fail(name, code=137, pod={"reason": "DeadlineExceeded"})

    def vanish(self, name: str) -> None:
        """Somebody deleted the pod and it is gone."""
        del self.objects[("Pod", name)]

    def start(self) -> JobCluster:
        """From nothing to Running."""
        self.settle()
        self.assign()
        self.settle()
        servers = [name for name in self.pods if "-ps-" in name]
        if servers:
            self.run(*servers)
            self.settle()
        self.run(*(name for name in self.pods if name not in servers))
        self.settle()
        assert self.phase == "Running", self.status
        return self

    def env(self, pod: str) -> dict[str, str]:
        """The environment the training container would see."""
        container, status = self.pods[pod]["spec"]["containers"][0], self.pods[pod]["status"]
        env = dict((self.get("ConfigMap") or {}).get("data") or {})
        for entry in container["env"]:
            source = entry.get("valueFrom", {})
            if "fieldRef" in source:
                env[entry["name"]] = status["podIP"]
            elif "configMapKeyRef" in source:
                env[entry["name"]] = env[source["configMapKeyRef"]["key"]]
            else:
                env[entry["name"]] = entry["value"].replace("$(POD_IP)", env.get("POD_IP", ""))
        return env


def conditions(world: JobCluster) -> dict[str, str]:
    return {c["type"]: c["status"] for c in world.status.get("conditions", ())}
