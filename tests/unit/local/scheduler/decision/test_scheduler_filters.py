"""May a pod run on a node: one table per rule, with the reason that is given when it may not."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import quantity
from paddlecloud.local.scheduler.decision.filters import fits, refusal, shown
from paddlecloud.local.scheduler.state import shape
from paddlecloud.local.scheduler.state.snapshot import node_view, pod_view, snapshot_of
from unit.local.scheduler.scheduler_things import node, pod


def judge(candidate: dict[str, Any], target: dict[str, Any], *there: dict[str, Any]) -> str:
    """The rule that refuses; empty if none does. Both ways of asking must agree."""
    view = snapshot_of([target], there).nodes[target["metadata"]["name"]]
    wanted = pod_view(candidate).shape
    found = refusal(wanted, view)
    assert fits(wanted, view) == (found is None)
    return found.rule if found else ""


TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}


@pytest.mark.parametrize(
    ("fields", "tolerations", "expected"),
    [
        ({}, [], ""),
        ({"ready": False}, [], "ready"),
        ({"unschedulable": True}, [], "cordon"),
        ({"unschedulable": True}, [{"operator": "Exists"}], ""),
        ({"unschedulable": True}, [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}], ""),
        ({"taints": [TAINT]}, [], "taint"),
        ({"taints": [TAINT]}, [{"key": "gpu", "operator": "Exists"}], ""),
        ({"taints": [TAINT]}, [{"key": "gpu", "value": "yes"}], ""),
        ({"taints": [TAINT]}, [{"key": "gpu", "value": "no"}], "taint"),
        ({"taints": [TAINT]}, [{"key": "gpu", "operator": "Exists", "effect": "NoExecute"}], "taint"),
        ({"taints": [{**TAINT, "effect": "NoExecute"}]}, [], "taint"),
        ({"taints": [{**TAINT, "effect": "PreferNoSchedule"}]}, [], ""),
    ],
)
def test_nodes_that_keep_pods_out(fields: dict[str, Any], tolerations: list[Any], expected: str) -> None:
    assert judge(pod("p", tolerations=tolerations), node("n", **fields)) == expected


def required(*terms: dict[str, Any]) -> dict[str, Any]:
    rule = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": list(terms)}}
    return {"affinity": {"nodeAffinity": rule}}


def expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"nodeSelector": {"zone": "a"}}, ""),
        ({"nodeSelector": {"zone": "b"}}, "selector"),
        ({"nodeSelector": {"zone": "a", "disk": "ssd"}}, "selector"),
        (required(expression("zone", "In", "a", "b")), ""),
        (required(expression("zone", "NotIn", "a")), "affinity"),
        (required(expression("disk", "NotIn", "ssd")), ""),  # a label that is not there is not in the set
        (required(expression("zone", "Exists")), ""),
        (required(expression("disk", "DoesNotExist")), ""),
        (required(expression("cards", "Gt", "7")), ""),
        (required(expression("cards", "Gt", "8")), "affinity"),
        (required(expression("cards", "Lt", "9")), ""),
        (required(expression("zone", "In", "b"), expression("cards", "Gt", "1")), ""),  # terms are alternatives
        (required({}), "affinity"),  # an empty term matches nothing
        (required({"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]}), ""),
        (required({"matchFields": [{"key": "metadata.name", "operator": "NotIn", "values": ["n"]}]}), "affinity"),
        ({"nodeSelector": {"zone": "a"}, **required(expression("zone", "In", "b"))}, "affinity"),  # both must hold
    ],
)
def test_node_selector_and_required_affinity(spec: dict[str, Any], expected: str) -> None:
    assert judge(pod("p", **spec), node("n", labels={"zone": "a", "cards": "8"})) == expected


@pytest.mark.parametrize(
    ("wanted", "taken", "expected"),
    [
        ("4", (), ""),
        ("4001m", (), "resources"),
        ("3", ("1",), ""),
        ("3", ("1500m",), "resources"),
        ("0", ("4",), ""),  # who asks for nothing fits where nothing is left
    ],
)
def test_cpu_must_be_left(wanted: str, taken: tuple[str, ...], expected: str) -> None:
    there = [pod(f"t{number}", cpu, on="n") for number, cpu in enumerate(taken)]
    assert judge(pod("p", wanted), node("n", "4"), *there) == expected


def test_a_refusal_for_resources_has_the_numbers() -> None:
    view = snapshot_of([node("n", "4", gpu=2)], [pod("t", "1500m", on="n", gpu=1)]).nodes["n"]
    found = refusal(pod_view(pod("p", "3", gpu=2)).shape, view)
    assert found is not None
    assert found.reason == "Insufficient cpu"
    assert found.detail == "cpu: needs 3, 2500m free of 4; nvidia.com/gpu: needs 2, 1 free of 2"


@pytest.mark.parametrize(
    "spec",
    [
        required({"matchExpressions": [{"key": "a", "operator": "In", "values": [f"v{n}" for n in range(5_000)]}]}),
        required({"matchFields": [
            {"key": "metadata.name", "operator": "In", "values": [f"v{n}" for n in range(5_000)]}]}),
        required(*({"matchExpressions": [{"key": f"k{n}", "operator": "Exists"}]} for n in range(5_000))),
        {"requests": {f"example.com/r{n}": "1" for n in range(5_000)}},
    ],
    ids=["values", "names", "terms", "resources"],
)  # fmt: skip
def test_a_refusal_of_thousands_of_wishes_names_a_few(spec: dict[str, Any]) -> None:
    """It is written for every node in every round, and stored in the pod's status."""
    asked = pod("p", **{name: value for name, value in spec.items() if name != "requests"})
    if "requests" in spec:
        asked["spec"]["containers"][0]["resources"] = {"requests": spec["requests"]}
    view = snapshot_of([node("n")], []).nodes["n"]
    found = refusal(pod_view(asked).shape, view)
    assert found is not None
    assert len(found.detail) < 1_000


