"""Lists: selectors, order, pages of one moment, and what a resourceVersion means."""

from __future__ import annotations

import pytest

from paddlecloud.kube import errors
from paddlecloud.kube.resource import CONFIGMAPS, JOBS, NAMESPACES, NODES, PODS, SECRETS, Object, Resource

from .world import Api, ScratchNamespace, sleeping_pod


@pytest.fixture
def labelled(here: ScratchNamespace) -> ScratchNamespace:
    for name, labels in {
        "a": {"app": "web", "tier": "front"},
        "b": {"app": "web", "tier": "back"},
        "c": {"app": "db"},
        "d": {},
    }.items():
        here.make(SECRETS, name, labels=labels)
    return here


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("app=web", "ab"),
        ("app==web,tier=back", "b"),
        ("app!=web", "cd"),
        ("app in (web, db)", "abc"),
        ("app notin (web)", "cd"),
        ("tier", "ab"),
        ("!tier", "cd"),
        ("app,!tier", "c"),
        ("app=", ""),
        ("nothing=here", ""),
    ],
)
def test_label_selectors(labelled: ScratchNamespace, selector: str, found: str) -> None:
    assert labelled.names(SECRETS, labels=selector) == list(found)


@pytest.mark.parametrize("selector", ["app in web", "=", "a b", "app=web,,", "-x=1", "app in (", "k=" + "v" * 64])
def test_a_malformed_label_selector_is_refused(here: ScratchNamespace, selector: str) -> None:
    status = here.api.refuse("GET", here.path(SECRETS), query={"labelSelector": selector})
    assert (status["code"], status["reason"]) == (400, "BadRequest")


def test_field_selectors_on_the_name_work_for_every_kind(labelled: ScratchNamespace, widgets: Resource) -> None:
    assert labelled.names(SECRETS, fields="metadata.name=b") == ["b"]
    assert labelled.names(SECRETS, fields="metadata.name!=b,metadata.name!=c") == ["a", "d"]
    labelled.make(widgets, "w")
    assert labelled.names(widgets, fields="metadata.name=w") == ["w"]


def test_field_selectors_on_what_a_kind_offers(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("one"))
    here.create(PODS, sleeping_pod("two", spec={"restartPolicy": "Never"}))
    assert here.names(PODS, fields="status.phase=Pending") == ["one", "two"]
    assert here.names(PODS, fields="spec.restartPolicy=Never") == ["two"]
    assert here.names(PODS, fields="status.phase!=Pending") == []


def test_a_field_that_the_object_leaves_out_is_compared_as_its_zero_value(here: ScratchNamespace) -> None:
    here.create(PODS, sleeping_pod("p"))
    assert here.names(PODS, fields="spec.hostNetwork=false") == ["p"]
    assert here.names(PODS, fields="spec.hostNetwork!=false") == []
    assert here.names(PODS, fields="spec.hostNetwork=true") == []
    here.make(
        JOBS, "j", spec={"suspend": True, "template": {"spec": sleeping_pod("p")["spec"] | {"restartPolicy": "Never"}}}
    )
    assert here.names(JOBS, fields="status.successful=0") == ["j"]


def test_a_node_without_the_field_is_selected_as_schedulable(api: Api) -> None:
    """kubectl and test suites find the nodes that take pods by it."""
    silent = {
        node["metadata"]["name"] for node in api.fetch(NODES.path())["items"] if "unschedulable" not in node["spec"]
    }
    assert silent

    def selected(selector: str) -> set[str]:
        return {node["metadata"]["name"] for node in api.fetch(NODES.path(), fieldSelector=selector)["items"]}

    assert silent <= selected("spec.unschedulable=false")
    assert silent.isdisjoint(selected("spec.unschedulable=true"))
    assert silent.isdisjoint(selected("spec.unschedulable!=false"))


def test_a_field_that_cannot_be_selected_is_named(here: ScratchNamespace) -> None:
    with pytest.raises(errors.BadRequest, match='spec.containers": field label not supported|spec.containers'):
        here.names(PODS, fields="spec.containers=x")


def test_lists_are_sorted_by_namespace_and_name(here: ScratchNamespace, api: Api) -> None:
    for name in ("z", "a", "m"):
        here.make(SECRETS, name, labels={"sorted": here.namespace})
    assert here.names(SECRETS) == ["a", "m", "z"]
    everywhere = api.fetch("/api/v1/secrets", labelSelector=f"sorted={here.namespace}")["items"]
    assert [item["metadata"]["name"] for item in everywhere] == ["a", "m", "z"]


def test_a_list_knows_its_kind_and_version(here: ScratchNamespace) -> None:
    found = here.api.fetch(here.path(SECRETS))
    assert (found["kind"], found["apiVersion"]) == ("SecretList", "v1")
    assert found["items"] == []
    assert found["metadata"]["resourceVersion"].isdigit()


def test_a_list_in_a_namespace_that_does_not_exist_is_empty(api: Api) -> None:
    assert api.fetch("/api/v1/namespaces/there-is-no-such/pods")["items"] == []


