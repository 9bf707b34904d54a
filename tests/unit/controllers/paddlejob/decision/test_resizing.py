"""Other numbers of pods: suspension, scaling, and elastic jobs that form themselves through etcd."""

from __future__ import annotations

from typing import Any

from unit.controllers.paddlejob.world import JobCluster, conditions, paddlejob, template


def test_a_suspended_job_has_no_pods_and_no_start_time() -> None:
    world = JobCluster(paddlejob(worker=2, suspend=True))
    world.settle()
    assert world.pods == {}
    assert world.phase == "Suspended"
    assert "startTime" not in world.status


def test_suspending_and_resuming_a_running_job() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    first = world.status["startTime"]
    world.job["spec"]["suspend"] = True
    world.settle()
    world.obey()
    world.settle()
    assert (world.phase, world.pods) == ("Suspended", {})
    assert conditions(world)["Suspended"] == "True"
    world.job["spec"]["suspend"] = False
    world.now += 10
    world.start()
    assert world.status["startTime"] > first
    assert conditions(world)["Suspended"] == "False"
    assert world.status.get("restarts") is None


def test_other_numbers_of_pods_form_the_job_anew() -> None:
    world = JobCluster(paddlejob(ps=3, worker=2, withGloo=1)).start()
    world.job["spec"]["ps"]["replicas"], world.job["spec"]["worker"]["replicas"] = 1, 4
    world.step()
    assert world.phase == "Scaling"
    world.obey()
    world.start()
    assert sorted(world.pods) == ["job-ps-0", *(f"job-worker-{i}" for i in range(4))]
    assert world.env("job-worker-3")["PADDLE_TRAINERS_NUM"] == "4"
    assert len(world.env("job-worker-0")["PADDLE_PSERVERS_IP_PORT_LIST"].split(",")) == 1
    assert len(world.status["ps"]["refs"]) == 1
    assert len(world.status["worker"]["refs"]) == 4
    assert world.status.get("restarts") is None, "scaling is not a failure"


def test_an_elastic_job_says_how_its_last_change_went() -> None:
    world = JobCluster(paddlejob(worker=2, elastic=1)).start()
    assert world.status["elastic"] == "NONE"
    world.job["spec"]["worker"] |= {"replicas": 3, "limits": 3}
    world.step()
    assert (world.phase, world.status["elastic"]) == ("Scaling", "DOING")
    world.obey()
    world.start()
    assert (world.phase, world.status["elastic"]) == ("Running", "DONE")


def test_scaling_before_anything_started_restarts_nothing() -> None:
    world = JobCluster(paddlejob(worker=2))
    world.settle()
    world.job["spec"]["worker"]["replicas"] = 3
    world.start()
    assert world.status["generation"] == 0
    assert len(world.pods) == 3


def test_an_elastic_job_of_one_worker_is_still_collective() -> None:
    block = {"replicas": 1, "requests": 1, "limits": 3, "template": template()}
    assert JobCluster(paddlejob(worker=block, elastic=1)).start().status["mode"] == "Collective"


def through_etcd(**container: Any) -> JobCluster:
    env = [{"name": "PADDLE_MASTER", "value": "etcd://paddle-elastic-etcd:2379"}]
    block = {"replicas": 2, "requests": 1, "limits": 4, "template": template(container={"env": env, **container})}
    return JobCluster(paddlejob(worker=block, elastic=1, cleanPodPolicy="Never"))


def run_alone(world: JobCluster) -> None:
    """These pods start as soon as they have a node: they find each other by themselves."""
    world.assign()
    for pod in world.pods.values():
        if pod["status"]["phase"] == "Pending":
            pod["status"]["phase"] = "Running"
            pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": True, "state": {"running": {}}}]
    world.settle()


def test_with_an_etcd_pods_get_the_address_where_to_meet_and_wait_for_nothing() -> None:
    world = through_etcd()
    world.settle()
    run_alone(world)
    assert world.phase == "Running"
    assert world.get("ConfigMap") is None
    seen = world.env("job-worker-1")
    assert seen["PADDLE_MASTER"] == "etcd://paddle-elastic-etcd:2379"
    assert (seen["PADDLE_NNODES"], seen["PADDLE_JOB_ID"]) == ("1:4", "default-job")
    assert (seen["PADDLE_ELASTIC_NP"], seen["PADDLE_ELASTIC_SERVER"]) == ("2", "paddle-elastic-etcd:2379")
    assert "PADDLE_TRAINER_ENDPOINTS" not in seen, "it would overrule the master"
    container = world.pods["job-worker-0"]["spec"]["containers"][0]
    assert "envFrom" not in container
    assert world.pods["job-worker-0"]["spec"]["restartPolicy"] == "OnFailure"


def test_with_an_etcd_scaling_and_losses_touch_single_pods() -> None:
    world = through_etcd()
    world.settle()
    run_alone(world)
    first = world.pods["job-worker-0"]["metadata"]["uid"]
    world.job["spec"]["worker"]["replicas"] = 3
    world.settle()
    run_alone(world)
    world.vanish("job-worker-1")
    world.settle()
    run_alone(world)
    world.fail("job-worker-2", code=137, pod={"reason": "Evicted"})
    world.settle()
    run_alone(world)
    assert len(world.pods) == 3
    world.job["spec"]["worker"]["replicas"] = 1
    world.settle()
    world.obey()
    assert {name: pod["metadata"]["uid"] for name, pod in world.pods.items()} == {"job-worker-0": first}
    assert world.status["generation"] == 0
    world.succeed("job-worker-0")
    world.settle()
    assert world.phase == "Completed"
