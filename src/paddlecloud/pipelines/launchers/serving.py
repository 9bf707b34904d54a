"""`serving`: a PaddleService whose pods fetch a model of the model store and serve it with Paddle Serving.

The digest of the model is part of the service. So `latest`, which is overwritten by each upload, gets a new revision
when its content has changed, and none when it has not.
"""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path

from paddlecloud.api import names
from paddlecloud.kube.literal_text import literal
from paddlecloud.pipelines.launchers import fetch_model, model_store
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.object_launchers import paddle_service
from paddlecloud.pipelines.launchers.objects import body, check_folder_name, image_parts
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep
from paddlecloud.pipelines.launchers.uploads import SECRETS, key_variables
from paddlecloud.storage.credentials import from_values


async def run(step: LauncherStep, values: Values) -> dict[str, str]:
    model, version = values.text("model_name"), values.text("model_version")
    check_folder_name("model_name", model)
    check_folder_name("model_version", version)
    endpoint = values.text("endpoint")
    if not endpoint.startswith(("http://", "https://")):
        raise StepFailed(f"endpoint: pods fetch models over http or https, not from {endpoint!r}")
    action = values.text("action")
    secret, stored = "", model_store.StoredModel("", "")
    if action != "delete":
        secret, keys = await step.secret(values.text("namespace"), *SECRETS)
        stored = await asyncio.to_thread(model_store.find, endpoint, model, version, from_values(keys))
    ready = await step.carry_out(action, await step.served(service(values, stored, secret=secret)))
    url = str(((ready or {}).get("status") or {}).get("url") or "")
    if url:
        step.report(f"the model answers at {url}")
    return {"url": url}


def service(values: Values, stored: model_store.StoredModel, *, secret: str) -> DesiredObject:
    image, tag = image_parts(values.text("image"))
    model, port = values.text("model_name"), values.number("port")
    url = model_store.uri(values.text("endpoint"), model, values.text("model_version"))
    spec = {
        "runtimeVersion": "paddleserving",
        "default": {"containerImage": image, "tag": tag, "port": port, "arg": arg(url, model, port)},
        "env": [{"name": "MODEL_DIGEST", "value": stored.digest}, *key_variables(secret, "MODEL")],
        "service": {"minScale": 1},
    }
    made = body(names.PADDLESERVICE, values.text("name"), values.text("namespace"), spec)
    namespace, _, version = stored.hub_version.partition("/")
    if version and namespace == values.text("namespace"):
        made["metadata"]["annotations"] = {names.PACKED_VERSION: f"{version} {stored.digest}"}
    return paddle_service(made)


def arg(url: str, model: str, port: int) -> str:
    """The shell line of the pods: fetch, unpack, serve."""
    program = Path(fetch_model.__file__).read_text(encoding="utf-8")
    served = shlex.quote(f"{model}/server")
    return literal(
        f"python3 - {shlex.quote(url)} <<'FETCH' && "
        f"exec python3 -m paddle_serving_server.serve --model {served} --port {port}\n{program}FETCH\n"
    )
