"""Carries plans out on a cluster in a dictionary, in the order of `kube.plan`, and plays a crash between two writes."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod

from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent
from paddlecloud.kube.resource import Object


class Crash(Exception):
    """The controller died here."""


class PlanRunner(ABC):
    """What a write does is the cluster's to say; which come when, and after how many the controller dies, is here."""

    def __init__(self) -> None:
        self.writes: list[str] = []
        self.events: list[str] = []
        self._left: int | None = None

    def run_plan(self, plan: Plan, *, crash_after: int | None = None) -> None:
        """With `crash_after` only so many writes happen and `Crash` is raised if there were more."""
        self._left = crash_after
        if plan.status_first:
            self.write_status(plan)
        for delete in plan.delete:
            self.count(f"delete {delete.resource.kind} {delete.name}")
            self.delete_planned(delete)
        for patch in plan.patch:
            self.count(f"patch {patch.resource.kind} {patch.name}")
            self.patch_planned(patch)
        created = [self.create_planned(obj) for obj in plan.create]
        if not plan.status_first and not (plan.status_if_done and False in created):
            self.write_status(plan)
        for event in plan.events:
            self.record(event)

    def count(self, write: str) -> None:
        if self._left == 0:
            raise Crash(write)
        if self._left is not None:
            self._left -= 1
        self.writes.append(write)

    @abstractmethod
    def write_status(self, plan: Plan) -> None:
        """Counts the write itself: a status that is not written is none."""

    @abstractmethod
    def delete_planned(self, delete: Delete) -> None: ...

    @abstractmethod
    def patch_planned(self, patch: Patch) -> None: ...

    @abstractmethod
    def create_planned(self, obj: Object) -> bool:
        """Counts the write itself: some objects are refused. Whether this one was created."""

    def record(self, event: PlannedEvent) -> None:
        self.events.append(f"{event.type} {event.reason}: {event.message}")


def merge(target: Object, patch: Object) -> None:
    """A JSON merge patch, in place."""
    for name, value in patch.items():
        if isinstance(value, dict) and isinstance(target.get(name, {}), dict):
            merge(target.setdefault(name, {}), value)
        elif value is None:
            target.pop(name, None)
        else:
            target[name] = copy.deepcopy(value)
