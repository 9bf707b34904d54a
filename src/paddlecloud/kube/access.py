"""What a caller may do, asked of the API server with the caller's own credentials (SelfSubjectAccessReview)."""

from __future__ import annotations

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import SELFSUBJECTACCESSREVIEWS, Object, Resource

EVERYWHERE = ""
"""As namespace: in all of them."""


def review(verb: str, resource: Resource, namespace: str = EVERYWHERE, name: str = "") -> Object:
    """The question as an object; `is_allowed` reads the answer."""
    attributes = {"verb": verb, "group": resource.group, "resource": resource.plural}
    attributes |= {"namespace": namespace} if namespace else {}
    attributes |= {"name": name} if name else {}
    return {
        "apiVersion": SELFSUBJECTACCESSREVIEWS.api_version,
        "kind": SELFSUBJECTACCESSREVIEWS.kind,
        "spec": {"resourceAttributes": attributes},
    }


def is_allowed(answer: Object) -> bool:
    return (answer.get("status") or {}).get("allowed") is True


async def may(client: Client, verb: str, resource: Resource, namespace: str = EVERYWHERE, name: str = "") -> bool:
    return is_allowed(await client.create(SELFSUBJECTACCESSREVIEWS, review(verb, resource, namespace, name)))
