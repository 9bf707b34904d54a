"""Decoding and defaulting of built-in kinds, as a real API server answers them."""

from __future__ import annotations

import base64
import copy
from typing import Any

import pytest

from paddlecloud.kube.errors import BadRequest
from paddlecloud.local.apiserver.builtin.defaults import complete_job, pull_policy, qos_class
from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds, default_builtin

Json = dict[str, Any]
KINDS = {kind.kind: kind for kind in builtin_kinds() if kind.resource.group != "events.k8s.io"}


def defaulted(kind: str, **fields: Any) -> Json:
    info = KINDS[kind]
    obj: Json = {
        "apiVersion": info.resource.api_version,
        "kind": kind,
        "metadata": {"name": "x"},
        **copy.deepcopy(fields),
    }
    default_builtin(obj, info)
    once = copy.deepcopy(obj)
    default_builtin(obj, info)
    assert obj == once, "defaulting is idempotent"
    return obj


def template(**spec: Any) -> Json:
    return {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i:1"}], **spec}}


# --- defaults ---


def test_a_pod_gets_what_kubernetes_gives_it() -> None:
    probe = {"httpGet": {"port": 80}, "timeoutSeconds": 0}
    pod = defaulted(
        "Pod",
        spec={
            "containers": [
                {
                    "name": "c",
                    "image": "nginx",
                    "ports": [{"containerPort": 80}],
                    "readinessProbe": probe,
                    "env": [{"name": "IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}],
                    "resources": {"limits": {"cpu": 1, "memory": "1024Mi"}, "requests": {"cpu": "0.5"}},
                }
            ],
            "volumes": [
                {"name": "a"},
                {"name": "b", "secret": {"secretName": "s"}},
                {"name": "c", "hostPath": {"path": "/"}},
            ],
        },
    )
    assert pod["spec"] == {
        "containers": [
            {
                "name": "c",
                "image": "nginx",
                "imagePullPolicy": "Always",
                "ports": [{"containerPort": 80, "protocol": "TCP"}],
                "readinessProbe": {
                    "httpGet": {"port": 80, "path": "/", "scheme": "HTTP"},
                    "timeoutSeconds": 1,
                    "periodSeconds": 10,
                    "successThreshold": 1,
                    "failureThreshold": 3,
                },
                "env": [{"name": "IP", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}}],
                "resources": {
                    "limits": {"cpu": "1", "memory": "1Gi"},
                    "requests": {"cpu": "500m", "memory": "1Gi"},
                },
                "terminationMessagePath": "/dev/termination-log",
                "terminationMessagePolicy": "File",
            }
        ],
        "volumes": [
            {"name": "a", "emptyDir": {}},
            {"name": "b", "secret": {"secretName": "s", "defaultMode": 420}},
            {"name": "c", "hostPath": {"path": "/", "type": ""}},
        ],
        "dnsPolicy": "ClusterFirst",
        "restartPolicy": "Always",
        "enableServiceLinks": True,
        "securityContext": {},
        "terminationGracePeriodSeconds": 30,
        "schedulerName": "default-scheduler",
    }
    assert pod["status"] == {"phase": "Pending", "qosClass": "Burstable"}


def test_a_pod_on_the_hosts_network_takes_its_ports_there() -> None:
    container = {"name": "c", "image": "i", "ports": [{"containerPort": 80}]}
    pod = defaulted("Pod", spec={"hostNetwork": True, "containers": [container]})
    assert pod["spec"]["containers"][0]["ports"] == [{"containerPort": 80, "hostPort": 80, "protocol": "TCP"}]


def test_a_template_gets_the_defaults_of_a_pod_but_not_those_of_its_making() -> None:
    container = {"name": "c", "image": "i:1", "resources": {"limits": {"cpu": "1"}}}
    deployment = defaulted("Deployment", spec={"selector": {}, "template": {"spec": {"containers": [container]}}})
    spec = deployment["spec"]["template"]["spec"]
    assert spec["restartPolicy"] == "Always"
    assert spec["containers"][0]["imagePullPolicy"] == "IfNotPresent"
    assert "enableServiceLinks" not in spec
    assert "requests" not in spec["containers"][0]["resources"]


NO_BALANCER: Json = {"loadBalancer": {}}
DEFAULTS: list[tuple[str, Json, Json]] = [
    ("Deployment", {"spec": {}}, {"spec": {
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600,
        "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"}},
    }}),
    ("Deployment", {"spec": {"strategy": {"type": "Recreate"}}}, {"spec": {
        "replicas": 1, "revisionHistoryLimit": 10, "progressDeadlineSeconds": 600, "strategy": {"type": "Recreate"},
    }}),
    ("ReplicaSet", {"spec": {}}, {"spec": {"replicas": 1}}),
    ("StatefulSet", {"spec": {}}, {"spec": {
        "replicas": 1, "revisionHistoryLimit": 10, "podManagementPolicy": "OrderedReady",
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 0}},
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
    }}),
    ("DaemonSet", {"spec": {}}, {"spec": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}},
    }}),
    ("DaemonSet", {"spec": {"updateStrategy": {"type": "OnDelete"}}}, {"spec": {
        "revisionHistoryLimit": 10, "updateStrategy": {"type": "OnDelete"},
    }}),
    ("DaemonSet", {"spec": {"updateStrategy": {"rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}}}}, {"spec": {
        "revisionHistoryLimit": 10,
        "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "10%", "maxUnavailable": 0}},
    }}),
    ("CronJob", {"spec": {"schedule": "@daily", "jobTemplate": {"spec": {}}}}, {"spec": {
        "schedule": "@daily", "concurrencyPolicy": "Allow", "suspend": False, "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1, "jobTemplate": {"spec": {}},
    }}),
    ("Job", {"spec": {}}, {"spec": {
        "completions": 1, "parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False,
        "manualSelector": False, "podReplacementPolicy": "TerminatingOrFailed",
    }}),
    ("Job", {"spec": {"parallelism": 3, "backoffLimitPerIndex": 1, "podFailurePolicy": {"rules": []}}}, {"spec": {
        "parallelism": 3, "backoffLimit": 2**31 - 1, "backoffLimitPerIndex": 1, "completionMode": "NonIndexed",
        "suspend": False, "manualSelector": False, "podReplacementPolicy": "Failed", "podFailurePolicy": {"rules": []},
    }}),
    ("Service", {"spec": {"ports": [{"port": 80}]}}, {"status": NO_BALANCER, "spec": {
        "type": "ClusterIP", "sessionAffinity": "None", "internalTrafficPolicy": "Cluster",
        "ports": [{"port": 80, "targetPort": 80, "protocol": "TCP"}],
    }}),
    ("Service", {"spec": {"type": "NodePort", "sessionAffinity": "ClientIP"}}, {"status": NO_BALANCER, "spec": {
        "type": "NodePort", "sessionAffinity": "ClientIP", "internalTrafficPolicy": "Cluster",
        "externalTrafficPolicy": "Cluster", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 10800}},
    }}),
    ("Service", {"spec": {"type": "ExternalName", "externalName": "x.org"}}, {"status": NO_BALANCER, "spec": {
        "type": "ExternalName", "externalName": "x.org", "sessionAffinity": "None",
    }}),
    ("Secret", {"stringData": {"a": "hi"}, "data": {"a": "eA==", "b": "eQ=="}}, {
        "type": "Opaque", "data": {"a": base64.b64encode(b"hi").decode(), "b": "eQ=="},
    }),
    ("PersistentVolume", {"spec": {}}, {
        "spec": {"persistentVolumeReclaimPolicy": "Retain", "volumeMode": "Filesystem"}, "status": {"phase": "Pending"},
    }),
    ("PersistentVolumeClaim", {"spec": {"resources": {"requests": {"storage": "1024Mi"}}}}, {
        "spec": {"volumeMode": "Filesystem", "resources": {"requests": {"storage": "1Gi"}}},
        "status": {"phase": "Pending"},
    }),
    ("Node", {"status": {"capacity": {"cpu": 4}}}, {"status": {"capacity": {"cpu": "4"}, "allocatable": {"cpu": "4"}}}),
    ("LimitRange", {"spec": {"limits": [{"type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}}]}}, {
        "spec": {"limits": [{
            "type": "Container", "max": {"cpu": "2"}, "min": {"memory": "1Mi"}, "default": {"cpu": "2"},
            "defaultRequest": {"cpu": "2", "memory": "1Mi"},
        }]},
    }),
    ("StorageClass", {"provisioner": "p"}, {
        "provisioner": "p", "reclaimPolicy": "Delete", "volumeBindingMode": "Immediate",
    }),
    ("PriorityClass", {"value": 5}, {"value": 5, "preemptionPolicy": "PreemptLowerPriority"}),
    ("RoleBinding", {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "User", "name": "u"}]}, {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "u"}],
    }),
    ("CustomResourceDefinition", {"spec": {"names": {"kind": "Widget", "plural": "widgets"}}}, {"spec": {
        "conversion": {"strategy": "None"},
        "names": {"kind": "Widget", "plural": "widgets", "singular": "widget", "listKind": "WidgetList"},
    }}),
    ("Lease", {"spec": {"renewTime": "2026-11-15T09:46:56Z"}}, {"spec": {"renewTime": "2026-11-15T09:46:56.000000Z"}}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "expected"), DEFAULTS)
