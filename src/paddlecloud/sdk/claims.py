"""Whether what `volumes` name exists and stays. A pod that mounts a claim which does not exist waits without end."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, SAMPLESETS
from paddlecloud.sdk.training import Mount

KINDS = (PERSISTENTVOLUMECLAIMS, SAMPLESETS)
"""What `NAME:PATH` may name. The controller of a SampleSet creates the claim of the same name."""


async def missing(client: Client, mounts: Iterable[Mount], namespace: str) -> str | None:
    """The first claim that does not exist. What these credentials may not read counts as there: pods may mount it."""
    for name in filter(None, (mount.claim for mount in mounts)):
        for resource in KINDS:
            try:
                await client.get(resource, name, namespace)
            except NotFound:
                continue
            except Forbidden:
                pass  # unknown, so no reason to refuse
            break
        else:
            return name
    return None


async def leaving(client: Client, mounts: Iterable[Mount], namespace: str) -> str:
    """Which of them is being deleted, as a sentence; empty when none is. The job would keep it from going, or wait."""
    for name in filter(None, (mount.claim for mount in mounts)):
        for resource in reversed(KINDS):
            try:
                found = await client.get(resource, name, namespace)
            except (NotFound, Forbidden):
                continue
            if found["metadata"].get("deletionTimestamp"):
                return f'{resource.kind} "{name}" in namespace {namespace} is being deleted'
    return ""


def refusal(name: str, namespace: str) -> str:
    return f'there is neither a PersistentVolumeClaim nor a SampleSet "{name}" in namespace {namespace}'