def test_what_is_kept_of_wishes_of_pods_that_are_gone_is_bounded() -> None:
    """Shapes stay after their pods: one that asks for much is kept by nobody but its pod."""
    known = len(shape._shapes)
    wishes = [{"key": "a", "operator": "In", "values": [f"v{n}" for n in range(5_000)]}]
    for number in range(3):
        pod_view(pod(f"p{number}", **required({"matchExpressions": wishes, "matchFields": []}, {"n": number})))
    assert len(shape._shapes) == known
    pod_view(pod("p", "17m"))
    assert len(shape._shapes) == known + 1


def test_a_resource_the_node_does_not_have_is_insufficient() -> None:
    found = refusal(pod_view(pod("p", gpu=1)).shape, node_view(node("n")))
    assert found is not None
    assert found.reason == "Insufficient nvidia.com/gpu"


@pytest.mark.parametrize("resource", ["memory", "ephemeral-storage", "nvidia.com/gpu", "example.com/licence"])
@pytest.mark.parametrize(("wanted", "expected"), [("1", ""), ("2", "resources")])
def test_every_resource_must_be_left(resource: str, wanted: str, expected: str) -> None:
    def asking(name: str, amount: str, **fields: Any) -> dict[str, Any]:
        return pod(name, container={"resources": {"requests": {resource: amount}}}, **fields)

    target = node("n")
    target["status"]["allocatable"][resource] = "4"
    assert judge(asking("p", wanted), target, asking("t", "3", on="n")) == expected


def test_a_full_node_has_too_many_pods() -> None:
    view = snapshot_of([node("n", pods=1)], [pod("t", "0", on="n")]).nodes["n"]
    found = refusal(pod_view(pod("p", "0")).shape, view)
    assert found is not None
    assert found.reason == "Too many pods"


def test_pods_that_ended_take_nothing() -> None:
    assert judge(pod("p", "4"), node("n", "4"), pod("t", "4", on="n", phase="Succeeded")) == ""
    assert judge(pod("p", "4"), node("n", "4"), pod("t", "4", on="n", phase="Failed")) == ""


def test_limits_stand_in_for_requests_that_are_not_given() -> None:
    limited = pod("p", container={"resources": {"limits": {"cpu": "5"}}})
    assert judge(limited, node("n", "4")) == "resources"


def test_init_containers_count_at_their_peak() -> None:
    init = [{"name": cpu, "resources": {"requests": {"cpu": cpu}}} for cpu in ("3", "5")]
    assert judge(pod("p", "1", initContainers=init[:1]), node("n", "4")) == ""
    assert judge(pod("p", "1", initContainers=init), node("n", "4")) == "resources"


def test_sidecars_count_for_as_long_as_the_pod_runs() -> None:
    sidecar = {"name": "s", "restartPolicy": "Always", "resources": {"requests": {"cpu": "2"}}}
    assert judge(pod("p", "2", initContainers=[sidecar]), node("n", "4")) == ""
    assert judge(pod("p", "3", initContainers=[sidecar]), node("n", "4")) == "resources"


def port(number: int, **fields: Any) -> dict[str, Any]:
    return {"ports": [{"containerPort": number, "hostPort": number, **fields}]}


@pytest.mark.parametrize(
    ("mine", "theirs", "expected"),
    [
        (port(80), port(80), "ports"),
        (port(80), port(81), ""),
        (port(80, protocol="UDP"), port(80), ""),
        (port(80, hostIP="10.0.0.1"), port(80, hostIP="10.0.0.2"), ""),
        (port(80, hostIP="10.0.0.1"), port(80), "ports"),
        (port(80, hostIP="10.0.0.1"), port(80, hostIP="0.0.0.0"), "ports"),
        ({"ports": [{"containerPort": 80}]}, port(80), ""),
    ],
)
def test_host_ports_are_had_once(mine: dict[str, Any], theirs: dict[str, Any], expected: str) -> None:
    assert judge(pod("p", container=mine), node("n"), pod("t", on="n", container=theirs)) == expected


@pytest.mark.parametrize(
    ("resource", "amount", "text"),
    [
        ("memory", "24684100Ki", "23.54Gi"),
        ("memory", "16Gi", "16Gi"),
        ("memory", "1536Mi", "1536Mi"),
        ("memory", "1000000k", "953.67Mi"),
        ("memory", "0", "0"),
        ("cpu", "1500m", "1500m"),
    ],
)
def test_amounts_in_sentences_are_read_at_a_glance(resource: str, amount: str, text: str) -> None:
    assert shown(resource, quantity.parse(amount)) == text
