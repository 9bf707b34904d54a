"""Where models came from and went, as `pdc trace` finds it, of what the viewer may see; with addresses of pages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from paddlecloud.api.model.reference import object_name
from paddlecloud.cli.render.lineage import facts_of
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, PADDLEJOBS, PADDLESERVICES, SAMPLESETS
from paddlecloud.sdk import lineage
from paddlecloud.sdk.lineage import GONE, REPLACED, LineageNode, NotRecorded, TracedObjects
from paddlecloud.ui.asked import Asked

SECTIONS = {lineage.DATA: "samplesets", lineage.JOB: "jobs", lineage.SERVICE: "services"}
READ = (MODELVERSIONS, MODELS, PADDLEJOBS, SAMPLESETS, PADDLESERVICES)
MOST_BRANCHES = 200
"""Of one tree: a data set may have fed a thousand jobs."""


class Branch(NamedTuple):
    kind: str
    name: str
    state: str
    facts: list[str]
    place: tuple[str, ...]
    """The path of its page; empty for what is gone."""
    children: list[Branch]


class Tree(NamedTuple):
    origin: list[Branch]
    use: list[Branch]


class Traces:
    """Of one namespace."""

    def __init__(self, world: TracedObjects, namespace: str, language: str) -> None:
        self._world, self._namespace, self._language = world, namespace, language
        self.unread = world.unread

    def trace(self, kind: str, name: str) -> Tree:
        """Nothing of an object that no version recorded."""
        try:
            found = lineage.trace(self._world, kind, name)
        except NotRecorded:
            return Tree([], [])
        return Tree(self._branches(found.origin), self._branches(found.use))

    def serving(self) -> dict[str, list[tuple[str, object]]]:
        """Version → services that serve it, each with its share in percent or None."""
        found = lineage.serving(self._world).items()
        return {version: [(node.name, node.facts.get("percent")) for node in nodes] for version, nodes in found}

    def _branches(self, nodes: Sequence[LineageNode]) -> list[Branch]:
        left = MOST_BRANCHES

        def branch(node: LineageNode) -> Branch | None:
            nonlocal left
            if left <= 0:
                return None
            left -= 1
            below = [made for child in node.children if (made := branch(child)) is not None]
            facts = facts_of(node, self._language)
            return Branch(node.kind, node.name, node.state, facts, self._place(node), below)

        return [made for node in nodes if (made := branch(node)) is not None]

    def _place(self, node: LineageNode) -> tuple[str, ...]:
        if node.state in (GONE, REPLACED):
            return ()
        if node.kind == lineage.VERSION:
            model, _, version = node.name.partition(":")
            return "modelversions", self._namespace, object_name(model, version)
        return SECTIONS[node.kind], self._namespace, node.name


async def traced(asked: Asked, namespace: str) -> Traces:
    found = {resource.plural: await asked.reader.objects(resource, namespace) for resource in READ}
    unread = [resource.kind for resource in READ if not await asked.reader.sees(resource, namespace)]
    return Traces(TracedObjects.of(found, unread), namespace, asked.language)
