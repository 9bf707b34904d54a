"""Work for an installed chart that takes each of its rights: what no use is known for should not be granted.

Written for both platforms, in one namespace, by kubectl alone. `begin` asks for everything that may take its time,
`follow_up` changes it once it stands, `end` waits for the last of it and takes it away.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from harness import PATIENCE, until

Run = Callable[..., str]
"""kubectl in the namespace of the exercise: its output; raises where it fails."""

COSCHEDULER = "scheduler-plugins-scheduler"
HOLD = "until [ -e /tmp/go ]; do sleep 0.2; done"
BATCH, SETS = "batch.paddlepaddle.org/v1", "batch.paddlepaddle.org/v1alpha1"
NEW, OLD = "paddleservices.serving.paddlepaddle.org", "paddleservices.elasticserving.paddlepaddle.org"
SOURCE = "file:///usr/share/doc/base-files"
SERVING, ELASTIC = "serving.paddlepaddle.org/v1", "elasticserving.paddlepaddle.org/v1"
COSCHEDULING = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "podgroups.scheduling.x-k8s.io",
        "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes-sigs/scheduler-plugins/pull/50"},
    },
    "spec": {
        "group": "scheduling.x-k8s.io",
        "scope": "Namespaced",
        "names": {"plural": "podgroups", "kind": "PodGroup"},
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }
        ],
    },
}
"""The kind of another gang scheduler, which no pod of the release watches: defined before the controllers start."""

NO_KNATIVE = """
import sys
from paddlecloud.controllers import __main__ as program
found = program.paddleservice.served_kinds
async def without(client):
    return [kind for kind in await found(client) if kind.group != "serving.knative.dev"]
program.paddleservice.served_kinds = without
sys.exit(program.main(["paddleservice", "--health-port=8081"]))
"""
"""A serving controller that sees no Knative, on a platform that has one."""


def job(name: str, command: str = HOLD, *, workers: int = 1, pod: dict[str, Any] | None = None, **spec: Any) -> Any:
    container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", command]}
    template = {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1, **(pod or {})}}
    body = {"cleanPodPolicy": "Never", "withGloo": 1, "worker": {"replicas": workers, "template": template}, **spec}
    return {"apiVersion": BATCH, "kind": "PaddleJob", "metadata": {"name": name}, "spec": body}


def of_kubeflow(name: str, workers: int) -> Any:
    container = {"name": "paddle", "image": "busybox", "command": ["sh", "-c", HOLD]}
    worker = {
        "replicas": workers,
        "template": {"spec": {"containers": [container], "terminationGracePeriodSeconds": 1}},
    }
    spec = {"paddleReplicaSpecs": {"Worker": worker}}
    return {"apiVersion": "kubeflow.org/v1", "kind": "PaddleJob", "metadata": {"name": name}, "spec": spec}


def sample_set(name: str, **spec: Any) -> Any:
    return {"apiVersion": SETS, "kind": "SampleSet", "metadata": {"name": name}, "spec": spec}


def sample_job(name: str, type: str, of: str, **spec: Any) -> Any:
    spec = {"type": type, "sampleSetRef": {"name": of}, **spec}
    return {"apiVersion": SETS, "kind": "SampleJob", "metadata": {"name": name}, "spec": spec}


def service(name: str, version: str, image: str, word: str, *, canary: str = "") -> Any:
    def endpoint(text: str) -> dict[str, Any]:
        repository, _, tag = image.rpartition(":")
        program = f"mkdir -p /tmp/{text} && cd /tmp/{text} && exec python -m http.server 9292"
        return {"containerImage": repository, "tag": tag, "port": 9292, "arg": program}

    spec: dict[str, Any] = {"default": endpoint(word), "service": {"minScale": 1, "maxScale": 2, "window": "6s"}}
    if canary:
        spec |= {"canary": endpoint(canary), "canaryTrafficPercent": 50}
    return {"apiVersion": version, "kind": "PaddleService", "metadata": {"name": name}, "spec": spec}


def taken(name: str) -> list[Any]:
    """What is in the way of objects of a name: a pod and Services of somebody else's."""
    ports = {"clusterIP": "None", "ports": [{"port": 80}]}
    pod = {"containers": [{"name": "main", "image": "busybox", "command": ["sleep", "600"]}]}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"{name}-worker-0"}, "spec": pod},
        *(
            {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-{role}"}, "spec": ports}
            for role in ("default", "runtime-service")
        ),
    ]


