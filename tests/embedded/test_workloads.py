"""Deployments, Jobs and StatefulSets as Kubernetes' own documentation teaches them, with real kubectl."""

from __future__ import annotations

import json
from typing import Any

from unit.local.workloads.real import WAIT, Kubectl, apply, read

QUICK = {"terminationGracePeriodSeconds": 0}


def shell(script: str, **container: Any) -> dict[str, Any]:
    return {"name": "main", "image": "busybox", "command": ["sh", "-c", script], **container}


def deployment(name: str, replicas: int, pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    labels = {"app": name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": name, "labels": labels},
        "spec": {
            "replicas": replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {**QUICK, **pod}},
            **spec,
        },
    }


def job(name: str, pod: dict[str, Any], **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", **QUICK, **pod}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template, **spec}}


# Deployments


def test_a_deployment_is_created_rolled_out_restarted_and_undone(kubectl: Kubectl) -> None:
    kubectl("create", "deployment", "web", "--image=busybox", "--replicas=2", "--", "sleep", "1000")
    kubectl("patch", "deployment", "web", "-p", json.dumps({"spec": {"template": {"spec": QUICK}}}))
    kubectl("rollout", "status", "deployment/web", WAIT)
    kubectl("annotate", "deployment/web", "kubernetes.io/change-cause=a colour")
    kubectl("set", "env", "deployment/web", "COLOUR=blue")
    kubectl("rollout", "status", "deployment/web", WAIT)
    kubectl("rollout", "restart", "deployment/web")
    out = kubectl("rollout", "status", "deployment/web", WAIT).stdout
    assert 'deployment "web" successfully rolled out' in out
    history = kubectl("rollout", "history", "deployment/web").stdout
    assert [line.split()[0] for line in history.splitlines()[2:] if line.strip()] == ["1", "2", "3", "4"]
    assert "COLOUR:\tblue" in kubectl("rollout", "history", "deployment/web", "--revision=3").stdout
    kubectl("rollout", "undo", "deployment/web", "--to-revision=2")
    kubectl("rollout", "status", "deployment/web", WAIT)
    obj = read(kubectl, "deployment/web")
    assert "env" not in obj["spec"]["template"]["spec"]["containers"][0]
    assert obj["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "5"
    assert obj["status"]["availableReplicas"] == obj["status"]["updatedReplicas"] == 2
    kubectl("delete", "deployment", "web")
    kubectl("wait", "--for=delete", "pod", "--selector=app=web", WAIT)
    assert read(kubectl, "replicasets,pods")["items"] == []


def test_a_deployment_that_cannot_roll_out_says_so_and_the_old_pods_serve_on(kubectl: Kubectl) -> None:
    limits = {"progressDeadlineSeconds": 2, "strategy": {"rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}}
    apply(kubectl, deployment("web", 1, {"containers": [shell("sleep 1000")]}, **limits))
    kubectl("rollout", "status", "deployment/web", WAIT)
    kubectl("set", "image", "deployment/web", "main=example.com/none/such:1")
    failed = kubectl("rollout", "status", "deployment/web", WAIT, check=False)
    assert failed.returncode != 0
    assert 'deployment "web" exceeded its progress deadline' in failed.stderr
    assert read(kubectl, "deployment/web")["status"]["availableReplicas"] == 1
    kubectl("rollout", "undo", "deployment/web")
    kubectl("rollout", "status", "deployment/web", WAIT)


def test_a_killed_pod_is_replaced_and_scaling_is_followed(kubectl: Kubectl) -> None:
    apply(kubectl, deployment("web", 2, {"containers": [shell("sleep 1000")]}))
    kubectl("rollout", "status", "deployment/web", WAIT)
    before = {pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"]}
    kubectl("delete", "pod", sorted(before)[0])
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=2", "deployment/web", WAIT)
    after = {pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"]}
    assert len(after & before) == 1
    kubectl("scale", "deployment/web", "--replicas=3")
    kubectl("wait", "--for=jsonpath={.status.availableReplicas}=3", "deployment/web", WAIT)


# Jobs


def test_an_indexed_job_gives_every_pod_its_number(kubectl: Kubectl) -> None:
    script = 'echo "$JOB_COMPLETION_INDEX on $(hostname)"'
    apply(
        kubectl,
        job("grid", {"containers": [shell(script)]}, completions=3, parallelism=2, completionMode="Indexed"),
    )
    kubectl("wait", "--for=condition=complete", "job/grid", WAIT)
    lines = kubectl("logs", "--selector=job-name=grid").stdout.splitlines()
    assert sorted(lines) == ["0 on grid-0", "1 on grid-1", "2 on grid-2"]
    status = read(kubectl, "job/grid")["status"]
    assert (status["completedIndexes"], status["succeeded"]) == ("0-2", 3)
    assert "3/3" in kubectl("get", "job", "grid", "--no-headers").stdout


def test_a_job_made_by_kubectl_fails_with_its_reason_and_takes_its_pods_along(kubectl: Kubectl) -> None:
    apply(kubectl, job("doomed", {"containers": [shell("exit 3")]}, backoffLimit=0))
    kubectl("wait", "--for=condition=failed", "job/doomed", WAIT)
    conditions = {c["type"]: c["reason"] for c in read(kubectl, "job/doomed")["status"]["conditions"]}
    assert conditions == {"FailureTarget": "BackoffLimitExceeded", "Failed": "BackoffLimitExceeded"}
    kubectl("create", "job", "fine", "--image=busybox", "--", "true")
    kubectl("wait", "--for=condition=complete", "job/fine", WAIT)
    kubectl("delete", "jobs", "--all")
    kubectl("wait", "--for=delete", "pod", "--all", WAIT)


def test_a_job_is_suspended_resumed_and_gone_after_its_time_to_live(kubectl: Kubectl) -> None:
    apply(
        kubectl,
        job("later", {"containers": [shell("exit 0")]}, suspend=True, ttlSecondsAfterFinished=0),
    )
    kubectl("wait", "--for=condition=suspended", "job/later", WAIT)
    assert read(kubectl, "pods")["items"] == []
    kubectl("patch", "job", "later", "--type=merge", "-p", '{"spec": {"suspend": false}}')
    kubectl("wait", "--for=delete", "job/later", WAIT)


# StatefulSets


def stateful_set(script: str, *, replicas: int = 2, **spec: Any) -> list[dict[str, Any]]:
    labels = {"app": "db"}
    mounts = [{"name": "data", "mountPath": "/data"}]
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}}
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "peers"},
            "spec": {
                "clusterIP": "None",
                "selector": labels,
                "ports": [{"port": 80}],
                "publishNotReadyAddresses": "podManagementPolicy" in spec,
            },
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "db"},
            "spec": {
                "serviceName": "peers",
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {
                    "metadata": {"labels": labels},
                    "spec": {**QUICK, "containers": [shell(script, volumeMounts=mounts)]},
                },
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
                **spec,
            },
        },
    ]


