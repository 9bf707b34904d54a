"""ResourceQuota and LimitRange: a namespace gets no more than it was given."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, PODS, SECRETS, Object, Resource

from .world import ScratchNamespace, a, eventually, sleeping_pod

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")
LIMITS = Resource("", "v1", "limitranges", "LimitRange")


NOTHING = "secrets"
"""What no quota here allows: a server that refuses it has seen the quota with its status."""


def limit(here: ScratchNamespace, **hard: str) -> None:
    """A quota that is in force: the server has counted what is there, and judges by it."""
    wanted = {**{name.replace("_", "."): amount for name, amount in hard.items()}, NOTHING: "0"}
    here.make(QUOTAS, "q", spec={"hard": wanted})
    eventually(lambda: here.get(QUOTAS, "q").get("status", {}).get("hard"), wanted)
    wait_for_refusal(here, SECRETS, a(SECRETS, "s"))


def wait_for_refusal(here: ScratchNamespace, resource: Resource, obj: Object) -> None:
    """Until `obj` would be refused: a server may judge by a quota that it saw a moment ago."""

    def refused() -> bool:
        try:
            here.create(resource, obj, dry_run=True)
        except errors.Forbidden as error:
            return "status unknown" not in error.message
        return False

    eventually(refused, True)


def create_when_it_fits(here: ScratchNamespace, resource: Resource, obj: Object) -> None:
    """Create what fits, as soon as the server has caught up with the quota and what it counts."""

    def admitted() -> bool:
        try:
            here.create(resource, obj)
        except errors.Forbidden:
            return False
        return True

    eventually(admitted, True)


def used(here: ScratchNamespace) -> Any:
    counts = here.get(QUOTAS, "q")["status"].get("used") or {}
    return {name: amount for name, amount in counts.items() if name != NOTHING}


def pod(name: str, **requests: str) -> Object:
    made = sleeping_pod(name)
    made["spec"]["containers"][0]["resources"] = {"requests": requests, "limits": requests}
    return made


def test_a_quota_counts_what_is_there_already(here: ScratchNamespace) -> None:
    here.create(PODS, pod("before", cpu="1"))
    limit(here, pods="2", requests_cpu="3")
    eventually(lambda: used(here), {"pods": "1", "requests.cpu": "1"})


def test_one_too_many_is_refused_with_numbers(here: ScratchNamespace) -> None:
    limit(here, pods="1")
    create_when_it_fits(here, PODS, sleeping_pod("one"))
    wait_for_refusal(here, PODS, sleeping_pod("two"))
    with pytest.raises(errors.Forbidden) as refused:
        here.create(PODS, sleeping_pod("two"))
    assert refused.value.message == (
        'pods "two" is forbidden: exceeded quota: q, requested: pods=1, used: pods=1, limited: pods=1'
    )


def test_what_goes_makes_room(here: ScratchNamespace) -> None:
    limit(here, pods="1")
    create_when_it_fits(here, PODS, sleeping_pod("one"))
    here.delete(PODS, "one", grace_period=0)
    eventually(lambda: used(here), {"pods": "0"})
    create_when_it_fits(here, PODS, sleeping_pod("two"))


def test_resources_are_added_up(here: ScratchNamespace) -> None:
    limit(here, requests_cpu="1", requests_memory="1Gi")
    create_when_it_fits(here, PODS, pod("one", cpu="600m", memory="512Mi"))
    wait_for_refusal(here, PODS, pod("two", cpu="600m", memory="1Mi"))
    with pytest.raises(errors.Forbidden, match="exceeded quota: q, requested: requests.cpu=600m"):
        here.create(PODS, pod("two", cpu="600m", memory="1Mi"))
    create_when_it_fits(here, PODS, pod("three", cpu="400m", memory="512Mi"))


def test_under_a_quota_every_pod_must_say_what_it_needs(here: ScratchNamespace) -> None:
    limit(here, requests_cpu="1")
    wait_for_refusal(here, PODS, sleeping_pod("vague"))
    with pytest.raises(errors.Forbidden, match="must specify requests.cpu"):
        here.create(PODS, sleeping_pod("vague"))


def test_objects_are_counted_too(here: ScratchNamespace) -> None:
    eventually(lambda: here.exists(CONFIGMAPS, "kube-root-ca.crt"), True)
    limit(here, configmaps="2")
    create_when_it_fits(here, CONFIGMAPS, a(CONFIGMAPS, "a"))
    wait_for_refusal(here, CONFIGMAPS, a(CONFIGMAPS, "b"))
    with pytest.raises(errors.Forbidden, match="exceeded quota: q, requested: configmaps=1"):
        here.make(CONFIGMAPS, "b")


def test_any_kind_can_be_counted(here: ScratchNamespace, widgets: Resource) -> None:
    name = f"count/{widgets.plural}.{widgets.group}"

    def counted() -> bool:
        """A server finds new kinds within half a minute, and counts them for quotas that are made from then on."""
        here.make(QUOTAS, "q", spec={"hard": {name: "1"}})
        eventually(lambda: here.get(QUOTAS, "q").get("status", {}).get("hard"), {name: "1"})
        if name in used(here):
            return True
        here.delete(QUOTAS, "q")
        return False

    eventually(counted, True)
    create_when_it_fits(here, widgets, a(widgets, "a"))
    wait_for_refusal(here, widgets, a(widgets, "b"))
    with pytest.raises(errors.Forbidden, match="exceeded quota"):
        here.make(widgets, "b")


def test_a_dry_run_uses_nothing(here: ScratchNamespace) -> None:
    limit(here, pods="1")
    here.create(PODS, sleeping_pod("shown"), dry_run=True)
    assert used(here) == {"pods": "0"}
    here.create(PODS, sleeping_pod("real"))


@pytest.mark.parametrize("hard", [{"pods": "-1"}, {"pods": "many"}, {"pods": "1500m"}])
def test_a_quota_must_be_an_amount(here: ScratchNamespace, hard: Object) -> None:
    with pytest.raises(errors.ApiError) as refused:
        here.make(QUOTAS, "q", spec={"hard": hard})
    assert refused.value.code in (400, 422)


def test_a_limit_range_fills_in_and_bounds(here: ScratchNamespace) -> None:
    bounds = {
        "type": "Container", "default": {"cpu": "500m"}, "defaultRequest": {"cpu": "100m"}, "max": {"cpu": "1"},
    }  # fmt: skip
    here.make(LIMITS, "l", spec={"limits": [bounds]})

    def defaulted() -> Any:
        made = here.create(PODS, sleeping_pod("p"), dry_run=True)
        return made["spec"]["containers"][0].get("resources")

    eventually(defaulted, {"limits": {"cpu": "500m"}, "requests": {"cpu": "100m"}})
    with pytest.raises(errors.Forbidden, match="maximum cpu usage per Container is 1, but limit is 2"):
        here.create(PODS, pod("big", cpu="2"))
