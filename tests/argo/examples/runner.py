"""One case on one platform: its own namespace, what the case needs, the workflow, and what came of it.

It ends when the workflow is over, when no pod of it runs and nothing has changed for a while (it waits for somebody to
resume it, for an image or a volume that is not there), or at the limit. Nothing here knows which platform it is.
"""

from __future__ import annotations

import copy
import re
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any, NamedTuple

from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.discovery import Discovery
from paddlecloud.kube.errors import ApiError, NotFound
from paddlecloud.kube.resource import NAMESPACES, SERVICEACCOUNTS, Object, Resource
from paddlecloud.kube.stdlib import StdlibTransport, drive

from .catalogue import Case
from .verdict import DONE, Verdict, judge, refusal

WORKFLOWS = Resource("argoproj.io", "v1alpha1", "workflows", "Workflow")
LOOK = 0.5  # seconds


class Platform(NamedTuple):
    kubeconfig: Path
    prepare: Callable[[str], Iterable[Object]]
    """What a namespace gets before anything else."""
    at_once: int
    limit: float
    """Seconds for a case."""
    quiet: float
    """Seconds without a change, and without a running pod, after which a case is left."""
    settle: float = 0.0
    """Seconds until what was created is in the controller's cache: real Argo ends workflows whose template is not."""


def run(platform: Platform, cases: Iterable[Case]) -> Iterator[tuple[Case, Verdict, Object]]:
    """Verdicts in the order in which they come, each with the workflow as it was last seen."""
    with ThreadPoolExecutor(platform.at_once) as pool:
        begun = {pool.submit(_run, platform, number, case): case for number, case in enumerate(cases)}
        for done in as_completed(begun):
            yield begun[done], *done.result()


def _run(platform: Platform, number: int, case: Case) -> tuple[Verdict, Object]:
    client = Client(StdlibTransport(config.load(str(platform.kubeconfig)), user_agent="argo-examples"))
    slug = re.sub(r"[^a-z0-9]+", "-", case.name.lower().removesuffix(".yaml"))[-40:].strip("-")
    namespace, began = f"ex-{number}-{slug}", time.monotonic()
    try:
        drive(client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}}))
        discovery = drive(client.discover())
        while drive(client.find(SERVICEACCOUNTS, "default", namespace)) is None:
            time.sleep(LOOK)  # no pod, and no token of its, could be made
        try:
            for each in (*platform.prepare(namespace), *case.needs):
                _apply(client, discovery, each, namespace)
            time.sleep(platform.settle if case.needs else 0)
            created = drive(client.create(WORKFLOWS, _in(case.workflow, namespace)))
        except ApiError as error:
            return refusal(str(error), time.monotonic() - began), {}
        seen = _await(client, created, namespace, platform)
        return judge(seen, time.monotonic() - began), seen
    finally:
        drive(client.delete(NAMESPACES, namespace))
        drive(client.close())


def _in(body: Object, namespace: str) -> Object:
    made = copy.deepcopy(body)
    made["metadata"]["namespace"] = namespace
    return made


def _apply(client: Client, discovery: Discovery, body: Object, namespace: str) -> None:
    resource = discovery.for_kind(body["apiVersion"], body["kind"])
    place = namespace if resource.namespaced else None
    made = _in(body, namespace)
    if not resource.namespaced:
        del made["metadata"]["namespace"]
    drive(client.patch(resource, made["metadata"]["name"], made, namespace=place, kind="apply", force=True))


def _await(client: Client, created: Object, namespace: str, platform: Platform) -> Object:
    name = created["metadata"]["name"]
    seen, state, changed = created, _state(created), time.monotonic()
    deadline = changed + platform.limit
    while time.monotonic() < deadline and seen.get("status", {}).get("phase") not in DONE:
        time.sleep(LOOK)
        try:
            seen = drive(client.get(WORKFLOWS, name, namespace))
        except NotFound:
            return seen  # its time to live was over
        if (now := _state(seen)) != state:
            state, changed = now, time.monotonic()
        if time.monotonic() - changed > platform.quiet and not _runs(seen):
            break
    return seen


def _state(workflow: Object) -> Any:
    status = workflow.get("status") or {}
    return status.get("phase"), {name: node.get("phase") for name, node in (status.get("nodes") or {}).items()}


def _runs(workflow: Object) -> bool:
    nodes = (workflow.get("status") or {}).get("nodes") or {}
    return any((node.get("type"), node.get("phase")) == ("Pod", "Running") for node in nodes.values())
