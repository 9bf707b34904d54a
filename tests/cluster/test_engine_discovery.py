"""An engine is installed, removed and installed again under controllers that work: no restart, and new jobs find it.

The engine is the kind of a gang scheduler that nothing else in the cluster uses.
"""

from __future__ import annotations

import itertools
import json

import pytest

from chart_exercise import COSCHEDULER, COSCHEDULING, job
from harness import Kubectl, until

from .release import leaders, restarts

pytestmark = [pytest.mark.full, pytest.mark.timeout(400), pytest.mark.usefixtures("operators")]

KIND = "podgroups.scheduling.x-k8s.io"


def test_an_engine_that_comes_or_goes_is_noticed_by_a_controller_at_work(kubectl: Kubectl) -> None:
    numbers = itertools.count()

    def gangs_form() -> bool:
        """Whether the next job that asks for that engine's gang gets one: its pods come in any case."""
        name = f"job-{next(numbers)}"
        asks = job(name, pod={"schedulerName": COSCHEDULER}, schedulingPolicy={})
        kubectl("create", "-f", "-", input=json.dumps(asks))
        until(lambda: kubectl("get", "pod", f"{name}-worker-0", check=False).returncode == 0)
        found = kubectl("get", KIND, name, check=False).returncode == 0
        kubectl("delete", "pdj", name, "--wait=false")
        return found

    until(lambda: "paddlejob" in leaders(kubectl))
    before = leaders(kubectl), restarts(kubectl)
    kubectl("apply", "-f", "-", input=json.dumps(COSCHEDULING))
    until(gangs_form, timeout=90)
    kubectl("delete", "crd", KIND, timeout=70)
    until(lambda: not gangs_form(), timeout=90)
    kubectl("apply", "-f", "-", input=json.dumps(COSCHEDULING))
    until(gangs_form, timeout=90)
    assert (leaders(kubectl), restarts(kubectl)) == before
