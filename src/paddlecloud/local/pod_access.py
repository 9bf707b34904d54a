"""What the kubelet must know of the API server so that pods can use it: tokens for them, and where it is."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import SERVICEACCOUNTS, Object
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.local.volumes.manager import TokenSource


def token_source(client: Client) -> TokenSource:
    """Tokens asked for as a kubelet does: in the name of the pod's account, and dying with the pod."""

    async def issue(pod: Object, audience: str, seconds: int) -> str:
        meta = pod["metadata"]
        account = pod["spec"].get("serviceAccountName") or "default"
        bound = {"apiVersion": "v1", "kind": "Pod", "name": meta["name"], "uid": meta["uid"]}
        spec: Object = {"expirationSeconds": max(seconds, 600), "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        try:
            answer = await client.raw(
                "POST", SERVICEACCOUNTS.path(meta["namespace"], account, "token"), body={"spec": spec}
            )
        except ApiError as error:
            raise VolumeError(f"no token for service account {account}: {error.message}") from error
        return str(msgspec.json.decode(answer.body)["status"]["token"])

    return issue


def api_environment(host: str, port: int) -> Mapping[str, str]:
    """By which in-cluster clients find the server."""
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        "KUBERNETES_PORT": f"tcp://{host}:{port}",
    }
