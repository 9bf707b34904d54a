"""`visualdl`: the curves of a training as a Deployment and a Service, on a claim that the steps of a pipeline share.

VisualDL binds to its own loopback unless it is given a host, so the original's Service refused every connection; its
flags are written with hyphens, and `--api-only` takes no value. The program is part of the image: nothing is installed
when the pod starts.
"""

from __future__ import annotations

from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.arguments import Values, boolean
from paddlecloud.pipelines.launchers.completion import Completion
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.objects import TASK_VOLUME, task_volume
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep
from paddlecloud.visualdl import server
from paddlecloud.visualdl.flags import EVERYWHERE, FlagError, Flags, check


async def run(step: LauncherStep, values: Values) -> dict[str, str]:
    name, namespace, action = values.text("name"), values.text("namespace"), values.text("action")
    given = flags(values)
    claim, mount_path = values.text("pvc_name"), values.text("mount_path")
    for wanted in board(name, namespace, claim=claim, mount_path=mount_path, flags=given):
        await step.carry_out(action, wanted)
    return {"url": f"http://{name}.{namespace}:{given.port}{values.text('public_path')}"}


def flags(values: Values) -> Flags:
    """Raises `StepFailed` for what VisualDL would refuse or ignore."""
    given = Flags(
        logdirs=tuple(folder.strip() for folder in values.text("logdir").split(",") if folder.strip()),
        model=values.text("model"),
        host=values.text("host") or EVERYWHERE,
        port=values.number("port"),
        cache_timeout=values.number("cache_timeout") if values.given("cache_timeout") else None,
        language=values.text("language"),
        public_path=values.text("public_path"),
        api_only=boolean(values.text("api_only")),
    )
    try:
        check(given)
    except FlagError as error:
        raise StepFailed(str(error)) from error
    return given


def board(name: str, namespace: str, *, claim: str, mount_path: str, flags: Flags) -> list[DesiredObject]:
    container = server.container(flags, [{"name": TASK_VOLUME, "mountPath": mount_path}])
    pod = {"containers": [container], "volumes": [task_volume(claim)]}
    return [
        DesiredObject(server.service(name, namespace, flags.port), lambda _: Completion(True)),
        DesiredObject(server.deployment(name, namespace, pod), completion.deployment, pods=f"{server.LABEL}={name}"),
    ]
