"""Default roles at a later start: what they lack is added, what others changed stays."""

from __future__ import annotations

import copy

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.bootstrap_roles import bootstrap_objects, completed

THEIRS = {"verbs": ["get"], "apiGroups": ["example.org"], "resources": ["widgets"]}
SOMEBODY = {"kind": "User", "apiGroup": "rbac.authorization.k8s.io", "name": "somebody"}


def default(kind: str, name: str) -> Object:
    (found,) = [each for each in bootstrap_objects() if (each["kind"], each["metadata"]["name"]) == (kind, name)]
    return found


@pytest.mark.parametrize(
    ("kind", "name", "part", "added"),
    [
        ("ClusterRole", "system:node", "rules", THEIRS),
        ("ClusterRoleBinding", "system:controller:node-controller", "subjects", SOMEBODY),
    ],
)
def test_a_default_of_an_earlier_release_gets_what_it_lacks_and_keeps_what_was_added(
    kind: str, name: str, part: str, added: Object
) -> None:
    now = default(kind, name)
    earlier = {**copy.deepcopy(now), part: [*now[part][:1], added]}
    assert completed(earlier, now)[part] == [now[part][0], added, *now[part][1:]]


def test_one_that_its_owner_excepted_stays_as_it_is() -> None:
    now = default("ClusterRole", "system:node")
    earlier = {**copy.deepcopy(now), "rules": []}
    earlier["metadata"]["annotations"]["rbac.authorization.kubernetes.io/autoupdate"] = "false"
    assert completed(earlier, now)["rules"] == []


def test_rules_of_an_aggregated_role_are_left_to_its_parts() -> None:
    now = default("ClusterRole", "view")
    filled = {**copy.deepcopy(now), "rules": [THEIRS]}
    assert completed(filled, now) == filled
