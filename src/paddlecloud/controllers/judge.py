"""`helm test`: makes one object of each kind that was installed, and judges whether it came to life.

Helm judges pods by their exit code and knows nothing of custom resources; this is the pod. It uses the same API as
everybody else, under an account that may do just this, and takes away what it made.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import time
from collections.abc import Callable
from typing import NamedTuple

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.conditions import condition_of, has_condition
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import PADDLEJOBS, PADDLESERVICES, SAMPLESETS, SECRETS, Object, Resource

PATIENCE = 240.0
LOOK_EVERY = 1.0
DATA_CENTER = "data-center"


class TrialResult(NamedTuple):
    good: bool
    text: str


class Trial(NamedTuple):
    resource: Resource
    make: Callable[[str], Object]
    """The spec, given the image to use."""
    judge: Callable[[Object], TrialResult | None]
    """None while it is too early to say."""
    needs: str = ""
    """A Secret without which there is nothing to try."""


def _job(image: str) -> Object:
    program = "import os; assert os.environ['PADDLE_TRAINERS_NUM'] == '1', dict(os.environ)"
    container = {"name": "paddle", "image": image, "command": ["python", "-c", program]}
    return {"cleanPodPolicy": "Never", "worker": {"replicas": 1, "template": {"spec": {"containers": [container]}}}}


def _set(image: str) -> Object:
    return {"partitions": 1, "noSync": True, "secretRef": {"name": DATA_CENTER}}


def _service(image: str) -> Object:
    name, _, tag = image.rpartition(":")
    # Python as the first process of a container ignores SIGTERM, and Knative waits five minutes for it.
    program = "cd /tmp; trap exit TERM; python -m http.server 8080 & wait"
    endpoint = {"containerImage": name, "tag": tag, "port": 8080, "arg": program}
    return {"default": endpoint, "service": {"minScale": 1, "maxScale": 1}}


def _by_phase(*, good: str, bad: tuple[str, ...]) -> Callable[[Object], TrialResult | None]:
    def judge(obj: Object) -> TrialResult | None:
        status = obj.get("status") or {}
        phase = str(status.get("phase") or "")
        if phase == good or phase in bad:
            return TrialResult(phase == good, f"{phase} {status.get('message', '')}".strip())
        return None

    return judge


def _set_ready(obj: Object) -> TrialResult | None:
    """A cluster without a cache engine is no fault of the installation, as long as the set says so."""
    valid = condition_of(obj, "Valid")
    if valid is not None and valid.get("status") == "False":
        absent = valid.get("reason") == "DriverNotExist"
        return TrialResult(absent, f"{'not tried: ' if absent else ''}{valid.get('message', '')}")
    return _by_phase(good="Ready", bad=("SyncFailed",))(obj)


def _by_ready(obj: Object) -> TrialResult | None:
    return TrialResult(True, f"Ready at {obj['status'].get('url', '')}") if has_condition(obj, "Ready") else None


TRIALS = {
    "paddlejob": Trial(PADDLEJOBS, _job, _by_phase(good="Completed", bad=("Failed",))),
    "sampleset": Trial(SAMPLESETS, _set, _set_ready, needs=DATA_CENTER),
    "paddleservice": Trial(PADDLESERVICES, _service, _by_ready),
}


async def judge(client: Client, name: str, *, namespace: str, image: str, patience: float = PATIENCE) -> TrialResult:
    """Make it, watch it, take it away."""
    trial = TRIALS[name]
    if trial.needs and not await _exists(client, trial.needs, namespace):
        return TrialResult(True, f"not tried: there is no Secret {trial.needs} in {namespace}")
    own = f"helm-test-{name}"
    obj: Object = {
        "apiVersion": trial.resource.api_version,
        "kind": trial.resource.kind,
        "metadata": {"name": own, "namespace": namespace},
        "spec": trial.make(image),
    }
    try:
        await client.create(trial.resource, obj)
        return await _until_judged(client, trial, own, namespace, patience)
    except ApiError as error:
        return TrialResult(False, str(error))
    finally:
        await _remove(client, trial.resource, own, namespace)


async def _until_judged(client: Client, trial: Trial, name: str, namespace: str, patience: float) -> TrialResult:
    deadline = time.monotonic() + patience
    while True:
        seen = await client.get(trial.resource, name, namespace)
        result = trial.judge(seen)
        if result is not None:
            return result
        if time.monotonic() > deadline:
            return TrialResult(False, f"nothing after {patience:g} s; its status: {seen.get('status')}")
        await asyncio.sleep(LOOK_EVERY)


async def _exists(client: Client, secret: str, namespace: str) -> bool:
    try:
        await client.get(SECRETS, secret, namespace)
    except NotFound:
        return False
    return True


async def _remove(client: Client, resource: Resource, name: str, namespace: str) -> None:
    try:
        await client.delete(resource, name, namespace=namespace)
    except NotFound:
        return  # it never came to be


async def run(names: list[str], *, namespace: str, image: str) -> int:
    client = Client(HttpTransport(config.load(), user_agent="helm-test"))
    failed = 0
    try:
        for name in names:
            result = await judge(client, name, namespace=namespace, image=image)
            print(f"{'ok  ' if result.good else 'FAIL'} {name}: {result.text}", flush=True)
            failed += not result.good
    finally:
        await client.close()
    return 1 if failed else 0


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m paddlecloud.controllers.judge")
    parser.add_argument("names", nargs="*", choices=tuple(TRIALS), metavar="KIND")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--image", required=True, help="with Python in it")
    chosen = parser.parse_args(arguments)
    return asyncio.run(run(chosen.names, namespace=chosen.namespace, image=chosen.image))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
