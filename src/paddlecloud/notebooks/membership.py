"""Whose notebook may run in which tenant, and with what rights. Pure: Profiles, a name and groups in, memberships out.

Names are compared as RBAC compares them: exactly. A Profile that is not Ready, or is being deleted, has no members.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from paddlecloud.api.conditions import condition_of
from paddlecloud.api.problems import DecodeError
from paddlecloud.api.profile import Subject, decode
from paddlecloud.kube.resource import Object

EDIT, VIEW = "edit", "view"
ACCOUNTS = {EDIT: "default-editor", VIEW: "default-viewer"}
"""The account of a tenant's namespace that a notebook runs as, by role."""


class Membership(NamedTuple):
    tenant: str
    role: str

    @property
    def account(self) -> str:
        return ACCOUNTS[self.role]


class NotAMember(Exception):
    """A notebook was asked for where its user has no rights; the text says so to the user."""


def memberships(profiles: Iterable[Object], user: str, groups: Collection[str] = ()) -> list[Membership]:
    """By name of the tenant; of several roles in one the strongest.

    >>> ada = {"kind": "User", "name": "ada"}
    >>> ready = {"conditions": [{"type": "Ready", "status": "True"}]}
    >>> memberships([{"metadata": {"name": "vision"}, "spec": {"owner": ada}, "status": ready}], "ada")
    [Membership(tenant='vision', role='edit')]
    """
    found = {}
    for profile in profiles:
        roles = _roles(profile, user, groups)
        if roles:
            found[str(profile["metadata"]["name"])] = EDIT if EDIT in roles else VIEW
    return [Membership(*one) for one in sorted(found.items())]


def choose(found: Collection[Membership], wanted: str, user: str) -> Membership:
    """The membership of the tenant that was asked for; without a name the only one. Raises `NotAMember`."""
    names = ", ".join(one.tenant for one in found)
    if not found:
        raise NotAMember(
            f"no tenant has {user} as a member yet; an administrator adds people: pdc tenant add NAME {user}"
        )
    if not wanted:
        if len(found) == 1:
            return next(iter(found))
        raise NotAMember(f"choose one of your tenants: {names}")
    for one in found:
        if one.tenant == wanted:
            return one
    raise NotAMember(f"{user} is no member of a tenant {wanted}; yours: {names}")


def _roles(profile: Object, user: str, groups: Collection[str]) -> set[str]:
    """Of one Profile. People can write none, but those of Kubeflow may have shapes that this release cannot read."""
    if profile["metadata"].get("deletionTimestamp") or (condition_of(profile, "Ready") or {}).get("status") != "True":
        return set()
    try:
        spec = decode(profile).spec
    except DecodeError:
        return set()
    if spec is None:
        return set()
    roles = {EDIT} if spec.owner is not None and _is(spec.owner, user, groups) else set()
    return roles | {one.role or EDIT for one in spec.contributors or () if _is(one, user, groups)}


def _is(subject: Subject, user: str, groups: Collection[str]) -> bool:
    """Accounts are programs and sign in nowhere."""
    return subject.name == user if subject.kind == "User" else subject.kind == "Group" and subject.name in groups
