"""RBAC: what rules grant, checked against a naive evaluator that remembers nothing and indexes nothing."""

from __future__ import annotations

import fnmatch
import itertools
import re
import time
import timeit
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.local.apiserver.auth.authentication import ADMIN, User
from paddlecloud.local.apiserver.auth.rbac import Attributes, RbacIndex, Rule
from paddlecloud.local.apiserver.auth.rule_cover import uncovered

ALICE = User("alice", groups=("dev", "system:authenticated"))


def rule(verbs: str, groups: str = "", resources: str = "", names: str = "", urls: str = "") -> dict[str, Any]:
    """`core` stands for the group without a name."""
    return {
        "verbs": verbs.split(),
        "apiGroups": ["" if g == "core" else g for g in groups.split()],
        "resources": resources.split(),
        "resourceNames": names.split(),
        "nonResourceURLs": urls.split(),
    }


def role(name: str, *rules: dict[str, Any], namespace: str = "", **more: Any) -> dict[str, Any]:
    meta = {"name": name, "namespace": namespace, "labels": more.pop("labels", {})}
    return {"kind": "Role" if namespace else "ClusterRole", "metadata": meta, "rules": list(rules), **more}


def binding(
    name: str, role_kind: str, role_name: str, *subjects: dict[str, str], namespace: str = ""
) -> dict[str, Any]:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": name, "namespace": namespace},
        "roleRef": {"kind": role_kind, "name": role_name},
        "subjects": list(subjects),
    }


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name}


def index_of(*objects: dict[str, Any]) -> RbacIndex:
    index = RbacIndex()
    for obj in objects:
        index.upsert(obj)
    return index


def granted(*rules: dict[str, Any]) -> RbacIndex:
    return index_of(role("r", *rules), binding("b", "ClusterRole", "r", user("alice")))


# --- rules ---


@pytest.mark.parametrize(
    ("one", "wanted", "allowed"),
    [
        (rule("get", "core", "pods"), Attributes("get", "", "pods", namespace="ns", name="x"), True),
        (rule("get", "core", "pods"), Attributes("list", "", "pods"), False),
        (rule("*", "core", "pods"), Attributes("deletecollection", "", "pods"), True),
        (rule("get", "core", "pods"), Attributes("get", "apps", "pods"), False),
        (rule("get", "*", "pods"), Attributes("get", "apps", "pods"), True),
        (rule("get", "core", "pods"), Attributes("get", "", "pods", "log"), False),
        (rule("get", "core", "pods/log"), Attributes("get", "", "pods", "log"), True),
        (rule("get", "core", "pods/log"), Attributes("get", "", "pods"), False),
        (rule("get", "*", "*/scale"), Attributes("get", "apps", "deployments", "scale"), True),
        (rule("get", "*", "*/scale"), Attributes("get", "apps", "deployments"), False),
        (rule("get", "*", "*"), Attributes("get", "apps", "deployments", "scale"), True),
        (rule("get", "core", "pods/*"), Attributes("get", "", "pods", "log"), False),
        (rule("get", "core", "pods", names="x"), Attributes("get", "", "pods", name="x"), True),
        (rule("get", "core", "pods", names="x"), Attributes("get", "", "pods", name="y"), False),
        (rule("list", "core", "pods", names="x"), Attributes("list", "", "pods"), False),
        (rule("get", urls="/metrics"), Attributes("get", path="/metrics"), True),
        (rule("get", urls="/metrics"), Attributes("get", path="/metrics/x"), False),
        (rule("get", urls="/api/*"), Attributes("get", path="/api/v1"), True),
        (rule("get", urls="/api/*"), Attributes("get", path="/api"), False),
        (rule("get", urls="*"), Attributes("get", path="/anything"), True),
        (rule("get", urls="*"), Attributes("get", "", "pods"), False),
        (rule("*", "*", "*"), Attributes("get", path="/metrics"), False),
        (rule("*", "*", "*"), Attributes("*", "*", "*"), True),
        (rule("get", "*", "*"), Attributes("*", "*", "*"), False),
        (rule("", "", ""), Attributes("get", "", "pods"), False),
    ],
)
def test_a_rule_grants(one: dict[str, Any], wanted: Attributes, allowed: bool) -> None:
    assert granted(one).allowed(ALICE, wanted).allowed is allowed


# --- subjects and scopes ---

GET_POD = Attributes("get", "", "pods", namespace="ns", name="x")
READER = role("reader", rule("get", "core", "pods"))