def test_a_stateful_set_has_names_that_resolve_and_data_that_stays(kubectl: Kubectl, namespace: str) -> None:
    apply(kubectl, *stateful_set("echo started >> /data/log; sleep 1000"))
    kubectl("rollout", "status", "statefulset/db", WAIT)
    created = [read(kubectl, f"pod/db-{n}")["metadata"]["creationTimestamp"] for n in (0, 1)]
    assert created == sorted(created)
    addresses = {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in read(kubectl, "pods")["items"]}
    names = [f"db-1.peers.{namespace}.svc.cluster.local", "db-1.peers"]
    for name in names:
        script = f"for i in $(seq 200); do getent hosts {name} && exit 0; sleep 0.05; done; exit 1"
        found = kubectl("exec", "db-0", "--", "sh", "-c", script).stdout
        assert found.split()[0] == addresses["db-1"]
    kubectl("delete", "pod", "db-0")
    kubectl("rollout", "status", "statefulset/db", WAIT)
    assert kubectl("exec", "db-0", "--", "cat", "/data/log").stdout == "started\nstarted\n"
    assert kubectl("exec", "db-1", "--", "cat", "/data/log").stdout == "started\n"


def test_a_stateful_set_is_updated_from_above_undone_and_scaled_down(kubectl: Kubectl) -> None:
    apply(kubectl, *stateful_set("sleep 1000"))
    kubectl("rollout", "status", "statefulset/db", WAIT)
    kubectl("set", "env", "statefulset/db", "COLOUR=blue")
    kubectl("rollout", "status", "statefulset/db", WAIT)
    high, low = (read(kubectl, f"pod/db-{n}") for n in (1, 0))
    assert int(high["metadata"]["resourceVersion"]) < int(low["metadata"]["resourceVersion"])
    assert low["spec"]["containers"][0]["env"] == [{"name": "COLOUR", "value": "blue"}]
    kubectl("rollout", "undo", "statefulset/db")
    kubectl("rollout", "status", "statefulset/db", WAIT)
    assert "env" not in read(kubectl, "pod/db-0")["spec"]["containers"][0]
    kubectl("scale", "statefulset/db", "--replicas=1")
    kubectl("wait", "--for=delete", "pod/db-1", WAIT)
    assert len(read(kubectl, "persistentvolumeclaims")["items"]) == 2, "volumes stay for when it grows again"


def test_peers_that_wait_for_each_other_come_up_together_in_a_parallel_set(kubectl: Kubectl) -> None:
    """Each is ready once it finds the other: one after the other, neither ever would be."""
    meet = "until getent hosts db-0.peers && getent hosts db-1.peers; do sleep 0.05; done; touch /data/met; sleep 1000"
    service, peers = stateful_set(meet, podManagementPolicy="Parallel")
    main = peers["spec"]["template"]["spec"]["containers"][0]
    main["readinessProbe"] = {"exec": {"command": ["test", "-e", "/data/met"]}, "periodSeconds": 1}
    apply(kubectl, service, peers)
    kubectl("rollout", "status", "statefulset/db", WAIT)
    kubectl("delete", "statefulset/db", "service/peers", "--now")
