"""Fixed paths beside the API: metrics, OpenAPI v2, and what others need to verify this platform's tokens."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from paddlecloud.kube.metrics import CONTENT_TYPE
from paddlecloud.kube.metrics import Registry as Metrics
from paddlecloud.local.apiserver.auth.tokens import TokenIssuer
from paddlecloud.local.apiserver.discovery import openapi_v2
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, Response
from paddlecloud.local.apiserver.registry import Registry

PathHandler = Callable[[Request], Awaitable[Response]]

JWKS = "/openid/v1/jwks"
OPENID = "/.well-known/openid-configuration"
METRICS = "/metrics"


def paths(
    issuer: TokenIssuer, metrics: Metrics, registry: Registry, *, url: Callable[[], str]
) -> dict[str, PathHandler]:
    """Who may read them is decided by RBAC, as for every other path. `url` is where this server is reached."""

    async def jwks(_: Request) -> Response:
        return Response(body=encode(issuer.jwks()), content_type="application/jwk-set+json")

    async def openid(_: Request) -> Response:
        return Response(body=encode(issuer.openid_configuration(jwks_uri=f"{url()}{JWKS}")))

    async def all_metrics(_: Request) -> Response:
        return Response(body=metrics.render().encode(), content_type=CONTENT_TYPE)

    return {JWKS: jwks, OPENID: openid, METRICS: all_metrics, openapi_v2.PATH: openapi_v2.OpenApiV2(registry).answer}
