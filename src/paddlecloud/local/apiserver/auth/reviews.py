"""Kinds that are answered rather than stored: access reviews, token reviews, and tokens for service accounts."""

from __future__ import annotations

from collections.abc import Callable

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.auth import authorization
from paddlecloud.local.apiserver.auth.authentication import Authenticator, self_subject_review, token_review
from paddlecloud.local.apiserver.auth.authorization import Authorizer
from paddlecloud.local.apiserver.auth.tokens import Lookup, TokenIssuer, token_request
from paddlecloud.local.apiserver.http import negotiation
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo

Ask = Callable[[Request, RequestInfo, Object], Object]

AccountOfPod = Callable[[str, str], str | None]
"""The name of the ServiceAccount that a pod (namespace, name) runs as."""

AUTHN, AUTHZ = "authentication.k8s.io", "authorization.k8s.io"


def handlers(
    verbs: Verbs,
    authorizer: Authorizer,
    authenticator: Authenticator,
    issuer: TokenIssuer,
    lookup: Lookup,
    account_of_pod: AccountOfPod,
) -> dict[tuple[str, str, str], Handler]:
    """By (group, resource, subresource), as `Extensions` wants them."""
    asked: dict[tuple[str, str], Ask] = {
        (AUTHZ, "selfsubjectaccessreviews"): lambda request, _, body: authorization.self_subject_access_review(
            authorizer, request.user, body
        ),
        (AUTHZ, "subjectaccessreviews"): lambda _, __, body: authorization.subject_access_review(authorizer, body),
        (AUTHZ, "localsubjectaccessreviews"): lambda _, info, body: authorization.local_subject_access_review(
            authorizer, body, namespace=info.namespace
        ),
        (AUTHZ, "selfsubjectrulesreviews"): lambda request, _, body: authorization.self_subject_rules_review(
            authorizer, request.user, body
        ),
        (AUTHN, "selfsubjectreviews"): lambda request, _, __: self_subject_review(request.user),
        (AUTHN, "tokenreviews"): lambda _, __, body: token_review(authenticator, body, audiences=issuer.audiences),
    }
    found: dict[tuple[str, str, str], Handler] = {(*key, ""): _create_only(ask) for key, ask in asked.items()}
    found["", "serviceaccounts", "token"] = _service_account_token(verbs, issuer, lookup, account_of_pod)
    return found


def _create_only(ask: Ask) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create" or info.name:
            raise errors.MethodNotAllowed(f"{info.resource} can only be created")
        body = negotiation.read_small(request.body, request.header("content-type"))
        _check_type(body, kind.resource.api_version, kind.kind)
        return Response(status=201, body=negotiation.encode(ask(request, info, body)))

    return handle


def _check_pod(body: Object, info: RequestInfo, account_of_pod: AccountOfPod) -> None:
    """A token that names a pod is taken for that pod's own: it must be of the account that the pod runs as."""
    bound = (body.get("spec") or {}).get("boundObjectRef") or {}
    if bound.get("kind") == "Pod" and account_of_pod(info.namespace, str(bound.get("name"))) != info.name:
        raise errors.BadRequest(
            f'cannot bind token for serviceaccount "{info.name}" to pod running with different serviceaccount name.'
        )


def _check_type(body: Object, api_version: str, kind: str) -> None:
    """What the body leaves out is left to the URL; it must not say something else."""
    given = body.setdefault("apiVersion", api_version), body.setdefault("kind", kind)
    if given != (api_version, kind):
        raise errors.BadRequest(f"the object provided is a {given[1]} of {given[0]}, not a {kind} of {api_version}")


def _service_account_token(verbs: Verbs, issuer: TokenIssuer, lookup: Lookup, account_of_pod: AccountOfPod) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on serviceaccounts/token")
        body = negotiation.read_small(request.body, request.header("content-type")) if request.body else {}
        _check_type(body, f"{AUTHN}/v1", "TokenRequest")
        account = verbs.get(kind, info.namespace, info.name).object
        answer = token_request(issuer, account, body, lookup=lookup)
        _check_pod(body, info, account_of_pod)
        return Response(status=201, body=negotiation.encode(answer))

    return handle