def left_behind(name: str) -> Any:
    """A job of the original operator's, which is no longer there to let it go."""
    made = job(name, suspend=True)
    made["metadata"]["finalizers"] = ["finalizers.paddlepaddle.org"]
    return made


def of_the_original_operator(name: str) -> list[Any]:
    """A claim and a Service of a set, marked as its own but owned by nobody."""
    meta = {"labels": {f"paddlepaddle.org/juicefs-{name}": "true"}}
    claim = {
        "accessModes": ["ReadWriteMany"],
        "storageClassName": "paddle-operator",
        "volumeName": name,
        "resources": {"requests": {"storage": "10Pi"}},
    }
    ports = {"clusterIP": "None", "ports": [{"name": "service", "port": 7716}]}
    return [
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name, **meta}, "spec": claim},
        {"apiVersion": "v1", "kind": "Service", "metadata": {"name": f"{name}-runtime-service", **meta}, "spec": ports},
    ]


class Exercise:
    def __init__(
        self,
        run: Run,
        *,
        image: str,
        kubeflow: bool,
        files: Mapping[str, str],
        source: str = SOURCE,
        cache: str = "",
        patience: float = PATIENCE,
    ) -> None:
        """`image` has Python; `files` is the Secret of a file system for samples, empty where none can be mounted.

        `source` is a folder that every cache server has, `cache` one of the nodes, for what is mounted.
        """
        self.run = run
        self.image = image
        self.kubeflow = kubeflow
        self.files = files
        self.source = source
        self.until = partial(until, timeout=patience)
        self.csi = {"driver": "juicefs", **({"juiceFSMountOptions": {"cache-dir": cache}} if cache else {})}

    def apply(self, *objects: Any) -> None:
        self.run("apply", "-f", "-", input=json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))

    def field(self, kind: str, name: str, path: str) -> str:
        return self.run("get", kind, name, "-o", f"jsonpath={{{path}}}", "--ignore-not-found")

    def is_(self, kind: str, name: str, path: str, *wanted: str) -> Callable[[], bool]:
        def check() -> bool:
            return self.field(kind, name, path) in wanted

        return check

    def phase(self, name: str, *phases: str) -> Callable[[], bool]:
        return self.is_("pdj", name, ".status.phase", *phases)

    def ready(self, kind: str, name: str) -> Callable[[], bool]:
        """Of the spec as it is now."""

        def check() -> bool:
            found = json.loads(self.run("get", kind, name, "-o", "json"))
            status = found.get("status") or {}
            conditions = {c["type"]: c["status"] for c in status.get("conditions") or ()}
            return (
                status.get("observedGeneration") == found["metadata"]["generation"]
                and conditions.get("Ready") == "True"
            )

        return check

    def begin(self) -> None:
        """Everything that takes its time, at once."""
        self.apply(*taken("taken"), left_behind("left"))
        self.apply(
            job("taken"),
            job("gang", schedulingPolicy={}),
            job("crowd", schedulingPolicy={"minResources": {"cpu": "1000"}}),
            job("other-gang", schedulingPolicy={}, pod={"schedulerName": COSCHEDULER}),
            job("fails", "exit 137", backoffLimit=1, ttlSecondsAfterFinished=0),
            job("by-name", "true", cleanPodPolicy="Always", intranet="Service"),
            job("silent", hangDetection={"logSilenceSeconds": 1}, backoffLimit=0),
            service("new", SERVING, self.image, "one"),
            service("old", ELASTIC, self.image, "one"),
            service("taken", SERVING, self.image, "one"),
            *([of_kubeflow("theirs", 1)] if self.kubeflow else []),
        )
        if "driver" not in self.run("get", "csidrivers", "-o", "name"):
            self.apply(sample_set("nowhere", source={"uri": self.source}, secretRef={"name": "files"}))  # says so
        if self.files:
            self.apply(
                {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "files"}, "stringData": self.files},
                *of_the_original_operator("adopted"),
                *(
                    sample_set(name, source={"uri": self.source}, secretRef={"name": "files"}, csi=self.csi)
                    for name in ("samples", "taken", "adopted")
                ),
            )

    def follow_up(self) -> None:
        """Change what stands."""
        self.until(self.phase("gang", "Running"))
        self.until(lambda: self.field("pdj", "other-gang", ".status.phase") != "")
        for name in ("gang", "other-gang"):
            self.run("scale", f"pdj/{name}", "--replicas=2")
        self.until(self.is_("pdj", "gang", ".status.generation", "1"))
        self.until(self.is_("podgroups.scheduling.x-k8s.io", "other-gang", ".spec.minMember", "2"))
        self.run("patch", "pdj", "other-gang", "--type=merge", "-p", '{"spec":{"suspend":true}}')
        if self.kubeflow:
            self.apply(of_kubeflow("theirs", 2))
        self.until(self.ready(NEW, "new"))
        self.until(self.ready(OLD, "old"))
        self.apply(service("new", SERVING, self.image, "two", canary="three"))
        watched = service("old", ELASTIC, self.image, "two")
        watched["spec"]["rollout"] = {"steps": [50], "pauseSeconds": 2, "maxErrorPercent": 50}
        self.apply(watched)
        if self.files:
            self.until(self.is_("sampleset", "samples", ".status.phase", "Ready"))
            self.apply(
                sample_job("warm", "warmup", "samples"),
                sample_job("brief", "warmup", "samples", ttlSecondsAfterFinished=0),
                sample_job("mistake", "rmr", "samples", rmrOptions={"paths": ["nothing"]}),
            )
            self.until(self.is_("samplejob", "warm", ".status.phase", "Succeeded"))
            self.until(self.is_("samplejob", "brief", ".metadata.name", ""))
            self.until(self.is_("samplejob", "mistake", ".status.phase", "Failed"))
            self.run(
                "annotate", "samplejob", "mistake", "paddlepaddle.org/retry-at=now"
            )  # and it is reported once more
            self.run("patch", "sampleset", "samples", "--type=merge", "-p", '{"spec":{"partitions":2}}')
        self.until(self.is_(NEW, "new", ".status.traffic", "50/50"))
        self.apply(service("new", SERVING, self.image, "four"))

    def end(self) -> None:
        """All of it came to its end, and the set is gone again."""
        self.until(lambda: "is controlled by nobody" in self.field("pdj", "taken", ".status.message"))
        self.until(self.phase("gang", "Running"))
        for worker in range(2):
            self.run("exec", f"gang-worker-{worker}", "--", "touch", "/tmp/go")
        self.until(self.phase("gang", "Completed"))
        self.until(self.phase("fails", ""))
        self.until(self.phase("by-name", "Completed"))
        self.until(self.phase("silent", "Failed"))
        self.run("delete", "pdj", "left", "--timeout=60s")
        self.until(self.is_("podgroups.scheduling.x-k8s.io", "other-gang", ".metadata.name", ""))
        self.until(lambda: "new-canary" not in self.run("get", "revisions", "-o", "name"))
        self.until(self.is_("services.v1.", "new-canary-private", ".metadata.name", ""))
        if self.files:
            self.until(self.is_("sampleset", "samples", ".status.runtimeStatus.runtimeReady", "2/2"))
            self.until(lambda: "samples-warmup-" in self.run("get", "samplejobs", "-o", "name"))
            reported = ("get", "events", "--field-selector", "reason=ErrorDoRmrJob", "-o", "jsonpath={.items[*].count}")
            self.until(lambda: self.run(*reported) == "2")
            for kind, name in (("pvc", "adopted"), ("services.v1.", "adopted-runtime-service")):
                self.until(self.is_(kind, name, ".metadata.ownerReferences[0].name", "adopted"))
            self.run("delete", "samplesets", "--all", "--timeout=120s")

    def without_knative(self) -> None:
        """For a serving controller that knows of none. What it would not have made goes first."""
        self.run("delete", NEW, "--all")
        self.run("delete", OLD, "--all")
        self.apply(service("plain", SERVING, self.image, "one", canary="two"))
        self.until(self.is_(NEW, "plain", ".status.traffic", "50/50"))
        changed = service("plain", SERVING, self.image, "three")
        changed["spec"]["service"]["maxScale"] = 3
        self.apply(changed)
        self.until(self.ready(NEW, "plain"))
        self.until(self.is_("deployments", "plain-canary", ".metadata.name", ""))
        if "autoscaling/v2" in self.run("api-versions").split():
            self.until(self.is_("hpa", "plain-default", ".spec.maxReplicas", "3"))
