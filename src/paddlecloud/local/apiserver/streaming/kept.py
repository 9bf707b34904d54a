"""`GET …/paddlejobs/NAME/log`: logs of pods that the object made and that are gone.

Without a query it answers the pods there are logs of, as a PodList; with `pod=UID` the log of one, with the options
of `pods/log`. A cluster knows no such subresource and answers NotFound, which clients accept.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Any, Protocol

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local.apiserver.api import Handler
from paddlecloud.local.apiserver.http.negotiation import encode
from paddlecloud.local.apiserver.http.request import Request, RequestInfo, Response
from paddlecloud.local.apiserver.objects.large import in_thread
from paddlecloud.local.apiserver.objects.verbs import Verbs
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.streaming.logs import begun, log_options


class KeptLogs(Protocol):
    """What the kubelet offers."""

    def kept_pods(self, owner_uid: str) -> Sequence[Object]: ...

    def read_kept_log(
        self, owner_uid: str, pod_uid: str, container: str | None = None, **options: Any
    ) -> AsyncIterator[bytes]: ...


def handlers(verbs: Verbs, logs: KeptLogs, owners: Iterable[Resource]) -> dict[tuple[str, str, str], Handler]:
    async def log(request: Request, info: RequestInfo, kind: KindInfo) -> Response:
        if info.verb != "get":
            raise errors.MethodNotAllowed(f"{info.verb} is not supported on {info.resource}/log")
        uid = verbs.get(kind, info.namespace, info.name).meta.uid
        pod = request.query.get("pod")
        if not pod:
            return Response(body=await in_thread(_list, logs, uid))
        options = log_options(request, pod)
        chunks = logs.read_kept_log(uid, pod, request.query.get("container") or None, **options)
        return Response(stream=await begun(chunks), content_type="text/plain")

    return {(resource.group, resource.plural, "log"): log for resource in owners}


def _list(logs: KeptLogs, uid: str) -> bytes:
    """In the thread of large requests: a file is read for each pod, with annotations that its author chose."""
    items = list(logs.kept_pods(uid))
    return encode({"kind": "PodList", "apiVersion": "v1", "metadata": {}, "items": items})
