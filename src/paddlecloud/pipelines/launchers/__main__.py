"""The edge of every launcher: flags, connection, signals, time-out, outputs and exit codes.

Exit codes: 0 done, 1 the step failed, 2 bad flags, 124 its time is over, 143 its run was stopped (as for any program
that SIGTERM ended).
"""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
import uuid
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError, ConfigError, Forbidden, NotFound
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.modelhub.origin import of_step
from paddlecloud.pipelines.components.catalogue import COMPONENTS, find
from paddlecloud.pipelines.components.image import IMAGE
from paddlecloud.pipelines.launchers import (
    configure,
    dataset,
    object_launchers,
    serving,
    suite_programs,
    training,
    uploads,
    visualdl,
)
from paddlecloud.pipelines.launchers.arguments import Values, parse
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.step import MANAGER, LauncherStep
from paddlecloud.pipelines.launchers.transient import PATIENCE, retrying
from paddlecloud.storage.errors import StorageError

FAILED, TIMED_OUT, STOPPED = 1, 124, 143
TAKE_BACK_SECONDS = 20.0
"""Of the thirty that Kubernetes gives a pod after SIGTERM."""

WITH_CLUSTER: dict[str, Callable[[LauncherStep, Values], Awaitable[dict[str, str]]]] = {
    "dataset": dataset.run,
    "training": training.run,
    "modelhub": uploads.modelhub,
    "serving": serving.run,
    "sampleset": object_launchers.sampleset,
    "samplejob": object_launchers.samplejob,
    "paddlejob": object_launchers.paddlejob,
    "elasticserving": object_launchers.elasticserving,
    "visualdl": visualdl.run,
    "program": suite_programs.program,
    "model_service": suite_programs.model_service,
}
ALONE: dict[str, Callable[[Values], dict[str, str]]] = {
    "configure": configure.run,
    "uploader": uploads.uploader,
}


def main(arguments: Sequence[str]) -> int:
    component = find(arguments[0]) if arguments else None
    if component is None or component.image:
        known = ", ".join(sorted(one.launcher for one in COMPONENTS if not one.image))
        print(f"usage: python -m paddlecloud.pipelines.launchers NAME …, NAME being one of {known}", file=sys.stderr)
        return 2
    values, files = parse(component, arguments[1:])
    try:
        if component.launcher in ALONE:
            outputs = ALONE[component.launcher](values)
        else:
            limit = values.number("timeout_minutes") * 60.0
            outputs = asyncio.run(carry_out(WITH_CLUSTER[component.launcher], values, limit))
    except asyncio.TimeoutError:  # since Python 3.11 an OSError too
        print(f"error: not done after {values.number('timeout_minutes')} minutes", file=sys.stderr, flush=True)
        return TIMED_OUT
    except (StepFailed, ApiError, ConfigError, StorageError, OSError) as error:
        print(f"error: {error}", file=sys.stderr, flush=True)
        return FAILED
    except asyncio.CancelledError:
        return STOPPED
    for name, file in files.items():
        write_output(Path(file), outputs.get(name, ""))
    return 0


def write_output(file: Path, text: str) -> None:
    """Engines name files in folders that may or may not exist."""
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


async def carry_out(
    program: Callable[[LauncherStep, Values], Awaitable[dict[str, str]]], values: Values, limit: float
) -> dict[str, str]:
    """Run a launcher with its time-out; what it started is deleted when that passes or SIGTERM arrives."""
    settings = config.load()
    client = Client(HttpTransport(settings), field_manager=MANAGER)
    task = asyncio.current_task()
    assert task is not None
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)
    try:
        pod = await own_pod(client, settings.namespace, patience=min(PATIENCE, limit))
        run, image = identity(pod)
        known = of_step(pod) if pod else {}
        step = LauncherStep(
            client, run=run, image=image, report=report,
            run_name=known.get("run-name", ""), step_name=known.get("step", ""),
            namespace=settings.namespace, account=str((pod or {}).get("spec", {}).get("serviceAccountName") or ""),
        )  # fmt: skip
        try:
            return await asyncio.wait_for(program(step, values), limit)
        except (asyncio.CancelledError, asyncio.TimeoutError):
            asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, lambda: None)
            await asyncio.wait_for(step.take_back(), TAKE_BACK_SECONDS)
            raise
    finally:
        await client.close()


def report(text: str) -> None:
    print(text, flush=True)


async def own_pod(client: Client, namespace: str, *, patience: float = PATIENCE) -> Object | None:
    """The pod that this runs in; None outside of a cluster, or without the right to read it."""
    name = os.environ.get("HOSTNAME") or socket.gethostname()
    try:
        return await retrying(lambda: client.get(PODS, name, namespace), report=report, patience=patience)
    except NotFound:
        return None
    except Forbidden as error:
        report(f"warning: another attempt of this run will not go on with the work of this one: {error.message}")
        return None


def identity(pod: Object | None) -> tuple[str, str]:
    """Which run this is, the same for all attempts of it, and the launcher's image.

    Argo owns the pods of a workflow. Without such a pod every start is a run of its own.
    """
    owners = (pod or {}).get("metadata", {}).get("ownerReferences") or ()
    run = next((str(one["uid"]) for one in owners if one.get("kind") == "Workflow"), uuid.uuid4().hex)
    containers = (pod or {}).get("spec", {}).get("containers") or ()
    images = [str(one["image"]) for one in containers if "paddlecloud/pipeline" in str(one.get("image"))]
    return run, images[0] if images else IMAGE


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
