"""A workflow carried out without a platform: `decide` again and again, its patches applied, its pods answered for."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from typing import Any

import yaml

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Plan
from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.decision.decide import decide
from paddlecloud.local.workflow.names import NODE_ID
from paddlecloud.local.workflow.observed import Observed

START = 1_790_000_000.0
OVER = ("Succeeded", "Failed", "Error")


def workflow(text: str, name: str = "wf") -> Object:
    """A workflow from the YAML of its spec."""
    meta = {
        "name": name,
        "namespace": "default",
        "uid": "uid-of-wf",
        "resourceVersion": "1",
        "creationTimestamp": rfc3339(START),
    }
    return {"apiVersion": "argoproj.io/v1alpha1", "kind": "Workflow", "metadata": meta, "spec": yaml.safe_load(text)}


Program = Callable[[Object], Any]
"""From a pod to what its program gives: an exit code, a result, or a report with parameters."""


class Simulation:
    """`now` goes on by a second with each pass, and further where nothing happens before."""

    def __init__(self, workflow: Object, program: Program = lambda pod: 0, **observed: Any) -> None:
        self.workflow = copy.deepcopy(workflow)
        self.pods: dict[str, Object] = {}
        self.now = START
        self.plan = Plan()
        self.created: list[str] = []
        self._program = program
        self._observed = observed

    @property
    def status(self) -> Object:
        return dict(self.workflow.get("status") or {})

    @property
    def nodes(self) -> dict[str, Object]:
        """By the name that is shown."""
        return {node["displayName"]: node for node in self.status.get("nodes", {}).values()}

    def phases(self) -> dict[str, str]:
        return {name: node["phase"] for name, node in self.nodes.items()}

    def step(self) -> list[Object]:
        """One pass. Gives the pods that it created, which have not run yet."""
        self.carry_out(self.decided())
        return self.plan.create

    def decided(self, **observed: Any) -> Plan:
        return decide(self.workflow, Observed(pods=dict(self.pods), **{**self._observed, **observed}), self.now)

    def carry_out(self, plan: Plan) -> None:
        self.plan = plan
        for patch in self.plan.patch:
            _merge(self.workflow, {key: value for key, value in patch.patch.items() if key == "status"})
            _merge(self.workflow["metadata"], {"labels": patch.patch["metadata"].get("labels") or {}})
        for delete in self.plan.delete:
            self.pods = {key: pod for key, pod in self.pods.items() if pod["metadata"]["name"] != delete.name}
        for pod in self.plan.create:
            identity = pod["metadata"]["annotations"][NODE_ID]
            if identity in self.pods:
                continue  # a server would answer that it exists
            pod["metadata"]["uid"] = f"uid-{len(self.created)}"
            self.created.append(pod["metadata"]["name"])
            self.pods[identity] = pod
        self.now += 1

    def finish(self, pod: Object) -> None:
        given = self._program(pod)
        report = given if isinstance(given, dict) else {"result": given} if isinstance(given, str) else {}
        code = given if isinstance(given, int) else 0
        ended = {
            "exitCode": code,
            "reason": "Error" if code else "Completed",
            "message": json.dumps(report),
            "finishedAt": rfc3339(self.now),
        }
        pod["spec"]["nodeName"] = "node"
        pod["status"] = {
            "phase": "Failed" if code else "Succeeded",
            "containerStatuses": [{"name": "main", "state": {"terminated": ended}}],
        }

    def run(self, passes: int = 200) -> Simulation:
        """To the end, or until nothing more happens by itself."""
        for _ in range(passes):
            created = self.step()
            for pod in created:
                self.finish(pod)
            if self.status.get("phase") in OVER:
                return self
            if not created and not self.plan.patch:
                if self.plan.after is None:
                    return self
                self.now += self.plan.after
        raise AssertionError(f"not over after {passes} passes: {self.phases()}")


def _merge(target: dict[str, Any], patch: Mapping[str, Any]) -> None:
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(target.get(key), dict):
            _merge(target[key], value)
        else:
            target[key] = copy.deepcopy(value)


def command_of(pod: Object) -> str:
    """What its program was asked to do: the last argument."""
    container = pod["spec"]["containers"][0]
    return str((container.get("args") or container.get("command"))[-1])
