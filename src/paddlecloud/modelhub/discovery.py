"""Where a program in a pod finds the hub's server without being given its address."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from paddlecloud.modelhub import names

SYSTEM = "kube-system"
"""Where the embedded platform has it, and nobody but administrators makes Services."""


def address(environ: Mapping[str, str]) -> str:
    """That of `PADDLECLOUD_MODEL_HUB`; in a pod also the Service of the pod's own namespace, and that of the embedded
    platform. Empty where there is none."""
    if given := environ.get(names.VARIABLE):
        return given
    if "KUBERNETES_SERVICE_HOST" not in environ:
        return ""
    if environ.get("MODELHUB_SERVICE_PORT") == str(names.PORT):  # the kubelet's variable for a Service beside the pod
        return f"http://{names.SERVICE}:{names.PORT}"
    host = f"{names.SERVICE}.{SYSTEM}"
    try:
        socket.getaddrinfo(host, names.PORT)
    except OSError:
        return ""
    return f"http://{host}:{names.PORT}"
