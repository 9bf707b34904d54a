"""PaddleJobs and the nodes they run on: pods that use the node's own network, and a node that is lost."""

from __future__ import annotations

import json

import pytest

from harness import Kubectl, until

from .hands import (
    APART,
    HOLD,
    Hands,
    Story,
    apply,
    identities,
    job,
    kill,
    mortal_node,
    nodes_of,
    reached,
    read,
    release,
    status,
)

pytestmark = [pytest.mark.full, pytest.mark.timeout(400), pytest.mark.usefixtures("several_nodes")]


@pytest.fixture
def several_nodes(hands: Hands) -> None:
    hands.have_nodes(3)


def test_on_the_nodes_own_network_ranks_have_a_node_each_and_its_address(kubectl: Kubectl) -> None:
    apply(kubectl, job("hosted", f"{HOLD}; echo $POD_IP:$PADDLE_PORT $PADDLE_TRAINER_ENDPOINTS", intranet="Host"))
    found = reached(kubectl, "hosted", "Running")
    nodes = nodes_of(kubectl, "hosted")
    assert len(set(nodes.values())) == 2
    addresses = {
        node["metadata"]["name"]: next(a["address"] for a in node["status"]["addresses"] if a["type"] == "InternalIP")
        for node in read(kubectl, "nodes")["items"]
    }
    release(kubectl, *nodes)
    reached(kubectl, "hosted", "Completed")
    own = {pod: f"{addresses[node]}:{found['port']}" for pod, node in nodes.items()}
    for pod, endpoint in own.items():
        assert kubectl("logs", pod).stdout.split() == [endpoint, ",".join(own[each] for each in sorted(own))]


def test_more_ranks_than_nodes_do_not_fit_on_the_nodes_own_network(kubectl: Kubectl) -> None:
    nodes = len(read(kubectl, "nodes")["items"])
    apply(kubectl, job("crowded", HOLD, intranet="Host", workers=nodes + 1))
    until(lambda: "free ports" in status(kubectl, "crowded").get("message", ""))
    assert status(kubectl, "crowded")["phase"] == "Pending"


def test_two_jobs_on_the_nodes_own_network_do_not_share_ports(kubectl: Kubectl) -> None:
    for name in ("left", "right"):
        apply(kubectl, job(name, HOLD, intranet="Host", workers=1))
    ports = {reached(kubectl, name, "Running")["port"] for name in ("left", "right")}
    assert len(ports) == 2


def test_a_lost_node_restarts_the_job_elsewhere_on_a_budget_of_its_own(
    kubectl: Kubectl, hands: Hands, story: Story
) -> None:
    body = json.loads(job("moved", HOLD, backoffLimit=1))
    body["spec"]["worker"]["template"]["spec"]["affinity"] = APART
    apply(kubectl, json.dumps(body))
    reached(kubectl, "moved", "Running")
    lost = mortal_node(kubectl, "moved")
    before = identities(kubectl, "moved")
    hands.lose_node(lost)
    try:
        until(lambda: status(kubectl, "moved").get("disruptions") == 1, timeout=150)
        found = reached(kubectl, "moved", "Running", timeout=150)
        assert lost not in nodes_of(kubectl, "moved").values()
        assert not set(identities(kubectl, "moved").values()) & set(before.values())
        assert (found.get("restarts"), found["failures"][-1]["failureClass"]) == (None, "NodeLost")
        assert found["failures"][-1]["node"] == lost
    finally:
        hands.restore_node(lost)
    kill(kubectl, "moved-worker-0")
    until(lambda: status(kubectl, "moved").get("restarts") == 1)
    reached(kubectl, "moved", "Running")
    release(kubectl, *identities(kubectl, "moved"))
    reached(kubectl, "moved", "Completed")
    story.was("moved", *["Running", "Restarting"] * 2, "Running", "Completed")
