"""A decision in the making: what every rule adds to, and the few steps that several rules share."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from paddlecloud.api.fields import Condition
from paddlecloud.api.sampleset import SampleSetStatus
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.kube import conditions
from paddlecloud.kube.plan import Patch, Plan, PlannedEvent
from paddlecloud.kube.resource import NODES, Object, resource_of


@dataclass(slots=True)
class Decision(Plan):
    """With the work to give to cache servers, by pod, before the rest is carried out."""

    submit: dict[str, Work] = field(default_factory=dict)


@dataclass(slots=True)
class Draft:
    """A decision in the making: the status so far, what to do, and when to look again."""

    case: SampleSetCase
    status: SampleSetStatus
    plan: Decision = field(default_factory=Decision)

    def set(self, **changes: object) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)

    def condition(self, name: str, value: bool | None, reason: str, message: str = "") -> None:
        status = "Unknown" if value is None else str(value)
        found = Condition(type=name, status=status, reason=reason, message=message or None)
        self.set(conditions=conditions.put(self.status.conditions, found, self.case.now))

    def say(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.plan.events.append(PlannedEvent(reason, message, type="Warning" if warning else "Normal"))

    def complain(self, condition: str, reason: str, message: str, *, event: str) -> None:
        """Something is wrong: said in a condition and the message, and as an event the first time."""
        known = conditions.find(self.case.old.conditions, condition)
        if known is None or (known.status, known.message) != ("False", message):
            self.say(event, message, warning=True)
        self.condition(condition, False, reason, message)
        self.set(message=message)

    def look_again(self, seconds: float) -> None:
        self.plan.after = seconds if self.plan.after is None else min(self.plan.after, seconds)


def set_finalizers(obj: Object, marks: list[str]) -> Patch:
    """Fails when somebody else wrote meanwhile: a list in a merge patch replaces the whole list."""
    meta = obj["metadata"]
    body = {"metadata": {"finalizers": marks, "resourceVersion": meta["resourceVersion"]}}
    return Patch(resource_of(obj), meta["name"], meta["namespace"], body, seen=meta["resourceVersion"])


def unlabel(case: SampleSetCase, node: str) -> Patch:
    return Patch(NODES, node, None, {"metadata": {"labels": {case.label: None}}})