# Pages ---------------------------------------------------------------------------------------------------------------


def page(here: ScratchNamespace, limit: int, token: str = "") -> tuple[list[str], Object]:
    query = {"limit": str(limit), **({"continue": token} if token else {})}
    found = here.api.fetch(here.path(SECRETS), **query)
    return [item["metadata"]["name"] for item in found["items"]], found["metadata"]


def test_pages_show_one_moment_whatever_happens_between_them(here: ScratchNamespace) -> None:
    for number in range(5):
        here.make(SECRETS, f"s{number}")
    first, meta = page(here, 2)
    assert first == ["s0", "s1"]
    assert meta["remainingItemCount"] == 3
    here.delete(SECRETS, "s3")
    here.make(SECRETS, "s22")
    second, meta = page(here, 2, meta["continue"])
    third, last = page(here, 2, meta["continue"])
    assert (second, third) == (["s2", "s3"], ["s4"])
    assert "continue" not in last or last["continue"] == ""
    assert "remainingItemCount" not in last
    assert last["resourceVersion"] == meta["resourceVersion"]


def test_a_page_can_be_asked_for_twice(here: ScratchNamespace) -> None:
    for number in range(4):
        here.make(SECRETS, f"s{number}")
    _, meta = page(here, 2)
    assert page(here, 1, meta["continue"])[0] == ["s2"]
    assert page(here, 2, meta["continue"])[0] == ["s2", "s3"]


def test_a_limit_larger_than_the_list_gives_all_of_it(here: ScratchNamespace) -> None:
    here.make(SECRETS, "s")
    names, meta = page(here, 500)
    assert names == ["s"]
    assert not meta.get("continue")


def test_selectors_hold_on_every_page(here: ScratchNamespace) -> None:
    for number in range(6):
        here.make(SECRETS, f"s{number}", labels={"even": str(number % 2 == 0)})
    found = here.list(SECRETS, label_selector="even=True", limit=2)
    assert [item["metadata"]["name"] for item in found.items] == ["s0", "s2", "s4"]


@pytest.mark.parametrize("token", ["nonsense", "e30", "%%%"])
def test_a_forged_continue_token_is_refused(here: ScratchNamespace, token: str) -> None:
    status = here.api.refuse("GET", here.path(SECRETS), query={"limit": "1", "continue": token})
    assert (status["code"], status["reason"]) == (400, "BadRequest")


# resourceVersion -----------------------------------------------------------------------------------------------------


def test_versions_grow_with_every_write_of_any_object(here: ScratchNamespace) -> None:
    first = here.make(SECRETS, "a")["metadata"]["resourceVersion"]
    second = here.make(CONFIGMAPS, "b")["metadata"]["resourceVersion"]
    assert int(first) < int(second) <= int(here.version(SECRETS))


def test_a_list_at_version_zero_or_not_older_than_is_fresh_enough(here: ScratchNamespace) -> None:
    version = here.make(SECRETS, "a")["metadata"]["resourceVersion"]
    for query in (
        {"resourceVersion": version, "resourceVersionMatch": "NotOlderThan"},
        {"resourceVersion": version},
    ):
        found = here.api.fetch(here.path(SECRETS), **query)
        assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
        assert int(found["metadata"]["resourceVersion"]) >= int(version)
    assert here.api.send("GET", here.path(SECRETS), query={"resourceVersion": "0"}).status == 200


def test_a_list_of_one_exact_moment_shows_that_moment(here: ScratchNamespace) -> None:
    version = here.make(SECRETS, "a")["metadata"]["resourceVersion"]
    here.make(SECRETS, "b")
    here.delete(SECRETS, "a")
    found = here.api.fetch(here.path(SECRETS), resourceVersion=version, resourceVersionMatch="Exact")
    assert [item["metadata"]["name"] for item in found["items"]] == ["a"]
    assert found["metadata"]["resourceVersion"] == version


def test_a_get_may_ask_for_not_older_than(here: ScratchNamespace) -> None:
    made = here.make(SECRETS, "a")
    found = here.api.fetch(here.path(SECRETS, "a"), resourceVersion=made["metadata"]["resourceVersion"])
    assert found == made


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ({"resourceVersion": "abc"}, 400),
        ({"resourceVersionMatch": "Exact"}, 422),
        ({"resourceVersion": "1", "resourceVersionMatch": "Sometimes"}, 422),
        ({"resourceVersion": "0", "resourceVersionMatch": "Exact"}, 422),
        ({"limit": "x"}, 400),
    ],
)
def test_nonsense_versions_and_limits_are_refused(here: ScratchNamespace, query: dict[str, str], code: int) -> None:
    assert here.api.refuse("GET", here.path(SECRETS), query=query)["code"] == code


def test_cluster_kinds_are_listed_without_namespace(api: Api, here: ScratchNamespace) -> None:
    found = api.fetch(NAMESPACES.path(), fieldSelector=f"metadata.name={here.namespace}")["items"]
    assert found[0]["status"]["phase"] == "Active"
    assert found[0]["metadata"]["labels"]["kubernetes.io/metadata.name"] == here.namespace