@pytest.mark.parametrize(
    ("subject", "who", "allowed"),
    [
        (user("alice"), ALICE, True),
        (user("bob"), ALICE, False),
        ({"kind": "Group", "name": "dev"}, ALICE, True),
        ({"kind": "Group", "name": "alice"}, ALICE, False),
        ({"kind": "User", "name": "dev"}, ALICE, False),
        (
            {"kind": "ServiceAccount", "namespace": "ns", "name": "robot"},
            User("system:serviceaccount:ns:robot"),
            True,
        ),
        ({"kind": "ServiceAccount", "namespace": "ns", "name": "robot"}, User("robot"), False),
        (
            {"kind": "ServiceAccount", "namespace": "other", "name": "robot"},
            User("system:serviceaccount:ns:robot"),
            False,
        ),
    ],
)
def test_a_binding_reaches_its_subject(subject: dict[str, str], who: User, allowed: bool) -> None:
    assert index_of(READER, binding("b", "ClusterRole", "reader", subject)).allowed(who, GET_POD).allowed is allowed


@pytest.mark.parametrize(
    ("namespace", "wanted", "allowed"),
    [
        ("ns", GET_POD, True),
        ("other", GET_POD, False),
        ("", GET_POD, True),
        ("ns", GET_POD._replace(namespace=""), False),
    ],
)
def test_a_role_binding_counts_in_its_namespace_only(namespace: str, wanted: Attributes, allowed: bool) -> None:
    index = index_of(READER, binding("b", "ClusterRole", "reader", user("alice"), namespace=namespace))
    assert index.allowed(ALICE, wanted).allowed is allowed


def test_a_role_of_another_namespace_cannot_be_bound() -> None:
    index = index_of(
        role("local", rule("get", "core", "pods"), namespace="other"),
        binding("b", "Role", "local", user("alice"), namespace="ns"),
    )
    decision = index.allowed(ALICE, GET_POD)
    assert not decision.allowed
    assert decision.reason == 'RBAC: role.rbac.authorization.k8s.io "local" not found'


@pytest.mark.parametrize("kind", ["Role", "", "Other"])
def test_a_cluster_binding_to_anything_but_a_cluster_role_grants_nothing(kind: str) -> None:
    assert not index_of(READER, binding("b", kind, "reader", user("alice"))).allowed(ALICE, GET_POD).allowed


def test_a_role_binding_grants_no_urls() -> None:
    """They are among the rules held in the namespace, as in Kubernetes, and no request for a URL looks there."""
    index = index_of(
        role("r", rule("get", urls="/metrics")), binding("b", "ClusterRole", "r", user("alice"), namespace="ns")
    )
    assert not index.allowed(ALICE, Attributes("get", path="/metrics")).allowed
    assert [found.urls for found in index.rules_for(ALICE, "ns")] == [{"/metrics"}]
    assert index.rules_for(ALICE, "") == []


def test_masters_may_do_everything_without_any_role() -> None:
    index = RbacIndex()
    assert index.allowed(ADMIN, Attributes("escalate", "any.group", "anything")).allowed
    assert index.allowed(ADMIN, Attributes("post", path="/x")).allowed


@pytest.mark.parametrize(
    ("made", "reason"),
    [
        (
            binding("b", "ClusterRole", "reader", user("alice")),
            'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to User "alice"',
        ),
        (
            binding("b", "ClusterRole", "reader", {"kind": "Group", "name": "dev"}, namespace="ns"),
            'RBAC: allowed by RoleBinding "b/ns" of ClusterRole "reader" to Group "dev"',
        ),
    ],
)
def test_the_reason_names_the_binding(made: dict[str, Any], reason: str) -> None:
    assert index_of(READER, made).allowed(ALICE, GET_POD).reason == reason


# --- aggregation ---