def test_defaults_of_the_other_kinds(kind: str, given: Json, expected: Json) -> None:
    obj = defaulted(kind, **given)
    assert {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")} == expected


def test_a_new_namespace_is_active_and_guarded_and_carries_its_name() -> None:
    namespace = defaulted("Namespace")
    assert namespace["spec"] == {"finalizers": ["kubernetes"]}
    assert namespace["status"] == {"phase": "Active"}
    assert namespace["metadata"]["labels"] == {"kubernetes.io/metadata.name": "x"}


def test_a_namespace_whose_finalizers_are_done_does_not_get_them_again() -> None:
    namespace = defaulted("Namespace", spec={}, status={"phase": "Terminating"})
    assert namespace["spec"] == {}


def test_a_job_is_distinguished_from_others_by_its_uid_once_it_has_one() -> None:
    job = defaulted("Job", spec={"template": template(restartPolicy="Never")})
    assert job["metadata"]["labels"] == {"a": "b"}
    job["metadata"]["uid"] = "u-1"
    complete_job(KINDS["Job"], job, None)
    assert job["spec"]["selector"] == {"matchLabels": {"batch.kubernetes.io/controller-uid": "u-1"}}
    labels = job["spec"]["template"]["metadata"]["labels"]
    assert labels["batch.kubernetes.io/job-name"] == labels["job-name"] == "x"
    assert labels["a"] == "b"


def test_a_job_without_any_labels_gets_those_of_its_pods() -> None:
    spec = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i:1"}]}
    job = defaulted("Job", spec={"template": {"spec": spec}})
    job["metadata"]["uid"] = "u-1"
    complete_job(KINDS["Job"], job, None)
    assert job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"]
    assert job["metadata"]["labels"]["job-name"] == "x"


def test_quantities_that_are_filled_in_are_texts() -> None:
    """A typed client reads a quantity as text only."""
    reference = {"name": "CPU", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu"}}}
    pod = defaulted("Pod", spec={"containers": [{"name": "c", "image": "i:1", "env": [reference]}]})
    assert pod["spec"]["containers"][0]["env"][0]["valueFrom"]["resourceFieldRef"]["divisor"] == "0"


def test_a_job_that_selects_for_itself_is_left_alone() -> None:
    selector = {"matchLabels": {"a": "b"}}
    job = defaulted("Job", spec={"manualSelector": True, "selector": selector, "template": template()})
    job["metadata"]["uid"] = "u-1"
    complete_job(KINDS["Job"], job, None)
    assert job["spec"]["selector"] == selector


@pytest.mark.parametrize(
    ("image", "policy"),
    [
        ("nginx", "Always"),
        ("nginx:latest", "Always"),
        ("nginx:1", "IfNotPresent"),
        ("localhost:5000/nginx", "Always"),
        ("localhost:5000/a/nginx:1", "IfNotPresent"),
        ("nginx@sha256:abc", "IfNotPresent"),
    ],
)
def test_pull_policy_follows_the_tag(image: str, policy: str) -> None:
    assert pull_policy(image) == policy


@pytest.mark.parametrize(
    ("resources", "quality"),
    [
        ([{}], "BestEffort"),
        ([{"limits": {"nvidia.com/gpu": "1"}}], "BestEffort"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Gi"}}], "Guaranteed"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}], "Burstable"),
        ([{"limits": {"cpu": "1", "memory": "1Gi"}}, {}], "Burstable"),
        ([{"requests": {"cpu": "1"}}], "Burstable"),
    ],
)
def test_quality_of_service(resources: list[Json], quality: str) -> None:
    assert qos_class({"containers": [{"resources": given} for given in resources]}) == quality


# --- decoding ---


@pytest.mark.parametrize(
    ("kind", "given", "read"),
    [
        ("ConfigMap", {"data": None, "immutable": None}, {}),
        ("ConfigMap", {"data": {"a": None}}, {"data": {"a": ""}}),
        ("Event", {"involvedObject": {"name": "x"}, "lastTimestamp": "2026-11-15T17:46:56.789+08:00"},
         {"involvedObject": {"name": "x"}, "lastTimestamp": "2026-11-15T09:46:56Z"}),
        ("Event", {"involvedObject": {}, "eventTime": "2026-11-15T09:46:56.5Z"},
         {"involvedObject": {}, "eventTime": "2026-11-15T09:46:56.500000Z"}),
        ("ResourceQuota", {"spec": {"hard": {"cpu": 0.5, "memory": "1.5Gi", "pods": "1000"}}},
         {"spec": {"hard": {"cpu": "500m", "memory": "1536Mi", "pods": "1k"}}}),
        ("ServiceAccount", {"secrets": [None]}, {"secrets": [{}]}),
        ("ServiceAccount", {"mystery": {"dropped": [None]}, "secrets": [{"name": "s", "mystery": 1}]},
         {"secrets": [{"name": "s"}]}),
    ],
)  # fmt: skip
def test_values_are_read_as_go_reads_them(kind: str, given: Json, read: Json) -> None:
    obj = defaulted(kind, **given)
    assert {key: value for key, value in obj.items() if key not in ("apiVersion", "kind", "metadata")} == read


def test_an_empty_choice_is_no_choice() -> None:
    pod = defaulted("Pod", spec={"restartPolicy": "", "dnsPolicy": "", "containers": [{"name": "", "image": "i"}]})
    assert (pod["spec"]["restartPolicy"], pod["spec"]["dnsPolicy"]) == ("Always", "ClusterFirst")
    assert "name" not in pod["spec"]["containers"][0], "so that validation finds the required name missing"


@pytest.mark.parametrize(
    ("kind", "given", "problem"),
    [
        (
            "Deployment",
            {"spec": {"replicas": "3"}},
            "string into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            "Deployment",
            {"spec": {"replicas": 2**31}},
            "number 2147483648 into Go struct field DeploymentSpec.spec.replicas",
        ),
        ("Deployment", {"spec": {"replicas": True}}, "json: cannot unmarshal bool into"),
        ("Deployment", {"spec": {"replicas": 1.5}}, "json: cannot unmarshal number into"),
        (
            "Pod",
            {"spec": {"containers": {}}},
            "object into Go struct field PodSpec.spec.containers of type []Container",
        ),
        ("Pod", {"spec": {"containers": [{"image": 5}]}}, "field Container.spec.containers.image of type string"),
        ("Pod", {"spec": {"nodeSelector": {"a": 1}}}, "field PodSpec.spec.nodeSelector.a of type string"),
        ("Pod", {"spec": []}, "json: cannot unmarshal array into Go struct field Pod.spec of type PodSpec"),
        (
            "Pod",
            {"spec": {"overhead": {"cpu": "lots"}}},
            "spec.overhead.cpu: quantities must match the regular expression",
        ),
        ("Secret", {"data": {"a": "not base64!"}}, "data.a: illegal base64 data at input byte 3"),
        ("Lease", {"spec": {"renewTime": "yesterday"}}, 'spec.renewTime: parsing time "yesterday"'),
        ("Service", {"spec": {"ports": [{"targetPort": []}]}}, "spec.ports.targetPort of type intstr.IntOrString"),
    ],
)
def test_what_no_type_can_hold_is_a_bad_request_that_names_the_field(kind: str, given: Json, problem: str) -> None:
    with pytest.raises(BadRequest) as caught:
        defaulted(kind, **given)
    version = KINDS[kind].resource.version
    assert caught.value.message.startswith(f'{kind} in version "{version}" cannot be handled as a {kind}: ')
    assert problem in caught.value.message


def test_deep_nonsense_is_refused() -> None:
    deep: Json = {}
    for _ in range(400):
        deep = {"not": deep}
    with pytest.raises(BadRequest, match="nests deeper"):
        defaulted("CustomResourceDefinition", spec={"versions": [{"schema": {"openAPIV3Schema": deep}}]})
