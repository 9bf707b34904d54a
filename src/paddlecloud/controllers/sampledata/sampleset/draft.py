"""The draft of a SampleSet's status and plan, and the few steps that several rules share."""

from __future__ import annotations

from dataclasses import dataclass, field

from paddlecloud.api.sampleset import SampleSetStatus
from paddlecloud.controllers.sampledata.draft import Draft
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.servers.requests import Work
from paddlecloud.kube import conditions
from paddlecloud.kube.plan import Patch, Plan
from paddlecloud.kube.resource import NODES


@dataclass(slots=True)
class SampleSetPlan(Plan):
    """With the work to give to cache servers, by pod, before the rest is carried out."""

    submit: dict[str, Work] = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class SampleSetDraft(Draft):
    case: SampleSetCase
    status: SampleSetStatus
    plan: SampleSetPlan = field(default_factory=SampleSetPlan)

    @classmethod
    def of(cls, case: SampleSetCase, status: SampleSetStatus) -> SampleSetDraft:
        return cls(case=case, status=status, now=case.now)

    def report_problem(self, condition: str, reason: str, message: str, *, event: str) -> None:
        """Something is wrong: said in a condition and the message, and as an event the first time."""
        known = conditions.find(self.case.old.conditions, condition)
        if known is None or (known.status, known.message) != ("False", message):
            self.add_event(event, message, warning=True)
        self.condition(condition, False, reason, message)
        self.set(message=message)


def unlabel(case: SampleSetCase, node: str) -> Patch:
    return Patch(NODES, node, None, {"metadata": {"labels": {case.label: None}}})
