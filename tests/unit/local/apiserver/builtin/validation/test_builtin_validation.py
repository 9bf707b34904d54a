# ruff: noqa: E501 - a rule is a row
"""What Kubernetes refuses in built-in objects beyond types, one table per kind."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.local.apiserver.builtin.kinds import builtin_kinds, default_builtin
from paddlecloud.local.apiserver.builtin.validation.entrance import validate_builtin
from paddlecloud.local.apiserver.schema import structural as sch

Json = dict[str, Any]
KINDS = {kind.kind: kind for kind in builtin_kinds() if kind.resource.group != "events.k8s.io"}


def judged(kind: str, new: Json, old: Json | None = None) -> list[tuple[str, str]]:
    """(field, message) of everything wrong, by the road an object takes through the server."""
    info = KINDS[kind]
    objects = []
    for given in (new, old):
        obj = None if given is None else {"metadata": {"name": "x", "namespace": "default"}, **copy.deepcopy(given)}
        if obj is not None:
            default_builtin(obj, info)
        objects.append(obj)
    assert objects[0] is not None
    assert info.schema is not None
    causes = sch.validate(objects[0], info.schema, info.definitions)
    causes = causes or validate_builtin(objects[0], objects[1], info)
    return [(field, message) for field, _, message in causes]


def refused(found: list[tuple[str, str]], field: str, fragment: str) -> None:
    assert [1 for place, message in found if place == field and fragment in message], found


# --- pods ---

C = "spec.containers[0]"


def container(**fields: Any) -> Json:
    return {"name": "c", "image": "i:1", **fields}


def pod(*more: Json, **spec: Any) -> Json:
    return {"spec": {"containers": [container(), *more], **spec}}


def one(**fields: Any) -> Json:
    return {"spec": {"containers": [container(**fields)]}}


def mounting(**mount: Any) -> Json:
    return {**one(volumeMounts=[{"name": "v", "mountPath": "/v", **mount}])}


NODE_TERMS = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
SPREAD: Json = {"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}
WISH: Json = {"weight": 1, "podAffinityTerm": {"topologyKey": "z"}}
PODS: list[tuple[Json, str, str]] = [
    ({"spec": {}}, "spec.containers", "Required value"),
    ({"spec": {"containers": []}}, "spec.containers", "Required value"),
    (one(name=""), f"{C}.name", "Required value"),
    (one(name="Bad_Name"), f"{C}.name", 'Invalid value: "Bad_Name": a lowercase RFC 1123 label must consist of'),
    (one(image=""), f"{C}.image", "Required value"),
    (one(image=" i"), f"{C}.image", "must not have leading or trailing whitespace"),
    (pod(container()), "spec.containers[1].name", 'Duplicate value: "c"'),
    (pod(initContainers=[container()]), "spec.initContainers[0].name", 'Duplicate value: "c"'),
    (one(imagePullPolicy="Often"), f"{C}.imagePullPolicy", 'Unsupported value: "Often": supported values: "Always"'),
    (pod(restartPolicy="Maybe"), "spec.restartPolicy", 'supported values: "Always", "Never", "OnFailure"'),
    (one(ports=[{"containerPort": 0}]), f"{C}.ports[0].containerPort", "must be between 1 and 65535, inclusive"),
    (one(ports=[{"containerPort": 1, "name": "Too_Long_For_A_Port"}]), f"{C}.ports[0].name", "no more than 15 characters"),
    (
        one(ports=[{"containerPort": 1, "name": "p"}, {"containerPort": 2, "name": "p"}]),
        f"{C}.ports[1].name",
        'Duplicate value: "p"',
    ),
    (one(env=[{"name": "A=B"}]), f"{C}.env[0].name", "printable ASCII characters other than '='"),
    (
        one(envFrom=[{"prefix": "A=", "secretRef": {"name": "s"}}]),
        f"{C}.envFrom[0].prefix",
        "printable ASCII characters other than '='",
    ),
    (one(env=[{"name": "A", "valueFrom": {}}]), f"{C}.env[0].valueFrom", "must specify one of: `fieldRef`"),
    (
        one(env=[{"name": "A", "value": "x", "valueFrom": {"fieldRef": {"fieldPath": "a"}}}]),
        f"{C}.env[0].valueFrom",
        "may not be specified when `value` is not empty",
    ),
    (one(envFrom=[{"prefix": "A"}]), f"{C}.envFrom[0]", "must specify one of: `configMapRef` or `secretRef`"),
    (mounting(), f"{C}.volumeMounts[0].name", 'Not found: "v"'),
    (
        {"spec": {**mounting(subPath="../x")["spec"], "volumes": [{"name": "v"}]}},
        f"{C}.volumeMounts[0].subPath",
        "must not contain '..'",
    ),
    (
        one(resources={"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
        f"{C}.resources.requests",
        'Invalid value: "2": must be less than or equal to cpu limit of 1',
    ),
    (one(resources={"limits": {"cpu": "-1"}}), f"{C}.resources.limits[cpu]", "must be greater than or equal to 0"),
    (one(resources={"limits": {"nvidia.com/gpu": "500m"}}), f"{C}.resources.limits[nvidia.com/gpu]", "must be an integer"),
    (
        one(resources={"requests": {"nvidia.com/gpu": "1"}}),
        f"{C}.resources.limits[nvidia.com/gpu]",
        "Limit must be set for non overcommitable resources",
    ),
    (one(resources={"limits": {"gpu": "1"}}), f"{C}.resources.limits[gpu]", "must be a standard resource for containers"),
    (pod(overhead={"cpu": "-5"}), "spec.overhead.limits[cpu]", "must be greater than or equal to 0"),
    (one(livenessProbe={}), f"{C}.livenessProbe", "must specify a handler type"),
    (
        one(livenessProbe={"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}),
        f"{C}.livenessProbe.tcpSocket",
        "may not specify more than 1 handler type",
    ),
    (
        one(livenessProbe={"exec": {"command": ["x"]}, "successThreshold": 2}),
        f"{C}.livenessProbe.successThreshold",
        "must be 1",
    ),
    (one(readinessProbe={"httpGet": {"port": 0}}), f"{C}.readinessProbe.httpGet.port", "between 1 and 65535"),
    (one(restartPolicy="Always"), f"{C}.restartPolicy", "may not be set for non-init containers"),
    (
        pod(initContainers=[{"name": "i", "image": "i", "startupProbe": {"tcpSocket": {"port": 1}}}]),
        "spec.initContainers[0].startupProbe",
        "may not be set for init containers without restartPolicy=Always",
    ),
    (pod(volumes=[{"name": "V"}]), "spec.volumes[0].name", "a lowercase RFC 1123 label"),
    (pod(volumes=[{"name": "v"}, {"name": "v"}]), "spec.volumes[1].name", 'Duplicate value: "v"'),
    (
        pod(volumes=[{"name": "v", "emptyDir": {}, "hostPath": {"path": "/"}}]),
        "spec.volumes[0].hostPath",
        "may not specify more than 1 volume type",
    ),
    (pod(volumes=[{"name": "v", "secret": {}}]), "spec.volumes[0].secret.secretName", "Required value"),
    (
        pod(volumes=[{"name": "v", "configMap": {"name": "c", "defaultMode": 0o1777}}]),
        "spec.volumes[0].configMap.defaultMode",
        "must be a number between 0 and 0777 (octal)",
    ),
    (pod(volumes=[{"name": "v", "hostPath": {"path": "/a/../b"}}]), "spec.volumes[0].hostPath.path", "must not contain '..'"),
    (pod(activeDeadlineSeconds=0), "spec.activeDeadlineSeconds", "must be between 1 and 2147483647, inclusive"),
    (pod(nodeSelector={"a b": "c"}), "spec.nodeSelector", "name part must consist of alphanumeric characters"),
    (pod(hostname="A"), "spec.hostname", "a lowercase RFC 1123 label"),
    (pod(dnsPolicy="None"), "spec.dnsConfig.nameservers", "must provide at least one DNS nameserver"),
    (
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "x"}]),
        "spec.tolerations[0].operator",
        "value must be empty when `operator` is 'Exists'",
    ),
    (
        pod(tolerations=[{"key": "a", "tolerationSeconds": 1, "effect": "NoSchedule"}]),
        "spec.tolerations[0].effect",
        "effect must be 'NoExecute' when `tolerationSeconds` is set",
    ),
    (
        pod(affinity={"nodeAffinity": {NODE_TERMS: {"nodeSelectorTerms": [{"matchExpressions": [{"key": "a", "operator": "In"}]}]}}}),
        f"spec.affinity.nodeAffinity.{NODE_TERMS}.nodeSelectorTerms[0].matchExpressions[0].values",
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    (
        pod(affinity={"podAffinity": {PREFERRED: [{"weight": 0, "podAffinityTerm": {"topologyKey": "z"}}]}}),
        f"spec.affinity.podAffinity.{PREFERRED}[0].weight",
        "must be in the range 1-100",
    ),
    (
        pod(topologySpreadConstraints=[SPREAD] * 156, affinity={"podAffinity": {PREFERRED: [WISH] * 50},
            "podAntiAffinity": {NODE_TERMS: [WISH["podAffinityTerm"]] * 50},
            "nodeAffinity": {NODE_TERMS: {"nodeSelectorTerms": [{"matchExpressions": []}]}}}),
        "spec.affinity",
        "Too many: 257: must have at most 256 terms, with topologySpreadConstraints",
    ),
    (
        pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
        "spec.topologySpreadConstraints[0].maxSkew",
        "must be greater than zero",
    ),
    (
        pod(topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}}]),
        "spec.topologySpreadConstraints[0].labelSelector.matchExpressions[0].values",
        "must be specified when `operator` is 'In' or 'NotIn'",
    ),
    (
        pod(affinity={"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": {"topologyKey": "z",
            "namespaceSelector": {"matchExpressions": [{"key": "a", "operator": "Exists", "values": ["b"]}]}}}]}}),
        f"spec.affinity.podAffinity.{PREFERRED}[0].podAffinityTerm.namespaceSelector.matchExpressions[0].values",
        "may not be specified when `operator` is 'Exists' or 'DoesNotExist'",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("given", "field", "fragment"), PODS)
def test_a_pod_that_cannot_run_is_refused(given: Json, field: str, fragment: str) -> None:
    refused(judged("Pod", given), field, fragment)


@pytest.mark.parametrize(
    "given",
    [
        pod(),
        one(env=[{"name": "A", "value": "1"}, {"name": "A", "value": "2"}]),  # the last one wins, as in Kubernetes
        one(ports=[{"containerPort": 80}, {"containerPort": 80}]),
        pod(initContainers=[{"name": "s", "image": "i", "restartPolicy": "Always", "startupProbe": {"tcpSocket": {"port": 1}}}]),
        pod(tolerations=[{"operator": "Exists"}, {"key": "a", "value": "b", "effect": ""}]),
        one(resources={"limits": {"nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}}),
        pod(terminationGracePeriodSeconds=-5),
        pod(topologySpreadConstraints=[SPREAD] * 156, affinity={"podAffinity": {PREFERRED: [WISH] * 100}}),
    ],
)  # fmt: skip
def test_a_pod_that_can_is_not(given: Json) -> None:
    assert judged("Pod", given) == []


@pytest.mark.parametrize(
    ("change", "field", "fragment"),
    [
        ({"nodeSelector": {"a": "b"}}, "spec", "pod updates may not change fields other than"),
        ({"containers": [container(), {"name": "d", "image": "i"}]}, "spec.containers", "may not add or remove containers"),
        ({"containers": [container(command=["x"])]}, "spec", "changed: containers"),
        ({"activeDeadlineSeconds": 20}, "spec.activeDeadlineSeconds", "must be less than or equal to previous value"),
        ({"activeDeadlineSeconds": None}, "spec.activeDeadlineSeconds", "must not update from a positive integer"),
        ({"tolerations": []}, "spec.tolerations", "existing toleration can not be modified"),
        ({"nodeName": "other"}, "spec", "changed: nodeName"),
        ({"schedulingGates": [{"name": "late"}]}, "spec.schedulingGates", "only deletion is allowed"),
    ],
)  # fmt: skip
def test_what_a_pod_was_made_it_stays(change: Json, field: str, fragment: str) -> None:
    old = pod(activeDeadlineSeconds=10, tolerations=[{"key": "a", "operator": "Exists"}], nodeName="n")
    refused(judged("Pod", {"spec": {**old["spec"], **change}}, old), field, fragment)


@pytest.mark.parametrize(
    "change",
    [
        {"containers": [container(image="i:2")]},
        {"activeDeadlineSeconds": 5},
        {"tolerations": [{"key": "b", "operator": "Exists"}, {"key": "a", "operator": "Exists", "tolerationSeconds": 5, "effect": "NoExecute"}]},
        {"nodeName": "n"},
        {"schedulingGates": []},
    ],
)  # fmt: skip
def test_but_for_images_deadline_tolerations_gates_and_the_node(change: Json) -> None:
    toleration = {"key": "a", "operator": "Exists", "effect": "NoExecute"}
    old = pod(activeDeadlineSeconds=10, tolerations=[toleration], schedulingGates=[{"name": "g"}])
    assert judged("Pod", {"spec": {**old["spec"], **change}}, old) == []


# --- workloads ---

LABELS = {"app": "x"}
TEMPLATE: Json = {"metadata": {"labels": LABELS}, "spec": {"containers": [container()]}}
SPEC = {"selector": {"matchLabels": LABELS}, "template": TEMPLATE}
ROLLING = "spec.updateStrategy.rollingUpdate"
JOB: Json = {"template": {"spec": {"restartPolicy": "Never", "containers": [container()]}}}
INDEXED: Json = {**JOB, "completionMode": "Indexed", "completions": 5}
CODES: Json = {"operator": "In", "values": [1, 42]}


CRON: Json = {"schedule": "*/5 * * * *", "jobTemplate": {"spec": JOB}}


def but(base: Json, **changes: Any) -> Json:
    return {"spec": {**base, **changes}}


WORKLOADS: list[tuple[str, Json, str, str]] = [
    ("Deployment", {"spec": {}}, "spec.selector", "Required value"),
    ("Deployment", but(SPEC, selector={}), "spec.selector", "empty selector is invalid for deployment"),
    ("Deployment", but(SPEC, selector={"matchLabels": {"app": "y"}}), "spec.template.metadata.labels", "`selector` does not match template `labels`"),
    ("Deployment", but(SPEC, selector={"matchExpressions": [{"key": "a", "operator": "Near"}]}), "spec.selector.matchExpressions[0].operator", 'supported values: "DoesNotExist", "Exists", "In", "NotIn"'),
    ("Deployment", but(SPEC, selector={"matchExpressions": [{"key": "a", "operator": "In"}]}), "spec.selector.matchExpressions[0].values", "must be specified when `operator` is 'In'"),
    ("Deployment", but(SPEC, replicas=-1), "spec.replicas", "must be greater than or equal to 0"),
    ("Deployment", but(SPEC, strategy={"type": "Recreate", "rollingUpdate": {}}), "spec.strategy.rollingUpdate", "may not be specified when strategy `type` is 'Recreate'"),
    ("Deployment", but(SPEC, strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}), "spec.strategy.rollingUpdate.maxUnavailable", "may not be 0 when `maxSurge` is 0"),
    ("Deployment", but(SPEC, strategy={"rollingUpdate": {"maxSurge": "lots"}}), "spec.strategy.rollingUpdate.maxSurge", "a valid percent string"),
    ("Deployment", but(SPEC, strategy={"rollingUpdate": {"maxSurge": "9" * 5_000 + "%"}}), "spec.strategy.rollingUpdate.maxSurge", "a valid percent string"),
    ("Deployment", but(SPEC, minReadySeconds=600), "spec.progressDeadlineSeconds", "must be greater than minReadySeconds"),
    ("Deployment", but(SPEC, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "Never"}}), "spec.template.spec.restartPolicy", 'Unsupported value: "Never": supported values: "Always"'),
    ("Deployment", but(SPEC, template={**TEMPLATE, "spec": {}}), "spec.template.spec.containers", "Required value"),
    ("ReplicaSet", but(SPEC, selector={"matchLabels": {"app": "y"}}), "spec.template.metadata.labels", "`selector` does not match"),
    ("StatefulSet", but(SPEC, volumeClaimTemplates=[{"spec": {}}]), "spec.volumeClaimTemplates[0].metadata.name", "Required value"),
    ("DaemonSet", but(SPEC, selector={}), "spec.selector", "empty selector is invalid for daemonset"),
    ("DaemonSet", but(SPEC, selector={"matchLabels": {"app": "y"}}), "spec.template.metadata.labels", "`selector` does not match template `labels`"),
    ("DaemonSet", but(SPEC, minReadySeconds=-1), "spec.minReadySeconds", "must be greater than or equal to 0"),
    ("DaemonSet", but(SPEC, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "restartPolicy": "OnFailure"}}), "spec.template.spec.restartPolicy", 'supported values: "Always"'),
    ("DaemonSet", but(SPEC, template={**TEMPLATE, "spec": {**TEMPLATE["spec"], "activeDeadlineSeconds": 5}}), "spec.template.spec.activeDeadlineSeconds", "activeDeadlineSeconds in DaemonSet is not Supported"),
    ("DaemonSet", but(SPEC, updateStrategy={"rollingUpdate": {"maxUnavailable": 0}}), f"{ROLLING}.maxUnavailable", "Required value: cannot be 0 when maxSurge is 0"),
    ("DaemonSet", but(SPEC, updateStrategy={"rollingUpdate": {"maxSurge": 1}}), f"{ROLLING}.maxSurge", "may not be set when maxUnavailable is non-zero"),
    ("DaemonSet", but(SPEC, updateStrategy={"rollingUpdate": {"maxSurge": "101%", "maxUnavailable": 0}}), f"{ROLLING}.maxSurge", "must not be greater than 100%"),
    ("DaemonSet", but(SPEC, updateStrategy={"type": "Recreate"}), "spec.updateStrategy.type", 'supported values: "OnDelete", "RollingUpdate"'),
    ("CronJob", {"spec": {"jobTemplate": {"spec": JOB}}}, "spec.schedule", "Required value"),
    ("CronJob", but(CRON, schedule="every morning"), "spec.schedule", "Invalid value"),
    ("CronJob", but(CRON, schedule="61 * * * *"), "spec.schedule", "must lie between 0 and 59"),
    ("CronJob", but(CRON, schedule="0 0 * * 7"), "spec.schedule", "Sunday is 0"),
    ("CronJob", but(CRON, schedule="@every moon"), "spec.schedule", "must name a duration"),
    ("CronJob", but(CRON, schedule="TZ=UTC 0 * * * *"), "spec.schedule", "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"),
    ("CronJob", but(CRON, timeZone=""), "spec.timeZone", "timeZone must be nil or non-empty string"),
    ("CronJob", but(CRON, timeZone="local"), "spec.timeZone", "timeZone must be an explicit time zone"),
    ("CronJob", but(CRON, timeZone="Moon/Tycho"), "spec.timeZone", "unknown time zone Moon/Tycho"),
    ("CronJob", but(CRON, timeZone="../etc/passwd"), "spec.timeZone", "unknown time zone ../etc/passwd"),
    ("CronJob", but(CRON, concurrencyPolicy="Queue"), "spec.concurrencyPolicy", 'supported values: "Allow", "Forbid", "Replace"'),
    ("CronJob", but(CRON, startingDeadlineSeconds=-1), "spec.startingDeadlineSeconds", "must be greater than or equal to 0"),
    ("CronJob", but(CRON, failedJobsHistoryLimit=-1), "spec.failedJobsHistoryLimit", "must be greater than or equal to 0"),
    ("CronJob", but(CRON, jobTemplate={"spec": {"template": TEMPLATE}}), "spec.jobTemplate.spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'),
    ("CronJob", but(CRON, jobTemplate={"spec": {**JOB, "backoffLimit": -1}}), "spec.jobTemplate.spec.backoffLimit", "must be greater than or equal to 0"),
    ("CronJob", but(CRON, jobTemplate={"spec": {**JOB, "selector": {}}}), "spec.jobTemplate.spec.selector", "`selector` will be auto-generated"),
    ("CronJob", but(CRON, jobTemplate={"spec": {**JOB, "manualSelector": True}}), "spec.jobTemplate.spec.manualSelector", 'supported values: "nil", "false"'),
    ("CronJob", {**but(CRON), "metadata": {"name": "n" * 53}}, "metadata.name", "must be no more than 52 characters"),
    ("Job", {"spec": {"template": {"spec": {"containers": [container()]}}}}, "spec.template.spec.restartPolicy", 'Required value: valid values: "OnFailure", "Never"'),
    ("Job", but(JOB, completionMode="Indexed", parallelism=1), "spec.completions", "when completion mode is Indexed"),
    ("Job", but(JOB, backoffLimitPerIndex=1), "spec.backoffLimitPerIndex", "requires indexed completion mode"),
    ("Job", but(JOB, successPolicy={"rules": [{"succeededCount": 1}]}), "spec.successPolicy", "requires indexed completion mode"),
    ("Job", but(INDEXED, maxFailedIndexes=1), "spec.backoffLimitPerIndex", "Required value: when maxFailedIndexes is specified"),
    ("Job", but(INDEXED, backoffLimitPerIndex=1, maxFailedIndexes=6), "spec.maxFailedIndexes", "must be less than or equal to completions"),
    ("Job", but(INDEXED, parallelism=100_001), "spec.parallelism", "must be less than or equal to 100000 when completion mode is Indexed"),
    ("Job", but(INDEXED, completions=100_001, backoffLimitPerIndex=1), "spec.maxFailedIndexes", "must be specified when completions is above 100000"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": CODES}]}), "spec.podFailurePolicy.rules[0].action", "requires the backoffLimitPerIndex to be set"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Ignore"}]}), "spec.podFailurePolicy.rules[0]", "specifying one of OnExitCodes and OnPodConditions is required"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": CODES, "onPodConditions": [{"type": "A"}]}]}), "spec.podFailurePolicy.rules[0]", "specifying both"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": {**CODES, "values": [2, 1]}}]}), "spec.podFailurePolicy.rules[0].onExitCodes.values", "must be ordered"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": {**CODES, "values": [0]}}]}), "spec.podFailurePolicy.rules[0].onExitCodes.values[0]", "must not be 0 for the In operator"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": {**CODES, "containerName": "no"}}]}), "spec.podFailurePolicy.rules[0].onExitCodes.containerName", "must be one of the container"),
    ("Job", but(JOB, podFailurePolicy={"rules": [{"action": "Count", "onExitCodes": CODES}] * 21}), "spec.podFailurePolicy.rules", "Too many: 21"),
    ("Job", but(INDEXED, successPolicy={"rules": []}), "spec.successPolicy.rules", "at least one rules must be specified"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededIndexes": "0," * 20_000}] * 2}), "spec.successPolicy.rules", "Too long: may not be more than 65536"),
    ("Job", but(INDEXED, successPolicy={"rules": [{}]}), "spec.successPolicy.rules[0]", "at least one of succeededCount or succeededIndexes"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededIndexes": "3,1"}]}), "spec.successPolicy.rules[0].succeededIndexes", "non-increasing order, previous: 3, current: 1"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededIndexes": "0-5"}]}), "spec.successPolicy.rules[0].succeededIndexes", "too large index"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededIndexes": "a"}]}), "spec.successPolicy.rules[0].succeededIndexes", "cannot convert string to integer for index"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededCount": 6}]}), "spec.successPolicy.rules[0].succeededCount", "must be less than or equal to 5 (the number of specified completions)"),
    ("Job", but(INDEXED, successPolicy={"rules": [{"succeededIndexes": "0-1", "succeededCount": 3}]}), "spec.successPolicy.rules[0].succeededCount", "must be less than or equal to 2"),
    ("Job", but(JOB, backoffLimit=-1), "spec.backoffLimit", "must be greater than or equal to 0"),
    ("Job", but(JOB, manualSelector=True), "spec.selector", "Required value"),
    ("PodDisruptionBudget", {"spec": {"minAvailable": 1, "maxUnavailable": 1}}, "spec", "cannot be both set"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "field", "fragment"), WORKLOADS)
def test_a_workload_that_cannot_work_is_refused(kind: str, given: Json, field: str, fragment: str) -> None:
    refused(judged(kind, given), field, fragment)


def test_a_stateful_set_may_mount_the_claims_it_makes() -> None:
    mounts = container(volumeMounts=[{"name": "data", "mountPath": "/d"}])
    wanted = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    claims = [{"metadata": {"name": "data"}, "spec": wanted}]
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [mounts]}}
    assert judged("StatefulSet", but(SPEC, template=template, volumeClaimTemplates=claims)) == []


UPDATES: list[tuple[str, Json, Json, str, str]] = [
    ("Deployment", but(SPEC), but(SPEC, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), "spec.selector", "field is immutable"),
    ("StatefulSet", but(SPEC, serviceName="a"), but(SPEC, serviceName="b"), "spec", "updates to statefulset spec for fields other than 'replicas'"),
    ("DaemonSet", but(SPEC), but(SPEC, selector={"matchExpressions": [{"key": "app", "operator": "Exists"}]}), "spec.selector", "field is immutable"),
    ("CronJob", but(CRON), but(CRON, schedule="* * *"), "spec.schedule", "Invalid value"),
    ("Job", but(JOB), but(JOB, template={"spec": {"restartPolicy": "Never", "containers": [container(image="i:2")]}}), "spec.template", "field is immutable"),
    ("Job", but(JOB), but(JOB, completions=3), "spec.completions", "field is immutable"),
    ("ConfigMap", {"immutable": True, "data": {"a": "1"}}, {"immutable": True, "data": {"a": "2"}}, "data", "field is immutable when `immutable` is set"),
    ("ConfigMap", {"immutable": True}, {}, "immutable", "field is immutable when `immutable` is set"),
    ("Secret", {"type": "a"}, {"type": "b"}, "type", "field is immutable"),
    ("Service", {"spec": {"clusterIP": "10.0.0.1", "ports": [{"port": 1}]}}, {"spec": {"clusterIP": "10.0.0.2", "ports": [{"port": 1}]}}, "spec.clusterIP", "field is immutable"),
    ("StorageClass", {"provisioner": "a"}, {"provisioner": "b"}, "provisioner", "updates to provisioner are forbidden."),
    ("PriorityClass", {"value": 1}, {"value": 2}, "value", "may not be changed in an update."),
    ("RoleBinding", {"roleRef": {"kind": "Role", "name": "a"}}, {"roleRef": {"kind": "Role", "name": "b"}}, "roleRef", "cannot change roleRef"),
    ("EndpointSlice", {"addressType": "IPv4", "endpoints": []}, {"addressType": "IPv6", "endpoints": []}, "addressType", "field is immutable"),
    ("IngressClass", {"spec": {"controller": "acme.io/a"}}, {"spec": {"controller": "acme.io/b"}}, "spec.controller", "field is immutable"),
    ("CSIDriver", {"spec": {}}, {"spec": {"attachRequired": False}}, "spec.attachedRequired", "field is immutable"),
    ("CSIDriver", {"spec": {}}, {"spec": {"volumeLifecycleModes": ["Ephemeral"]}}, "spec.volumeLifecycleModes", "field is immutable"),
    ("CSINode", {"spec": {"drivers": [{"name": "a.example", "nodeID": "n"}]}}, {"spec": {"drivers": [{"name": "a.example", "nodeID": "m"}]}}, "spec.drivers", "field is immutable"),
    ("CSIStorageCapacity", {"storageClassName": "a"}, {"storageClassName": "b"}, "storageClassName", "field is immutable"),
    ("CSIStorageCapacity", {"storageClassName": "a"}, {"storageClassName": "a", "nodeTopology": {"matchLabels": {"a": "b"}}}, "nodeTopology", "field is immutable"),
    ("VolumeAttachment", {"spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}, {"spec": {"attacher": "a.example", "nodeName": "m", "source": {"persistentVolumeName": "p"}}}, "spec", "field is immutable"),
    ("Ingress", {"spec": {"defaultBackend": {"service": {"name": "w", "port": {"number": 1}}}}}, {"spec": {"defaultBackend": {"service": {"name": "w", "port": {"number": 1}}}}, "status": {"loadBalancer": {"ingress": [{"ip": "here"}]}}}, "status.loadBalancer.ingress[0].ip", "must be a valid IP address"),
    ("VolumeAttachment", {"spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}}}, {"spec": {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}}, "status": {"attached": False, "attachError": {"message": "x" * 1025}}}, "status.attachError.message", "Too long"),
    ("ControllerRevision", {"revision": 1, "data": {"a": 1}}, {"revision": 1, "data": {"a": 2}}, "data", "field is immutable"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "old", "new", "field", "fragment"), UPDATES)
def test_what_must_not_change_may_not(kind: str, old: Json, new: Json, field: str, fragment: str) -> None:
    assert judged(kind, old) == []
    refused(judged(kind, new, old), field, fragment)


def test_a_job_that_waits_suspended_may_get_another_node_selection() -> None:
    elsewhere = copy.deepcopy(JOB)
    elsewhere["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    assert judged("Job", but(elsewhere), but(JOB, suspend=True)) == []
    refused(judged("Job", but(elsewhere), but(JOB)), "spec.template", "field is immutable")


def test_an_indexed_job_may_grow_both_ways_at_once() -> None:
    indexed = but(JOB, completionMode="Indexed", completions=2, parallelism=2)
    assert judged("Job", but(JOB, completionMode="Indexed", completions=3, parallelism=3), indexed) == []


def test_an_update_of_status_alone_is_not_judged_again() -> None:
    broken = but(SPEC, replicas=-1)  # stored before a rule existed
    assert judged("Deployment", {**broken, "status": {"replicas": 3}}, broken) == []


# --- services, configuration, storage, access ---

PV = {"accessModes": ["ReadWriteOnce"], "capacity": {"storage": "1Gi"}, "hostPath": {"path": "/d"}}
PVC = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
RULE = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
WEB = {"name": "web", "port": {"number": 80}}
TO_WEB = {"defaultBackend": {"service": WEB}}
PATH = "spec.rules[0].http.paths[0]"
INLINE = {"accessModes": ["ReadWriteOnce"], "csi": {"driver": "a.example", "volumeHandle": "v"}}
ATTACHED = {"attacher": "a.example", "nodeName": "n", "source": {"persistentVolumeName": "p"}}


def path_of(**fields: Any) -> Json:
    return {
        "rules": [{"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": {"service": WEB}, **fields}]}}]
    }


OTHERS: list[tuple[str, Json, str, str]] = [
    ("Service", {"spec": {}}, "spec.ports", "Required value"),
    ("Service", {"spec": {"ports": [{"port": 70000}]}}, "spec.ports[0].port", "must be between 1 and 65535, inclusive"),
    ("Service", {"spec": {"ports": [{"port": 1}, {"port": 2}]}}, "spec.ports[0].name", "Required value"),
    ("Service", {"spec": {"ports": [{"port": 1, "name": "a"}, {"port": 1, "name": "b"}]}}, "spec.ports[1]", 'Duplicate value: {"protocol": "TCP", "port": 1}'),
    ("Service", {"spec": {"ports": [{"port": 1, "targetPort": "Not-A-Name"}]}}, "spec.ports[0].targetPort", "must contain only alpha-numeric characters"),
    ("Service", {"spec": {"type": "Magic", "ports": [{"port": 1}]}}, "spec.type", 'supported values: "ClusterIP"'),
    ("Service", {"spec": {"type": "ExternalName"}}, "spec.externalName", "Required value"),
    ("Service", {"spec": {"clusterIP": "nowhere", "ports": [{"port": 1}]}}, "spec.clusterIP", "must be empty, 'None', or a valid IP address"),
    ("ConfigMap", {"data": {"a b": "x"}}, "data[a b]", "a valid config key must consist of"),
    ("ConfigMap", {"data": {"..a": "x"}}, "data[..a]", "must not start with '..'"),
    ("ConfigMap", {"data": {"a": "x"}, "binaryData": {"a": "eA=="}}, "data[a]", "duplicate of key present in binaryData"),
    ("ConfigMap", {"data": {"a": "x" * 1024 * 1025}}, "", "Too long: may not be more than 1048576 bytes"),
    ("Secret", {"type": "kubernetes.io/tls"}, "data[tls.crt]", "Required value"),
    ("Secret", {"type": "kubernetes.io/service-account-token"}, "metadata.annotations[kubernetes.io/service-account.name]", "Required value"),
    ("PersistentVolume", {"spec": {**PV, "capacity": {}}}, "spec.capacity", "Required value"),
    ("PersistentVolume", {"spec": {**PV, "hostPath": None}}, "spec", "must specify a volume type"),
    ("PersistentVolume", {"spec": {**PV, "local": {"path": "/l"}}}, "spec.local", "may not specify more than 1 volume type"),
    ("PersistentVolumeClaim", {"spec": {**PVC, "accessModes": []}}, "spec.accessModes", "at least 1 access mode is required"),
    ("PersistentVolumeClaim", {"spec": {**PVC, "accessModes": ["Everywhere"]}}, "spec.accessModes[0]", 'supported values: "ReadOnlyMany"'),
    ("PersistentVolumeClaim", {"spec": {**PVC, "resources": {}}}, "spec.resources[storage]", "Required value"),
    ("Node", {"spec": {"taints": [{"key": "a", "effect": "NoSchedule"}] * 2}}, "spec.taints[1]", "Duplicate value"),
    ("Event", {"involvedObject": {"namespace": "other", "name": "x"}}, "involvedObject.namespace", "does not match event.namespace"),
    ("ResourceQuota", {"spec": {"hard": {"pods": "-1"}}}, "spec.hard[pods]", "must be greater than or equal to 0"),
    ("ResourceQuota", {"spec": {"hard": {"cpus": "8"}}}, "spec.hard[cpus]", "must be a standard resource for quota"),
    ("LimitRange", {"spec": {"limits": [{"type": "Pod", "min": {"cpu": 2}, "max": {"cpu": 1}}]}}, "spec.limits[0].min[cpu]", "min value 2 is greater than max value 1"),
    ("Lease", {"spec": {"leaseDurationSeconds": 0}}, "spec.leaseDurationSeconds", "must be greater than 0"),
    ("PriorityClass", {"value": 2_000_000_000}, "value", "maximum allowed value of a user defined priority is 1000000000"),
    ("Role", {"rules": [{**RULE, "verbs": []}]}, "rules[0].verbs", "verbs must contain at least one value"),
    ("Role", {"rules": [{"verbs": ["get"], "resources": ["pods"]}]}, "rules[0].apiGroups", "resource rules must supply at least one api group"),
    ("Role", {"rules": [{"verbs": ["get"], "nonResourceURLs": ["/x"]}]}, "rules[0].nonResourceURLs", "namespaced rules cannot apply to non-resource URLs"),
    ("ClusterRole", {"rules": [{**RULE, "nonResourceURLs": ["/x"]}]}, "rules[0].nonResourceURLs", "rules cannot apply to both"),
    ("ClusterRoleBinding", {"roleRef": {"kind": "Role", "name": "r"}}, "roleRef.kind", 'Unsupported value: "Role": supported values: "ClusterRole"'),
    ("RoleBinding", {"roleRef": {"kind": "Role", "name": "r"}, "subjects": [{"kind": "Robot", "name": "x"}]}, "subjects[0].kind", 'supported values: "ServiceAccount", "User", "Group"'),
    ("Endpoints", {"subsets": [{"addresses": [{"ip": "here"}]}]}, "subsets[0].addresses[0].ip", "must be a valid IP address"),
    *[("Ingress", {"spec": spec}, field, fragment) for spec, field, fragment in (
        ({}, "spec", "either `defaultBackend` or `rules` must be specified"),
        ({"defaultBackend": {}}, "spec.defaultBackend", "resource or service backend is required"),
        ({"defaultBackend": {"service": WEB, "resource": {"kind": "A", "name": "a"}}}, "spec.defaultBackend", "cannot set both resource and service backends"),
        ({"defaultBackend": {"resource": {"apiGroup": "B_d", "kind": "a/b", "name": ".."}}}, "spec.defaultBackend.resource.kind", "may not contain '/'"),
        ({"defaultBackend": {"service": {"name": "web"}}}, "spec.defaultBackend", "Required value: port name or number is required"),
        ({"defaultBackend": {"service": {"port": {"number": 80}}}}, "spec.defaultBackend.service.name", "Required value"),
        ({"defaultBackend": {"service": {"name": "1web", "port": {"number": 80}}}}, "spec.defaultBackend.service.name", "a DNS-1035 label"),
        ({"defaultBackend": {"service": {"name": "web", "port": {"number": 70000}}}}, "spec.defaultBackend.service.port.number", "must be between 1 and 65535, inclusive"),
        ({"defaultBackend": {"service": {"name": "web", "port": {"name": "UP"}}}}, "spec.defaultBackend.service.port.name", "must contain only alpha-numeric characters"),
        ({"defaultBackend": {"service": {"name": "web", "port": {"name": "up", "number": 80}}}}, "spec.defaultBackend", "cannot set both port name & port number"),
        ({**TO_WEB, "ingressClassName": ""}, "spec.ingressClassName", "a lowercase RFC 1123 subdomain"),
        ({**TO_WEB, "tls": [{"hosts": ["a.*"]}]}, "spec.tls[0].hosts[0]", "a wildcard DNS-1123 subdomain must start with '*.'"),
        ({**TO_WEB, "tls": [{"secretName": "Keys"}]}, "spec.tls[0].secretName", "a lowercase RFC 1123 subdomain"),
        ({"rules": [{"host": "1.2.3.4"}]}, "spec.rules[0].host", "must be a DNS name, not an IP address"),
        ({"rules": [{"host": "A.example"}]}, "spec.rules[0].host", "a lowercase RFC 1123 subdomain"),
        ({"rules": [{"host": "*example.org"}]}, "spec.rules[0].host", "a wildcard DNS-1123 subdomain must start with '*.'"),
        ({"rules": [{"http": {}}]}, "spec.rules[0].http.paths", "Required value"),
        (path_of(pathType=None), f"{PATH}.pathType", "Required value: pathType must be specified"),
        (path_of(pathType="Regex"), f"{PATH}.pathType", 'supported values: "Exact", "ImplementationSpecific", "Prefix"'),
        (path_of(path=""), f"{PATH}.path", "must be an absolute path"),
        (path_of(path="a", pathType="ImplementationSpecific"), f"{PATH}.path", "must be an absolute path"),
        (path_of(path="/a//b"), f"{PATH}.path", "must not contain '//'"),
        (path_of(path="/a%2Fb"), f"{PATH}.path", "must not contain '%2F'"),
        (path_of(path="/a/.."), f"{PATH}.path", "cannot end with '/..'"),
        (path_of(backend=None), f"{PATH}.backend", "resource or service backend is required"),
    )],
    ("Ingress", {"spec": {**TO_WEB, "ingressClassName": "a"}, "metadata": {"name": "x", "annotations": {"kubernetes.io/ingress.class": "b"}}}, "annotations.kubernetes.io/ingress.class", "must match `ingressClassName` when both are specified"),
    *[("IngressClass", {"spec": spec}, field, fragment) for spec, field, fragment in (
        ({}, "spec.controller", "Required value"),
        ({"controller": "acme"}, "spec.controller", 'must be a domain-prefixed path (such as "acme.io/foo")'),
        ({"controller": "acme.io/a b"}, "spec.controller", "Invalid path (regex used for validation is"),
        ({"controller": "acme.io/" + "a" * 250}, "spec.controller", "Too long: may not be more than 250 bytes"),
        ({"controller": "acme.io/a", "parameters": {"kind": "A"}}, "spec.parameters.name", "Required value"),
        ({"controller": "acme.io/a", "parameters": {"kind": "A", "name": "a", "scope": "All"}}, "spec.parameters.scope", 'supported values: "Cluster", "Namespace"'),
        ({"controller": "acme.io/a", "parameters": {"kind": "A", "name": "a", "namespace": "n"}}, "spec.parameters.namespace", "Forbidden: `parameters.scope` is set to 'Cluster'"),
        ({"controller": "acme.io/a", "parameters": {"kind": "A", "name": "a", "scope": "Namespace"}}, "spec.parameters.namespace", "Required value: `parameters.scope` is set to 'Namespace'"),
        ({"controller": "acme.io/a", "parameters": {"kind": "A", "name": "a", "scope": "Namespace", "namespace": "A"}}, "spec.parameters.namespace", "a lowercase RFC 1123 label"),
    )],
    ("CSIDriver", {"spec": {"tokenRequests": [{"audience": "a"}, {"audience": "a"}]}}, "spec.tokenRequests[1].audience", "Duplicate value"),
    ("CSIDriver", {"spec": {"tokenRequests": [{"audience": "", "expirationSeconds": 1}]}}, "spec.tokenRequests[0].expirationSeconds", "may not specify a duration less than 10 minutes"),
    ("CSIDriver", {"spec": {"tokenRequests": [{"audience": "", "expirationSeconds": 2**33}]}}, "spec.tokenRequests[0].expirationSeconds", "may not specify a duration larger than 2^32 seconds"),
    ("CSIDriver", {"spec": {"volumeLifecycleModes": ["Forever"]}}, "spec.volumeLifecycleModes", 'supported values: "Persistent", "Ephemeral"'),
    *[("CSINode", {"spec": {"drivers": [driver, {"name": "b.example", "nodeID": "n"}]}}, field, fragment) for driver, field, fragment in (
        ({"nodeID": "n"}, "spec.drivers[0].name", "Required value"),
        ({"name": "a" * 64, "nodeID": "n"}, "spec.drivers[0].name", "Too long: may not be more than 63 bytes"),
        ({"name": "a_b", "nodeID": "n"}, "spec.drivers[0].name", "a lowercase RFC 1123 subdomain"),
        ({"name": "b.example", "nodeID": "n"}, "spec.drivers[1].name", 'Duplicate value: "b.example"'),
        ({"name": "a.example"}, "spec.drivers[0].nodeID", "Required value"),
        ({"name": "a.example", "nodeID": "n" * 257}, "spec.drivers[0].nodeID", "must be 256 characters or less"),
        ({"name": "a.example", "nodeID": "n", "allocatable": {"count": -1}}, "spec.drivers[0].allocatable.count", "must be greater than or equal to 0"),
        ({"name": "a.example", "nodeID": "n", "topologyKeys": ["z", "z"]}, "spec.drivers[0]", 'Duplicate value: "z"'),
        ({"name": "a.example", "nodeID": "n", "topologyKeys": [""]}, "spec.drivers[0]", "Required value"),
    )],
    ("CSIStorageCapacity", {}, "storageClassName", "a lowercase RFC 1123 subdomain"),
    ("CSIStorageCapacity", {"storageClassName": "a", "capacity": "-1Gi"}, "capacity", "must be greater than or equal to 0"),
    ("CSIStorageCapacity", {"storageClassName": "a", "nodeTopology": {"matchLabels": {"a b": "c"}}}, "nodeTopology.matchLabels", "name part must consist of"),
    *[("VolumeAttachment", {"spec": {**ATTACHED, **spec}}, field, fragment) for spec, field, fragment in (
        ({"attacher": ""}, "spec.attacher", "Required value"),
        ({"attacher": "a_b"}, "spec.attacher", "a lowercase RFC 1123 subdomain"),
        ({"nodeName": "No de"}, "spec.nodeName", "a lowercase RFC 1123 subdomain"),
        ({"source": {}}, "spec.source", "Required value: must specify exactly one of inlineVolumeSpec and persistentVolumeName"),
        ({"source": {"persistentVolumeName": "p", "inlineVolumeSpec": INLINE}}, "spec.source", "Forbidden: must specify exactly one of"),
        ({"source": {"persistentVolumeName": ""}}, "spec.source.persistentVolumeName", "Required value: must specify non empty persistentVolumeName"),
        ({"source": {"persistentVolumeName": "P"}}, "spec.source.persistentVolumeName", "a lowercase RFC 1123 subdomain"),
        ({"source": {"inlineVolumeSpec": {"accessModes": ["ReadWriteOnce"]}}}, "spec.source.inlineVolumeSpec.csi", "has to be specified in the context of inline volumes"),
        ({"source": {"inlineVolumeSpec": {**INLINE, "capacity": {"storage": "1Gi"}}}}, "spec.source.inlineVolumeSpec.capacity", "may not be specified in the context of inline volumes"),
        ({"source": {"inlineVolumeSpec": {**INLINE, "accessModes": []}}}, "spec.source.inlineVolumeSpec.accessModes", "Required value"),
    )],
    ("CustomResourceDefinition", {"spec": {"group": "example.org", "scope": "Cluster", "names": {"kind": "A", "plural": "as"}, "versions": [{"name": "v1", "storage": True}]}}, "spec.versions[0].schema.openAPIV3Schema", "schemas are required"),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "given", "field", "fragment"), OTHERS)
def test_the_other_kinds_have_rules_too(kind: str, given: Json, field: str, fragment: str) -> None:
    refused(judged(kind, given), field, fragment)


@pytest.mark.parametrize(
    ("change", "status", "accepted"),
    [
        ({"volumeName": "pv-1"}, {}, True),
        ({"storageClassName": "fast"}, {}, True),
        ({"accessModes": ["ReadWriteMany"]}, {}, False),
        ({"resources": {"requests": {"storage": "2Gi"}}}, {}, False),
        ({"resources": {"requests": {"storage": "2Gi"}}}, {"phase": "Bound"}, True),
        ({"resources": {"requests": {"storage": "1Mi"}}}, {"phase": "Bound"}, False),
    ],
)
def test_a_claim_changes_only_when_it_is_bound_and_only_to_grow(change: Json, status: Json, accepted: bool) -> None:
    old = {"spec": PVC, "status": status}
    found = judged("PersistentVolumeClaim", {"spec": {**PVC, **change}, "status": status}, old)
    assert (found == []) == accepted


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        ("Service", {"spec": {"clusterIP": "None"}}),
        ("Service", {"spec": {"ports": [{"port": 53, "name": "a"}, {"port": 53, "protocol": "UDP", "name": "b"}]}}),
        ("PersistentVolume", {"spec": PV}),
        ("Role", {"rules": [RULE]}),
        ("Ingress", {"spec": TO_WEB}),
        (
            "Ingress",
            {"spec": {"rules": [{"host": "*.example.org"}, {"host": "a.example.org"}], "ingressClassName": "a"}},
        ),
        ("Ingress", {"spec": path_of(path="", pathType="ImplementationSpecific")}),
        ("Ingress", {"spec": {**TO_WEB, "tls": [{"hosts": ["*.example.org"], "secretName": "keys"}]}}),
        ("IngressClass", {"spec": {"controller": "acme.io/a", "parameters": {"kind": "A", "name": "a"}}}),
        ("CSIDriver", {"spec": {"tokenRequests": [{"audience": ""}, {"audience": "b", "expirationSeconds": 600}]}}),
        ("CSINode", {}),
        ("CSINode", {"spec": {"drivers": [{"name": "A.example", "nodeID": "n", "topologyKeys": ["a.example/zone"]}]}}),
        ("CSIStorageCapacity", {"storageClassName": "a", "capacity": "1Gi"}),
        ("VolumeAttachment", {"spec": ATTACHED}),
        ("VolumeAttachment", {"spec": {**ATTACHED, "source": {"inlineVolumeSpec": INLINE}}}),
        ("Role", {}),
        ("EndpointSlice", {"addressType": "IPv4"}),
        ("PriorityClass", {}),
        ("Deployment", {**but(SPEC), "status": {"conditions": [{}]}}),
        ("ReplicaSet", {**but(SPEC), "status": {"readyReplicas": 1}}),
        (
            "Job",
            but(
                INDEXED,
                parallelism=100_000,
                successPolicy={"rules": [{"succeededIndexes": "0,2-4", "succeededCount": 2}]},
            ),
        ),
        (
            "Job",
            but(
                INDEXED,
                backoffLimitPerIndex=1,
                maxFailedIndexes=5,
                podFailurePolicy={"rules": [{"action": "FailIndex", "onExitCodes": CODES}]},
            ),
        ),
        ("Event", {"involvedObject": {"kind": "Node", "name": "n"}, "metadata": {"name": "e", "namespace": "default"}}),
    ],
)
def test_what_kubernetes_accepts_is_accepted(kind: str, given: Json) -> None:
    assert judged(kind, given) == []
