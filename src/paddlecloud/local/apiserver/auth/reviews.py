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
from paddlecloud.local.apiserver.http.responses import partial_metadata
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo

Ask = Callable[[Request, RequestInfo, Object], Object]

SpecOfPod = Callable[[str, str], Object]
"""The spec of a pod (namespace, name); empty if there is none."""

AUTHN, AUTHZ = "authentication.k8s.io", "authorization.k8s.io"


def handlers(
    verbs: Verbs,
    authorizer: Authorizer,
    authenticator: Authenticator,
    issuer: TokenIssuer,
    lookup: Lookup,
    spec_of_pod: SpecOfPod,
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
    found["", "serviceaccounts", "token"] = _service_account_token(verbs, issuer, lookup, spec_of_pod)
    return found


def _create_only(ask: Ask) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create" or info.name:
            raise errors.MethodNotAllowed(f"{info.resource} can only be created")
        accept = negotiation.accepted(request.header("accept"), tables=False)
        body = negotiation.read_small(request.body, request.header("content-type"))
        _check_type(body, kind.resource.api_version, kind.kind)
        return _answer(ask(request, info, body), accept)

    return handle


def _answer(obj: Object, accept: negotiation.Accept) -> Response:
    shown = partial_metadata({"metadata": {}, **obj}) if accept.as_kind else obj
    return Response(status=201, body=negotiation.encode(shown))


def _bound_pod(body: Object) -> str:
    """The name of the pod that a token is asked for; empty if it is for none."""
    bound = (body.get("spec") or {}).get("boundObjectRef") or {}
    return str(bound.get("name")) if bound.get("kind") == "Pod" else ""


def _check_type(body: Object, api_version: str, kind: str) -> None:
    """What the body leaves out is left to the URL; it must not say something else."""
    given = body.setdefault("apiVersion", api_version), body.setdefault("kind", kind)
    if given != (api_version, kind):
        raise errors.BadRequest(f"the object provided is a {given[1]} of {given[0]}, not a {kind} of {api_version}")


def _service_account_token(verbs: Verbs, issuer: TokenIssuer, lookup: Lookup, spec_of_pod: SpecOfPod) -> Handler:
    async def handle(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "create":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on serviceaccounts/token")
        accept = negotiation.accepted(request.header("accept"), tables=False)
        body = negotiation.read_small(request.body, request.header("content-type")) if request.body else {}
        _check_type(body, f"{AUTHN}/v1", "TokenRequest")
        account = verbs.get(kind, info.namespace, info.name).object
        pod = _bound_pod(body)
        spec = spec_of_pod(info.namespace, pod) if pod else {}
        answer = token_request(issuer, account, body, lookup=lookup, node_of_pod=spec.get("nodeName") or "")
        # A token that names a pod is taken for that pod's own: it must be of the account that the pod runs as.
        if pod and spec.get("serviceAccountName") != info.name:
            raise errors.BadRequest(
                f'cannot bind token for serviceaccount "{info.name}" to pod running with different serviceaccount name.'
            )
        return _answer(answer, accept)

    return handle
