"""The rules of a PaddleJob: phases, cleaning up, time limits, suspension, scaling, gangs, data, bad input."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from paddlecloud.controllers.paddlejob import Options, data
from paddlecloud.controllers.paddlejob.gang import COSCHEDULING, VOLCANO
from paddlecloud.controllers.paddlejob.ports import SHARED_RANGE, choose
from paddlecloud.kube.clock import rfc3339

from .world import World, paddlejob, template


def conditions(world: World) -> dict[str, str]:
    return {c["type"]: c["status"] for c in world.status.get("conditions", ())}


# Phases


def test_phases_in_the_order_a_user_sees_them() -> None:
    world = World(paddlejob(worker=2, cleanPodPolicy="Never"))
    seen = []

    def look() -> None:
        world.now += 100
        world.settle()
        seen.append((world.phase, world.status["worker"]["ready"]))

    look()
    world.assign("job-worker-0")
    look()
    world.assign("job-worker-1")
    look()
    world.run("job-worker-0")
    look()
    world.run("job-worker-1")
    look()
    world.succeed("job-worker-0")
    look()
    world.succeed("job-worker-1")
    look()
    assert seen == [
        ("Pending", "0/2"),
        ("Pending", "0/2"),
        ("Starting", "0/2"),
        ("Starting", "1/2"),
        ("Running", "2/2"),
        ("Running", "1/2"),
        ("Completed", "0/2"),
    ]
    assert world.status["startTime"] < world.status["completionTime"]
    assert conditions(world) == {"Created": "True", "PodsReady": "True", "Running": "False", "Succeeded": "True"}


@pytest.mark.parametrize(
    ("code", "phase"), [pytest.param(0, "Running", id="done"), pytest.param(1, "Starting", id="broken")]
)
def test_a_helper_beside_the_program_that_is_done_is_not_awaited(code: int, phase: str) -> None:
    world = World(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.settle()
    world.run()
    ended = {"name": "helper", "ready": False, "state": {"terminated": {"exitCode": code}}}
    world.pods["job-worker-0"]["status"]["containerStatuses"].append(ended)
    world.now += 100
    world.settle()
    assert world.phase == phase


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Succeed", "Terminated"])
def test_the_end_is_the_end_in_old_words_and_new(phase: str) -> None:
    job = paddlejob(worker=2)
    job["status"] = {"phase": phase}
    world = World(job)
    world.settle()
    assert world.writes == [], "a finished job creates nothing, whoever deleted its pods"


def test_a_finished_job_does_not_resurrect_deleted_pods() -> None:
    world = World(paddlejob(worker=2, cleanPodPolicy="Never")).start()
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    world.vanish("job-worker-0")
    world.settle()
    assert sorted(world.pods) == ["job-worker-1"]


def test_status_is_not_written_when_nothing_changed() -> None:
    world = World(paddlejob(worker=2)).start()
    before = len(world.writes)
    world.now += 1000
    world.settle()
    world.now += 1000
    world.settle()
    assert len(world.writes) - before <= 1, world.writes[before:]


def test_refs_name_the_pods_by_index() -> None:
    world = World(paddlejob(worker=12)).start()
    names = [ref["name"] for ref in world.status["worker"]["refs"]]
    assert names == [f"job-worker-{i}" for i in range(12)]
    assert all("resourceVersion" not in ref for ref in world.status["worker"]["refs"])


def test_what_is_awaited_is_said_on_the_job() -> None:
    world = World(paddlejob(worker=1))
    world.settle()
    said = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": "0/3 nodes: no gpu"}
    world.pods["job-worker-0"]["status"]["conditions"] = [said]
    world.now += 100
    world.settle()
    assert world.status["message"] == "job-worker-0 is not scheduled: 0/3 nodes: no gpu"


# Completion


@pytest.mark.parametrize(
    ("policy", "done", "phase"),
    [
        (None, ["job-worker-0"], "Completed"),
        ("Workers", ["job-worker-0"], "Completed"),
        ("AllRoles", ["job-worker-0"], "Running"),
        ("AllRoles", ["job-worker-0", "job-ps-0"], "Completed"),
        (None, ["job-ps-0"], "Running"),
    ],
)
def test_who_decides_completion(policy: str | None, done: list[str], phase: str) -> None:
    spec = {"successPolicy": policy} if policy else {}
    world = World(paddlejob(ps=1, worker=1, withGloo=1, cleanPodPolicy="Never", **spec)).start()
    world.succeed(*done)
    world.settle()
    assert world.phase == phase


def test_a_server_that_falls_when_the_workers_are_done_is_no_failure() -> None:
    world = World(paddlejob(ps=1, worker=1, withGloo=1)).start()
    world.succeed("job-worker-0")
    world.fail("job-ps-0", code=1)
    world.settle()
    assert world.phase == "Completed"


# cleanPodPolicy


@pytest.mark.parametrize(
    ("policy", "completed", "failed"),
    [
        (None, 0, 2),
        ("Always", 0, 0),
        ("OnCompletion", 0, 2),
        ("OnFailure", 2, 0),
        ("Never", 2, 2),
        ("Nerver", 2, 2),
        ("OnFailed", 2, 0),
        ("All", 0, 0),
        ("Running", 2, 1),
    ],
)
def test_clean_pod_policy(policy: str | None, completed: int, failed: int) -> None:
    left = {}
    for ending in ("Completed", "Failed"):
        spec: dict[str, Any] = {"cleanPodPolicy": policy} if policy else {}
        world = World(paddlejob(worker=2, backoffLimit=0, **spec)).start()
        if ending == "Completed":
            world.succeed("job-worker-0", "job-worker-1")
        else:
            world.fail("job-worker-0", code=1)
        for _ in range(2):
            world.settle()
            world.obey()
        assert world.phase == ending
        left[ending] = len(world.pods)
    assert left == {"Completed": completed, "Failed": failed}


def test_pods_of_a_failed_job_that_are_kept_do_not_go_on_using_the_machine() -> None:
    world = World(paddlejob(worker=2, backoffLimit=0, cleanPodPolicy="Never")).start()
    world.fail("job-worker-0", code=1)
    world.settle()
    world.obey()
    assert world.pods["job-worker-1"]["status"]["phase"] == "Failed"
    assert world.status["worker"]["running"] == 1, "counts stay as they were at the end"


# Time


def test_a_finished_job_is_forgotten_after_its_ttl() -> None:
    world = World(paddlejob(worker=1, ttlSecondsAfterFinished=60)).start()
    world.succeed("job-worker-0")
    world.settle()
    assert world.plan().after == pytest.approx(60, abs=1)
    world.now += 61
    (deletion,) = [d for d in world.plan().delete if d.resource.kind == "PaddleJob"]
    assert deletion.uid == "uid-job"


def test_the_active_deadline_fails_the_job() -> None:
    world = World(paddlejob(worker=1, activeDeadlineSeconds=60)).start()
    assert world.plan().after == pytest.approx(60, abs=1)
    world.now += 61
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "DeadlineExceeded")


def test_the_schedule_timeout_counts_only_until_pods_have_nodes() -> None:
    spec = {"worker": 2, "scheduleTimeoutSeconds": 60}
    placed = World(paddlejob(**spec)).start()
    placed.now += 100
    placed.settle()
    assert placed.phase == "Running"
    waiting = World(paddlejob(**spec))
    waiting.settle()
    waiting.assign("job-worker-0")
    waiting.now += 100
    waiting.settle()
    assert (waiting.phase, waiting.status["reason"]) == ("Failed", "ScheduleTimeout")


# Suspension


def test_a_suspended_job_has_no_pods_and_no_start_time() -> None:
    world = World(paddlejob(worker=2, suspend=True))
    world.settle()
    assert world.pods == {}
    assert world.phase == "Suspended"
    assert "startTime" not in world.status


def test_suspending_and_resuming_a_running_job() -> None:
    world = World(paddlejob(worker=2)).start()
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


# Scaling


def test_other_numbers_of_pods_form_the_job_anew() -> None:
    world = World(paddlejob(ps=3, worker=2, withGloo=1)).start()
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


def test_scaling_before_anything_started_restarts_nothing() -> None:
    world = World(paddlejob(worker=2))
    world.settle()
    world.job["spec"]["worker"]["replicas"] = 3
    world.start()
    assert world.status["generation"] == 0
    assert len(world.pods) == 3


# Gangs


def test_the_pod_group_sums_what_the_pods_ask_for() -> None:
    worker = {"replicas": 2, "template": template(container={"resources": {"requests": {"cpu": "200m"}}})}
    server = {"replicas": 2, "template": template(container={"resources": {"limits": {"cpu": "300m"}}})}
    policy = {"queue": "paddle", "priorityClass": "high"}
    world = World(paddlejob(ps=server, worker=worker, schedulingPolicy=policy, withGloo=1)).start()
    group = world.get("PodGroup")
    assert group is not None
    assert group["spec"] == {
        "minMember": 4,
        "minResources": {"cpu": "1"},
        "queue": "paddle",
        "priorityClassName": "high",
    }
    pod = world.pods["job-ps-0"]
    assert pod["spec"]["schedulerName"] == "volcano"
    assert pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"] == "job"


def test_pods_wait_until_the_group_is_queued_and_the_job_says_so() -> None:
    world = World(paddlejob(worker=2, schedulingPolicy={}))
    world.step()
    group = world.get("PodGroup")
    assert group is not None
    said = {"type": "Unschedulable", "status": "True", "message": "2/2 tasks in gang unschedulable"}
    group["status"] = {"phase": "Pending", "conditions": [said]}
    world.now += 100
    world.settle()
    assert world.pods == {}
    assert "2/2 tasks in gang unschedulable" in world.status["message"]
    group["status"] = {"phase": "Inqueue"}
    world.settle()
    assert len(world.pods) == 2


def volcano_worker() -> dict[str, Any]:
    return paddlejob(
        worker={"replicas": 2, "template": template(schedulerName="volcano")}, ps=2, withGloo=1, cleanPodPolicy="Never"
    )


def test_the_manuals_form_uses_the_users_pod_group_for_all_roles() -> None:
    world = World(volcano_worker())
    world.step()
    assert world.pods == {}, "the file lists the job first: its PodGroup follows"
    users = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "metadata": {"name": "job", "namespace": "default"},
        "spec": {"minMember": 4},
        "status": {"phase": "Inqueue"},
    }
    world.objects[("PodGroup", "job")] = copy.deepcopy(users)
    world.start()
    assert {pod["spec"]["schedulerName"] for pod in world.pods.values()} == {"volcano"}
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert world.get("PodGroup") == users, "neither changed nor deleted"


def test_without_a_users_pod_group_one_is_made_after_a_few_seconds() -> None:
    world = World(volcano_worker())
    assert world.step().after == pytest.approx(3, abs=0.1)
    world.now += 3
    world.settle()
    assert world.get("PodGroup") is not None


def test_a_foreign_scheduler_turns_the_gang_off() -> None:
    worker = {"replicas": 1, "template": template(schedulerName="mine")}
    world = World(paddlejob(worker=worker, schedulingPolicy={"queue": "q"})).start()
    assert world.get("PodGroup") is None
    assert world.pods["job-worker-0"]["spec"]["schedulerName"] == "mine"


def test_the_pod_group_follows_the_scale_and_goes_with_the_job() -> None:
    world = World(paddlejob(worker=2, schedulingPolicy={})).start()
    world.job["spec"]["worker"]["replicas"] = 3
    world.step()
    world.obey()
    world.start()
    group = world.get("PodGroup")
    assert group is not None
    assert group["spec"]["minMember"] == 3
    world.succeed(*world.pods)
    world.settle()
    assert world.get("PodGroup") is None


def coscheduled(**spec: Any) -> World:
    """A cluster with the coscheduling plugin and without Volcano."""
    return World(paddlejob(**spec), options=Options(gangs=(COSCHEDULING,)))


def test_where_only_coscheduling_is_served_its_pod_group_is_made_with_the_pods() -> None:
    policy = {"minAvailable": 2, "priorityClass": "high", "queue": "q"}
    world = coscheduled(worker={"replicas": 3, "template": cpu("500m")}, schedulingPolicy=policy)
    world.step()
    group = world.get("PodGroup")
    assert group is not None
    assert group["apiVersion"] == "scheduling.x-k8s.io/v1alpha1"
    assert group["spec"] == {"minMember": 2, "minResources": {"cpu": "1500m"}}
    pod = world.pods["job-worker-0"]
    assert pod["metadata"]["labels"]["scheduling.x-k8s.io/pod-group"] == "job"
    assert pod["spec"]["schedulerName"] == "scheduler-plugins-scheduler"
    assert pod["spec"]["priorityClassName"] == "high"
    world.start()
    world.succeed(*world.pods)
    world.settle()
    assert world.get("PodGroup") is None


def cpu(amount: str) -> dict[str, Any]:
    return template(container={"resources": {"requests": {"cpu": amount}}})


def test_where_both_are_served_the_named_scheduler_decides() -> None:
    both = Options(gangs=(VOLCANO, COSCHEDULING))
    worker = {"replicas": 1, "template": template(schedulerName="scheduler-plugins-scheduler")}
    for job, group in (
        (paddlejob(worker=worker, schedulingPolicy={}), "scheduling.x-k8s.io/v1alpha1"),
        (paddlejob(worker=1, schedulingPolicy={}), "scheduling.volcano.sh/v1beta1"),
    ):
        world = World(job, options=both).start()
        made = world.get("PodGroup")
        assert made is not None
        assert made["apiVersion"] == group


def test_where_nobody_schedules_gangs_the_job_runs_without_and_says_so() -> None:
    world = World(paddlejob(worker=1, schedulingPolicy={"queue": "q"}), options=Options(gangs=())).start()
    assert world.get("PodGroup") is None
    assert any("serves no PodGroups" in event for event in world.events)


# Data


def with_data(**ref: Any) -> World:
    return World(paddlejob(worker=3, ps=1, withGloo=1, sampleSetRef={"name": "imagenet", "mountPath": "/mnt/x", **ref}))


def test_a_job_waits_for_its_data_and_creates_nothing_meanwhile() -> None:
    world = with_data()
    world.settle()
    assert world.pods == {}
    assert conditions(world)["DataReady"] == "False"
    assert "imagenet not found" in world.status["message"]
    world.claim = {"metadata": {"name": "imagenet"}, "status": {"phase": "Bound"}}
    world.start()
    assert conditions(world)["DataReady"] == "True"


WARM = {"type": "Warm", "status": "True"}


@pytest.mark.parametrize(
    ("wait_for", "phase", "conditions_", "goes"),
    [
        (None, "Syncing", [], False),
        (None, "PartialReady", [], False),
        (None, "Ready", [], True),
        ("Warm", "Ready", [], False),
        ("Warm", "Ready", [{**WARM, "status": "False"}], False),
        ("Warm", "Ready", [WARM], True),
        ("None", "Syncing", [], True),
        ("None", None, [], True),
    ],
)
def test_a_job_waits_for_what_it_asks_of_its_set(
    wait_for: str | None, phase: str | None, conditions_: list[Any], goes: bool
) -> None:
    world = with_data(**({"waitFor": wait_for} if wait_for else {}))
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {"status": {"phase": phase, "conditions": conditions_, "message": "because"}}
    world.settle()
    assert bool(world.pods) is goes
    if goes:
        world.sample_set = {"status": {"phase": "PartialReady"}}
        world.settle()
        assert conditions(world)["DataReady"] == "True", "a job that has its pods waits for nothing"
    else:
        assert "SampleSet default/imagenet is" in world.status["message"]


def test_programs_are_told_where_the_data_and_their_nodes_cache_of_it_are() -> None:
    world = with_data()
    world.claim = {"metadata": {"name": "imagenet"}}
    levels = [{"path": "/dev/shm/a:/data/b", "cacheSize": 100}, {"path": "/hdd/c", "cacheSize": 5000}]
    world.sample_set = {
        "spec": {"cache": {"levels": levels}},
        "status": {"phase": "Ready", "driver": "local", "cacheDirs": ["/dev/shm/a", "/data/b"]},
    }
    world.settle()
    pod = world.pods["job-worker-0"]["spec"]
    env = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert env["PADDLECLOUD_DATA_DIR"] == "/mnt/x"
    assert env["PADDLECLOUD_CACHE_DIR"] == "/cache/0:/cache/1"
    assert env["PADDLECLOUD_CACHE_BYTES"] == str(50 << 20), "of the first folder, where programs add copies"
    folders = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    assert folders == ["/dev/shm/a", "/data/b"]
    own = [mount["subPathExpr"] for mount in pod["containers"][0]["volumeMounts"] if "subPathExpr" in mount]
    assert own == ["$(NODE_NAME)", "$(NODE_NAME)"]


@pytest.mark.parametrize(
    ("total", "spec", "told"),
    [
        ("90 MiB", {}, None),  # each node holds it
        ("150 MiB", {}, "7717"),  # only all together do
        ("1.5 GiB", {}, None),  # not even they do
        ("150 MiB", {"intranet": "Service"}, None),  # Services pass on one port, and not this
        ("", {}, None),  # nobody knows yet
    ],
)
def test_nodes_pass_samples_on_where_only_all_of_them_hold_the_set(
    total: str, spec: dict[str, Any], told: str | None
) -> None:
    ref = {"name": "imagenet", "mountPath": "/mnt/x"}
    world = World(paddlejob(worker=3, withGloo=1, sampleSetRef=ref, **spec))
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {
        "spec": {"cache": {"levels": [{"path": "/dev/shm/a", "cacheSize": 100}]}},
        "status": {
            "phase": "Ready",
            "driver": "local",
            "cacheDirs": ["/dev/shm/a"],
            "cacheStatus": {"totalSize": total},
        },
    }
    world.settle()
    env = {each["name"]: each.get("value") for each in world.pods["job-worker-0"]["spec"]["containers"][0]["env"]}
    assert env.get("PADDLECLOUD_PEER_PORT") == told


def test_a_mount_that_is_its_own_cache_needs_no_other() -> None:
    world = with_data()
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {"status": {"phase": "Ready", "driver": "juicefs"}}
    world.settle()
    names = {entry["name"] for entry in world.pods["job-worker-0"]["spec"]["containers"][0]["env"]}
    assert "PADDLECLOUD_DATA_DIR" in names
    assert "PADDLECLOUD_CACHE_DIR" not in names


def test_a_partition_is_found_by_the_volume_of_its_set() -> None:
    claim = {"spec": {"volumeName": "team-imagenet"}}
    sample_set = {"status": {"driver": "local"}}
    assert data.partition_labels("imagenet", sample_set, claim, 1) == {
        0: ("paddlepaddle.org/local-team-imagenet", "imagenet-runtime-0")
    }


def test_every_role_mounts_the_claim_and_workers_go_where_their_partition_is() -> None:
    mine = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
    affinity = {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [mine]}}}
    block = {"replicas": 3, "template": template(affinity=affinity)}
    ref = {"name": "imagenet", "mountPath": "/mnt/x"}
    world = World(paddlejob(worker=block, ps=1, withGloo=1, sampleSetRef=ref))
    world.claim = {"metadata": {"name": "imagenet"}}
    world.cache_nodes = {i: ("paddlepaddle.org/juicefs-imagenet", f"imagenet-runtime-{i}") for i in range(2)}
    world.settle()
    for pod in world.pods.values():
        assert pod["spec"]["volumes"][-1]["persistentVolumeClaim"] == {"claimName": "imagenet"}
        assert pod["spec"]["containers"][0]["volumeMounts"][-1]["mountPath"] == "/mnt/x"

    def terms(name: str) -> list[Any]:
        required = world.pods[name]["spec"]["affinity"]["nodeAffinity"]
        return list(required["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"])

    (term,) = terms("job-worker-1")
    keys = [(rule["key"], rule["values"]) for rule in term["matchExpressions"]]
    assert keys == [("zone", ["a"]), ("paddlepaddle.org/juicefs-imagenet", ["imagenet-runtime-1"])]
    assert terms("job-worker-2") == [mine], "beyond the partitions: anywhere the user allows"
    assert "affinity" not in world.pods["job-ps-0"]["spec"]


# Pods


def test_pods_carry_the_labels_users_select_by() -> None:
    world = World(paddlejob("ppocrv3", worker=1)).start()
    labels = world.pods["ppocrv3-worker-0"]["metadata"]["labels"]
    assert labels["paddle-res-name"] == "ppocrv3-worker-0"
    assert labels["paddle-res-type"] == "worker"
    assert labels["training.kubeflow.org/replica-index"] == "0"


def test_pods_survive_neither_their_peers_nor_a_mesh() -> None:
    pod = World(paddlejob(worker=1)).start().pods["job-worker-0"]
    assert pod["spec"]["shareProcessNamespace"] is True
    assert pod["metadata"]["annotations"]["sidecar.istio.io/inject"] == "false"
    assert pod["spec"]["restartPolicy"] == "Never"


def test_late_kubelets_are_nudged_once() -> None:
    world = World(paddlejob(worker=2))
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
    world = World(paddlejob(worker=1), options=Options(shared_network=True))
    world.ports_in_use = frozenset(SHARED_RANGE)
    world.settle()
    assert world.pods == {}
    assert "no free block of ports" in world.status["message"]


# Bad input

BAD: dict[str, tuple[dict[str, Any], str]] = {
    "no role": ({}, "at least one role"),
    "no template": ({"worker": {"replicas": 1}}, "spec.worker.template.spec"),
    "no container": ({"worker": {"replicas": 1, "template": {"spec": {"containers": []}}}}, "at least one container"),
    "negative": ({"worker": {"replicas": -1, "template": template()}}, "spec.worker.replicas"),
    "elastic without workers": ({"ps": 1, "elastic": 1}, "an elastic job needs workers"),
    "unknown intranet": ({"worker": 1, "intranet": "Carrier"}, "spec.intranet"),
    "not a mapping": ({"worker": "two"}, "worker"),
    "sample set without a name": ({"worker": 1, "sampleSetRef": {"mountPath": "/x"}}, "sampleSetRef.name"),
}


@pytest.mark.parametrize("case", BAD.values(), ids=BAD.keys())
def test_bad_input_is_named_and_creates_nothing(case: tuple[dict[str, Any], str]) -> None:
    spec, word = case
    world = World(paddlejob(**spec))
    world.settle()
    assert world.objects == {}
    assert world.phase == "Failed"
    assert conditions(world)["Valid"] == "False"
    assert word in world.status["message"]
    assert any("InvalidSpec" in event for event in world.events)
    assert len(world.writes) == 2, "one status, one event, and silence"


def test_a_name_that_is_too_long_is_refused() -> None:
    world = World(paddlejob("x" * 60, worker=1))
    world.settle()
    assert "use a job name of at most" in world.status["message"]


def test_an_invalid_job_begins_when_it_is_repaired() -> None:
    world = World(paddlejob(worker=1, intranet="Carrier"))
    world.settle()
    world.job["spec"]["intranet"] = "PodIP"
    world.job["metadata"]["generation"] = 2
    world.start()
    assert conditions(world)["Valid"] == "True"


def test_a_job_managed_by_somebody_else_is_left_alone() -> None:
    world = World(paddlejob(worker=1, managedBy="kueue.x-k8s.io/multikueue"))
    world.settle()
    assert world.writes == []


def test_a_job_being_deleted_creates_nothing() -> None:
    world = World(paddlejob(worker=1))
    world.job["metadata"]["deletionTimestamp"] = rfc3339(world.now)
    world.settle()
    assert world.objects == {}
    assert world.phase == "Terminating"


def test_a_refusal_is_said_on_the_job() -> None:
    world = World(paddlejob(worker=2))
    world.trouble = 'pods "job-worker-1" is forbidden: exceeded quota'
    world.step()
    assert "exceeded quota" in world.status["message"]


def test_a_gang_that_is_refused_in_part_holds_nothing_until_it_is_tried_again() -> None:
    world = World(paddlejob(worker=2))
    world.settle()
    world.objects.pop(("Pod", "job-worker-1"))  # was never granted
    world.trouble, world.retry_at = "exceeded quota", world.now + 4
    world.settle()
    assert world.pods == {}
    assert (world.phase, world.status["reason"], world.status["message"]) == (
        "Pending",
        "FailedCreate",
        "exceeded quota",
    )
    assert conditions(world)["Created"] == "False"
    world.trouble, world.retry_at = "", None
    world.start()
    assert (world.phase, conditions(world)["Created"]) == ("Running", "True")
    assert (world.status.get("restarts"), world.status.get("disruptions")) == (None, None)


def test_a_gang_that_is_refused_for_too_long_fails_when_it_had_to_be_scheduled_by_then() -> None:
    world = World(paddlejob(worker=2, schedulingPolicy={"scheduleTimeoutSeconds": 20}))
    world.trouble, world.retry_at = "exceeded quota", world.now + 1000
    world.settle()
    world.now += 21
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "ScheduleTimeout")
    assert world.status["message"].endswith("exceeded quota")


def test_a_mistake_made_later_does_not_end_a_running_job() -> None:
    world = World(paddlejob(worker=2)).start()
    world.job["spec"]["intranet"] = "Carrier"
    world.settle()
    assert (world.phase, len(world.pods)) == ("Running", 2)
    assert conditions(world)["Valid"] == "False"


def test_leftovers_and_strangers_are_told_apart() -> None:
    world = World(paddlejob(worker=1))
    world.leftovers = 2
    world.settle()
    assert (world.pods, "2 objects of an earlier job" in world.status["message"]) == ({}, True)
    world.leftovers, world.blockers = 0, ("ConfigMap job",)
    world.now += 100
    world.settle()
    assert world.pods == {}
    assert "ConfigMap job exists and is not ours" in world.status["message"]


def test_an_elastic_job_of_one_worker_is_still_collective() -> None:
    block = {"replicas": 1, "requests": 1, "limits": 3, "template": template()}
    assert World(paddlejob(worker=block, elastic=1)).start().status["mode"] == "Collective"


# Elastic jobs that form themselves through etcd


def through_etcd(**container: Any) -> World:
    env = [{"name": "PADDLE_MASTER", "value": "etcd://paddle-elastic-etcd:2379"}]
    block = {"replicas": 2, "requests": 1, "limits": 4, "template": template(container={"env": env, **container})}
    return World(paddlejob(worker=block, elastic=1, cleanPodPolicy="Never"))


def run_alone(world: World) -> None:
    """These pods start as soon as they have a node: they find each other by themselves."""
    world.assign()
    for pod in world.pods.values():
        if pod["status"]["phase"] == "Pending":
            pod["status"]["phase"] = "Running"
            pod["status"]["containerStatuses"] = [{"name": "paddle", "ready": True, "state": {"running": {}}}]
    world.settle()


def test_with_an_etcd_pods_are_told_where_to_meet_and_wait_for_nothing() -> None:
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


# Being run again


def asked_to_retry(world: World, value: str) -> World:
    world.job["metadata"]["annotations"] = {"paddlepaddle.org/retry-at": value}
    world.settle()
    return world


def failed_job(**spec: Any) -> World:
    world = World(paddlejob(worker=2, backoffLimit=1, **spec)).start()
    for _ in range(2):
        world.now += 10
        world.fail("job-worker-1", message="ValueError: no")
        world.settle()
        world.obey()
        world.now += 10
        world.settle()
        if world.phase != "Failed":
            world.start()
    assert (world.phase, world.status["restarts"]) == ("Failed", 1)
    return world


def test_a_failed_job_that_is_asked_for_again_runs_with_its_whole_budget() -> None:
    world = failed_job()
    uids = {pod["metadata"]["uid"] for pod in world.pods.values()}
    asked_to_retry(world, rfc3339(world.now))
    assert (world.phase, world.status["reason"]) == ("Restarting", "Retried")
    assert "restarts" not in world.status
    assert "completionTime" not in world.status
    assert conditions(world)["Failed"] == "False"
    assert [failure["message"] for failure in world.status["failures"]] == ["ValueError: no"] * 2
    world.obey()
    world.start()
    assert not uids & {pod["metadata"]["uid"] for pod in world.pods.values()}
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert (world.phase, conditions(world)["Succeeded"]) == ("Completed", "True")
    assert world.phase == "Completed", "and is not run a third time"


def test_a_completed_job_can_be_run_again_too() -> None:
    world = World(paddlejob(worker=1, cleanPodPolicy="OnCompletion", intranet="Service")).start()
    world.succeed("job-worker-0")
    world.settle()
    world.obey()
    world.now += 10
    asked_to_retry(world, rfc3339(world.now))
    world.start()
    assert conditions(world)["Succeeded"] == "False"


def test_a_retry_asked_for_while_the_job_ran_is_not_followed_when_it_ends() -> None:
    world = World(paddlejob(worker=1)).start()
    asked_to_retry(world, rfc3339(world.now))
    world.now += 10
    world.fail("job-worker-0", message="ModuleNotFoundError")
    world.job["spec"]["backoffLimit"] = 0
    world.settle()
    world.settle()
    assert world.phase == "Failed"


def test_any_new_word_asks_for_one_more_run() -> None:
    world = asked_to_retry(failed_job(), "please")
    assert world.phase == "Restarting"


def test_the_deadline_counts_from_the_retry() -> None:
    world = failed_job(activeDeadlineSeconds=3600)
    world.now += 10_000
    asked_to_retry(world, rfc3339(world.now))
    world.obey()
    world.start()
    world.now += 3000
    world.settle()
    assert world.phase == "Running"
    world.now += 600
    world.settle()
    assert world.status["reason"] == "DeadlineExceeded"
