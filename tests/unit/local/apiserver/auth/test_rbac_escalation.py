"""Writing roles and bindings: nobody gives away what they do not hold."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.auth.authentication import ADMIN, User
from paddlecloud.local.apiserver.auth.bootstrap_roles import bootstrap_objects
from paddlecloud.local.apiserver.auth.escalation import check_write
from paddlecloud.local.apiserver.auth.rbac import RbacIndex

GROUP = "rbac.authorization.k8s.io"
ALICE = User("alice", groups=("dev", "system:authenticated"))
GET_PODS = {"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}
GET_NODES = {"verbs": ["get", "list"], "apiGroups": [""], "resources": ["nodes"]}


def role(*rules: dict[str, Any], name: str = "new", namespace: str = "ns", **more: Any) -> dict[str, Any]:
    kind = "Role" if namespace else "ClusterRole"
    return {"kind": kind, "metadata": {"name": name, "namespace": namespace}, "rules": list(rules), **more}


def binding(role_name: str, who: str = "bob", namespace: str = "ns", kind: str = "ClusterRole") -> dict[str, Any]:
    return {
        "kind": "RoleBinding" if namespace else "ClusterRoleBinding",
        "metadata": {"name": f"{role_name}-{who}", "namespace": namespace},
        "roleRef": {"apiGroup": GROUP, "kind": kind, "name": role_name},
        "subjects": [{"kind": "User", "name": who}],
    }


@pytest.fixture
def index() -> RbacIndex:
    """Alice is admin of the namespace ns."""
    index = RbacIndex()
    for obj in bootstrap_objects():
        index.upsert(obj)
    index.upsert(binding("admin", "alice"))
    return index


@pytest.mark.parametrize(
    ("obj", "allowed"),
    [
        (role(GET_PODS), True),
        (role(GET_PODS, namespace="other"), False),
        (role(GET_PODS, namespace=""), False),
        (role(GET_NODES), False),
        (role({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}), False),
        (role(), True),
        (binding("view"), True),
        (binding("edit"), True),
        (binding("admin"), True),
        (binding("cluster-admin"), False),
        (binding("view", namespace="other"), False),
        (binding("view", namespace=""), False),
        ({"kind": "Pod", "metadata": {"name": "x"}}, True),
    ],
)
def test_a_namespace_admin_grants_what_they_hold(index: RbacIndex, obj: dict[str, Any], allowed: bool) -> None:
    if allowed:
        check_write(index, ALICE, obj)
    else:
        with pytest.raises(errors.Forbidden, match="is attempting to grant RBAC permissions not currently held"):
            check_write(index, ALICE, obj)
    check_write(index, ADMIN, obj)


@pytest.mark.parametrize(
    "reference", [{"kind": "ClusterRole", "name": "view"}, {"kind": "Role", "name": "new"}, "view"], ids=str
)
@pytest.mark.parametrize("namespace", ["ns", ""])
def test_a_role_with_a_roleref_is_judged_by_its_rules(index: RbacIndex, namespace: str, reference: Any) -> None:
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    index.upsert(role(namespace=namespace))
    index.upsert(binding("new", "alice", namespace=namespace, kind="Role" if namespace else "ClusterRole"))
    wanted = role(everything, namespace=namespace, roleRef=reference)
    for old in (None, role(namespace=namespace)):
        with pytest.raises(errors.Forbidden, match="is attempting to grant RBAC permissions not currently held"):
            check_write(index, ALICE, wanted, old)


def test_the_refusal_lists_what_is_missing(index: RbacIndex) -> None:
    with pytest.raises(errors.Forbidden) as caught:
        check_write(index, ALICE, role(GET_PODS, GET_NODES))
    assert caught.value.message == (
        'roles.rbac.authorization.k8s.io "new" is forbidden: user "alice" (groups=["dev" "system:authenticated"]) '
        "is attempting to grant RBAC permissions not currently held:\n"
        '{APIGroups:[""], Resources:["nodes"], Verbs:["get" "list"]}'
    )


def test_the_refusal_of_a_huge_role_stays_readable(index: RbacIndex) -> None:
    rules = [{"verbs": ["get"], "apiGroups": [f"g{n}"], "resources": ["x"]} for n in range(500)]
    with pytest.raises(errors.Forbidden) as caught:
        check_write(index, ALICE, role(*rules))
    assert caught.value.message.endswith("and 480 more")


STRONGER = [role(GET_NODES), role(GET_NODES, namespace=""), binding("cluster-admin"), binding("view", namespace="")]


@pytest.mark.parametrize("old", STRONGER)
@pytest.mark.parametrize(
    "change",
    [
        {"ownerReferences": [{"kind": "Pod", "name": "p", "uid": "1"}]},
        {"finalizers": ["example.org/f"]},
        {"managedFields": [{"manager": "m"}]},
        {},
    ],
)
def test_garbage_collection_of_what_one_does_not_hold_is_no_escalation(
    index: RbacIndex, old: dict[str, Any], change: dict[str, Any]
) -> None:
    check_write(index, ALICE, {**old, "metadata": {**old["metadata"], **change}}, old)


@pytest.mark.parametrize("old", STRONGER)
@pytest.mark.parametrize(
    "change", [{"labels": {f"{GROUP}/aggregate-to-view": "true"}}, {"labels": {"a": "b"}}, {"annotations": {"a": "b"}}]
)
def test_any_other_change_of_what_one_does_not_hold_is_refused(
    index: RbacIndex, old: dict[str, Any], change: dict[str, Any]
) -> None:
    """A label alone may hand the rules of a role to every holder of one that aggregates it."""
    new = {**old, "metadata": {**old["metadata"], **change}}
    with pytest.raises(errors.Forbidden, match="is attempting to grant RBAC permissions not currently held"):
        check_write(index, ALICE, new, old)


def test_a_role_of_ones_own_may_be_labelled_and_extended(index: RbacIndex) -> None:
    old = role(GET_PODS)
    check_write(index, ALICE, {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}, old)
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, role(GET_NODES, GET_PODS), old)


def test_changing_what_aggregates_needs_cluster_admin_also_to_end_it(index: RbacIndex) -> None:
    old = role(namespace="", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    for new in (role(namespace=""), {**old, "metadata": {**old["metadata"], "labels": {"c": "d"}}}):
        with pytest.raises(errors.Forbidden, match="must have cluster-admin privileges to use an aggregationRule"):
            check_write(index, ALICE, new, old)


def test_a_right_to_escalate_one_role_does_not_cover_creating_it(index: RbacIndex) -> None:
    escalate = {"verbs": ["escalate"], "apiGroups": [GROUP], "resources": ["roles"], "resourceNames": ["new"]}
    index.upsert(role(escalate, name="lift"))
    index.upsert(binding("lift", "alice", kind="Role"))
    check_write(index, ALICE, role(GET_NODES), role(GET_PODS))
    check_write(index, ALICE, role(GET_NODES), by_name=True)  # by PUT or apply
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, role(GET_NODES))


def test_the_administrator_of_one_namespace_shares_that_power_there(index: RbacIndex) -> None:
    """cluster-admin holds URLs, too; a RoleBinding passes them on to nobody and is allowed all the same."""
    index.upsert(binding("cluster-admin", "alice"))
    check_write(index, ALICE, binding("cluster-admin"))
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, binding("cluster-admin", namespace="other"))
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, binding("cluster-admin", namespace=""))


def test_adding_a_subject_to_a_stronger_binding_is_escalation(index: RbacIndex) -> None:
    old = binding("cluster-admin")
    new = {**old, "subjects": [*old["subjects"], {"kind": "User", "name": "alice"}]}
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, new, old)


@pytest.mark.parametrize(
    ("verb", "resource", "obj"),
    [("escalate", "roles", role(GET_NODES)), ("bind", "clusterroles", binding("cluster-admin"))],
)
def test_escalate_and_bind_lift_the_check(index: RbacIndex, verb: str, resource: str, obj: dict[str, Any]) -> None:
    with pytest.raises(errors.Forbidden):
        check_write(index, ALICE, obj)
    index.upsert(role({"verbs": [verb], "apiGroups": [GROUP], "resources": [resource]}, name="lift"))
    index.upsert(binding("lift", "alice", kind="Role"))
    check_write(index, ALICE, obj)


def test_binding_a_role_that_is_not_there_is_not_found(index: RbacIndex) -> None:
    with pytest.raises(errors.NotFound, match="gone"):
        check_write(index, ALICE, binding("gone"))


def test_aggregation_needs_cluster_admin(index: RbacIndex) -> None:
    obj = role(namespace="", aggregationRule={"clusterRoleSelectors": [{"matchLabels": {"a": "b"}}]})
    with pytest.raises(errors.Forbidden, match="must have cluster-admin privileges to use an aggregationRule"):
        check_write(index, ALICE, obj)
