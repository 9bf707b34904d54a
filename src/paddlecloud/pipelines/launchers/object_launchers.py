"""`sampleset`, `samplejob`, `paddlejob` and `elasticserving`: one object each, made of the inputs.

`elasticserving` is the launcher of `launcher/serving.yaml`, as in the original. An input that was not given leaves
its field out, so that the kind's own default holds.
"""

from __future__ import annotations

import json
from typing import Any

from paddlecloud.api import names
from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.arguments import Values, boolean
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.objects import body
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep

KEEP_PODS = "Never"
"""The cleanPodPolicy of a job until the log of its pods is read: any other may delete a pod that lived for a moment
before anybody has seen it."""


async def sampleset(step: LauncherStep, values: Values) -> dict[str, str]:
    spec = {
        "partitions": values.number("partitions"),
        "source": values.json("source"),
        "secretRef": values.json("secret_ref"),
        "noSync": boolean(values.text("no_sync")),
        "csi": values.json("csi"),
        "cache": values.json("cache"),
        "nodeAffinity": values.json("node_affinity"),
    }
    await step.carry_out(
        values.text("action"), DesiredObject(_body(names.SAMPLESET, values, spec), completion.SAMPLESET)
    )
    return {}


async def samplejob(step: LauncherStep, values: Values) -> dict[str, str]:
    spec = {
        "type": values.text("type"),
        "sampleSetRef": values.json("sampleset_ref"),
        "secretRef": values.json("secret_ref"),
        "terminate": values.switch("terminate") or None,
        **(values.json("job_options") or {}),
    }
    return await _job(
        step, values, DesiredObject(_body(names.SAMPLEJOB, values, spec), completion.SAMPLEJOB, once=True)
    )


async def paddlejob(step: LauncherStep, values: Values) -> dict[str, str]:
    spec = {
        "cleanPodPolicy": KEEP_PODS,
        "schedulingPolicy": values.json("scheduling_policy"),
        "intranet": values.text("intranet"),
        "withGloo": values.number("with_gloo"),
        "sampleSetRef": values.json("sampleset_ref"),
        "ps": values.json("ps_spec"),
        "worker": values.json("worker_spec"),
        "heter": values.json("heter_spec"),
        "elastic": values.number("elastic") if values.number("elastic") > 0 else None,
    }
    selector = f"{names.JOB_LABEL}={values.text('name')}"
    policy = values.text("clean_pod_policy")
    wanted = DesiredObject(
        _body(names.PADDLEJOB, values, spec), completion.PADDLEJOB, pods=selector, once=True,
        after_end={"spec": {"cleanPodPolicy": policy}} if policy != KEEP_PODS else None,
    )  # fmt: skip
    return await _job(step, values, wanted)


async def elasticserving(step: LauncherStep, values: Values) -> dict[str, str]:
    percent = values.number("canary_traffic_percent")
    spec = {
        "runtimeVersion": values.text("runtime_version"),
        "resources": values.json("resources"),
        "default": values.json("default"),
        "canary": values.json("canary"),
        "canaryTrafficPercent": percent or None,
        "service": values.json("service"),
        "workingDir": values.text("workingdir") or None,
        "volumeMounts": values.json("volumemounts"),
        "volumes": values.json("volumes"),
    }
    if percent and not values.json("canary"):
        raise StepFailed("canaryTrafficPercent: there is no canary; give --canary its image, tag and port too")
    wanted = paddle_service(_body(names.PADDLESERVICE, values, spec))
    ready = await step.carry_out(values.text("action"), await step.served(wanted))
    return {"output_path": json.dumps(ready or {})}


def paddle_service(made: dict[str, Any]) -> DesiredObject:
    selector = f"{names.SERVICE_LABEL}={made['metadata']['name']}"
    return DesiredObject(made, completion.paddle_service, pods=selector)


async def _job(step: LauncherStep, values: Values, wanted: DesiredObject) -> dict[str, str]:
    await step.carry_out(values.text("action"), wanted)
    if values.switch("delete_after_done") and values.text("action") != "delete":
        await step.remove(wanted)
    return {}


def _body(kind: names.KindName, values: Values, spec: dict[str, Any]) -> dict[str, Any]:
    written = {field: value for field, value in spec.items() if value is not None}
    return body(kind, values.text("name"), values.text("namespace"), written, version=values.text("version"))
