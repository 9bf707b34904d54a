"""`program` and `model_service`: a suite's own command as a PaddleJob, and a model behind a URL."""

from __future__ import annotations

import re

from paddlecloud.api import names
from paddlecloud.kube.literal_text import literal
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.components.suite_set import DATA
from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.object_launchers import paddle_service
from paddlecloud.pipelines.launchers.objects import TASK_CENTER, TASK_VOLUME, body, check_folder_name, task_volume
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep

CONTENT = "SUITE_CONFIG"
WITH_CONFIG = (
    f'CONFIG=$(mktemp -d)/config.yml && printenv {CONTENT} > "$CONFIG" && export CONFIG && unset {CONTENT} || exit 1\n'
)
LARGEST_CONFIG = 100_000
"""Characters; a variable of a container has 128 KiB at most."""
_OF_POD = re.compile(r"^\[[a-z0-9.-]+\] ")


class LastMatch:
    """What a pattern matches last in the lines of pods."""

    def __init__(self, pattern: str) -> None:
        try:
            self._pattern = re.compile(pattern)
        except re.error as error:
            raise StepFailed(f"pattern: {pattern!r} is no regular expression: {error}") from error
        if self._pattern.groups != 1:
            raise StepFailed(f"pattern: {pattern!r} needs one group, in round brackets, around the value")
        self.value = ""

    def take(self, line: str) -> None:
        if (found := _OF_POD.match(line)) and (match := self._pattern.search(line[found.end() :])):
            self.value = match[1]


async def program(step: LauncherStep, values: Values) -> dict[str, str]:
    pattern, action = values.text("pattern"), values.text("action")
    wanted, match = paddle_job(values), LastMatch(pattern or "()")
    if pattern:
        step.observe(match.take)
    await step.carry_out(action, wanted)
    if pattern and action != "delete" and not match.value:
        raise StepFailed(f"no line of the log has what the pattern {pattern!r} looks for")
    return {"value": match.value}


def paddle_job(values: Values) -> DesiredObject:
    name, claim, gpus = values.text("name"), values.text("pvc_name"), values.number("gpu_per_node")
    check_folder_name("name", name)
    config, command = values.text("config"), values.text("command")
    if len(config) > LARGEST_CONFIG:
        raise StepFailed(f"config: it has {len(config)} characters; {LARGEST_CONFIG} are allowed")
    container: Object = {
        "name": "suite",
        "image": values.text("image"),
        "command": ["/bin/bash", "-c", literal((WITH_CONFIG if config else "") + command)],
        "volumeMounts": [
            {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108 - the container's own
            {"name": TASK_VOLUME, "mountPath": TASK_CENTER},
        ],
    }
    if config:
        container["env"] = [{"name": CONTENT, "value": literal(config)}]
    if gpus:
        container["resources"] = {"limits": {"nvidia.com/gpu": gpus}}
    pod: Object = {
        "containers": [container],
        "volumes": [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, task_volume(claim)],
    }
    if account := values.text("account"):
        pod["serviceAccountName"] = account
    spec: Object = {
        "backoffLimit": 1,
        "cleanPodPolicy": "Never",  # the launcher reads their log to its end
        "withGloo": 1,
        "intranet": "PodIP",
        "worker": {"replicas": values.number("workers"), "template": {"spec": pod}},
    }
    if samples := values.text("sampleset"):
        spec["sampleSetRef"] = {"name": samples, "mountPath": DATA}
    made = body(names.PADDLEJOB, name, values.text("namespace"), spec)
    return DesiredObject(made, completion.PADDLEJOB, pods=f"{names.JOB_LABEL}={name}", once=True)


async def model_service(step: LauncherStep, values: Values) -> dict[str, str]:
    spec = {"default": {"model": values.text("model")}, "service": {"minScale": 1}}
    made = body(names.PADDLESERVICE, values.text("name"), values.text("namespace"), spec)
    ready = await step.carry_out(values.text("action"), await step.served(paddle_service(made)))
    url = str(((ready or {}).get("status") or {}).get("url") or "")
    if url:
        step.report(f"{values.text('model')} answers at {url}")
    return {"url": url}
