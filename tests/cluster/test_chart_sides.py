"""Two releases of one name on a cluster, each for its own namespace: neither sees the other, and one may go."""

from __future__ import annotations

import json

import pytest
from rendered import CHART

from chart_exercise import job
from chart_rights import refused
from harness import Kubectl, Target, namespace_on, until

from .operators import VALUES
from .release import aside, audit_log, helm

pytestmark = [pytest.mark.full, pytest.mark.timeout(400), pytest.mark.usefixtures("operators")]

OWN = {**VALUES, "watch": "namespace", "sampleset.enabled": "false", "paddlejob.replicas": "1"}


def test_two_releases_of_one_name_live_side_by_side(kubectl: Kubectl, namespace: str, server: Target) -> None:
    values = [word for name, value in OWN.items() for word in ("--set", f"{name}={value}")]

    def phase(team: str) -> str:
        return kubectl("-n", team, "get", "pdj", "same", "-o", "jsonpath={.status.phase}").stdout

    with aside(kubectl), namespace_on(server) as other:
        for team in (namespace, other):
            helm(server, "install", "side", str(CHART), "--namespace", team, "--wait", "--timeout=150s", *values)
            kubectl("-n", team, "apply", "-f", "-", input=json.dumps(job("same", workers=1)))
        for team in (namespace, other):
            until(lambda team=team: phase(team) == "Running", timeout=90)  # type: ignore[misc]

        helm(server, "uninstall", "side", "--namespace", namespace, "--wait")
        for team in (namespace, other):
            kubectl("-n", team, "exec", "same-worker-0", "--", "touch", "/tmp/go")
        until(lambda: phase(other) == "Completed", timeout=90)
        assert phase(namespace) == "Running", "nobody looks after it any more"

        log = audit_log()
        assert refused(log, other) == []
        for team, stranger in ((namespace, other), (other, namespace)):
            asked = [line for line in log.read_text().splitlines() if f":{team}:paddlejob-sa" in line]
            assert asked
            assert not [line for line in asked if f'"namespace":"{stranger}"' in line], "neither looks into the other's"
        helm(server, "uninstall", "side", "--namespace", other, "--wait")
