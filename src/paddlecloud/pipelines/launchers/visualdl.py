"""`visualdl`: the curves of a training as a Deployment and a Service.

VisualDL binds to its own loopback unless it is given a host, so the original's Service refused every connection; its
flags are written with hyphens, and `--api-only` takes no value. The program is part of the image: nothing is installed
when the pod starts.
"""

from __future__ import annotations

from paddlecloud import __version__
from paddlecloud.kube.resource import SERVICES, Object
from paddlecloud.pipelines.launchers.arguments import Values, boolean
from paddlecloud.pipelines.launchers.completion import Completion
from paddlecloud.pipelines.launchers.objects import TASK_VOLUME, deployment, task_volume
from paddlecloud.pipelines.launchers.step import DesiredObject, Step

IMAGE = f"paddlecloud/visualdl:{__version__}"
PORT = 8040


async def run(step: Step, values: Values) -> dict[str, str]:
    name, namespace, action = values.text("name"), values.text("namespace"), values.text("action")
    port = values.number("port")
    board = server(
        name,
        namespace,
        claim=values.text("pvc_name"),
        mount_path=values.text("mount_path"),
        logdirs=[folder.strip() for folder in values.text("logdir").split(",") if folder.strip()],
        flags=flags(values),
        port=port,
    )
    for wanted in (service(name, namespace, port), board):
        await step.carry_out(action, wanted)
    path = values.text("public_path")
    return {"url": f"http://{name}.{namespace}:{port}{path}"}


def flags(values: Values) -> list[str]:
    given = []
    for flag in ("model", "language", "public_path"):
        if values.text(flag):
            given += [f"--{flag.replace('_', '-')}", values.text(flag)]
    if values.given("cache_timeout"):
        given += ["--cache-timeout", str(values.number("cache_timeout"))]
    if boolean(values.text("api_only")):
        given.append("--api-only")
    return given


def server(
    name: str, namespace: str, *, claim: str, mount_path: str, logdirs: list[str], flags: list[str], port: int
) -> DesiredObject:
    container = {
        "name": "visualdl",
        "image": IMAGE,
        "command": ["visualdl"],
        "args": ["--logdir", *logdirs, "--host", "0.0.0.0", "--port", str(port), *flags],  # noqa: S104 - for the Service
        "ports": [{"containerPort": port}],
        "readinessProbe": {"tcpSocket": {"port": port}, "periodSeconds": 2},
        "volumeMounts": [{"name": TASK_VOLUME, "mountPath": mount_path}],
    }
    pod = {"containers": [container], "volumes": [task_volume(claim)]}
    return deployment(name, namespace, {"visualdl": name}, pod)


def service(name: str, namespace: str, port: int) -> DesiredObject:
    made: Object = {
        "apiVersion": SERVICES.api_version,
        "kind": SERVICES.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": {"visualdl": name}},
        "spec": {"selector": {"visualdl": name}, "ports": [{"name": "http", "port": port, "targetPort": port}]},
    }
    return DesiredObject(made, lambda _: Completion(True))