def selecting(label: str) -> dict[str, Any]:
    return {"aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {label: "true"}}]}}


def test_an_aggregated_role_has_the_rules_of_its_parts() -> None:
    index = index_of(
        role("edit", labels={}, **selecting("to-edit")),
        role("view", labels={"to-edit": "true"}, **selecting("to-view")),
        role("part", rule("get", "core", "pods"), labels={"to-view": "true"}),
        binding("b", "ClusterRole", "edit", user("alice")),
    )
    assert index.allowed(ALICE, GET_POD).allowed
    crd_part = role("crd", rule("get", "example.com", "widgets"), labels={"to-edit": "true"})
    widget = Attributes("get", "example.com", "widgets", namespace="ns")
    assert not index.allowed(ALICE, widget).allowed
    index.upsert(crd_part)
    assert index.allowed(ALICE, widget).allowed
    index.delete(crd_part)
    assert not index.allowed(ALICE, widget).allowed


def test_rings_of_aggregation_end() -> None:
    index = index_of(
        role("a", labels={"ring": "true"}, **selecting("ring")),
        role("b", labels={"ring": "true"}, **selecting("ring")),
        role("c", rule("get", "core", "pods"), labels={"ring": "true"}),
        binding("x", "ClusterRole", "a", user("alice")),
    )
    assert index.allowed(ALICE, GET_POD).allowed


# --- keeping current ---


def test_every_change_counts_at_once() -> None:
    bound = binding("b", "ClusterRole", "reader", user("alice"))
    index = RbacIndex()
    steps: list[tuple[Callable[[], None], bool]] = [
        (lambda: index.upsert(bound), False),
        (lambda: index.upsert(READER), True),
        (lambda: index.upsert(role("reader", rule("list", "core", "pods"))), False),
        (lambda: index.upsert(READER), True),
        (lambda: index.upsert(binding("b", "ClusterRole", "reader", user("bob"))), False),
        (lambda: index.upsert(bound), True),
        (lambda: index.delete(bound), False),
        (lambda: index.upsert(bound), True),
        (lambda: index.delete(READER), False),
    ]
    for change, allowed in steps:
        change()
        assert index.allowed(ALICE, GET_POD).allowed is allowed


def test_remembered_answers_are_bounded() -> None:
    index = granted(rule("get", "core", "pods"))
    for number in range(20_000):
        index.allowed(ALICE, Attributes("get", path=f"/{number}"))
    assert len(index._decisions) <= 8192


_names = st.sampled_from(["a", "b", "*"])
_words = st.lists(_names, max_size=2)
_rules = st.builds(
    lambda v, g, r, n, u: {
        "verbs": v,
        "apiGroups": g,
        "resources": [*r, *(f"{x}/s" for x in r[:1])],
        "resourceNames": n,
        "nonResourceURLs": u,
    },
    _words,
    _words,
    _words,
    st.lists(st.sampled_from(["a", "b"]), max_size=1),
    st.lists(st.sampled_from(["/a", "/a*", "*"]), max_size=1),
)
_roles = st.builds(
    lambda name, namespace, rules: role(name, *rules, namespace=namespace),
    st.sampled_from(["r1", "r2"]),
    st.sampled_from(["", "ns", "other"]),
    st.lists(_rules, max_size=2),
)
_subjects = st.builds(
    lambda kind, name: {"kind": kind, "name": name, "namespace": "ns"},
    st.sampled_from(["User", "Group", "ServiceAccount"]),
    st.sampled_from(["alice", "dev", "robot"]),
)
_bindings = st.builds(
    lambda name, namespace, kind, role_name, subjects: binding(name, kind, role_name, *subjects, namespace=namespace),
    st.sampled_from(["b1", "b2", "b3"]),
    st.sampled_from(["", "ns", "other"]),
    st.sampled_from(["Role", "ClusterRole"]),
    st.sampled_from(["r1", "r2"]),
    st.lists(_subjects, max_size=2),
)
_wanted = st.one_of(
    st.builds(
        Attributes,
        st.sampled_from("ab"),
        st.sampled_from("ab"),
        st.sampled_from("ab"),
        st.sampled_from(["", "s"]),
        st.sampled_from(["", "ns"]),
        st.sampled_from(["", "a", "b"]),
    ),
    st.builds(lambda verb, path: Attributes(verb, path=path), st.sampled_from("ab"), st.sampled_from(["/a", "/ab"])),
)
_users = st.sampled_from(
    [ALICE, User("alice"), User("dev"), User("bob", groups=("dev",)), User("system:serviceaccount:ns:robot")]
)


def naive(objects: list[dict[str, Any]], who: User, wanted: Attributes) -> bool:
    """The definition, spelled out."""

    def has(values: list[str], value: str) -> bool:
        return "*" in values or value in values

    def is_subject(subject: dict[str, str]) -> bool:
        if subject["kind"] == "User":
            return subject["name"] == who.name
        if subject["kind"] == "Group":
            return subject["name"] in who.groups
        return who.name == f"system:serviceaccount:{subject['namespace']}:{subject['name']}"

    def grants(one: dict[str, Any]) -> bool:
        if not has(one["verbs"], wanted.verb):
            return False
        if not wanted.resource:
            urls = one["nonResourceURLs"]
            return any(u == wanted.path or (u.endswith("*") and wanted.path.startswith(u[:-1])) for u in urls)
        full = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
        every = f"*/{wanted.subresource}" if wanted.subresource else "*"
        return (
            has(one["apiGroups"], wanted.group)
            and (has(one["resources"], full) or every in one["resources"])
            and (not one["resourceNames"] or wanted.name in one["resourceNames"])
        )

    roles = {(o["metadata"]["namespace"], o["metadata"]["name"]): o for o in objects if "rules" in o}
    for bound in objects:
        if "roleRef" not in bound or not any(map(is_subject, bound["subjects"])):
            continue
        namespace = bound["metadata"]["namespace"]
        if namespace and (namespace != wanted.namespace or not wanted.resource):
            continue
        if bound["roleRef"]["kind"] == "Role" and not namespace:
            continue
        where = (namespace if bound["roleRef"]["kind"] == "Role" else "", bound["roleRef"]["name"])
        if where in roles and any(map(grants, roles[where]["rules"])):
            return True
    return False


@settings(max_examples=200)
@given(
    st.lists(st.tuples(st.booleans(), st.one_of(_roles, _bindings)), max_size=12), st.lists(_wanted, max_size=6), _users
)
def test_the_index_agrees_with_the_definition_after_any_history(
    history: list[tuple[bool, dict[str, Any]]], questions: list[Attributes], who: User
) -> None:
    index = RbacIndex()
    current: dict[tuple[str, str, str], dict[str, Any]] = {}
    for keep, obj in history:
        key = (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"])
        if keep:
            current[key] = obj
            index.upsert(obj)
        else:
            current.pop(key, None)
            index.delete(obj)
        for wanted in questions:
            assert index.allowed(who, wanted).allowed is naive(list(current.values()), who, wanted)


# --- comparing powers ---


@pytest.mark.parametrize(
    ("held", "wanted", "missing"),
    [
        ([rule("*", "*", "*")], [rule("get", "core", "pods")], 0),
        ([rule("get", "core", "pods")], [rule("get list", "core", "pods")], 1),
        ([rule("get", "core", "pods"), rule("list", "core", "pods")], [rule("get list", "core", "pods")], 0),
        ([rule("get", "core", "pods services")], [rule("get", "core", "services")], 0),
        ([rule("get", "core", "pods")], [rule("*", "core", "pods")], 1),
        ([rule("get", "core", "pods")], [rule("get", "*", "pods")], 1),
        ([rule("get", "core", "pods", names="a")], [rule("get", "core", "pods")], 1),
        ([rule("get", "core", "pods", names="a")], [rule("get", "core", "pods", names="a b")], 1),
        ([rule("get", "core", "pods")], [rule("get", "core", "pods", names="a b")], 0),
        ([rule("get", "*", "*/scale")], [rule("get", "apps", "deployments/scale")], 0),
        ([rule("get", "*", "*/scale")], [rule("get", "apps", "*")], 1),
        ([rule("get", urls="/api/*")], [rule("get", urls="/api/v1 /apis")], 1),
        ([rule("get", urls="*")], [rule("get", urls="/api/*")], 0),
        ([rule("*", "*", "*")], [rule("get", urls="/metrics")], 1),
        ([], [rule("get list", "core apps", "pods deployments")], 8),
    ],
)
def test_what_is_not_held_cannot_be_given(held: Any, wanted: Any, missing: int) -> None:
    assert len(uncovered(map(Rule.of, held), map(Rule.of, wanted))) == missing


def test_huge_rules_are_refused_rather_than_taken_apart() -> None:
    many = [f"r{number}" for number in range(2000)]
    huge = Rule.of({"verbs": many, "apiGroups": many, "resources": many})
    assert uncovered([Rule.of(rule("get", "core", "pods"))], [huge]) == [huge]


def naively_uncovered(held: list[Rule], wanted: list[Rule]) -> set[Rule]:
    """The definition: every single permission that no single held rule grants."""

    def grants(owner: Rule, verb: str, group: str, resource: str, name: str) -> bool:
        return (
            bool(owner.verbs & {"*", verb})
            and bool(owner.groups & {"*", group})
            and bool(owner.resources & {"*", resource, re.sub(".*/", "*/", resource)})
            and (not owner.names or name in owner.names)
        )

    missing = set()
    for each in wanted:
        for verb in each.verbs:
            for group, resource, name in itertools.product(each.groups, each.resources, each.names or [""]):
                if not any(grants(owner, verb, group, resource, name) for owner in held):
                    names = frozenset((name,) if name else ())
                    missing.add(Rule(frozenset((verb,)), frozenset((group,)), frozenset((resource,)), names))
            for url in each.urls:
                owners = [owner for owner in held if owner.verbs & {"*", verb}]
                if not any(fnmatch.fnmatchcase(url, own) for owner in owners for own in owner.urls):
                    missing.add(Rule(frozenset((verb,)), urls=frozenset((url,))))
    return missing


@settings(max_examples=400)
@given(st.lists(_rules, max_size=4), st.lists(_rules, min_size=1, max_size=3))
def test_what_is_missing_is_what_no_held_rule_grants(held: Any, wanted: Any) -> None:
    rules = [Rule.of(each) for each in held], [Rule.of(each) for each in wanted]
    assert set(uncovered(*rules)) == naively_uncovered(*rules)


def every(*, groups: int = 1, resources: int = 1, names: int = 0, verbs: int = 1, first: int = 0) -> Rule:
    def listed(letter: str, count: int) -> list[str]:
        return [f"{letter}{first + number}" for number in range(count)]

    parts = {"apiGroups": listed("g", groups), "resources": listed("r", resources), "resourceNames": listed("n", names)}
    return Rule.of({"verbs": listed("v", verbs), **parts})


@pytest.mark.parametrize(
    ("held", "wanted"),
    [
        ([], [every(resources=150, names=130, first=n) for n in range(300)]),
        ([every(first=n) for n in range(5000)], [every(names=20, first=5000 - n) for n in range(1000)]),
        ([every(names=1, first=n) for n in range(5000)], [every(names=2, first=n) for n in range(1000)]),
        ([every(resources=150, first=n) for n in range(500)], [every(groups=150, resources=150)] * 2),
        ([every(verbs=2, first=n) for n in range(2000)], [every(verbs=3, first=n) for n in range(2000)]),
    ],
)
def test_however_large_the_roles_are_the_comparison_is_short(held: list[Rule], wanted: list[Rule]) -> None:
    began = time.thread_time()
    assert uncovered(held, wanted), "what is too much to compare is not granted"
    assert time.thread_time() - began < 1.0


def test_large_roles_that_are_held_can_be_granted() -> None:
    named = [Rule.of({**every().body(), "resourceNames": [f"n{number}"]}) for number in range(5000)]
    assert uncovered(named, [every(names=5000)]) == []
    assert uncovered([Rule.of(rule("*", "*", "*"))], [every(groups=2000, resources=2000, names=2000)]) == []
    large = [every(resources=150, names=130, first=n) for n in range(300)]
    assert uncovered(large, large) == []


@given(st.lists(_rules, max_size=3), st.lists(_rules, min_size=1, max_size=2), _wanted)
def test_covered_rules_grant_nothing_new(held: Any, wanted: Any, question: Attributes) -> None:
    """If nothing is uncovered, whatever the wanted rules allow is allowed by the held ones."""
    if uncovered(map(Rule.of, held), map(Rule.of, wanted)):
        return
    if granted(*wanted).allowed(ALICE, question).allowed:
        assert granted(*held).allowed(ALICE, question).allowed


def test_decisions_are_fast_enough_for_every_request() -> None:
    """5 µs is the goal; the bound here is loose enough for a busy machine and tight enough to notice a lost cache."""
    index = granted(*(rule("get", f"g{n}", f"r{n}") for n in range(500)))
    wanted = Attributes("get", "g499", "r499", namespace="ns", name="x")
    for who in (ADMIN, ALICE):
        assert index.allowed(who, wanted).allowed
        best = min(timeit.repeat(lambda who=who: index.allowed(who, wanted), number=2000, repeat=5)) / 2000  # type: ignore[misc]
        assert best < 20e-6


def test_only_cluster_roles_aggregate() -> None:
    selector = {"clusterRoleSelectors": [{"matchLabels": {"part": "yes"}}]}
    index = index_of(
        role("all", rule("*", "*", "*"), labels={"part": "yes"}),
        role("r", rule("get", "core", "pods"), namespace="ns", aggregationRule=selector),
        binding("b", "Role", "r", user("alice"), namespace="ns"),
    )
    assert index.allowed(ALICE, Attributes("get", "", "pods", namespace="ns")).allowed
    assert not index.allowed(ALICE, Attributes("get", "", "secrets", namespace="ns")).allowed
