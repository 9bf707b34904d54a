"""The proxy subresources as handlers of the API server."""

from __future__ import annotations

import random
from contextlib import ExitStack

from paddlecloud.kube import descriptors, errors
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.proxy.exchange import BackendAddress, exchange
from paddlecloud.local.apiserver.proxy.target import (
    Backend,
    ProxyTarget,
    backend_of_pod,
    backend_of_service,
    parse_target,
)
from paddlecloud.local.apiserver.registry import KindInfo, Registry
from paddlecloud.local.apiserver.streaming.handlers import PodStreams
from paddlecloud.local.proxy.connections import DESCRIPTORS, Connections

MOST = 256
"""Requests that are passed on at the same time; to the pods of one namespace half of them."""
UPGRADES = ("websocket", "spdy/3.1")


def handlers(
    verbs: Verbs, registry: Registry, streams: PodStreams, rng: random.Random
) -> dict[tuple[str, str, str], Handler]:
    """By (group, resource, subresource), as `Extensions` wants them."""
    served = _Proxy(verbs, registry, streams, rng)
    return {("", "pods", "proxy"): served.to_pod, ("", "services", "proxy"): served.to_service}


class _Proxy:
    def __init__(self, verbs: Verbs, registry: Registry, streams: PodStreams, rng: random.Random) -> None:
        self._verbs = verbs
        self._registry = registry
        self._streams = streams
        self._connections = Connections(min(MOST, descriptors.share(one_of=16) // DESCRIPTORS))
        self._rng = rng

    async def to_pod(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        _refuse_dry_run(request)
        target = parse_target(info.name, "pod")
        pod = self._verbs.get(kind, info.namespace, target.name).object
        return await self._pass_on(request, info, target, backend_of_pod(pod, target))

    async def to_service(self, request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        _refuse_dry_run(request)
        target = parse_target(info.name, "service")
        service = self._verbs.get(kind, info.namespace, target.name).object
        backend = backend_of_service(service, self._get("endpoints", info.namespace, target.name), target, self._rng)
        return await self._pass_on(request, info, target, backend)

    async def _pass_on(self, request: Request, info: RequestInfo, target: ProxyTarget, backend: Backend) -> Response:
        if request.header("upgrade").lower() in UPGRADES:
            raise ApiError(
                f"connections are not upgraded by {info.resource}/proxy; "
                f"kubectl port-forward pod/{backend.pod} {backend.port} carries any protocol",
                code=501,
                reason="NotImplemented",
            )
        prefix = request.path.removesuffix(info.proxied)
        if not info.proxied and request.method in ("GET", "HEAD"):  # relative links need a folder to begin from
            query = f"?{request.raw_query}" if request.raw_query else ""
            return Response(301, content_type="", headers={"Location": f"{prefix}/{query}"})
        ip, port = self._address(info.namespace, backend)
        with ExitStack() as held:
            if not held.enter_context(self._connections.place(info.namespace)):
                raise errors.TooManyRequests(
                    f"too many requests to pods of namespace {info.namespace} at once", retry_after=1
                )
            address = BackendAddress(target.scheme, ip, port, backend.port)
            return await exchange(request, address, path=info.proxied, prefix=prefix, held=held.pop_all())

    def _address(self, namespace: str, backend: Backend) -> tuple[str, int]:
        """By the kubelet, which gave it. A pod that ended may have left its address to another one."""
        pod = self._get("pods", namespace, backend.pod) or {}
        phase = (pod.get("status") or {}).get("phase", "Pending")
        if phase != "Running":
            raise errors.ServiceUnavailable(f"error trying to reach service: pod {backend.pod} is not running: {phase}")
        return self._streams.address(namespace, backend.pod, backend.port)

    def _get(self, plural: str, namespace: str, name: str) -> Object | None:
        kind = self._registry.find("", "v1", plural)
        assert kind is not None, "a built-in kind"
        try:
            return self._verbs.get(kind, namespace, name).object
        except errors.NotFound:
            return None


def _refuse_dry_run(request: Request) -> None:
    """The server cannot undo what a pod does: as ConnectResource of apiserver/pkg/endpoints/handlers/rest.go."""
    if "dryRun" in request.query:
        raise errors.BadRequest("dryRun is not supported")
