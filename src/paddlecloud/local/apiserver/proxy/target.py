"""Which pod and port a request is passed on to: `[SCHEME:]NAME[:PORT]` in the URL, the pod or Service behind it. Pure.

As kube-apiserver (ResourceLocation in pkg/registry/core/pod/strategy.go and core/service/storage/storage.go). The
addresses that a pod's status or an Endpoints object report are not used: the caller asks the kubelet for the address of
the pod that is chosen here, so nobody who writes one of these leads requests elsewhere.
"""

from __future__ import annotations

import random
from typing import NamedTuple

from paddlecloud.kube import errors
from paddlecloud.kube.resource import Object

_DEFAULT_PORTS = {"http": 80, "https": 443}


class ProxyTarget(NamedTuple):
    """`port` is a number or, of a Service, a name; empty where the URL names none."""

    scheme: str
    name: str
    port: str


class Backend(NamedTuple):
    pod: str
    port: int


def parse_target(text: str, resource: str) -> ProxyTarget:
    """Of the name in the URL. `resource` is pod or service, for the refusal."""
    parts = text.split(":")
    if len(parts) < 3:
        parts = ["", *parts, ""]
    scheme, name, port, *more = parts
    if not name or scheme not in ("", "http", "https") or any(more):
        raise errors.BadRequest(f'invalid {resource} request "{text}": expected [http:|https:]NAME[:PORT]')
    return ProxyTarget(scheme or "http", name, port)


def backend_of_pod(pod: Object, target: ProxyTarget) -> Backend:
    """The port of the URL, else the first that a container declares, else the one of the scheme."""
    declared = [port for container in pod["spec"].get("containers") or () for port in container.get("ports") or ()]
    usual = declared[0]["containerPort"] if declared else _DEFAULT_PORTS[target.scheme]
    return Backend(target.name, _number(target.port) if target.port else int(usual))


def backend_of_service(service: Object, endpoints: Object | None, target: ProxyTarget, rng: random.Random) -> Backend:
    """Any ready pod of the namespace behind the port. Addresses that are not of pods are passed over."""
    port_name, namespace = _port_name(service, target), service["metadata"]["namespace"]
    found = [
        Backend(reference["name"], port["port"])
        for subset in (endpoints or {}).get("subsets") or ()
        for port in subset.get("ports") or ()
        if port.get("name", "") == port_name
        for address in subset.get("addresses") or ()
        if (reference := address.get("targetRef") or {}).get("kind") == "Pod"
        and reference.get("namespace", namespace) == namespace
    ]
    if not found:
        raise errors.ServiceUnavailable(f'no endpoints available for service "{target.name}"')
    return rng.choice(found)


def _port_name(service: Object, target: ProxyTarget) -> str:
    if not target.port.isdecimal():
        return target.port
    for port in service["spec"].get("ports") or ():
        if str(port["port"]) == target.port.lstrip("0"):
            return str(port.get("name", ""))
    raise errors.ServiceUnavailable(f'no service port {target.port} found for service "{target.name}"')


def _number(text: str) -> int:
    if not (text.isascii() and text.isdecimal() and len(text) < 6 and 0 < int(text) < 1 << 16):
        raise errors.BadRequest(f'"{text[:20]}" is no port of a pod: expected a number')
    return int(text)
