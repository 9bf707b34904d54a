"""VisualDL as a Deployment and a Service: the objects, as plain dicts. Who creates and deletes them is elsewhere.

The program is the image's (recipe `visualdl`); nothing is installed when the pod starts.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddlecloud import __version__
from paddlecloud.kube.literal_text import literals
from paddlecloud.kube.resource import DEPLOYMENTS, SERVICES, Object
from paddlecloud.visualdl.flags import Flags

IMAGE = f"paddlecloud/visualdl:{__version__}"
PROGRAM = "/opt/visualdl/serve.py"
ALIVE = "/alive"
"""Answered by VisualDL without reading any record, and without the headers of a browser."""
KEY = "VISUALDL_KEY"
WAKING = 60.0
"""Seconds that VisualDL may take to start again for a request, before the Service has no pod for that while."""
LABEL = "visualdl"
RESOURCES = {"requests": {"cpu": "50m", "memory": "256Mi"}, "limits": {"memory": "2Gi"}}
"""It needs 160 MiB, and keeps what it shows of each run in memory."""


def container(flags: Flags, mounts: Sequence[Object], *, key: str = "") -> Object:
    """With a key, requests that do not come through a port-forward need it."""
    return {
        "name": "visualdl",
        "image": IMAGE,
        "command": ["python", PROGRAM],
        "args": literals(flags.arguments()),
        "env": [{"name": KEY, "value": key}] if key else [],
        "ports": [{"name": "http", "containerPort": flags.port}],
        "readinessProbe": _probe(flags),
        "resources": RESOURCES,
        "volumeMounts": [{**mount, "readOnly": True} for mount in mounts],
    }


def deployment(name: str, namespace: str, pod: Object) -> Object:
    """One pod at a time: a volume may be mounted on one node only."""
    labels = {LABEL: name}
    return {
        "apiVersion": DEPLOYMENTS.api_version,
        "kind": DEPLOYMENTS.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "replicas": 1,
            "strategy": {"type": "Recreate"},
            "progressDeadlineSeconds": 600,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"automountServiceAccountToken": False, **pod}},
        },
    }


def service(name: str, namespace: str, port: int) -> Object:
    return {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {LABEL: name}},
        "spec": {"selector": {LABEL: name}, "ports": [{"name": "http", "port": port, "targetPort": port}]},
    }


def _probe(flags: Flags) -> Object:
    """The kubelet does not reach a pod's loopback, so there the pod asks itself, more rarely."""
    if not flags.is_private:
        probe = {"httpGet": {"path": ALIVE, "port": flags.port}, "periodSeconds": 2, "timeoutSeconds": 5}
        return {**probe, "failureThreshold": round(WAKING / 5)}
    question = f"import urllib.request as web; web.urlopen('http://{flags.host}:{flags.port}{ALIVE}', timeout=5)"
    return {"exec": {"command": ["python", "-c", question]}, "periodSeconds": 10, "timeoutSeconds": 10}
