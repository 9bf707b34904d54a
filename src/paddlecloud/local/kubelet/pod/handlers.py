"""The ways Kubernetes lets a pod be asked something: run a program, an HTTP or gRPC request, open a connection.

Probes and lifecycle hooks share them. Each returns whether it went well and, if not, why.
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.pod import grpc_health
from paddlecloud.local.kubelet.pod.env import expand_all
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError
from paddlecloud.local.kubelet.pod.exec_limits import Room
from paddlecloud.local.kubelet.pod.runtime import ShimError
from paddlecloud.local.kubelet.streams.execs import run_exec
from paddlecloud.local.lowports import used_for

MAX_HEADER = 64 * 1024
_ENDS_A_LINE = re.compile(r"[\x00\r\n]")


class Result(NamedTuple):
    ok: bool
    message: str = ""


class HandlerTarget(NamedTuple):
    """The container that is asked."""

    pod_dir: Path
    ip: str
    container: Object
    env: Mapping[str, str]


async def ask(handler: Object, target: HandlerTarget, *, timeout: float) -> Result:
    """Carry out a probe's or hook's handler; a handler of no known kind is a failure that says so."""
    for kind, function in _HANDLERS.items():
        if kind in handler:
            try:
                return await asyncio.wait_for(function(handler[kind] or {}, target, timeout), timeout)
            except asyncio.TimeoutError:
                return Result(False, f"{kind}: timed out after {timeout:g}s")
            except (OSError, ShimError, ContainerConfigError, ValueError, asyncio.IncompleteReadError) as error:
                return Result(False, f"{kind}: {error}")
    return Result(False, f"{', '.join(handler) or 'an empty handler'} is not served by this platform")


def port_of(value: Any, container: Object) -> int:
    """A number, or the name of one of the container's ports."""
    if isinstance(value, int) or str(value).isdigit():
        return int(value)
    for port in container.get("ports") or ():
        if port.get("name") == value:
            return int(port["containerPort"])
    raise ValueError(f"no port of the container is named {value!r}")


async def _exec(body: Object, target: HandlerTarget, timeout: float) -> Result:
    argv = expand_all(body.get("command") or (), target.env, what="command", room=Room())
    code, output = await run_exec(target.pod_dir, target.container["name"], argv, timeout=timeout)
    return Result(code == 0, output.strip() if code else "")


async def _tcp(body: Object, target: HandlerTarget, timeout: float) -> Result:
    host, port = body.get("host") or target.ip, port_of(body["port"], target.container)
    _, writer = await asyncio.open_connection(host, used_for(host, port))
    writer.close()
    return Result(True)


async def _http(body: Object, target: HandlerTarget, _: float) -> Result:
    """One GET; 200 to 399 is well, as Kubernetes has it. Certificates are not checked, as it does not either."""
    port = port_of(body["port"], target.container)
    host = body.get("host") or target.ip
    tls = _UNCHECKED if str(body.get("scheme") or "HTTP").upper() == "HTTPS" else None
    headers = {"Host": f"{host}:{port}", "User-Agent": "kube-probe/1.34", "Accept": "*/*", "Connection": "close"}
    for header in body.get("httpHeaders") or ():
        headers[header["name"]] = header["value"]
    lines = [f"GET {body.get('path') or '/'} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
    if any(_ENDS_A_LINE.search(line) for line in lines):
        raise ValueError("host, path and httpHeaders must have no line breaks")
    reader, writer = await asyncio.open_connection(host, used_for(host, port), ssl=tls, limit=MAX_HEADER)
    try:
        writer.write("\r\n".join((*lines, "", "")).encode())
        await writer.drain()
        answer = (await reader.readline()).split(None, 2)
        if len(answer) < 2 or not answer[1].isdigit():
            return Result(False, "the answer is not HTTP")
        code = int(answer[1])
        return Result(200 <= code < 400, "" if 200 <= code < 400 else f"HTTP probe failed with statuscode: {code}")
    finally:
        writer.close()


async def _grpc(body: Object, target: HandlerTarget, _: float) -> Result:
    state = await grpc_health.check(target.ip, used_for(target.ip, int(body["port"])), body.get("service") or "")
    well = state == grpc_health.SERVING
    return Result(well, "" if well else f'service unhealthy (responded with "{state}")')


async def _sleep(body: Object, _: HandlerTarget, timeout: float) -> Result:
    await asyncio.sleep(min(float(body.get("seconds") or 0), timeout))
    return Result(True)


def _unchecked() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


_UNCHECKED = _unchecked()
_HANDLERS = {"exec": _exec, "httpGet": _http, "tcpSocket": _tcp, "grpc": _grpc, "sleep": _sleep}
