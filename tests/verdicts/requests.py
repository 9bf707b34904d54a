"""What actors of a generated world ask for.

Half of the requests begin with a rule that the actor holds and change little of it, so that verdicts lie close to the
edge of what is granted; the rest is drawn freely. Writes are dry runs but for a few.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from .dice import Dice
from .grants import NAMES, URLS, VERBS
from .kinds import BY_PLURAL, CLUSTER, KINDS, NAMESPACED, REVIEWS, Kind
from .model import ACTORS, ADMIN, CUSTOM, NOBODY, OTHER, RBAC, ROBOT, Actor, Case, Grant, Rule

DRY = ("dryRun", "All")
PATCHES: dict[str, Any] = {
    "merge-patch+json": {"metadata": {"labels": {"x": "1"}}},
    "strategic-merge-patch+json": {"metadata": {"labels": {"x": "1"}}},
    "json-patch+json": [{"op": "add", "path": "/metadata/labels", "value": {"x": "1"}}],
}
METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "HEAD", "OPTIONS")
NAMESPACES = ("@a", "@a", "@b", "")
REALLY_CHANGED = ("configmaps", "secrets", "leases", "widgets")
"""Kinds whose objects nobody else touches: what a request changed is seen by the ones after it, on both servers."""

_AUTHENTICATION = "/apis/authentication.k8s.io/v1"
_AUTHORIZATION = "/apis/authorization.k8s.io/v1"


def case(dice: Dice, held: Sequence[Grant]) -> Case:
    draw = dice.below(100)
    for share, make in _FAMILIES:
        if draw < share:
            return make(dice, _actor(dice, held), held)
        draw -= share
    raise AssertionError("the shares add up to less than a hundred")


def _actor(dice: Dice, held: Sequence[Grant]) -> Actor:
    """Mostly one of those who hold something."""
    grant = dice.one(held)
    holders = [actor for actor in ACTORS if _holds(actor, grant)]
    return dice.one(holders if holders and dice.chance(0.8) else ACTORS)


def _holds(actor: Actor, grant: Grant) -> bool:
    groups = {*actor.groups, "system:authenticated"}
    if actor.namespace:
        groups |= {"system:serviceaccounts", f"system:serviceaccounts:{actor.namespace}"}
    return any(
        name in groups if kind == "Group" else (namespace, name) == (actor.namespace, actor.name)
        for kind, namespace, name in grant.subjects
    )


# --- objects ---


def _on_objects(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    verb, kind, namespace, name, sub = _wanted(dice, actor, held)
    if not kind.namespaced and dice.chance(0.95):
        namespace = ""
    return _request(dice, actor, verb, kind, namespace, name, sub)


def _wanted(dice: Dice, actor: Actor, held: Sequence[Grant]) -> tuple[str, Kind, str, str, str]:
    """Verb, kind, namespace, name and subresource."""
    kind = dice.one(KINDS)
    verb, namespace, name, sub = dice.one(VERBS), dice.one(NAMESPACES), dice.one(NAMES), ""
    if kind.subresources and dice.chance(0.3):
        sub = dice.one(kind.subresources)
    mine = [(grant, rule) for grant in held if _holds(actor, grant) for rule in grant.rules if rule.resources]
    if not mine or dice.chance(0.15):
        return verb, kind, namespace, name, sub
    grant, rule = dice.one(mine)
    plural, _, wanted_sub = dice.one(rule.resources).partition("/")
    if plural in BY_PLURAL:
        kind = BY_PLURAL[plural]
    elif rule.groups != ("*",):
        kind = dice.one([each for each in KINDS if each.group in rule.groups] or KINDS)
    sub = wanted_sub if "*" not in wanted_sub else dice.one(kind.subresources or ("status",))
    granted = [each for each in rule.verbs if each in VERBS]
    if granted and dice.chance(0.8):
        verb = dice.one(granted)
    if rule.names and dice.chance(0.7):
        name = dice.one(rule.names)
    if grant.where and dice.chance(0.85):
        namespace = grant.where
    return verb, kind, namespace, name, sub


def _request(dice: Dice, actor: Actor, verb: str, kind: Kind, namespace: str, name: str, sub: str) -> Case:
    if kind.namespaced is False and kind.plural == "namespaces":
        name = dice.one(("@a", "@b", "@a", name))
    elif not kind.namespaced and name in ("one", "two"):
        name = f"@{name}"
    elif kind.namespaced and name == "@one":
        name = "one"
    if sub:
        return _on_subresource(dice, actor, verb, kind, namespace, name, sub)
    if kind.fields is None and verb == "update":
        verb = "delete"  # what an incomplete object is refused for first differs
    if verb in ("list", "watch", "deletecollection"):
        return _on_collection(dice, actor, verb, kind, namespace, name)
    if verb == "create":
        path = kind.path(namespace) if dice.chance(0.97) else kind.path(namespace, name)
        named = "made" if kind.namespaced else "@made"
        body = kind.object(name if dice.chance(0.3) else named)
        return _write(dice, Case(actor, "POST", path, (DRY,), body=body), kind)
    path = kind.path(namespace, name) if dice.chance(0.98) else kind.path(namespace)
    if verb == "get":
        return Case(actor, "HEAD" if dice.chance(0.04) else "GET", path)
    if verb == "delete":
        return _write(dice, Case(actor, "DELETE", path, (DRY,)), kind)
    if verb == "update":
        body = kind.object(name, labels={"x": "1"})
        return _write(dice, Case(actor, "PUT", path, (DRY,), body=body, live=True), kind)
    if kind.fields is not None and dice.chance(0.4):
        query = (DRY, ("fieldManager", "me"), ("force", "true"))
        body = kind.object(name)
        return _write(dice, Case(actor, "PATCH", path, query, (), "application/apply-patch+yaml", body), kind)
    form = dice.one(tuple(PATCHES))
    return _write(dice, Case(actor, "PATCH", path, (DRY,), (), f"application/{form}", PATCHES[form]), kind)


def _write(dice: Dice, made: Case, kind: Kind) -> Case:
    if kind.plural in REALLY_CHANGED and "/namespaces/" in made.path and dice.chance(0.25):
        return replace(made, query=tuple(each for each in made.query if each != DRY))
    return made


def _on_collection(dice: Dice, actor: Actor, verb: str, kind: Kind, namespace: str, name: str) -> Case:
    query: list[tuple[str, str]] = []
    if dice.chance(0.4):
        query.append(("fieldSelector", dice.one((
            f"metadata.name={name}", f"metadata.name=={name}", f"metadata.name!={name}", "metadata.name=",
            f"metadata.namespace=@a,metadata.name={name}", "metadata.namespace=@a", f"metadata.name={name},",
            f"metadata.name={name},metadata.name=two", "metadata.name=a/b", "metadata.name", "spec.nosuch=1",
        ))))  # fmt: skip
    if dice.chance(0.1):
        query.append(("labelSelector", dice.one(("x=1", "x", "!x", "x in (1", "app notin (a,b)"))))
    if verb == "deletecollection":
        return _write(dice, Case(actor, "DELETE", kind.path(namespace), (*query, DRY)), kind)
    if verb == "watch":
        value = dice.one(("1", "true", "1", "true", "True", "t", "0", "false", "", "no"))
        return Case(actor, "GET", kind.path(namespace), (("watch", value), ("timeoutSeconds", "1"), *query))
    if dice.chance(0.1):
        query.append(dice.one((("limit", "1"), ("limit", "x"), ("continue", "bm9uZQ"), ("resourceVersion", "0"))))
    pages = bool(namespace) and not query and dice.chance(0.3)
    return Case(actor, "GET", kind.path(namespace), tuple(query), pages=pages)


def _on_subresource(dice: Dice, actor: Actor, verb: str, kind: Kind, namespace: str, name: str, sub: str) -> Case:
    if dice.chance(0.04):
        sub = dice.one(("nosuch", "status", "scale", "finalize"))
    path = kind.path(namespace, name, sub)
    created = {
        "eviction": {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name}},
        "binding": {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name},
                    "target": {"kind": "Node", "name": "@nowhere"}},
        "token": {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}},
    }  # fmt: skip
    if verb == "create" or (sub in created and dice.chance(0.6)):
        return Case(actor, "POST", path, (DRY,), body=created.get(sub, {}))
    if verb == "update":
        shown = ("autoscaling/v1", "Scale") if sub == "scale" else (kind.api_version, kind.kind)
        body = {"apiVersion": shown[0], "kind": shown[1], "metadata": {"name": name, "labels": {"x": "1"}}}
        return Case(actor, "PUT", path, (DRY,), body=body, live=True)
    if verb == "patch":
        form = dice.one(("merge-patch+json", "merge-patch+json", "strategic-merge-patch+json", "json-patch+json"))
        return Case(actor, "PATCH", path, (DRY,), (), f"application/{form}", PATCHES[form])
    if verb in ("delete", "deletecollection"):
        return Case(actor, "DELETE", path, (DRY,))
    return Case(actor, "GET", path)


# --- roles and bindings ---


def _on_roles(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    """Writes that give something away: more than the actor has, or not."""
    kind = BY_PLURAL[
        dice.one(("roles", "roles", "clusterroles", "rolebindings", "rolebindings", "clusterrolebindings"))
    ]
    keepers = [each for each in held if each.rules and RBAC in (*each.rules[0].groups, RBAC) and _holds(actor, each)]
    namespace = ""
    if kind.namespaced:
        namespace = dice.one([each.where for each in keepers if each.where] or ["@a", "@b"])
    if "bindings" in kind.plural:
        fields = _binding_fields(dice, held)
    elif kind.plural == "clusterroles" and dice.chance(0.15):
        fields = {"aggregationRule": {"clusterRoleSelectors": dice.one(([{"matchLabels": {"x": "1"}}], []))}}
    else:
        fields = _role_fields(dice, actor, held)
    own = "one" if kind.namespaced else "@one"
    name = dice.one((own, own, "made" if kind.namespaced else "@made"))
    if dice.chance(0.35):
        fields = {}
    meta = _role_metadata(dice)
    body = {**kind.object(name), **fields, "metadata": {"name": name, **meta}}
    form = dice.below(4)
    if form == 0:
        return Case(actor, "POST", kind.path(namespace), (DRY,), body=body)
    path = kind.path(namespace, name)
    if form == 1:
        return Case(actor, "PUT", path, (DRY,), body=body, live=True)
    if form == 2:
        query = (DRY, ("fieldManager", "me"), ("force", "true"))
        return Case(actor, "PATCH", path, query, (), "application/apply-patch+yaml", body)
    patch = {**fields, "metadata": meta}
    return Case(actor, "PATCH", path, (DRY,), (), "application/merge-patch+json", patch)


def _role_metadata(dice: Dice) -> dict[str, Any]:
    return dice.one((
        {}, {}, {},
        {"labels": {"x": "1"}},
        {"labels": {"rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        {"annotations": {"x": "1"}},
        {"finalizers": ["example.org/wait"]},
        {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "one", "uid": "1"}]},
    ))  # fmt: skip


def _role_fields(dice: Dice, actor: Actor, held: Sequence[Grant]) -> dict[str, Any]:
    rules = [rule for grant in held if _holds(actor, grant) or dice.chance(0.15) for rule in grant.rules]
    wanted = [_altered(dice, dice.one(rules)) if rules else Rule(("get",), ("",), ("pods",)) for _ in range(2)]
    return {"rules": [rule.body() for rule in wanted[: 1 + dice.below(2)]]}


def _altered(dice: Dice, rule: Rule) -> Rule:
    """Often less than the rule, at times a little more."""
    if rule.urls:
        return rule if dice.chance(0.7) else replace(rule, urls=(dice.one(URLS),))
    change = dice.below(10)
    if change == 0:
        return replace(rule, verbs=(*rule.verbs, dice.one(VERBS)))
    if change == 1:
        return replace(rule, names=())
    if change == 2:
        return replace(rule, names=(dice.one(rule.names or NAMES),))
    if change == 3:
        return replace(rule, groups=(dice.one((*rule.groups, "*", "")),))
    if change == 4:
        return replace(rule, resources=(dice.one((*rule.resources, "*", "*/scale", "pods/log")),))
    if change == 5:
        return replace(rule, verbs=(dice.one(rule.verbs if rule.verbs != ("*",) else VERBS),))
    return rule


def _binding_fields(dice: Dice, held: Sequence[Grant]) -> dict[str, Any]:
    number = dice.below(len(held))
    own = {"kind": "ClusterRole", "name": f"@g{number}"} if held[number].cluster_role else {
        "kind": "Role", "name": f"g{number}"}  # fmt: skip
    reference = dice.one((
        own, own, own,
        {"kind": "ClusterRole", "name": dice.one(("view", "cluster-admin", "@one", "nosuch", "system:basic-user"))},
        {"kind": "Role", "name": dice.one(("one", "nosuch"))},
    ))  # fmt: skip
    subjects = [{"kind": "User", "apiGroup": RBAC, "name": "@eve"}] if dice.chance(0.8) else []
    return {"roleRef": {"apiGroup": RBAC, **reference}, "subjects": subjects}


# --- impersonation ---


def _impersonating(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    actor = dice.one((ROBOT, OTHER))
    users = ("@ann", "@ann", "@bob", "@nobody", "system:serviceaccount:@a:robot", "system:serviceaccount:@b:nosuch",
             "system:serviceaccount:@a", "system:serviceaccount:@a:robot:x", "system:anonymous")  # fmt: skip
    headers: list[tuple[str, str]] = []
    if dice.chance(0.93):
        headers.append(("Impersonate-User", dice.one(users)))
    for _ in range(dice.one((0, 0, 0, 1, 1, 2))):
        groups = ("@team", "@night", "system:masters", "system:authenticated", "system:unauthenticated")
        headers.append(("Impersonate-Group", dice.one(groups)))
    if dice.chance(0.15):
        headers.append(("Impersonate-Uid", dice.one(("u1", "u2"))))
    for _ in range(dice.one((0, 0, 0, 0, 1, 2))):
        key = dice.one(("scopes", "Scopes", "example.org%2fk", "example.org%2Fk", "bad%zz"))
        headers.append((f"Impersonate-Extra-{key}", dice.one(("s1", "s2", "s3"))))
    if dice.chance(0.5):
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
        return Case(actor, "POST", f"{_AUTHENTICATION}/selfsubjectreviews", headers=tuple(headers), body=body)
    return replace(_on_objects(dice, actor, held), headers=tuple(headers))


# --- reviews ---


def _reviewing(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    if dice.chance(0.3):
        actor = ADMIN
    plural = dice.one(tuple(REVIEWS))
    namespace = dice.one(("@a", "@b")) if plural.startswith("local") else ""
    path = f"{_AUTHORIZATION}/namespaces/{namespace}/{plural}" if namespace else f"{_AUTHORIZATION}/{plural}"
    spec: dict[str, Any] = {}
    subject = dice.one(ACTORS)
    if plural == "selfsubjectrulesreviews":
        spec = {"namespace": dice.one(("@a", "@b", "@a", "@b", "default", ""))}
    else:
        if not plural.startswith("self"):
            spec = dice.one((
                {"user": subject.user, "groups": [*subject.groups, "system:authenticated"]},
                {"user": subject.user}, {"groups": ["@team"]}, {"user": "@nobody", "groups": ["system:masters"]}, {},
            ))  # fmt: skip
        spec.update(_asked(dice, actor if plural.startswith("self") else subject, held, namespace))
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": REVIEWS[plural], "spec": spec}
    return Case(actor, "POST", path, body=body)


def _asked(dice: Dice, subject: Actor, held: Sequence[Grant], namespace: str) -> dict[str, Any]:
    if dice.chance(0.15):
        return {"nonResourceAttributes": {"verb": dice.one(("get", "post", "*")), "path": dice.one(URLS)}}
    verb, kind, where, name, sub = _wanted(dice, subject, held)
    attributes = {"verb": dice.one((verb, verb, verb, "*", "escalate", "impersonate")), "group": kind.group,
                  "resource": dice.one((kind.plural, kind.plural, kind.plural, "*")), "subresource": sub,
                  "namespace": namespace if namespace and dice.chance(0.8) else where}  # fmt: skip
    if dice.chance(0.6):
        attributes["name"] = name
    if dice.chance(0.1):
        attributes["version"] = "v7"
    if dice.chance(0.05):
        attributes["group"] = "*"
    asked: dict[str, Any] = {"resourceAttributes": attributes}
    return {**asked, "nonResourceAttributes": {"verb": "get", "path": "/"}} if dice.chance(0.03) else asked


# --- paths ---


def _on_urls(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    path = dice.one((
        "/healthz", "/healthz/", "/healthz/ping", "/livez", "/readyz", "/readyz/ping", "/version", "/version/",
        "/metrics", "/api", "/api/", "/api/v1", "/api/v1/", "/apis", "/apis/", "/apis/apps", "/apis/apps/v1",
        "/apis/nosuch", f"/apis/{CUSTOM}", f"/apis/{CUSTOM}/v1", "/openapi/v2", "/openapi/v3", "/openapi/v3/api/v1",
        "/nowhere", "/no", "/", "/logs", "/debug/pprof", "/.well-known/openid-configuration", "/openid/v1/jwks",
        "/api/v2", "/healthz/nosuch",
    ))  # fmt: skip
    return Case(dice.one((actor, actor, actor, ADMIN, NOBODY)), dice.one(("GET", "GET", "GET", *METHODS)), path)


def _on_odd_paths(dice: Dice, actor: Actor, held: Sequence[Grant]) -> Case:
    actor = dice.one((actor, actor, actor, ADMIN, ADMIN, NOBODY))
    kind, cluster = dice.one(NAMESPACED), dice.one(CLUSTER)
    name = dice.one(("one", "absent"))
    plain = kind.path("@a", name)
    sub = dice.one(kind.subresources or ("status",))
    path = dice.one((
        cluster.path("@a"), cluster.path("@a", "@one"), cluster.path("@a", "@b"), cluster.path("@a", "@one", "status"),
        f"/api/v1/namespaces/@a/namespaces/{dice.one(('@a', '@b', 'default'))}",
        "/api/v1/namespaces/@a/namespaces", "/api/v1/namespaces/@a/status", "/api/v1/namespaces/@a/finalize",
        "/api/v1/namespaces/@a/status/x", "/api/v1/namespaces/@a/finalize/x", "/api/v1/namespaces/@a/nosuch",
        f"{kind.base}/namespaces", f"{kind.base}/namespaces/@a", f"{kind.base}/namespaces/@a/status",
        f"{kind.base}/watch/namespaces/@a/{kind.plural}", f"{kind.base}/watch/namespaces/@a/{kind.plural}/one",
        f"{kind.base}/watch/{kind.plural}", f"{cluster.base}/watch/{cluster.plural}", f"{kind.base}/watch",
        f"{cluster.base}/watch/{cluster.plural}/@one", f"{kind.base}/proxy/namespaces/@a/{kind.plural}/one",
        f"{kind.base}/proxy/{cluster.plural}/@one/{sub}", "/api/v1/watch/namespaces", "/api/v1/watch/namespaces/@a",
        f"{plain}/", f"{plain}//", f"{plain}/{sub}/", f"{plain}/{sub}/more", f"{plain}/{sub}/more/and/more",
        f"{kind.path('@a')}/", f"/{plain}", plain.replace("/@a/", "//@a/"), plain.replace("/@a/", "//"),
        plain.replace("/@a/", "/./"), plain.replace("/@a/", "/@a/../@b/"), plain.replace("/@a/", "/%40a/"),
        plain.replace("/@a/", "/@b%2f..%2f@a/"), plain.replace("one", "%6fne"), plain.replace("one", "o%20ne"),
        plain.replace("/@a/", "/@a%2F"), plain.upper().replace("@A", "@a"), plain.replace("/v1/", "/v2/"),
        kind.path("@a", ".."), kind.path("@a", "."), kind.path("@a", "a%2fb"), kind.path("@a", "%00"),
        kind.path("@a", "x" * 300), kind.path("@nosuch", "one"), kind.path("@nosuch"), kind.path("A_B", "one"),
        f"{kind.base}/{kind.plural}/one", f"{kind.base}/{kind.plural}/one/{sub}", f"{kind.base}/nosuch/one",
        f"/apis/nosuch.example.org/v1/namespaces/@a/{kind.plural}", f"/apis//v1/namespaces/@a/{kind.plural}",
        f"/api/{kind.plural}", f"/api/v1/namespaces/@a/{kind.plural}/one/{sub}", "/api/v1/@a/pods/one",
    ))  # fmt: skip
    method = dice.one(("GET", "GET", "GET", *METHODS))
    query: tuple[tuple[str, str], ...] = ()
    if method in ("POST", "PUT", "PATCH", "DELETE"):
        query = (DRY,)
    elif method == "GET" and (dice.chance(0.1) or "/watch" in path):
        query = (("watch", "1"), ("timeoutSeconds", "1"))
    body = kind.object(name) if method in ("POST", "PUT") else PATCHES["merge-patch+json"]
    content = "application/merge-patch+json" if method == "PATCH" else "application/json"
    return Case(actor, method, path, query, (), content, body if method in ("POST", "PUT", "PATCH") else None)


_FAMILIES: tuple[tuple[int, Callable[[Dice, Actor, Sequence[Grant]], Case]], ...] = (
    (52, _on_objects),
    (16, _on_roles),
    (10, _impersonating),
    (8, _reviewing),
    (6, _on_urls),
    (8, _on_odd_paths),
)
"""Shares of a hundred."""
