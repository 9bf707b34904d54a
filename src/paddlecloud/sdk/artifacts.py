"""Artifacts of a run of a pipeline: which there are, and their content as it is stored.

The embedded platform serves them as a subresource of the Workflow. A cluster has none: there an artifact is read from
the artifact store. Coroutines here await nothing but the client, so the command line drives them without an event loop.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from typing import NamedTuple

import msgspec

from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.nodes import nodes_of
from paddlecloud.pipelines.runs.record import Step

_SUFFIXES = {"none": "", "zip": ".zip"}
"""Of a stored artifact by Argo's archive strategy; the usual one is a tar with gzip."""


class Artifact(NamedTuple):
    step: str
    name: str
    node: str
    place: str
    """Its key in the repository, or its URL."""
    digest: str
    size: int | None
    stored: bool
    """It can be fetched here."""
    suffix: str
    """Of the file that holds it: empty for one that is stored as the step wrote it."""

    @property
    def file(self) -> str:
        """Where it lies below a folder to which several are copied."""
        return f"{_file_name(self.step)}/{_file_name(self.name)}{self.suffix}"


def artifacts_of(workflow: Object, steps: Iterable[Step], stored: Iterable[Object]) -> list[Artifact]:
    """In the order of the steps. `stored` are those that the platform has (`sdk.pipelines.stored_artifacts`)."""
    there = {(each.get("node"), each.get("name")) for each in stored if not each.get("deleted")}
    nodes = nodes_of(workflow)
    return [
        Artifact(
            step.name,
            str(each["name"]),
            step.id,
            str(each.get("place") or ""),
            str(each.get("digest") or ""),
            each.get("size"),
            (step.id, each["name"]) in there,
            _suffix(nodes.get(step.id) or {}, each["name"]),
        )
        for step in steps
        if step.is_leaf
        for each in step.artifacts
    ]


def _suffix(node: Object, name: str) -> str:
    declared = ((node.get("outputs") or {}).get("artifacts")) or ()
    archive = next((each.get("archive") or {} for each in declared if each.get("name") == name), {})
    return next((suffix for strategy, suffix in _SUFFIXES.items() if strategy in archive), ".tgz")


def _file_name(text: str) -> str:
    """A step of a loop is called after its item, which may be anything."""
    return text.replace("/", "_").replace("\0", "_").lstrip(".") or "_"


async def files(client: Client, workflow: Object, artifact: Artifact) -> list[str]:
    """The paths of its files, where it is a folder; of a file there is one, and its path is empty."""
    answer = await client.raw("GET", _path(workflow), query={**_query(artifact), "files": "true"})
    found = [str(each["path"]) for each in msgspec.json.decode(answer.body)["items"]]
    for path in found:
        if path.startswith("/") or ".." in path.split("/"):
            raise ValueError(f"the server names a file outside of the artifact {artifact.name}: {path!r}")
    return found


def content(client: Client, workflow: Object, artifact: Artifact, file: str) -> AsyncIterator[bytes]:
    """Of one of its files, in pieces."""
    query = _query(artifact) | ({"path": file} if file else {})
    return client.stream(_path(workflow), query=query, accept="*/*")


def _path(workflow: Object) -> str:
    return names.WORKFLOWS.path(workflow["metadata"]["namespace"], workflow["metadata"]["name"], "artifacts")


def _query(artifact: Artifact) -> dict[str, str]:
    return {"node": artifact.node, "name": artifact.name}
