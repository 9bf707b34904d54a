"""Who may do what: the rules in the store put to every request, and the reviews that ask about them.

`Authorizer` keeps an `RbacIndex` level with the store: it is called with every commit before the writer gets an answer,
so a role that was granted or taken away counts from the next request on.
"""

from __future__ import annotations

import logging
from typing import Any, Protocol

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import Headers, Impersonation, User, impersonation_of
from paddlecloud.local.apiserver.auth.bootstrap_roles import bootstrap_objects
from paddlecloud.local.apiserver.auth.rbac import GROUP, Attributes, Decision, RbacIndex, Rule
from paddlecloud.local.store.log import Op
from paddlecloud.local.store.record import Record
from paddlecloud.local.store.store import Store
from paddlecloud.local.store.watch import Change

__all__ = ["Attributes", "Authorizer", "Authorizes", "Decision", "bootstrap_objects", "forbidden", "impersonate"]

log = logging.getLogger(__name__)

_COLLECTIONS = frozenset(
    f"{GROUP}/{plural}" for plural in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
)


class Authorizes(Protocol):
    def allowed(self, user: User, wanted: Attributes) -> Decision: ...


class Authorizer:
    def __init__(self, store: Store) -> None:
        self.index = RbacIndex()
        self.allowed = self.index.allowed
        for collection in _COLLECTIONS:
            for record in store.list(collection):
                self._take(record)
        store.subscribe(self._on_change)

    def rules_for(self, user: User, namespace: str) -> list[Rule]:
        return self.index.rules_for(user, namespace)

    def _on_change(self, change: Change) -> None:
        if change.record.address.collection not in _COLLECTIONS:
            return
        if change.op is Op.DELETE:
            self.index.delete(change.record.object)
        else:
            self._take(change.record)

    def _take(self, record: Record) -> None:
        obj = record.object
        try:
            self.index.upsert(obj)
        except (AttributeError, TypeError, ValueError, errors.ApiError):
            # Validation keeps such objects out; should one be there all the same it grants nothing.
            log.warning("%s is not understood and grants nothing", record.address.key())
            self.index.delete(obj)


def forbidden(user: User, wanted: Attributes, reason: str = "") -> errors.Forbidden:
    """The refusal in the words of Kubernetes."""
    tail = f": {reason}" if reason else ""
    if not wanted.resource:
        return errors.Forbidden(f'forbidden: User "{user.name}" cannot {wanted.verb} path "{wanted.path}"{tail}')
    resource = f"{wanted.resource}/{wanted.subresource}" if wanted.subresource else wanted.resource
    full = f"{wanted.resource}.{wanted.group}" if wanted.group else wanted.resource
    what = f'{full} "{wanted.name}"' if wanted.name else full
    scope = f'in the namespace "{wanted.namespace}"' if wanted.namespace else "at the cluster scope"
    return errors.Forbidden(
        f'{what} is forbidden: User "{user.name}" cannot {wanted.verb} resource "{resource}" '
        f'in API group "{wanted.group}" {scope}{tail}',
        details=errors.describe(wanted.name, wanted.group, wanted.resource),
    )


# --- impersonation ---


def impersonate(authorizer: Authorizes, user: User, headers: Headers) -> User:
    """The user a request is authorised as: its sender, or the one it impersonates if the sender may."""
    wanted = impersonation_of(headers)
    if wanted is None:
        return user
    for attributes in _impersonation_attributes(wanted):
        decision = authorizer.allowed(user, attributes)
        if not decision.allowed:
            raise forbidden(user, attributes, decision.reason)
    return wanted.user()


def _impersonation_attributes(wanted: Impersonation) -> list[Attributes]:
    account = wanted.account
    if account:
        namespace, name = account
        checks = [Attributes("impersonate", resource="serviceaccounts", namespace=namespace, name=name)]
    else:
        checks = [Attributes("impersonate", resource="users", name=wanted.name)]
    checks += [Attributes("impersonate", resource="groups", name=group) for group in wanted.groups]
    group = "authentication.k8s.io"
    if wanted.uid:
        checks.append(Attributes("impersonate", group, "uids", name=wanted.uid))
    checks += [
        Attributes("impersonate", group, "userextras", key, name=value)
        for key, values in wanted.extra.items()
        for value in values
    ]
    return checks


