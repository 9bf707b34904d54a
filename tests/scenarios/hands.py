"""What a scenario needs of its platform beyond the Kubernetes API, and the few words all scenarios share."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Protocol

from harness import Kubectl, Target, until
from paddlecloud.kube.resource import Object

EXAMPLES = Path(__file__).parents[2] / "examples"

HOLD = "echo $$$$ > /tmp/pid; until [ -e /tmp/go ]; do sleep 0.2; done"
"""A program that runs until `release`, and can be killed by `kill`. Kubernetes reads two dollars as one."""

APART = {
    "podAntiAffinity": {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {
                "weight": 100,
                "podAffinityTerm": {
                    "topologyKey": "kubernetes.io/hostname",
                    "labelSelector": {"matchExpressions": [{"key": "paddlepaddle.org/job-name", "operator": "Exists"}]},
                },
            }
        ]
    }
}
"""Affinity of pods that rather have a node each."""


class Hands(Protocol):
    """The hands to hurt a platform with."""

    def stop_controller(self) -> None:
        """Kill the controller of PaddleJobs. Pods go on."""

    def start_controller(self) -> None:
        """Start it again."""

    def have_nodes(self, number: int) -> None:
        """Make sure that there are so many nodes."""

    def lose_node(self, name: str) -> None:
        """A power cut."""

    def restore_node(self, name: str) -> None: ...

    def declared(self, capacity: dict[str, str], labels: dict[str, str]) -> AbstractContextManager[str]:
        """While it is open a node, whose name it gives, says that it has these things, which it has not."""


class Story:
    """What jobs went through, from a watch that writes it down: `job=phase=conditions that hold`, a line per change."""

    def __init__(self, log: Path) -> None:
        self._log = log

    def reported(self, name: str) -> list[tuple[str, str]]:
        """Each phase that a job was in, and the conditions that held at its end.

        How a job formed at first is one phase here: whether it is seen waiting before it is seen starting is chance.
        """
        phases: list[tuple[str, str]] = []
        for line in self._log.read_text().splitlines():
            who, _, rest = line.partition("=")
            phase, _, held = rest.partition("=")
            if who != name:
                continue
            named = "Forming" if phase in ("", "Pending", "Starting") else phase
            if phases and phases[-1][0] == named:
                phases.pop()
            phases.append((named, " ".join(sorted(held.split()))))
        return phases

    def of(self, name: str) -> list[str]:
        """The phases alone. How a job formed at first is left out: it may be over soon."""
        phases = [phase for phase, _ in self.reported(name)]
        return phases[1:] if phases[:1] == ["Forming"] else phases

    def was(self, name: str, *phases: str) -> None:
        """Fails when a job had other phases, once the watch has had time to receive the last."""
        try:
            until(lambda: self.of(name) == list(phases))
        except AssertionError:
            raise AssertionError(f"{name} went through {self.of(name)}, not {list(phases)}") from None


def job(name: str, command: str, *, workers: int = 2, ps: int = 0, pod: Object | None = None, **spec: object) -> str:
    """A PaddleJob whose program is a line of shell. With gloo, because no server here would ever listen."""

    def role(replicas: int) -> Object:
        container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", command]}
        return {"replicas": replicas, "template": {"spec": {"containers": [container], **(pod or {})}}}

    roles = {"worker": role(workers), **({"ps": role(ps)} if ps else {})}
    return json.dumps(
        {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Never", "withGloo": 1, **roles, **spec},
        }
    )


def apply(kubectl: Kubectl, text: str) -> None:
    kubectl("apply", "-f", "-", input=text)


def read(kubectl: Kubectl, *args: str) -> Object:
    found: Object = json.loads(kubectl("get", *args, "-o", "json").stdout)
    return found


def status(kubectl: Kubectl, name: str) -> Object:
    found: Object = read(kubectl, "pdj", name).get("status") or {}
    return found


def reached(kubectl: Kubectl, name: str, *phases: str, timeout: float = 90) -> Object:
    """The status of a job once it is in one of these phases."""
    seen: Object = {}

    def there() -> bool:
        seen.clear()
        seen.update(status(kubectl, name))
        return seen.get("phase") in phases

    try:
        until(there, timeout=timeout, every=0.2)
    except AssertionError as error:
        pods = kubectl("get", "pods", "-o", "wide").stdout
        raise AssertionError(f"{name} is not {'/'.join(phases)} but {json.dumps(seen, indent=1)}\n{pods}") from error
    return seen


def identities(kubectl: Kubectl, name: str) -> dict[str, str]:
    """The job's pods and their uids."""
    pods = read(kubectl, "pods", "-l", f"paddlepaddle.org/job-name={name}")["items"]
    return {pod["metadata"]["name"]: pod["metadata"]["uid"] for pod in pods}


def nodes_of(kubectl: Kubectl, name: str) -> dict[str, str]:
    """The job's pods and where they are."""
    pods = read(kubectl, "pods", "-l", f"paddlepaddle.org/job-name={name}")["items"]
    return {pod["metadata"]["name"]: pod["spec"].get("nodeName", "") for pod in pods}


def mortal_node(kubectl: Kubectl, name: str) -> str:
    """A node that a job uses and that may be lost: the first is the embedded platform's own."""
    return max(set(nodes_of(kubectl, name).values()) - {read(kubectl, "nodes")["items"][0]["metadata"]["name"]})


# How these two end says nothing: the container, or its pod, may be gone before that is known. What follows shows it.


def release(kubectl: Kubectl, *pods: str) -> None:
    """Let programs that `HOLD` come to their end."""
    for pod in pods:
        kubectl("exec", pod, "--", "touch", "/tmp/go", check=False)


def kill(kubectl: Kubectl, pod: str) -> None:
    """SIGKILL the program of a pod that notes its process in /tmp/pid, once it has done so, and nothing else."""
    command = "until [ -s /tmp/pid ]; do sleep 0.1; done; kill -9 $(cat /tmp/pid)"
    kubectl("exec", pod, "--", "sh", "-c", command, check=False)


def events(kubectl: Kubectl, name: str) -> dict[str, str]:
    """The last message of each reason that was said about a job."""
    found = read(kubectl, "events", "--field-selector", f"involvedObject.name={name}")["items"]
    return {event["reason"]: event["message"] for event in found}


def conditions(found: Object) -> dict[str, str]:
    """Which conditions of a status hold."""
    return {condition["type"]: condition["status"] for condition in found.get("conditions") or ()}


@contextmanager
def watched(binary: str, server: Target, namespace: str, log: Path) -> Iterator[Story]:
    """Writes down what phases the jobs of a namespace go through, and what holds in each, from before the first one.

    kubectl logs its requests (-v=6): once the watch was answered, no phase is missed.
    """
    held = '{{range .conditions}}{{if eq .status "True"}}{{.type}} {{end}}{{end}}'
    shape = "go-template={{.metadata.name}}={{with .status}}{{.phase}}=" + held + '{{end}}{{"\\n"}}'
    command = [binary, "--namespace", namespace, "get", "pdj", "--watch", "-v=6", "-o", shape]
    with log.open("wb") as output:
        process = subprocess.Popen(command, env=server.env, stdout=output, stderr=output)

    try:
        until(lambda: "watch=true" in log.read_text())
        yield Story(log)
    finally:
        process.terminate()
        process.wait(timeout=10)
