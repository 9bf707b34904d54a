"""`dataset`: sample data in a folder of the shared sample set `data-center`, and its cache warm.

The set belongs to everybody: it is created if it does not exist and neither changed nor deleted after that. Deleting a
data set removes its folder. (The original deleted the whole set with it.)
"""

from __future__ import annotations

from typing import Any

from paddlecloud.api import names
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.launchers import completion
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.objects import body, check_folder_name
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep

SET = "data-center"


async def run(step: LauncherStep, values: Values) -> dict[str, str]:
    name, namespace, action = values.text("name"), values.text("namespace"), values.text("action")
    check_folder_name("name", name)
    jobs = [sync_job(values), warmup_job(name, namespace)]
    if action == "delete":
        removal = sample_job(f"{name}-remove", namespace, {"type": "rmr", "rmrOptions": {"paths": [name]}})
        if await step.exists(sample_set(values)):
            await step.carry_out("apply", removal)
            await step.remove(removal)
        for job in jobs:
            await step.remove(job)
        return {"dataset": name}
    await step.carry_out(action, sample_set(values))
    for job in jobs:
        await step.carry_out(action, job)
    for job in jobs:
        await step.remove(job)
    return {"dataset": name}


def sample_set(values: Values) -> DesiredObject:
    spec = {"partitions": values.number("partitions"), "noSync": True, "secretRef": {"name": SET}}
    return DesiredObject(body(names.SAMPLESET, SET, values.text("namespace"), spec), completion.SAMPLESET, shared=True)


def sync_job(values: Values) -> DesiredObject:
    name = values.text("name")
    spec = {
        "type": "sync",
        "secretRef": {"name": values.text("source_secret")},
        "syncOptions": {"source": values.text("source_uri"), "destination": name},
    }
    return sample_job(f"{name}-sync", values.text("namespace"), spec)


def warmup_job(name: str, namespace: str) -> DesiredObject:
    return sample_job(f"{name}-warmup", namespace, {"type": "warmup", "warmupOptions": {"paths": [name]}})


def sample_job(name: str, namespace: str, spec: dict[str, Any]) -> DesiredObject:
    made: Object = body(names.SAMPLEJOB, name, namespace, {"sampleSetRef": {"name": SET}, **spec})
    return DesiredObject(made, completion.SAMPLEJOB, once=True)
