"""An engine is installed, removed and installed again under controllers that work: no restart, and new jobs find it.

The engine is the kind of a gang scheduler that nothing else in the cluster uses.
"""

from __future__ import annotations

import json

import pytest

from chart_exercise import COSCHEDULER, COSCHEDULING, job
from harness import Kubectl, until

from .operators import NAMESPACE
from .release import leaders

pytestmark = [pytest.mark.full, pytest.mark.timeout(400), pytest.mark.usefixtures("operators")]


def test_an_engine_that_comes_or_goes_is_noticed_by_a_controller_at_work(kubectl: Kubectl) -> None:
    kind = "podgroups.scheduling.x-k8s.io"

    def told(what: str) -> bool:
        log = kubectl("logs", "-n", NAMESPACE, leaders(kubectl)["paddlejob"]).stdout
        return log.rpartition("engines changed:")[2].lstrip().startswith(f"{kind} {what}")

    def group_of(name: str) -> bool:
        """For a job that asks for that engine's gang, in a group of its own."""
        spec = {"schedulerName": COSCHEDULER}
        kubectl("apply", "-f", "-", input=json.dumps(job(name, pod=spec, schedulingPolicy={})))
        return kubectl("get", kind, name, check=False).returncode == 0

    kubectl("apply", "-f", "-", input=json.dumps(COSCHEDULING))
    until(lambda: group_of("early"), timeout=90)
    kubectl("delete", "crd", kind, timeout=70)
    until(lambda: told("is gone"), timeout=90)
    kubectl("apply", "-f", "-", input=json.dumps(COSCHEDULING))
    until(lambda: told("is there"), timeout=90)
    until(lambda: group_of("late"), timeout=60)
