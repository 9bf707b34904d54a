"""What a caller may do (SelfSubjectAccessReview), and who the API server takes the caller for (SelfSubjectReview).

Both are asked with the caller's own credentials.
"""

from __future__ import annotations

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import SELFSUBJECTACCESSREVIEWS, SELFSUBJECTREVIEWS, Object, Resource

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


async def user_name(client: Client) -> str:
    """Empty where the answer has none. API servers before Kubernetes 1.28 do not serve the question: `NotFound`."""
    question = {"apiVersion": SELFSUBJECTREVIEWS.api_version, "kind": SELFSUBJECTREVIEWS.kind}
    answer = await client.create(SELFSUBJECTREVIEWS, question)
    return str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
