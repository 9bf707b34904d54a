"""LimitRanges: defaults for what pods leave open, bounds on what they ask for."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.policy.limitrange import ANNOTATION, apply_defaults, check_claim, check_pod


def limit_range(kind: str = "Container", **item: Any) -> dict[str, Any]:
    return {"metadata": {"name": "l"}, "spec": {"limits": [{"type": kind, **item}]}}


def pod(*resources: dict[str, Any], init: dict[str, Any] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"containers": [{"name": f"c{n}", "resources": r} for n, r in enumerate(resources)]}
    if init is not None:
        spec["initContainers"] = [{"name": "i", "resources": init}]
    return {"metadata": {"name": "p"}, "spec": spec}


def defaulted(ranges: list[dict[str, Any]], resources: dict[str, Any]) -> dict[str, Any]:
    obj = pod(resources)
    apply_defaults(ranges, obj)
    found: dict[str, Any] = obj["spec"]["containers"][0]["resources"]
    return found


DEFAULTS = limit_range(default={"cpu": "2", "memory": "1Gi"}, defaultRequest={"cpu": "500m"})


@pytest.mark.parametrize(
    ("own", "expected"),
    [
        ({}, {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "500m", "memory": "1Gi"}}),
        (
            {"limits": {"cpu": "1"}},
            {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"memory": "1Gi"}},
        ),
        (
            {"requests": {"cpu": "1", "memory": "1Mi"}},
            {"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1", "memory": "1Mi"}},
        ),
    ],
)
def test_open_resources_are_filled(own: dict[str, Any], expected: dict[str, Any]) -> None:
    assert defaulted([DEFAULTS], own) == expected


def test_what_was_filled_in_is_written_down() -> None:
    obj = pod({"limits": {"cpu": "1"}})
    apply_defaults([limit_range(default={"cpu": "2", "memory": "1Gi"})], obj)
    assert obj["metadata"]["annotations"][ANNOTATION] == (
        "LimitRanger plugin set: memory request for container c0; memory limit for container c0"
    )


def test_nothing_to_fill_leaves_the_pod_alone() -> None:
    obj = pod({})
    apply_defaults([limit_range("Pod", max={"cpu": "1"})], obj)
    assert obj == pod({})


def test_init_containers_are_defaulted_too() -> None:
    obj = pod({}, init={})
    apply_defaults([DEFAULTS], obj)
    assert obj["spec"]["initContainers"][0]["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}


def refusal(one: dict[str, Any], obj: dict[str, Any]) -> str | None:
    try:
        check_pod([one], obj)
    except errors.Forbidden as error:
        return error.message.removeprefix('pods "p" is forbidden: ')
    return None


@pytest.mark.parametrize(
    ("one", "resources", "message"),
    [
        (limit_range(max={"cpu": "2"}), {"limits": {"cpu": "2"}}, None),
        (
            limit_range(max={"cpu": "2"}),
            {"limits": {"cpu": "3"}},
            "maximum cpu usage per Container is 2, but limit is 3",
        ),
        (limit_range(max={"cpu": "2"}), {}, "maximum cpu usage per Container is 2.  No limit is specified"),
        (limit_range(min={"cpu": "100m"}), {"requests": {"cpu": "100m"}}, None),
        (
            limit_range(min={"cpu": "100m"}),
            {"requests": {"cpu": "50m"}},
            "minimum cpu usage per Container is 100m, but request is 50m",
        ),
        (limit_range(min={"cpu": "100m"}), {}, "minimum cpu usage per Container is 100m.  No request is specified"),
        (
            limit_range(maxLimitRequestRatio={"cpu": "2"}),
            {"requests": {"cpu": "1"}, "limits": {"cpu": "3"}},
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        (
            limit_range(maxLimitRequestRatio={"cpu": "2"}),
            {},
            "cpu max limit to request ratio per Container is 2, but no request is specified or request is 0",
        ),
        (
            limit_range(maxLimitRequestRatio={"cpu": "2"}),
            {"requests": {"cpu": "1"}, "limits": {"cpu": "2"}},
            None,
        ),
        (
            limit_range(min={"cpu": "1"}, max={"memory": "1Gi"}),
            {},
            "[minimum cpu usage per Container is 1.  No request is specified, "
            "maximum memory usage per Container is 1Gi.  No limit is specified]",
        ),
    ],
)
def test_containers_stay_in_bounds(one: dict[str, Any], resources: dict[str, Any], message: str | None) -> None:
    assert refusal(one, pod(resources)) == message


def test_pods_are_judged_as_a_whole() -> None:
    one = limit_range("Pod", max={"memory": "1Gi"})
    half = {"limits": {"memory": "512Mi"}}
    assert refusal(one, pod(half, half)) is None
    assert refusal(one, pod(half, half, half)) == "maximum memory usage per Pod is 1Gi, but limit is 1536Mi"


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("5Gi", None),
        ("11Gi", "maximum storage usage per PersistentVolumeClaim is 10Gi, but request is 11Gi"),
        ("1Mi", "minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"),
    ],
)
def test_claims_stay_in_bounds(storage: str, message: str | None) -> None:
    one = limit_range("PersistentVolumeClaim", min={"storage": "1Gi"}, max={"storage": "10Gi"})
    claim = {"metadata": {"name": "c"}, "spec": {"resources": {"requests": {"storage": storage}}}}
    if message is None:
        check_claim([one], claim)
    else:
        with pytest.raises(errors.Forbidden) as caught:
            check_claim([one], claim)
        assert caught.value.message == f'persistentvolumeclaims "c" is forbidden: {message}'
