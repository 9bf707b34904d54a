"""A status and a plan in the making: what every rule adds to, and the steps that both kinds share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from paddlecloud.api.fields import Condition
from paddlecloud.kube import conditions
from paddlecloud.kube.plan import Plan, PlannedEvent


@dataclass(slots=True, kw_only=True)
class Draft:
    """`status` is the kind's own struct: the status so far. `plan` is what to do, and when to look again."""

    status: Any
    plan: Plan
    now: float

    def set(self, **changes: object) -> None:
        self.status = msgspec.structs.replace(self.status, **changes)

    def condition(self, name: str, value: bool | None, reason: str, message: str = "") -> None:
        status = "Unknown" if value is None else str(value)
        found = Condition(type=name, status=status, reason=reason, message=message or None)
        self.set(conditions=conditions.put(self.status.conditions, found, self.now))

    def add_event(self, reason: str, message: str, *, warning: bool = False) -> None:
        self.plan.events.append(PlannedEvent(reason, message, type="Warning" if warning else "Normal"))

    def requeue_after(self, seconds: float) -> None:
        self.plan.requeue_after(seconds)
