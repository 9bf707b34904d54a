"""The manual's policies: what stays of a job that has ended, how pods are addressed, and their settings for gloo."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, until

from .hands import apply, job, reached, read

pytestmark = [pytest.mark.core, pytest.mark.timeout(300), pytest.mark.usefixtures("operators")]

ENDS = {"Completed": "true", "Failed": "false"}
"""How a job may end, and the program that brings it there."""
KEPT: dict[str, set[str]] = {
    "Always": set(),
    "Never": {"Completed", "Failed"},
    "OnFailure": {"Completed"},
    "OnCompletion": {"Failed"},
}
"""The ends after which the pods of a job are still there, by cleanPodPolicy."""


def test_pods_stay_or_go_as_the_policy_says(kubectl: Kubectl) -> None:
    jobs = {(policy, end): f"{policy}-{end}".lower() for policy in KEPT for end in ENDS}
    bodies = [
        json.loads(job(name, ENDS[end], workers=1, cleanPodPolicy=policy, pod={"restartPolicy": "Never"}))
        for (policy, end), name in jobs.items()
    ]
    apply(kubectl, json.dumps({"apiVersion": "v1", "kind": "List", "items": bodies}))
    for (_, end), name in jobs.items():
        reached(kubectl, name, end)
    expected = {f"{name}-worker-0" for (policy, end), name in jobs.items() if end in KEPT[policy]}

    def left() -> set[str]:
        return {pod["metadata"]["name"] for pod in read(kubectl, "pods")["items"]}

    until(lambda: left() == expected)


def test_gloo_meets_at_the_first_server_however_pods_are_addressed(kubectl: Kubectl, namespace: str) -> None:
    tells = "env | grep GLOO; echo SERVER=$PADDLE_PSERVERS_IP_PORT_LIST"
    program = f'test "$TRAINING_ROLE" = TRAINER || exec sleep 600; {tells}'
    wanted = {"plain": ("PodIP", 1), "named": ("Service", 2)}
    for name, (intranet, level) in wanted.items():
        apply(kubectl, job(name, program, ps=1, workers=1, intranet=intranet, withGloo=level))
    for name, (intranet, level) in wanted.items():
        reached(kubectl, name, "Completed")
        reported = dict(line.split("=", 1) for line in kubectl("logs", f"{name}-worker-0").stdout.splitlines())
        server, _, port = reported["SERVER"].rpartition(":")
        assert reported["PADDLE_WITH_GLOO"] == str(level)
        assert reported["PADDLE_GLOO_HTTP_ENDPOINT"] == f"{server}:{int(port) + 18}", "a port that no rank listens on"
        address = read(kubectl, "pod", f"{name}-ps-0")["status"]["podIP"]
        assert server == (address if intranet == "PodIP" else f"{name}-ps-0.{name}.{namespace}.svc")
