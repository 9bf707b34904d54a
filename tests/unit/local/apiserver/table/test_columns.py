"""Columns of the built-in kinds: what `kubectl get` shows for objects in every state people know."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Resource
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.table.columns import VIEWS
from paddlecloud.local.apiserver.table.table import to_table

NOW = 1_700_000_000.0


def ago(seconds: float) -> str:
    return rfc3339(NOW - seconds)


def show(group: str, plural: str, obj: dict[str, Any], *, wide: bool = False) -> dict[str, Any]:
    """The row as {header: cell}, narrow unless asked otherwise."""
    obj = {**obj, "metadata": {"name": "x", "creationTimestamp": ago(3600), **obj.get("metadata", {})}}
    info = KindInfo(Resource(group, "v1", plural, "Any"), "any")
    table = to_table([obj], info, now=NOW)
    pairs = zip(table["columnDefinitions"], table["rows"][0]["cells"], strict=True)
    return {definition["name"].upper(): cell for definition, cell in pairs if wide or not definition["priority"]}


# --- pods ---


def running(name: str = "c", **more: Any) -> dict[str, Any]:
    return {"name": name, "ready": True, "restartCount": 0, "state": {"running": {}}, **more}


def waiting(reason: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "ready": False, "restartCount": 0, "state": {"waiting": {"reason": reason}}, **more}


def ended(code: int, reason: str = "", **more: Any) -> dict[str, Any]:
    state = {"terminated": {"exitCode": code, "reason": reason}}
    return {"name": "c", "ready": False, "restartCount": 0, "state": state, **more}


def pod(phase: str, *containers: Any, init: Any = (), init_spec: Any = None, **status: Any) -> dict[str, Any]:
    specs = [{"name": c["name"]} for c in containers] or [{"name": "c"}]
    names = init_spec if init_spec is not None else [{"name": c["name"]} for c in init]
    return {
        "spec": {"containers": specs, "initContainers": names},
        "status": {
            "phase": phase,
            "containerStatuses": list(containers),
            "initContainerStatuses": list(init),
            **status,
        },
    }


SIDECAR = [{"name": "proxy", "restartPolicy": "Always"}]
INITIALIZED = [{"type": "Initialized", "status": "True"}]


@pytest.mark.parametrize(
    ("obj", "ready", "status"),
    [
        (pod("Pending"), "0/1", "Pending"),
        (pod("Pending", waiting("ContainerCreating")), "0/1", "ContainerCreating"),
        (pod("Pending", waiting("ErrImagePull")), "0/1", "ErrImagePull"),
        (pod("Running", running()), "1/1", "Running"),
        (pod("Running", running(), running("d", ready=False)), "1/2", "Running"),
        (pod("Running", waiting("CrashLoopBackOff")), "0/1", "CrashLoopBackOff"),
        (pod("Running", running(), {**waiting("CrashLoopBackOff"), "name": "d"}), "1/2", "CrashLoopBackOff"),
        (pod("Succeeded", ended(0, "Completed")), "0/1", "Completed"),
        (pod("Failed", ended(1, "Error")), "0/1", "Error"),
        (pod("Failed", ended(137, "OOMKilled")), "0/1", "OOMKilled"),
        (pod("Failed", ended(3)), "0/1", "ExitCode:3"),
        (pod("Failed", {**ended(0), "state": {"terminated": {"exitCode": 0, "signal": 9}}}), "0/1", "Signal:9"),
        (pod("Failed", reason="Evicted"), "0/1", "Evicted"),
        (
            pod("Running", ended(0, "Completed"), running("d"), conditions=[{"type": "Ready", "status": "True"}]),
            "1/2",
            "Running",
        ),
        (pod("Running", ended(0, "Completed"), running("d")), "1/2", "NotReady"),
        (pod("Pending", init=[waiting("PodInitializing")]), "0/1", "Init:0/1"),
        (pod("Pending", init=[running("i", ready=False)]), "0/1", "Init:0/1"),
        (pod("Pending", init=[ended(0, "Completed"), {**waiting("PodInitializing"), "name": "j"}]), "0/1", "Init:1/2"),
        (pod("Pending", init=[waiting("CrashLoopBackOff")]), "0/1", "Init:CrashLoopBackOff"),
        (pod("Pending", init=[ended(1, "Error")]), "0/1", "Init:Error"),
        (pod("Pending", init=[ended(7)]), "0/1", "Init:ExitCode:7"),
        (pod("Running", running(), init=[ended(0, "Completed")]), "1/1", "Running"),
        (
            pod("Running", running(), init=[running("proxy", started=True)], init_spec=SIDECAR),
            "2/2",
            "Running",
        ),
        (
            pod("Pending", init=[{**waiting("PodInitializing"), "name": "proxy"}], init_spec=SIDECAR),
            "0/2",
            "Init:0/1",
        ),
        (
            pod("Pending", conditions=[{"type": "PodScheduled", "reason": "SchedulingGated", "status": "False"}]),
            "0/1",
            "SchedulingGated",
        ),
        ({**pod("Running", running()), "metadata": {"deletionTimestamp": ago(1)}}, "1/1", "Terminating"),
        ({**pod("Succeeded", ended(0, "Completed")), "metadata": {"deletionTimestamp": ago(1)}}, "0/1", "Completed"),
        ({**pod("Running", reason="NodeLost"), "metadata": {"deletionTimestamp": ago(1)}}, "0/1", "Unknown"),
        ({}, "0/0", "Unknown"),
    ],
)
def test_ready_and_status_of_a_pod(obj: dict[str, Any], ready: str, status: str) -> None:
    row = show("", "pods", obj)
    assert (row["READY"], row["STATUS"]) == (ready, status)


@pytest.mark.parametrize(
    ("obj", "restarts"),
    [
        (pod("Running", running()), "0"),
        (pod("Running", running(restartCount=2)), "2"),
        (
            pod("Running", running(restartCount=2, lastState={"terminated": {"finishedAt": ago(300)}})),
            "2 (5m ago)",
        ),
        (
            pod(
                "Running",
                running(restartCount=1, lastState={"terminated": {"finishedAt": ago(300)}}),
                running("d", restartCount=3, lastState={"terminated": {"finishedAt": ago(60)}}),
            ),
            "4 (60s ago)",
        ),
        (pod("Running", running(), init=[ended(0, "Completed", restartCount=5)]), "0"),
        (pod("Pending", init=[waiting("CrashLoopBackOff", restartCount=5)]), "5"),
        (
            pod(
                "Running",
                running(restartCount=1),
                init=[running("proxy", started=True, restartCount=2)],
                init_spec=SIDECAR,
            ),
            "3",
        ),
        (pod("Running", running(restartCount=1), init=[waiting("X", restartCount=9)], conditions=INITIALIZED), "1"),
    ],
)
def test_restarts_of_a_pod(obj: dict[str, Any], restarts: str) -> None:
    assert show("", "pods", obj)["RESTARTS"] == restarts


def test_wide_pods_show_where_they_are() -> None:
    obj = pod("Running", running(), podIP="127.0.0.7", conditions=[{"type": "gate/a", "status": "True"}])
    obj["spec"] |= {
        "nodeName": "node-1",
        "readinessGates": [{"conditionType": "gate/a"}, {"conditionType": "gate/b"}],
    }
    assert list(show("", "pods", obj)) == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]
    row = show("", "pods", obj, wide=True)
    assert row["IP"] == "127.0.0.7"
    assert row["NODE"] == "node-1"
    assert row["NOMINATED NODE"] == "<none>"
    assert row["READINESS GATES"] == "1/2"


# --- everything else: one object, the cells that follow from it ---

TEMPLATE = {
    "template": {"spec": {"containers": [{"name": "a", "image": "i:1"}, {"name": "b", "image": "j"}]}},
    "selector": {"matchLabels": {"app": "web"}},
}
CASES: list[tuple[str, str, dict[str, Any], dict[str, Any]]] = [
    (
        "apps",
        "deployments",
        {
            "spec": {"replicas": 3, **TEMPLATE},
            "status": {"readyReplicas": 2, "updatedReplicas": 3, "availableReplicas": 1},
        },
        {
            "READY": "2/3",
            "UP-TO-DATE": 3,
            "AVAILABLE": 1,
            "AGE": "60m",
            "CONTAINERS": "a,b",
            "IMAGES": "i:1,j",
            "SELECTOR": "app=web",
        },
    ),
    ("apps", "deployments", {"spec": {"replicas": 0}}, {"READY": "0/0", "UP-TO-DATE": 0, "CONTAINERS": "<none>"}),
    ("apps", "statefulsets", {"spec": {}, "status": {"readyReplicas": 1}}, {"READY": "1/1"}),
    (
        "apps",
        "daemonsets",
        {
            "spec": TEMPLATE,
            "status": {
                "desiredNumberScheduled": 4,
                "currentNumberScheduled": 3,
                "numberReady": 2,
                "updatedNumberScheduled": 3,
                "numberAvailable": 1,
            },
        },
        {
            "DESIRED": 4,
            "CURRENT": 3,
            "READY": 2,
            "UP-TO-DATE": 3,
            "AVAILABLE": 1,
            "NODE SELECTOR": "<none>",
            "CONTAINERS": "a,b",
            "SELECTOR": "app=web",
        },
    ),
    (
        "apps",
        "daemonsets",
        {"spec": {"template": {"spec": {"nodeSelector": {"disk": "ssd"}}}}},
        {"DESIRED": 0, "NODE SELECTOR": "disk=ssd"},
    ),
    (
        "batch",
        "cronjobs",
        {
            "spec": {
                "schedule": "@daily",
                "suspend": True,
                "timeZone": "Asia/Shanghai",
                "jobTemplate": {"spec": TEMPLATE},
            }
        },
        {
            "SCHEDULE": "@daily",
            "TIMEZONE": "Asia/Shanghai",
            "SUSPEND": "True",
            "ACTIVE": 0,
            "LAST SCHEDULE": "<none>",
            "CONTAINERS": "a,b",
            "IMAGES": "i:1,j",
        },
    ),
    (
        "batch",
        "cronjobs",
        {
            "spec": {"schedule": "* * * * *"},
            "status": {"active": [{"name": "a"}], "lastScheduleTime": "2026-01-01T00:59:30Z"},
        },
        {"TIMEZONE": "<none>", "SUSPEND": "False", "ACTIVE": 1, "SELECTOR": "<none>"},
    ),
    (
        "apps",
        "replicasets",
        {"spec": {"replicas": 2, **TEMPLATE}, "status": {"replicas": 1}},
        {"DESIRED": 2, "CURRENT": 1, "READY": 0, "SELECTOR": "app=web"},
    ),
    (
        "batch",
        "jobs",
        {"spec": {"completions": 3}, "status": {"succeeded": 1, "startTime": ago(90)}},
        {"STATUS": "Running", "COMPLETIONS": "1/3", "DURATION": "90s"},
    ),
    (
        "batch",
        "jobs",
        {
            "spec": {"completions": 1},
            "status": {
                "succeeded": 1,
                "startTime": ago(90),
                "completionTime": ago(30),
                "conditions": [{"type": "Complete", "status": "True"}],
            },
        },
        {"STATUS": "Complete", "COMPLETIONS": "1/1", "DURATION": "60s"},
    ),
    (
        "batch",
        "jobs",
        {"spec": {"parallelism": 4}, "status": {"conditions": [{"type": "Suspended", "status": "True"}]}},
        {"STATUS": "Suspended", "COMPLETIONS": "0/1 of 4", "DURATION": ""},
    ),
    ("batch", "jobs", {"metadata": {"deletionTimestamp": ago(1)}}, {"STATUS": "Terminating", "COMPLETIONS": "0/1"}),
    (
        "",
        "services",
        {"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}},
        {
            "TYPE": "ClusterIP",
            "CLUSTER-IP": "10.0.0.1",
            "EXTERNAL-IP": "<none>",
            "PORT(S)": "80/TCP,53/UDP",
            "SELECTOR": "<none>",
        },
    ),
    (
        "",
        "services",
        {"spec": {"type": "LoadBalancer", "ports": [{"port": 80, "nodePort": 30080}], "selector": {"a": "b"}}},
        {"CLUSTER-IP": "<none>", "EXTERNAL-IP": "<pending>", "PORT(S)": "80:30080/TCP", "SELECTOR": "a=b"},
    ),
    (
        "",
        "services",
        {"spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "1.2.3.4"}]}}},
        {"EXTERNAL-IP": "1.2.3.4", "PORT(S)": "<none>"},
    ),
    (
        "",
        "services",
        {"spec": {"type": "ExternalName", "externalName": "a.b"}},
        {"TYPE": "ExternalName", "EXTERNAL-IP": "a.b"},
    ),
    ("", "services", {"spec": {"clusterIP": "None"}}, {"CLUSTER-IP": "None"}),
    (
        "",
        "endpoints",
        {"subsets": [{"addresses": [{"ip": f"10.0.0.{i}"} for i in range(5)], "ports": [{"port": 80}]}]},
        {"ENDPOINTS": "10.0.0.0:80,10.0.0.1:80,10.0.0.2:80 + 2 more..."},
    ),
    (
        "",
        "endpoints",
        {"subsets": [{"addresses": [{"ip": "::1"}], "ports": [{"port": 80}]}]},
        {"ENDPOINTS": "[::1]:80"},
    ),
    ("", "endpoints", {}, {"ENDPOINTS": "<none>"}),
    (
        "discovery.k8s.io",
        "endpointslices",
        {"addressType": "IPv4", "ports": [{"port": 80}], "endpoints": [{"addresses": ["10.0.0.1"]}]},
        {"ADDRESSTYPE": "IPv4", "PORTS": "80", "ENDPOINTS": "10.0.0.1"},
    ),
    ("discovery.k8s.io", "endpointslices", {}, {"PORTS": "<unset>", "ENDPOINTS": "<unset>"}),
    (
        "",
        "nodes",
        {
            "metadata": {"labels": {"node-role.kubernetes.io/worker": "", "kubernetes.io/role": "gpu"}},
            "spec": {"unschedulable": True},
            "status": {
                "conditions": [{"type": "Ready", "status": "True"}],
                "nodeInfo": {"kubeletVersion": "v1.34.0", "osImage": "Linux"},
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            },
        },
        {
            "STATUS": "Ready,SchedulingDisabled",
            "ROLES": "gpu,worker",
            "VERSION": "v1.34.0",
            "INTERNAL-IP": "127.0.0.1",
            "EXTERNAL-IP": "<none>",
            "OS-IMAGE": "Linux",
            "KERNEL-VERSION": "<unknown>",
        },
    ),
    ("", "nodes", {"status": {"conditions": [{"type": "Ready", "status": "Unknown"}]}}, {"STATUS": "NotReady"}),
    ("", "nodes", {}, {"STATUS": "Unknown", "ROLES": "<none>"}),
    (
        "",
        "events",
        {
            "type": "Warning",
            "reason": "BackOff",
            "message": " text \n",
            "involvedObject": {"kind": "Pod", "name": "p", "fieldPath": "spec.containers{c}"},
            "firstTimestamp": ago(600),
            "lastTimestamp": ago(60),
            "count": 4,
            "source": {"component": "kubelet", "host": "n1"},
        },
        {
            "LAST SEEN": "60s",
            "TYPE": "Warning",
            "REASON": "BackOff",
            "OBJECT": "pod/p",
            "MESSAGE": "text",
            "SUBOBJECT": "spec.containers{c}",
            "SOURCE": "kubelet, n1",
            "FIRST SEEN": "10m",
            "COUNT": 4,
        },
    ),
    (
        "events.k8s.io",
        "events",
        {
            "regarding": {"kind": "Node"},
            "note": "hello",
            "eventTime": ago(300),
            "series": {"count": 9, "lastObservedTime": ago(5)},
            "reportingController": "ctl",
            "reportingInstance": "ctl-0",
        },
        {
            "LAST SEEN": "5s",
            "OBJECT": "node",
            "MESSAGE": "hello",
            "COUNT": 9,
            "FIRST SEEN": "5m",
            "SOURCE": "ctl, ctl-0",
        },
    ),
    ("", "namespaces", {"status": {"phase": "Terminating"}}, {"STATUS": "Terminating"}),
    ("", "configmaps", {"data": {"a": "1"}, "binaryData": {"b": ""}}, {"DATA": 2}),
    (
        "",
        "secrets",
        {"type": "kubernetes.io/tls", "data": {"a": "", "b": ""}},
        {"TYPE": "kubernetes.io/tls", "DATA": 2},
    ),
    ("", "serviceaccounts", {}, {"SECRETS": 0}),
    (
        "",
        "persistentvolumes",
        {
            "spec": {
                "capacity": {"storage": "5Gi"},
                "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                "persistentVolumeReclaimPolicy": "Retain",
                "claimRef": {"namespace": "ns", "name": "c"},
                "storageClassName": "fast",
            },
            "status": {"phase": "Bound"},
        },
        {
            "CAPACITY": "5Gi",
            "ACCESS MODES": "RWO,RWX",
            "RECLAIM POLICY": "Retain",
            "STATUS": "Bound",
            "CLAIM": "ns/c",
            "STORAGECLASS": "fast",
            "VOLUMEATTRIBUTESCLASS": "<unset>",
            "REASON": "",
        },
    ),
    (
        "",
        "persistentvolumeclaims",
        {
            "spec": {"volumeName": "v"},
            "status": {"phase": "Bound", "capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"]},
        },
        {"STATUS": "Bound", "VOLUME": "v", "CAPACITY": "1Gi", "ACCESS MODES": "RWO", "VOLUMEMODE": "<unset>"},
    ),
    (
        "",
        "persistentvolumeclaims",
        {"metadata": {"deletionTimestamp": ago(1)}, "status": {"phase": "Bound"}},
        {"STATUS": "Terminating", "CAPACITY": ""},
    ),
    (
        "",
        "resourcequotas",
        {"status": {"hard": {"pods": "4", "limits.cpu": "2", "cpu": "1"}, "used": {"pods": "1"}}},
        {"REQUEST": "cpu: 0/1, pods: 1/4", "LIMIT": "limits.cpu: 0/2"},
    ),
    ("coordination.k8s.io", "leases", {"spec": {"holderIdentity": "me"}}, {"HOLDER": "me"}),
    ("rbac.authorization.k8s.io", "clusterroles", {}, {"CREATED AT": ago(3600)}),
    ("apiextensions.k8s.io", "customresourcedefinitions", {}, {"CREATED AT": ago(3600)}),
    (
        "rbac.authorization.k8s.io",
        "rolebindings",
        {
            "roleRef": {"kind": "Role", "name": "r"},
            "subjects": [
                {"kind": "User", "name": "u"},
                {"kind": "Group", "name": "g"},
                {"kind": "Group", "name": "h"},
                {"kind": "ServiceAccount", "namespace": "n", "name": "s"},
            ],
        },
        {"ROLE": "Role/r", "USERS": "u", "GROUPS": "g, h", "SERVICEACCOUNTS": "n/s"},
    ),
    (
        "storage.k8s.io",
        "storageclasses",
        {"metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}}, "provisioner": "p"},
        {"NAME": "x (default)", "RECLAIMPOLICY": "Delete", "ALLOWVOLUMEEXPANSION": False},
    ),
    (
        "networking.k8s.io",
        "ingresses",
        {
            "spec": {"rules": [{"host": host} for host in "abcd"], "tls": [{}], "ingressClassName": "c"},
            "status": {"loadBalancer": {"ingress": [{"hostname": "h"}, {"ip": "1.2.3.4"}]}},
        },
        {"CLASS": "c", "HOSTS": "a,b,c + 1 more...", "ADDRESS": "1.2.3.4,h", "PORTS": "80, 443"},
    ),
    (
        "networking.k8s.io",
        "ingresses",
        {"spec": {"rules": [{"host": "a"}, {}]}},
        {"CLASS": "<none>", "HOSTS": "a", "ADDRESS": "", "PORTS": "80"},
    ),
    ("networking.k8s.io", "ingresses", {"spec": {"defaultBackend": {}}}, {"HOSTS": "*"}),
    (
        "networking.k8s.io",
        "ingressclasses",
        {"spec": {"controller": "acme.io/a", "parameters": {"apiGroup": "acme.io", "kind": "Gate", "name": "g"}}},
        {"CONTROLLER": "acme.io/a", "PARAMETERS": "Gate.acme.io/g"},
    ),
    (
        "storage.k8s.io",
        "csidrivers",
        {"spec": {"volumeLifecycleModes": ["Persistent", "Ephemeral"], "tokenRequests": [{"audience": "a"}, {}]}},
        {"ATTACHREQUIRED": True, "PODINFOONMOUNT": False, "TOKENREQUESTS": "a,", "MODES": "Persistent,Ephemeral"},
    ),
    ("storage.k8s.io", "csinodes", {"spec": {"drivers": [{"name": "a"}]}}, {"DRIVERS": 1}),
    ("storage.k8s.io", "csistoragecapacities", {"storageClassName": "fast"}, {"CREATED AT": ago(3600)}),
    (
        "storage.k8s.io",
        "volumeattachments",
        {
            "spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}},
            "status": {"attached": True},
        },
        {"ATTACHER": "a.example", "PV": "p", "NODE": "n", "ATTACHED": True},
    ),
    ("scheduling.k8s.io", "priorityclasses", {"value": 5}, {"VALUE": 5, "GLOBAL-DEFAULT": False}),
    (
        "policy",
        "poddisruptionbudgets",
        {"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 1}},
        {"MIN AVAILABLE": "50%", "MAX UNAVAILABLE": "N/A", "ALLOWED DISRUPTIONS": 1},
    ),
    (
        "apps",
        "controllerrevisions",
        {
            "revision": 3,
            "metadata": {"ownerReferences": [{"kind": "StatefulSet", "name": "s", "controller": True}]},
        },
        {"CONTROLLER": "statefulset/s", "REVISION": 3},
    ),
]


@pytest.mark.parametrize(("group", "plural", "obj", "expected"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_cells(group: str, plural: str, obj: dict[str, Any], expected: dict[str, Any]) -> None:
    row = show(group, plural, obj, wide=True)
    assert {header: row[header] for header in expected} == expected


@pytest.mark.parametrize(("group", "plural"), VIEWS)
def test_a_bare_object_of_any_kind_can_be_tabulated(group: str, plural: str) -> None:
    row = show(group, plural, {}, wide=True)
    assert row["NAME"] == "x"
    assert all(isinstance(cell, str | int | bool) for cell in row.values())


@pytest.mark.parametrize(
    ("group", "plural", "headers"),
    [
        ("", "services", "NAME TYPE CLUSTER-IP EXTERNAL-IP PORT(S) AGE"),
        ("apps", "deployments", "NAME READY UP-TO-DATE AVAILABLE AGE"),
        ("batch", "jobs", "NAME STATUS COMPLETIONS DURATION AGE"),
        ("", "nodes", "NAME STATUS ROLES AGE VERSION"),
        ("", "events", "LAST_SEEN TYPE REASON OBJECT MESSAGE"),
        ("", "secrets", "NAME TYPE DATA AGE"),
    ],
)
def test_narrow_headers_are_the_familiar_ones(group: str, plural: str, headers: str) -> None:
    assert [name.replace(" ", "_") for name in show(group, plural, {})] == headers.split()
