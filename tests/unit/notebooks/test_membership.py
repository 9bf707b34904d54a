"""Whose notebook may run where: one table of Profiles and people."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.notebooks.membership import Membership, NotAMember, choose, memberships

ADA, BOB = {"kind": "User", "name": "ada"}, {"kind": "User", "name": "bob"}
TEAM = {"kind": "Group", "name": "team"}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def profile(name: str, owner: Any, *contributors: Any, status: Any = READY, **meta: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, **meta},
        "spec": {"owner": owner, "contributors": list(contributors)},
        "status": status,
    }


@pytest.mark.parametrize(
    ("given", "role"),
    [
        (profile("t", ADA), "edit"),
        (profile("t", BOB), None),
        (profile("t", BOB, ADA), "edit"),
        (profile("t", BOB, {**ADA, "role": "view"}), "view"),
        (profile("t", BOB, {**TEAM, "role": "view"}), "view"),
        (profile("t", BOB, {**ADA, "role": "view"}, TEAM), "edit"),
        (profile("t", TEAM), "edit"),
        (profile("t", {"kind": "Group", "name": "ada"}), None),
        (profile("t", {"kind": "User", "name": "team"}), None),
        (profile("t", {"kind": "ServiceAccount", "name": "ada", "namespace": "t"}), None),
        (profile("t", {"kind": "User", "name": "Ada"}), None),
        (profile("t", ADA, status={}), None),
        (profile("t", ADA, status={"conditions": [{"type": "Ready", "status": "False"}]}), None),
        (profile("t", ADA, deletionTimestamp="2026-01-01T00:00:00Z"), None),
        ({"metadata": {"name": "t"}, "spec": {"owner": 7}, "status": READY}, None),
        ({"metadata": {"name": "t"}, "status": READY}, None),
    ],
)
def test_a_member_has_the_strongest_of_their_roles_in_a_tenant_that_is_ready(given: Any, role: str | None) -> None:
    found = memberships([given], "ada", ["team"])
    assert found == ([Membership("t", role)] if role else [])


def test_a_role_names_the_account_that_a_notebook_runs_as() -> None:
    assert [Membership("t", role).account for role in ("edit", "view")] == ["default-editor", "default-viewer"]


def test_without_a_name_the_only_tenant_is_meant_and_others_are_refused_with_the_reason() -> None:
    one, two = Membership("speech", "edit"), Membership("vision", "view")
    assert choose([one], "", "ada") == one
    assert choose([one, two], "vision", "ada") == two
    for found, wanted, why in (
        ([], "", "no tenant has ada as a member yet"),
        ([], "vision", "no tenant has ada as a member yet"),
        ([one, two], "", "choose one of your tenants: speech, vision"),
        ([one], "vision", "ada is no member of a tenant vision; yours: speech"),
    ):
        with pytest.raises(NotAMember, match=why):
            choose(found, wanted, "ada")