# --- reviews: each takes the object that was posted and returns it with its status ---


def self_subject_access_review(authorizer: Authorizes, user: User, review: Object) -> Object:
    """`kubectl auth can-i`."""
    return _reviewed(authorizer, user, review)


def subject_access_review(authorizer: Authorizes, review: Object) -> Object:
    """What somebody else may do."""
    return _reviewed(authorizer, _subject(review), review)


def local_subject_access_review(authorizer: Authorizes, review: Object, *, namespace: str) -> Object:
    """What somebody else may do in the namespace the review was posted to, and no other."""
    asked = ((review.get("spec") or {}).get("resourceAttributes") or {}).get("namespace") or ""
    if asked != namespace:
        message = f'Invalid value: "{asked}": must match metadata.namespace'
        causes = [("spec.resourceAttributes.namespace", "FieldValueInvalid", message)]
        raise errors.invalid(_kind(review), "", causes, group="authorization.k8s.io")
    return _reviewed(authorizer, _subject(review), review)


def self_subject_rules_review(authorizer: Authorizer, user: User, review: Object) -> Object:
    """`kubectl auth can-i --list`."""
    namespace = (review.get("spec") or {}).get("namespace") or ""
    if not isinstance(namespace, str) or not namespace:
        raise errors.BadRequest("no namespace on request")
    rules = authorizer.rules_for(user, namespace)
    resource_rules = [rule.body() for rule in rules if rule.resources]
    url_rules = [{key: body[key] for key in ("verbs", "nonResourceURLs")} for body in _bodies_with_urls(rules)]
    status = {"resourceRules": resource_rules, "nonResourceRules": url_rules, "incomplete": False}
    return {**review, "status": status}


def _bodies_with_urls(rules: list[Rule]) -> list[Object]:
    return [rule.body() for rule in rules if rule.urls and rule.verbs]


def _reviewed(authorizer: Authorizes, user: User, review: Object) -> Object:
    decision = authorizer.allowed(user, review_attributes(review))
    status: Object = {"allowed": decision.allowed}
    if decision.reason:
        status["reason"] = decision.reason
    return {**review, "status": status}


def review_attributes(review: Object) -> Attributes:
    """What an access review asks about."""
    spec = review.get("spec") or {}
    resource, path = spec.get("resourceAttributes"), spec.get("nonResourceAttributes")
    if (resource is None) is (path is None):
        message = "Invalid value: exactly one of nonResourceAttributes or resourceAttributes must be specified"
        causes = [("spec.resourceAttributes", "FieldValueInvalid", message)]
        raise errors.invalid(_kind(review), "", causes, group="authorization.k8s.io")
    fields = resource if path is None else path
    if not isinstance(fields, dict):
        raise errors.BadRequest("the attributes of a review must be an object")
    if path is not None:
        return Attributes(_text(fields, "verb"), path=_text(fields, "path"))
    names = ("verb", "group", "resource", "subresource", "namespace", "name")
    return Attributes(*(_text(fields, name) for name in names))


def _text(fields: dict[str, Any], name: str) -> str:
    value = fields.get(name) or ""
    if not isinstance(value, str):
        raise errors.BadRequest(f"the attribute {name} of a review must be a string")
    return value


def _subject(review: Object) -> User:
    spec = review.get("spec") or {}
    name, groups = spec.get("user") or "", spec.get("groups") or []
    if not isinstance(name, str) or not isinstance(groups, list) or not all(isinstance(g, str) for g in groups):
        raise errors.BadRequest("user must be a string and groups a list of strings")
    if not name and not groups:
        message = "Invalid value: at least one of user or group must be specified"
        causes = [("spec.user", "FieldValueInvalid", message)]
        raise errors.invalid(_kind(review), "", causes, group="authorization.k8s.io")
    return User(name, str(spec.get("uid") or ""), tuple(groups))


def _kind(review: Object) -> str:
    return str(review.get("kind") or "SubjectAccessReview")
