"""The edge between workflows and the artifact repository.

Outputs of pods that are over are taken over, artifacts whose time has come are deleted, and what belongs to
no workflow any more is removed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Any

from paddlecloud.api.argo_nodes import BadPacking, unpacked
from paddlecloud.kube.manager import Manager
from paddlecloud.kube.resource import NAMESPACES, PODS, Object
from paddlecloud.local.workflow.artifacts.locations import due
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.decision.outputs import orders_of, reported_by
from paddlecloud.local.workflow.names import WORKFLOWS
from paddlecloud.local.workflow.nodes import is_over, readable

log = logging.getLogger(__name__)

PERIOD = 3600.0


class Collector:
    """Blocks: called in a thread. Both may be repeated."""

    def __init__(self, repository: Repository) -> None:
        self._repository = repository

    def collect(self, workflow: Object, pods: Mapping[str, Object]) -> dict[str, Mapping[str, Any]]:
        """By the id of their node: what pods that are over reported, once it is in the repository."""
        meta, status = workflow["metadata"], workflow.get("status")
        nodes = readable(status.get("nodes") if isinstance(status, dict) else None)
        collected: dict[str, Mapping[str, Any]] = {}
        for identity, pod in pods.items():
            if (pod.get("status") or {}).get("phase") not in ("Succeeded", "Failed"):
                continue
            if identity in nodes and is_over(nodes[identity]):
                continue
            report, orders = reported_by(pod), orders_of(pod)
            has_log = any(isinstance(each, dict) and each.get("log") for each in orders.get("artifacts") or ())
            if report.get("file") or report.get("artifacts") or has_log:
                collected[identity] = self._repository.collect(
                    meta["namespace"], meta["uid"], pod["metadata"]["uid"], orders, report
                )
        return collected

    def delete_artifacts(self, workflow: Object) -> None:
        """Of a workflow that is over, which may be packed: those whose time has come (`artifactGC`)."""
        meta = workflow["metadata"]
        try:
            whole = unpacked(workflow)
        except BadPacking:
            return  # its nodes name no artifact
        for _, key in due(whole):
            try:
                self._repository.forget(meta["namespace"], key, meta["uid"])
            except OSError as why:
                log.warning("artifact %s of workflow %s stays until the workflow goes: %s", key, meta["name"], why)


class Sweeper:
    """`run` works until cancelled: after each deletion of a workflow or namespace, and every hour."""

    def __init__(self, repository: Repository, manager: Manager) -> None:
        self._repository = repository
        self._informers = [manager.informer(each) for each in (NAMESPACES, WORKFLOWS, PODS)]
        self._deleted = asyncio.Event()
        for informer in self._informers[:2]:
            informer.on_change(self._changed)

    def _changed(self, old: Object | None, new: Object | None) -> None:
        if new is None:
            self._deleted.set()

    async def run(self) -> None:
        for informer in self._informers:
            await informer.wait_synced()
        while True:
            self._deleted.clear()
            namespaces, workflows, pods = (informer.cache for informer in self._informers)
            left = (
                {each["metadata"]["name"] for each in namespaces.list()},
                {each["metadata"]["uid"] for each in workflows.list()},
                {each["metadata"]["uid"] for each in pods.list()},
            )
            try:
                await asyncio.to_thread(self._repository.sweep, *left)
            except Exception as why:  # the platform does not end with its sweeper
                log.warning("artifacts of deleted workflows could not be removed: %s; it is tried again", why)
            try:
                await asyncio.wait_for(self._deleted.wait(), PERIOD)
            except asyncio.TimeoutError:
                continue
