"""Who holds which roles in a generated world."""

from __future__ import annotations

from dataclasses import replace

from .dice import Dice
from .kinds import CLUSTER, NAMESPACED, Kind
from .model import ACTORS, ANN, CUSTOM, OTHER, RBAC, ROBOT, Actor, Grant, Rule

VERBS = ("get", "list", "watch", "create", "update", "patch", "delete", "deletecollection")
SPECIAL_VERBS = ("escalate", "bind", "impersonate", "use", "proxy", "GET")
NAMES = ("one", "two", "absent", "@one", "@a", "made")
URLS = (
    "/healthz", "/healthz/*", "/metrics", "/api", "/api/*", "/apis/*", "*", "/*", "/no*", "/nowhere", "/version/", "/",
)  # fmt: skip
PRESET_ROLES = ("view", "edit", "admin", "cluster-admin", "nosuch", "system:basic-user")


def grants(dice: Dice) -> tuple[Grant, ...]:
    made = [_grant(dice, (_rule(dice),) if dice.chance(0.6) else (_rule(dice), _rule(dice))) for _ in range(4)]
    made.append(_grant(dice, (_role_keeper(dice),)))
    made.append(replace(_grant(dice, (_impersonator(dice),)), subjects=(_subject(dice.one((ROBOT, OTHER))),)))
    if dice.chance(0.5):
        made.append(replace(_grant(dice, ()), where=dice.one(("@a", "@b")), role=dice.one(PRESET_ROLES)))
    if dice.chance(0.6):
        urls = Rule(dice.some(("get", "post", "put", "*", "head"), 2), urls=dice.some(URLS, 2))
        made.append(replace(_grant(dice, (urls,)), cluster_role=True, where="" if dice.chance(0.8) else "@a"))
    return tuple(map(_within_the_world, made))


def _grant(dice: Dice, rules: tuple[Rule, ...]) -> Grant:
    where = dice.one(("@a", "@a", "@b", ""))
    cluster_role = not where or dice.chance(0.4)
    subjects = [dice.one((*map(_subject, ACTORS), *_GROUPS)) for _ in range(1 if dice.chance(0.7) else 2)]
    return Grant(tuple(dict.fromkeys(subjects)), where, rules, cluster_role, cluster_role and dice.chance(0.25))


def _within_the_world(grant: Grant) -> Grant:
    """What is bound cluster-wide to a group that all worlds share would count in all of them."""
    if grant.where:
        return grant
    own = [subject for subject in grant.subjects if "@" in "".join(subject)]
    return replace(grant, subjects=tuple(own) or (_subject(ANN),))


_GROUPS = (
    ("Group", "", "@team"),
    ("Group", "", "system:serviceaccounts:@a"),
    ("Group", "", "system:serviceaccounts"),
    ("Group", "", "system:authenticated"),
)


def _subject(actor: Actor) -> tuple[str, str, str]:
    return ("ServiceAccount", actor.namespace, actor.name) if actor.namespace else ("User", "", actor.name)


def _rule(dice: Dice) -> Rule:
    if dice.chance(0.08):
        return Rule(("*",), ("*",), ("*",))
    kinds = dice.some(NAMESPACED if dice.chance(0.75) else CLUSTER, 2)
    groups = tuple(dict.fromkeys(kind.group for kind in kinds))
    if dice.chance(0.15):
        groups = dice.one((("*",), ("",), ("apps",), (CUSTOM,), ("", "apps"), ("nosuch.example.org",)))
    return Rule(
        ("*",) if dice.chance(0.12) else dice.some((*VERBS, dice.one(SPECIAL_VERBS)), 4),
        groups,
        tuple(dict.fromkeys(_resource(dice, kind) for kind in kinds)),
        dice.some(NAMES, 2) if dice.chance(0.25) else (),
    )


def _resource(dice: Dice, kind: Kind) -> str:
    if dice.chance(0.05):
        return "*"
    if not kind.subresources or dice.chance(0.6):
        return kind.plural
    sub = dice.one(kind.subresources)
    return dice.one((f"{kind.plural}/{sub}", f"{kind.plural}/{sub}", f"*/{sub}", f"{kind.plural}/*", "*/*"))


def _role_keeper(dice: Dice) -> Rule:
    """Rights on roles and bindings, rarely with the verbs that lift the check of what is given away."""
    resources = dice.one((("roles", "rolebindings"), ("clusterroles", "clusterrolebindings"),
                          ("roles", "rolebindings", "clusterroles", "clusterrolebindings"), ("*",)))  # fmt: skip
    verbs = ("create", "update", "patch", "get")
    if dice.chance(0.35):
        verbs = (*verbs, dice.one(("bind", "escalate", "*")))
    names = dice.some(("one", "made", "@one", "@made", "@g0", "g1", "view"), 4) if dice.chance(0.2) else ()
    return Rule(verbs, (dice.one((RBAC, RBAC, RBAC, "*")),), resources, names)


def _impersonator(dice: Dice) -> Rule:
    resource, group, names = dice.one((
        ("users", "", ("@ann", "@bob", "system:anonymous", "@nobody")),
        ("users", "", ()),
        ("groups", "", ("@team", "system:masters", "system:authenticated")),
        ("serviceaccounts", "", ("robot", "nosuch", "default")),
        ("uids", "authentication.k8s.io", ("u1",)),
        ("userextras/scopes", "authentication.k8s.io", ("s1", "s2")),
        ("userextras/example.org/k", "authentication.k8s.io", ()),
        ("userextras", "authentication.k8s.io", ()),
        ("*", "*", ()),
        ("*", "", ()),
    ))  # fmt: skip
    resources, groups = [resource], [group]
    if dice.chance(0.5):  # most requests name several things
        resources, groups = list(dict.fromkeys(["users", resource])), list(dict.fromkeys(["", group]))
        names = (*names, "@ann") if names else ()
    return Rule((dice.one(("impersonate", "impersonate", "impersonate", "*")),), tuple(groups), tuple(resources),
                dice.some(names, 4) if names and dice.chance(0.6) else ())  # fmt: skip
