"""How a pod reaches the API server: a token of its service account, and the server's address."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import SERVICEACCOUNTS, Object
from paddlecloud.local.volumes.errors import VolumeError


def api_tokens(client: Client) -> Callable[[Object, str, int], Awaitable[str]]:
    """Tokens bound to the pod, from the API's TokenRequest: they end with it."""

    async def issue(pod: Object, audience: str, seconds: int) -> str:
        meta = pod["metadata"]
        account = pod["spec"].get("serviceAccountName") or "default"
        path = SERVICEACCOUNTS.path(meta.get("namespace"), account, "token")
        bound = {"kind": "Pod", "apiVersion": "v1", "name": meta["name"], "uid": meta["uid"]}
        spec: Object = {"expirationSeconds": seconds, "boundObjectRef": bound}
        if audience:
            spec["audiences"] = [audience]
        body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
        try:
            answer = await client.raw("POST", path, body=body)
        except ApiError as error:
            raise VolumeError(f"no token for service account {account}: {error}") from error
        return str(msgspec.json.decode(answer.body)["status"]["token"])

    return issue


def service_env(services: Mapping[str, Object], *, links: bool) -> dict[str, str]:
    """The variables by which programs find Services: `WEB_SERVICE_HOST` and its kin.

    `services` are those of the pod's namespace by name. With `links` off (`enableServiceLinks: false`) there are none.
    """
    env: dict[str, str] = {}
    if not links:
        return env
    for name, service in services.items():
        spec = service.get("spec") or {}
        ip, ports = spec.get("clusterIP"), spec.get("ports") or ()
        if not ip or ip == "None" or not ports:
            continue
        prefix = name.upper().replace("-", "_").replace(".", "_")
        env[f"{prefix}_SERVICE_HOST"] = ip
        env[f"{prefix}_SERVICE_PORT"] = str(ports[0]["port"])
        env[f"{prefix}_PORT"] = f"{str(ports[0].get('protocol', 'TCP')).lower()}://{ip}:{ports[0]['port']}"
        for port in ports:
            if port.get("name"):
                env[f"{prefix}_SERVICE_PORT_{port['name'].upper().replace('-', '_')}"] = str(port["port"])
            protocol = str(port.get("protocol", "TCP"))
            each = f"{prefix}_PORT_{port['port']}_{protocol}"
            env[each] = f"{protocol.lower()}://{ip}:{port['port']}"
            env[f"{each}_PROTO"] = protocol.lower()
            env[f"{each}_PORT"] = str(port["port"])
            env[f"{each}_ADDR"] = ip
    return env


def api_env(address: tuple[str, int]) -> dict[str, str]:
    """Where in-cluster clients look for the API server."""
    host, port = address
    return {
        "KUBERNETES_SERVICE_HOST": host,
        "KUBERNETES_SERVICE_PORT": str(port),
        "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        "KUBERNETES_PORT": f"tcp://{host}:{port}",
    }
