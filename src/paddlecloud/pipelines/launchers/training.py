"""`training`: a PaddleJob, then two Jobs that export and pack the model, with VisualDL beside them.

Finished jobs are deleted at the very end: a launcher that starts again in the same run finds the stages that are done
and does not train twice.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from functools import partial

from paddlecloud.api import names
from paddlecloud.kube.literal_text import literal
from paddlecloud.kube.resource import PADDLEJOBS, Object
from paddlecloud.modelhub import job_origin
from paddlecloud.pipelines.launchers import completion, suites, visualdl
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.dataset import SET
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.hub_version import ModelRecord
from paddlecloud.pipelines.launchers.objects import TASK_CENTER, TASK_VOLUME, body, check_folder_name, job, task_volume
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep
from paddlecloud.pipelines.launchers.transient import retrying
from paddlecloud.visualdl.board import SUFFIX
from paddlecloud.visualdl.flags import Flags

PACKER = "registry.baidubce.com/paddleflow-public/serving:v0.6.2"
"""With the converter of Paddle Serving."""


async def run(step: LauncherStep, values: Values) -> dict[str, str]:
    stages, board = plan(values)
    action, name = values.text("action"), values.text("name")
    if action == "delete":
        for wanted in (*reversed(stages), *board):
            await step.remove(wanted)
        return {"model_path": ""}
    shown = [(one, await step.ensure(action, one)) for one in board]  # curves are of use while they grow
    for stage in stages:
        if stage is stages[-1] and values.switch("need_convert"):
            stage = await _with_origin(step, stage, stages[0])
        await step.carry_out(action, stage)
    for one, current in shown:
        await _wait_for_board(step, one, current)
    for stage in stages:
        await step.remove(stage)
    return {"model_path": f"{TASK_CENTER}/{name}.tar.gz" if values.switch("need_convert") else ""}


async def _with_origin(step: LauncherStep, packing: DesiredObject, training: DesiredObject) -> DesiredObject:
    """The record of the PaddleJob, for the step that stores the model: the job is deleted when this step is done."""
    meta = training.body["metadata"]
    find = partial(step.client.get, PADDLEJOBS, meta["name"], meta["namespace"])
    job = await retrying(find, report=step.report)
    found = await job_origin.of_job(step.client, job, namespace=meta["namespace"])
    for text in found.missing:
        step.report(f"warning: not recorded in the origin of the model: {text}")
    record = ModelRecord(found.origin, found.metrics).encoded()
    changed = copy.deepcopy(packing.body)
    changed["spec"]["template"]["spec"]["containers"][0]["env"] = [{"name": suites.ORIGIN, "value": literal(record)}]
    return replace(packing, body=changed)


async def _wait_for_board(step: LauncherStep, wanted: DesiredObject, current: Object) -> None:
    """A VisualDL that fails does not fail the training."""
    try:
        await step.wait(wanted, current)
    except StepFailed as error:
        step.report(f"warning: {error}; the trained model is not affected")


def plan(values: Values) -> tuple[list[DesiredObject], list[DesiredObject]]:
    """The stages in their order, and VisualDL's objects. Refuses what cannot work before anything starts."""
    name, namespace, claim = values.text("name"), values.text("namespace"), values.text("pvc_name")
    check_folder_name("name", name)
    check_folder_name("dataset", values.text("dataset"))
    suite = suites.find(values.text("project"))
    training = _training(values)
    if training.visualdl and values.number("worker_replicas") != 1:
        raise StepFailed("use_visualdl: VisualDL shows the training of one worker; set worker_replicas to 1")
    if values.switch("need_convert") and not values.switch("save_inference"):
        raise StepFailed("need_convert: only an exported model can be packed; set save_inference too")
    stages = [paddle_job(values, suite.train(training))]
    limits = _limits(training.gpus)
    if values.switch("save_inference"):
        exporter = _container("export", values.text("image"), suite.export(training), limits)
        stages.append(job(f"{name}-inference-convert", namespace, exporter, claim))
    if values.switch("need_convert"):
        stages.append(job(f"{name}-serving-convert", namespace, _container("pack", PACKER, suites.pack(name)), claim))
    return stages, _board(name, namespace, claim) if training.visualdl else []


def _training(values: Values) -> suites.Training:
    return suites.Training(
        config=values.text("config_path"),
        changes=suites.changes(values.text("config_changes")),
        pretrained_url=values.text("pretrain_model"),
        dataset=values.text("dataset"),
        train_label=values.text("train_label"),
        test_label=values.text("test_label"),
        workers=values.number("worker_replicas"),
        gpus=values.number("gpu_per_node"),
        visualdl=values.switch("use_visualdl"),
    )


def paddle_job(values: Values, command: str) -> DesiredObject:
    name, image = values.text("name"), values.text("image")
    worker = _container(name, image, command, _limits(values.number("gpu_per_node")))
    worker["volumeMounts"] = [
        {"name": "dshm", "mountPath": "/dev/shm"},  # noqa: S108 - the container's own
        {"name": TASK_VOLUME, "mountPath": TASK_CENTER},
    ]
    volumes = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}, task_volume(values.text("pvc_name"))]
    spec = {
        "cleanPodPolicy": "Never",  # the launcher reads their log to its end, then deletes the job with them
        "withGloo": 1,
        "intranet": "PodIP",
        "sampleSetRef": {"name": SET, "mountPath": suites.DATA_CENTER},
        "worker": {
            "replicas": values.number("worker_replicas"),
            "template": {"spec": {"containers": [worker], "volumes": volumes}},
        },
    }
    if servers := values.number("ps_replicas"):
        server = _container(name, image, command)
        server["volumeMounts"] = [{"name": TASK_VOLUME, "mountPath": TASK_CENTER}]
        pod = {"containers": [server], "volumes": [task_volume(values.text("pvc_name"))]}
        spec["ps"] = {"replicas": servers, "template": {"spec": pod}}
    made = body(names.PADDLEJOB, name, values.text("namespace"), spec)
    return DesiredObject(made, completion.PADDLEJOB, pods=f"{names.JOB_LABEL}={name}", once=True)


def _board(name: str, namespace: str, claim: str) -> list[DesiredObject]:
    flags = Flags(logdirs=(f"{suites.MODELS}/vdl",))
    return visualdl.board(f"{name}{SUFFIX}", namespace, claim=claim, mount_path=TASK_CENTER, flags=flags)


def _container(name: str, image: str, command: str, limits: Object | None = None) -> Object:
    made: Object = {"name": name, "image": image, "command": ["/bin/bash", "-c", literal(command)]}
    if limits:
        made["resources"] = {"limits": limits}
    return made


def _limits(gpus: int) -> Object | None:
    return {"nvidia.com/gpu": gpus} if gpus else None
