"""From a RequestInfo to the kind that serves it: which paths exist, as the routes of kube-apiserver have it.

Authorisation has judged the same RequestInfo. What the path of a kind may look like is checked after it and before any
handler: a cluster-scoped kind is never served below a namespace, so a Role of that namespace never reaches it.
"""

from __future__ import annotations

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.http.request import RequestInfo, no_route
from paddlecloud.local.apiserver.registry import KindInfo, Registry

_READ_WRITE = ("get", "update", "patch")
SUBRESOURCE_VERBS = {"status": _READ_WRITE, "ephemeralcontainers": _READ_WRITE, "finalize": ("update",)}
"""Of those that are part of the stored object and have no handler of their own."""
NAMED_VERBS = ("update", "patch")
"""Verbs of single objects: whole collections are neither replaced nor patched."""

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
"""Of HTTP. HEAD and OPTIONS are authorised, and then served by no route but those of proxies."""
PROXIED_METHODS = (*METHODS, "HEAD", "OPTIONS")

ACROSS_NAMESPACES = ("list", "watch")
"""What a namespaced kind offers without a namespace in the path."""


def find_kind(registry: Registry, info: RequestInfo) -> KindInfo:
    """The kind a request is for. Raises NotFound or MethodNotAllowed where Kubernetes has no route."""
    kind = registry.find(info.group, info.version, info.resource) if info.routable else None
    if kind is None:
        raise no_route()
    if kind.resource.namespaced:
        _check_across_namespaces(info, kind)
    elif info.namespace and (info.group, info.resource) != ("", "namespaces"):
        raise no_route()
    return kind


def check_subresource(info: RequestInfo, kind: KindInfo) -> None:
    """Refuse those that the kind does not have; for ones without their own handler, which are served as well."""
    if info.subresource and info.subresource not in kind.subresources:
        raise no_route()


def _check_across_namespaces(info: RequestInfo, kind: KindInfo) -> None:
    if info.namespace or info.verb in ACROSS_NAMESPACES:
        return
    # The collection of a built-in kind is a route with other methods; the handler of custom kinds knows no such path.
    if not info.name and "list" in kind.verbs and not kind.custom:
        raise errors.MethodNotAllowed(
            f"{info.verb} of {info.resource} needs a namespace: only list and watch go across namespaces"
        )
    raise no_route()


def check_method(method: str, info: RequestInfo) -> None:
    """Refuse methods that no kind takes, and watches in the path (/watch/…) with another than GET."""
    served = PROXIED_METHODS if info.subresource == "proxy" else METHODS
    if method not in served or (info.verb == "watch" and method != "GET"):
        raise errors.MethodNotAllowed(f"{method} is not supported on {info.resource}")


def check_verb(info: RequestInfo, kind: KindInfo) -> None:
    """Refuse what a kind of stored objects does not offer. Subresources with their own handler are not asked."""
    if info.subresource and info.subresource not in SUBRESOURCE_VERBS:
        raise errors.MethodNotAllowed(f"{info.resource}/{info.subresource} is not served by this platform")
    if info.subresource:
        misplaced = info.verb not in SUBRESOURCE_VERBS[info.subresource]
    else:
        misplaced = not info.name and info.verb in NAMED_VERBS
    if info.verb not in kind.verbs or misplaced:
        raise errors.MethodNotAllowed(f"{info.verb} is not supported on {info.resource}")
