"""CronJobs, DaemonSets and ReplicationControllers that run real pods, with real kubectl."""

from __future__ import annotations

import json
from typing import Any

from harness import until
from unit.local.workloads.real import WAIT, Kubectl, apply, read

QUICK = {"terminationGracePeriodSeconds": 0}


def test_a_cron_job_runs_jobs_and_is_suspended_and_run_by_hand(kubectl: Kubectl) -> None:
    kubectl("create", "cronjob", "tick", "--image=busybox", "--schedule=@every 1s", "--", "sh", "-c", "echo it is time")
    succeeded = until(lambda: read(kubectl, "cronjob/tick")["status"], lambda status: "lastSuccessfulTime" in status)
    assert succeeded["lastScheduleTime"] <= succeeded["lastSuccessfulTime"]
    job = read(kubectl, "jobs")["items"][0]
    owner = job["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["name"]) == ("CronJob", "tick")
    assert job["metadata"]["name"].removeprefix("tick-").isdecimal()
    assert kubectl("logs", f"job/{job['metadata']['name']}").stdout == "it is time\n"

    kubectl("patch", "cronjob", "tick", "-p", '{"spec": {"suspend": true}}')
    kubectl("create", "job", "by-hand", "--from=cronjob/tick")
    kubectl("wait", "--for=condition=Complete", "job/by-hand", WAIT)
    assert kubectl("logs", "job/by-hand").stdout == "it is time\n"

    lines = kubectl("get", "cronjob").stdout.splitlines()
    heading = ["NAME", "SCHEDULE", "TIMEZONE", "SUSPEND", "ACTIVE", "LAST", "SCHEDULE", "AGE"]
    assert lines[0].split() == heading
    assert lines[1].split()[:5] == ["tick", "@every", "1s", "<none>", "True"]
    events = kubectl("describe", "cronjob", "tick").stdout
    assert "Created job tick-" in events
    assert "Saw completed job: tick-" in events
    kubectl("delete", "cronjob", "tick")
    kubectl("wait", "--for=delete", f"job/{job['metadata']['name']}", WAIT)


def agents(script: str, **spec: Any) -> dict[str, Any]:
    labels = {"app": "agent"}
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", script]}
    pod = {**QUICK, "tolerations": [{"operator": "Exists"}], "containers": [container]}
    template = {"metadata": {"labels": labels}, "spec": pod}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": {"name": "agent", "labels": labels},
        "spec": {"selector": {"matchLabels": labels}, "template": template, **spec},
    }


def test_a_daemon_set_runs_on_each_node_and_is_rolled_out_and_undone(kubectl: Kubectl) -> None:
    apply(kubectl, agents("echo $COLOUR; sleep 1000"))
    assert "successfully rolled out" in kubectl("rollout", "status", "daemonset/agent", WAIT).stdout
    nodes = sorted(node["metadata"]["name"] for node in read(kubectl, "nodes")["items"])
    pods = read(kubectl, "pods", "--selector=app=agent")["items"]
    assert sorted(pod["spec"]["nodeName"] for pod in pods) == nodes

    kubectl("annotate", "daemonset/agent", "kubernetes.io/change-cause=a colour")
    kubectl("set", "env", "daemonset/agent", "COLOUR=blue")
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    (pod, *_) = read(kubectl, "pods", "--selector=app=agent")["items"]
    until(lambda: kubectl("logs", pod["metadata"]["name"]).stdout, "blue\n")
    history = kubectl("rollout", "history", "daemonset/agent").stdout.splitlines()
    assert [line.split(maxsplit=1) for line in history[2:] if line.strip()] == [["1", "<none>"], ["2", "a colour"]]

    kubectl("rollout", "undo", "daemonset/agent")
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    found = read(kubectl, "daemonset/agent")
    assert "env" not in found["spec"]["template"]["spec"]["containers"][0]
    assert found["status"]["numberAvailable"] == found["status"]["updatedNumberScheduled"] == len(nodes)
    numbers = [str(len(nodes))] * 5
    assert kubectl("get", "daemonset").stdout.splitlines()[1].split()[:6] == ["agent", *numbers]

    kubectl("delete", "daemonset", "agent")
    kubectl("wait", "--for=delete", "pod", "--selector=app=agent", WAIT)


def test_a_pod_of_a_daemon_set_that_is_deleted_comes_back_and_only_on_nodes_that_fit(kubectl: Kubectl) -> None:
    apply(kubectl, agents("sleep 1000"))
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    (pod, *_) = read(kubectl, "pods", "--selector=app=agent")["items"]
    kubectl("delete", "pod", pod["metadata"]["name"])
    kubectl("rollout", "status", "daemonset/agent", WAIT)
    nowhere = {"spec": {"template": {"spec": {"nodeSelector": {"test.example/none": "there"}}}}}
    kubectl("patch", "daemonset", "agent", "-p", json.dumps(nowhere))
    until(lambda: read(kubectl, "pods", "--selector=app=agent")["items"], [])
    status = read(kubectl, "daemonset/agent")["status"]
    assert (status["desiredNumberScheduled"], status["numberMisscheduled"]) == (0, 0)


def test_a_replication_controller_is_scaled_exposed_and_described(kubectl: Kubectl) -> None:
    container = {"name": "main", "image": "busybox", "command": ["sleep", "1000"]}
    template = {"metadata": {"labels": {"app": "old"}}, "spec": {**QUICK, "containers": [container]}}
    whole = {"metadata": {"name": "old"}, "spec": {"template": template}}
    apply(kubectl, {"apiVersion": "v1", "kind": "ReplicationController", **whole})
    kubectl("scale", "rc", "old", "--replicas=2")
    until(lambda: read(kubectl, "rc/old")["status"].get("availableReplicas"), 2)
    kubectl("expose", "rc", "old", "--port=80")
    addresses = [pod["status"]["podIP"] for pod in read(kubectl, "pods", "--selector=app=old")["items"]]
    until(lambda: sorted(service_addresses(kubectl, "old")), sorted(addresses))
    described = kubectl("describe", "rc", "old").stdout
    assert "Replicas:     2 current / 2 desired" in described
    assert "Pods Status:  2 Running / 0 Waiting / 0 Succeeded / 0 Failed" in described
    assert "Created pod: old-" in described
    kubectl("delete", "rc", "old")
    kubectl("wait", "--for=delete", "pod", "--selector=app=old", WAIT)


def service_addresses(kubectl: Kubectl, name: str) -> list[str]:
    slices = read(kubectl, "endpointslices", f"--selector=kubernetes.io/service-name={name}")["items"]
    return [address for one in slices for endpoint in one.get("endpoints") or () for address in endpoint["addresses"]]
