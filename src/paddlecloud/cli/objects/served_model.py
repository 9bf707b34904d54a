"""What inference servers say of the model that they serve, beyond answering: a newer version that cannot be loaded.

A server goes on with the version it has, so the service is ready and no condition shows it. Its index does
(`/v2/repository/index`): it is read from pods of this machine directly, from those of a cluster through the API server.
"""

from __future__ import annotations

import http.client
import json
from collections.abc import AsyncIterator, Sequence
from typing import Any

from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.pods import is_leaving
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.outcome import is_true

INDEX = "/v2/repository/index"
ASKED = 3
"""Pods of a service that are asked."""
SECONDS = 2.0
LARGEST = 1 << 16
LONGEST = 600


def remark(session: Session, service: Object, pods: Sequence[Object]) -> str:
    """Why the newest version is not the one that is served; empty where it is, or where no pod reports it."""
    spec = service.get("spec") or {}
    if service.get("kind") != "PaddleService" or not (spec.get("model") or (spec.get("default") or {}).get("model")):
        return ""
    running = [pod for pod in pods if is_true(pod, "Ready") and not is_leaving(pod) and _port(pod)]
    if not running:
        return ""
    ask = _of_this_machine if is_embedded(session) else _of_a_cluster
    for pod in running[:ASKED]:
        try:
            answer = json.loads(ask(session, pod))
        except (OSError, http.client.HTTPException, ApiError, ValueError, RecursionError):
            continue  # it is ending, or of another program, or not ours to ask
        if said := _reason(answer):
            return said
    return ""


def _reason(answer: Any) -> str:
    first = answer[0] if isinstance(answer, list) and answer else None
    said = first.get("reason") if isinstance(first, dict) else None
    text = (
        "".join(letter if letter.isprintable() else " " for letter in said[:LONGEST]) if isinstance(said, str) else ""
    )
    return " ".join(text.split())


def _port(pod: Object) -> int:
    """The HTTP port of our inference server; 0 of other programs."""
    for container in pod["spec"].get("containers") or ():
        words = container.get("args") or ()
        if "--model" in words and "--port" in words[:-1]:
            port = str(words[words.index("--port") + 1])
            return int(port) if port.isdecimal() and len(port) < 6 else 0
    return 0


def _of_this_machine(session: Session, pod: Object) -> bytes:
    connection = http.client.HTTPConnection(str(pod["status"].get("podIP")), _port(pod), timeout=SECONDS)
    try:
        connection.request("GET", INDEX)
        return connection.getresponse().read(LARGEST)
    finally:
        connection.close()


def _of_a_cluster(session: Session, pod: Object) -> bytes:
    meta = pod["metadata"]
    path = f"/api/v1/namespaces/{meta['namespace']}/pods/{meta['name']}:{_port(pod)}/proxy{INDEX}"
    return session.api.do(_beginning(session.api.client.stream(path)))


async def _beginning(chunks: AsyncIterator[bytes]) -> bytes:
    """A pod may answer without end."""
    found = b""
    async for chunk in chunks:
        found += chunk
        if len(found) >= LARGEST:
            break
    return found
