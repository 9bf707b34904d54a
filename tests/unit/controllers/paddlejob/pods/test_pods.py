"""What every pod carries besides its environment, and the ports that jobs share."""

from __future__ import annotations

from paddlecloud.controllers.paddlejob.pods.ports import SHARED_RANGE, choose
from unit.controllers.paddlejob.world import JobCluster, paddlejob


def test_pods_carry_the_labels_users_select_by() -> None:
    world = JobCluster(paddlejob("ppocrv3", worker=1)).start()
    labels = world.pods["ppocrv3-worker-0"]["metadata"]["labels"]
    assert labels["paddle-res-name"] == "ppocrv3-worker-0"
    assert labels["paddle-res-type"] == "worker"
    assert labels["training.kubeflow.org/replica-index"] == "0"


def test_pods_survive_neither_their_peers_nor_a_mesh() -> None:
    pod = JobCluster(paddlejob(worker=1)).start().pods["job-worker-0"]
    assert pod["spec"]["shareProcessNamespace"] is True
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert pod["spec"]["restartPolicy"] == "Never"


def test_pods_tolerate_a_node_that_is_away_for_half_a_minute() -> None:
    pod = JobCluster(paddlejob(worker=1)).start().pods["job-worker-0"]
    tolerated = {each["key"]: each["tolerationSeconds"] for each in pod["spec"]["tolerations"]}
    assert tolerated == {"node.kubernetes.io/not-ready": 30, "node.kubernetes.io/unreachable": 30}


def test_late_kubelets_are_nudged_once() -> None:
    world = JobCluster(paddlejob(worker=2))
    world.settle()
    world.assign()
    world.step()
    assert world.step().patch == []
    world.now += 1.1
    assert sorted(patch.name for patch in world.step().patch) == ["job-worker-0", "job-worker-1"]
    world.now += 5
    assert world.step().patch == []


def test_jobs_that_share_a_machines_ports_get_blocks_of_their_own() -> None:
    taken: set[int] = set()
    for number in range(len(SHARED_RANGE)):
        block = choose(f"uid-{number}", taken)
        assert block is not None
        taken.add(block)
    assert len(taken) == len(SHARED_RANGE)
    assert choose("one too many", taken) is None


def test_without_a_free_block_the_job_waits_and_says_so() -> None:
    world = JobCluster(paddlejob(worker=1, intranet="Host"))
    world.ports_in_use = frozenset(SHARED_RANGE)
    world.settle()
    assert world.pods == {}
    assert "no free block of ports" in world.status["message"]
