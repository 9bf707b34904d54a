"""`modelhub` and `uploader`: a packed model into the model store.

`uploader` does it where the volume is mounted, `modelhub` runs it in a Job that mounts the volume.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from paddlecloud.kube.literal_text import literals
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines.launchers import hub_version, model_store
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.objects import TASK_CENTER, check_folder_name, job
from paddlecloud.pipelines.launchers.step import LauncherStep
from paddlecloud.storage.credentials import Credentials

SECRETS = ("model-center", "data-center")
"""Secrets with the keys of the store, the first that there is; the original read the second."""

ORIGIN = "PADDLECLOUD_MODEL_ORIGIN"
"""Variable of the uploader: the run and the step of the pipeline, as JSON, for the manifest beside the model."""


def uploader(values: Values) -> dict[str, str]:
    model, version = values.text("model_name"), values.text("version")
    check_folder_name("model_name", model)
    check_folder_name("version", version)
    keys = Credentials(os.environ.get("MINIO_ACCESS_KEY", ""), os.environ.get("MINIO_SECRET_KEY", ""))
    origin = json.loads(os.environ.get(ORIGIN) or "{}")
    file = Path(values.text("model_file"))
    record = hub_version.record_of(file, origin)
    kept = hub_version.store(file, model, version, record) if file.is_file() else ""
    uri = model_store.upload(
        values.text("endpoint"), file, model, version, keys, origin=record.origin, hub_version=kept
    )
    print(f"uploaded {uri}", flush=True)
    return {"model_uri": uri}


async def modelhub(step: LauncherStep, values: Values) -> dict[str, str]:
    model, version = values.text("model_name"), values.text("model_version")
    check_folder_name("model_name", model)
    check_folder_name("model_version", version)
    namespace, action = values.text("namespace"), values.text("action")
    endpoint = values.text("endpoint")
    secret, _ = await step.secret(namespace, *SECRETS)
    container: Object = {
        "name": "uploader",
        "image": step.image,
        "command": ["python", "-m", "paddlecloud.pipelines.launchers", "uploader"],
        "args": literals(
            [
                f"--endpoint={endpoint}",
                f"--model_file={TASK_CENTER}/{model}.tar.gz",
                f"--model_name={model}",
                f"--version={version}",
            ]
        ),
        "env": key_variables(secret, "MINIO"),
    }
    if step.run_name:
        origin = {"run": step.run, "run-name": step.run_name, "step": step.step_name}
        container["env"].append({"name": ORIGIN, "value": json.dumps(origin)})
    account = step.account if namespace == step.namespace else ""  # with its own token it may store in the ModelHub
    name, claim = f"{values.text('name')}-model-hub", values.text("pvc_name")
    wanted = job(name, namespace, container, claim, account=account)
    await step.carry_out(action, wanted)
    if action != "delete":
        await step.remove(wanted)
    return {"model_uri": model_store.uri(endpoint, model, version)}


def key_variables(secret: str, prefix: str) -> list[Object]:
    """Variables with the keys of a Secret; none without one."""
    return [
        {
            "name": f"{prefix}_{name.upper().replace('-', '_')}",
            "valueFrom": {"secretKeyRef": {"name": secret, "key": name}},
        }
        for name in ("access-key", "secret-key")
        if secret
    ]
