"""Why pods fail, and what becomes of their job."""

from __future__ import annotations

import random
import time
from typing import Any

import pytest

from paddlecloud.controllers.paddlejob import view
from paddlecloud.controllers.paddlejob.failure.cause import classify
from paddlecloud.controllers.paddlejob.failure.policy import DISRUPTION_LIMIT
from unit.controllers.paddlejob.world import JobCluster, conditions, paddlejob, template

TRACEBACK = "Traceback (most recent call last):\n  File train.py, line 3\nValueError: wrong shape"

CLASSES: dict[str, tuple[dict[str, Any], str]] = {
    "a Python error": ({"code": 1, "message": TRACEBACK}, "UserError"),
    "killed for memory": ({"code": 137, "reason": "OOMKilled"}, "OOM"),
    "killed by somebody": ({"code": 137}, "Killed"),
    "memory error in Python": ({"code": 1, "message": "MemoryError"}, "OOM"),
    "disk full": ({"code": 1, "message": "OSError: [Errno 28] No space left on device"}, "DiskFull"),
    "peer lost": ({"code": 134, "message": ""}, "PeerLost"),
    "rendezvous": ({"code": 1, "message": "tcp store: wait timed out after 900s"}, "RendezvousTimeout"),
    "evicted": ({"code": 137, "pod": {"reason": "Evicted"}}, "Evicted"),
    "preempted": (
        {
            "code": 143,
            "pod": {"conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}]},
        },
        "Preempted",
    ),
    "node shut down": ({"code": 143, "pod": {"reason": "NodeShutdown"}}, "NodeShutdown"),
    "no such program": ({"code": 128, "reason": "StartError", "message": "exec: no such file"}, "StartError"),
}


@pytest.mark.parametrize("case", CLASSES.values(), ids=CLASSES.keys())
def test_failures_have_a_class(case: tuple[dict[str, Any], str]) -> None:
    given, expected = case
    world = JobCluster(paddlejob(worker=1)).start()
    world.fail("job-worker-0", **given)
    pod = view(world.pods["job-worker-0"])
    assert pod is not None
    found = classify(pod)
    assert found is not None
    assert found.kind == expected


def test_the_end_of_the_traceback_is_kept_on_the_job() -> None:
    world = JobCluster(paddlejob(worker={"replicas": 1, "template": template(restartPolicy="Never")})).start()
    world.fail("job-worker-0", code=1, message=TRACEBACK)
    world.settle()
    assert world.phase == "Failed"
    (record,) = world.status["failures"]
    assert record["failureClass"] == "UserError"
    assert record["message"].endswith("ValueError: wrong shape")
    assert "ValueError: wrong shape" in world.status["message"]


def test_what_came_out_of_a_buffer_afterwards_does_not_hide_the_exception() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0)).start()
    output = "Traceback (most recent call last):\n  ...\nValueError: wrong shape\nstep 3 of 9\n"
    world.fail("job-worker-0", message=output)
    world.settle()
    assert world.status["message"] == "job-worker-0 failed: UserError (exit code 1): ValueError: wrong shape"


def test_one_dead_rank_restarts_all_once_however_many_follow_it() -> None:
    world = JobCluster(paddlejob(worker=3)).start()
    old = {name: pod["metadata"]["uid"] for name, pod in world.pods.items()}
    world.fail("job-worker-1", code=1)
    world.step()
    world.fail("job-worker-0", code=134)  # its peers abort while the gang is being torn down
    world.step()
    world.obey()
    world.settle()
    assert world.phase == "Restarting"
    assert world.status["restarts"] == 1
    assert not set(old.values()) & {pod["metadata"]["uid"] for pod in world.pods.values()}, "every rank is new"
    world.start()
    assert world.status["generation"] == 1


def test_survivors_are_given_seconds_not_half_a_minute() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-1", code=1)
    plan = world.step()
    assert {delete.grace_period for delete in plan.delete} == {3}


def test_new_pods_cannot_start_with_old_addresses() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-1", code=1)
    world.step()
    world.obey()
    world.settle()
    world.assign("job-worker-0")
    assert not world.may_start("job-worker-0"), "the ConfigMap of the last generation must not let it go"
    world.assign("job-worker-1")
    world.settle()
    assert world.may_start("job-worker-0")
    assert world.env("job-worker-0")["PADDLE_TRAINERS"] == "10.0.0.3,10.0.0.4"


@pytest.mark.parametrize(
    ("spec", "restarts"),
    [
        ({}, 3),
        ({"backoffLimit": 1}, 1),
        ({"backoffLimit": 0}, 0),
    ],
)
def test_the_budget_bounds_restarts(spec: dict[str, Any], restarts: int) -> None:
    world = JobCluster(paddlejob(worker=2, **spec))
    for _ in range(restarts + 1):
        world.now += 100  # past the pause between restarts
        world.start()
        world.fail("job-worker-0", code=1)
        world.step()
        world.obey()
        world.now += 100
        world.settle()
    assert world.phase == "Failed"
    assert world.status.get("restarts", 0) == restarts
    assert world.status["reason"] == ("BackoffLimitExceeded" if restarts else "UserError")


def test_restart_policy_never_means_never() -> None:
    block = {"replicas": 2, "template": template(restartPolicy="Never")}
    world = JobCluster(paddlejob(worker=block)).start()
    world.fail("job-worker-0", code=1)
    world.settle()
    assert world.phase == "Failed"


@pytest.mark.parametrize(("code", "phase"), [(1, "Failed"), (139, "Restarting")])
def test_exit_code_policy_restarts_on_signals_only(code: int, phase: str) -> None:
    block = {"replicas": 2, "restartPolicy": "ExitCode", "template": template()}
    world = JobCluster(paddlejob(worker=block)).start()
    world.fail("job-worker-0", code=code)
    world.step()
    assert world.phase == phase


def test_disruptions_have_a_budget_of_their_own() -> None:
    block = {"replicas": 2, "template": template(restartPolicy="Never")}
    world = JobCluster(paddlejob(worker=block)).start()
    world.fail("job-worker-0", code=137, pod={"reason": "Evicted"})
    world.step()
    assert world.phase == "Restarting"
    assert (world.status.get("restarts"), world.status["disruptions"]) == (None, 1)
    world.job["status"]["disruptions"] = DISRUPTION_LIMIT
    world.obey()
    world.start()
    world.vanish("job-worker-1")
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "DisruptionLimitExceeded")


@pytest.mark.parametrize("intranet", ["PodIP", "Service"])
def test_a_deleted_pod_brings_the_gang_back_with_fresh_endpoints(intranet: str) -> None:
    world = JobCluster(paddlejob(worker=2, intranet=intranet)).start()
    world.vanish("job-worker-1")
    world.step()
    world.obey()
    assert world.phase == "Restarting"
    world.start()
    assert world.status["disruptions"] == 1
    endpoints = world.env("job-worker-0")["PADDLE_TRAINER_ENDPOINTS"]
    assert ("10.0.0.4:" in endpoints) == (intranet == "PodIP")


def test_pods_that_were_never_given_their_peers_are_simply_made_again() -> None:
    world = JobCluster(paddlejob(worker=2))
    world.settle()
    world.vanish("job-worker-0")
    world.settle()
    assert len(world.pods) == 2
    assert world.status.get("disruptions") is None


def test_pauses_between_restarts_grow() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=5)).start()
    pauses = []
    for _ in range(4):
        world.fail("job-worker-0", code=1)
        world.step()
        world.obey()
        plan = world.step()
        pauses.append(plan.after or 0)
        world.now += pauses[-1]
        world.start()
    assert pauses == [0, 2, 4, 8]


def test_a_pod_on_a_lost_node_is_removed_by_force() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    world.fail("job-worker-0", code=1)
    world.step()
    world.now += 32
    assert not world.step().delete
    world.now += 2
    plan = world.step()
    assert {delete.grace_period for delete in plan.delete} == {0}
    assert not world.pods


RULES: dict[str, tuple[dict[str, Any], dict[str, Any], str, dict[str, Any]]] = {
    "fail at once": ({"action": "Fail", "exitCodes": [3]}, {"code": 3}, "Failed", {}),
    "a range": ({"action": "Fail", "exitCodes": ["3-5"]}, {"code": 4}, "Failed", {}),
    "no match": ({"action": "Fail", "exitCodes": [3]}, {"code": 1}, "Restarting", {"restarts": 1}),
    "ignore": ({"action": "Ignore", "reasons": ["OOMKilled"]}, {"code": 137, "reason": "OOMKilled"}, "Restarting", {}),
    "by text": (
        {"action": "Fail", "messagePattern": "nan loss"},
        {"code": 1, "message": "step 7: nan loss"},
        "Failed",
        {},
    ),
    "other role": ({"action": "Fail", "exitCodes": [1], "roles": ["ps"]}, {"code": 1}, "Restarting", {"restarts": 1}),
}


@pytest.mark.parametrize("case", RULES.values(), ids=RULES.keys())
def test_failure_rules_come_first(case: tuple[dict[str, Any], dict[str, Any], str, dict[str, Any]]) -> None:
    rule, how, phase, counts = case
    world = JobCluster(paddlejob(worker=2, failurePolicy={"rules": [rule]})).start()
    world.fail("job-worker-0", **how)
    world.step()
    assert world.phase == phase
    assert {key: world.status[key] for key in ("restarts", "disruptions") if key in world.status} == counts


def test_an_expression_made_to_run_for_ever_holds_up_nobody() -> None:
    rule = {"action": "Fail", "messagePattern": "(a+)+$"}
    world = JobCluster(paddlejob(worker=2, failurePolicy={"rules": [rule] * 32})).start()
    world.fail("job-worker-0", code=1, message="a" * 4000 + "!")
    began = time.process_time()
    world.step()
    assert world.phase == "Restarting", "it matches nothing"
    assert time.process_time() - began < 5


def test_a_rule_whose_pattern_is_too_costly_is_skipped_with_a_warning() -> None:
    costly = {"action": "Fail", "messagePattern": "^[ab]*a[ab]{1000}$"}
    rules = [{"action": "Fail", "exitCodes": [9]}, costly, {"action": "Ignore", "exitCodes": [1]}]
    world = JobCluster(paddlejob(worker=2, failurePolicy={"rules": rules})).start()
    world.fail("job-worker-0", code=1, message="".join(random.Random(1).choices("ab", k=2000)))
    plan = world.step()
    (warning,) = [event for event in plan.events if event.reason == "PatternTooCostly"]
    assert "spec.failurePolicy.rules[1]:" in warning.message
    assert (world.phase, world.status.get("restarts")) == ("Restarting", None), "the next rule decides"


def test_an_image_that_cannot_be_named_fails_the_job() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    waiting = {"waiting": {"reason": "InvalidImageName", "message": 'couldn\'t parse image name "A B"'}}
    world.pods["job-worker-0"]["status"]["containerStatuses"] = [{"name": "paddle", "state": waiting}]
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "Image")


def unable_to_start(world: JobCluster, reason: str, message: str, *pods: str) -> None:
    for name in pods or tuple(world.pods):
        world.pods[name]["status"]["containerStatuses"] = [
            {"name": "paddle", "ready": False, "state": {"waiting": {"reason": reason, "message": message}}}
        ]


ABSENT = 'failed to resolve reference "example.com/nosuch:1": example.com/nosuch:1: not found'
AWAY = 'failed to do request: Head "https://example.com/v2/train": dial tcp 192.0.2.1:443: i/o timeout'
NO_FOLDER = 'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /data/x is not a directory'

STUCK = {
    "an image that does not exist": ("ErrImagePull", ABSENT, 60, "Image"),
    "an image without a recipe": (
        "ImagePullBackOff",
        'no recipe answers for image "x". …: pdc image build x',
        60,
        "Image",
    ),
    "a registry that wants a password": ("ErrImagePull", "401 Unauthorized", 60, "Image"),
    "a registry that does not answer": ("ErrImagePull", AWAY, 600, "Image"),
    "a folder that its node does not have": ("ContainerCreating", NO_FOLDER, 60, "Mount"),
    "a folder of a local volume": (
        "ContainerCreating",
        'MountVolume.NewMounter initialization failed for volume "pv" : path "/mnt/x" does not exist',
        60,
        "Mount",
    ),
    "a file server that does not answer": (
        "ContainerCreating",
        'MountVolume.SetUp failed for volume "nfs" : mount failed: exit status 32',
        600,
        "Mount",
    ),
    "a volume of a Secret that does not exist": (
        "ContainerCreating",
        'MountVolume.SetUp failed for volume "keys" : secret "keys" not found',
        600,
        "Config",
    ),
    "a Secret that does not exist": ("CreateContainerConfigError", 'secret "keys" not found', 600, "Config"),
}


@pytest.mark.parametrize("case", STUCK.values(), ids=STUCK.keys())
def test_a_container_that_cannot_start_fails_the_job_after_its_time_and_frees_what_it_holds(
    case: tuple[str, str, int, str],
) -> None:
    reason, message, patience, kind = case
    world = JobCluster(paddlejob(worker=2, backoffLimit=3))
    world.settle()
    world.assign()
    world.settle()
    world.run("job-worker-0")
    unable_to_start(world, reason, message, "job-worker-1")
    world.settle()
    assert conditions(world)["Startable"] == "False"
    assert world.plan().after == pytest.approx(patience, abs=1)
    world.now += patience - 2
    world.settle()
    assert world.phase == "Starting", "it may still come"
    world.now += 3
    world.settle()
    world.obey()
    assert (world.phase, world.status["reason"]) == ("Failed", kind)
    assert message.splitlines()[0] in world.status["message"]
    assert [pod["status"]["phase"] for pod in world.pods.values()] == ["Failed", "Failed"], (
        "nobody waits for their room"
    )
    assert "restarts" not in world.status


def test_a_folder_that_is_made_in_time_is_mounted_and_the_job_runs() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.settle()
    unable_to_start(world, "ContainerCreating", NO_FOLDER)
    world.settle()
    assert world.status["message"] == f"job-worker-0: FailedMount: {NO_FOLDER}", "reported at once"
    world.now += 50
    world.run()
    world.settle()
    assert (world.phase, conditions(world)["Startable"]) == ("Running", "True")


def test_a_folder_that_was_mounted_before_has_the_time_of_a_disk_that_is_away() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    world.fail("job-worker-0", code=1)
    world.settle()
    world.obey()
    world.settle()
    world.assign()
    world.settle()
    unable_to_start(world, "ContainerCreating", NO_FOLDER)
    world.settle()
    world.now += 300
    world.settle()
    assert world.phase == "Restarting"


def test_an_image_that_comes_in_time_is_forgotten_and_the_next_trouble_has_its_own_time() -> None:
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.settle()
    unable_to_start(world, "ErrImagePull", ABSENT)
    world.settle()
    world.now += 50
    unable_to_start(world, "ContainerCreating", "")
    world.settle()
    assert conditions(world)["Startable"] == "True"
    unable_to_start(world, "ErrImagePull", ABSENT)
    world.settle()
    world.now += 50
    world.settle()
    assert world.phase == "Starting"
    world.run()
    world.settle()
    assert (world.phase, conditions(world)["Startable"]) == ("Running", "True")


def test_a_back_off_without_its_cause_keeps_the_cause_that_was_reported_before() -> None:
    """As kubelets before 1.31 report it."""
    world = JobCluster(paddlejob(worker=1))
    world.settle()
    world.assign()
    world.settle()
    unable_to_start(world, "ErrImagePull", ABSENT)
    world.settle()
    unable_to_start(world, "ImagePullBackOff", 'Back-off pulling image "example.com/nosuch:1"')
    world.settle()
    world.now += 61
    world.forget()
    world.settle()
    assert world.phase == "Failed"
    assert ABSENT in world.status["message"]


def test_a_job_that_ran_before_waits_longer_for_the_image_it_had() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=3)).start()
    world.fail("job-worker-0")
    world.settle()
    world.obey()
    world.settle()
    world.assign()
    world.settle()
    unable_to_start(world, "ErrImagePull", ABSENT)
    world.settle()
    world.now += 599
    world.settle()
    assert world.phase == "Restarting"
    world.now += 2
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "Image")


@pytest.mark.parametrize(
    ("said", "reports"),
    [
        ('exec: "pyton": executable file not found in $PATH', "pyton: not found; did you mean python?"),
        (
            'OCI runtime create failed: exec: "trainer": executable file not found in $PATH: unknown',
            "trainer: not found in the image: check its command",
        ),
        ("working directory /nowhere: No such file or directory", "working directory /nowhere"),
        ('exec: "/tmp/x/train.sh": no such file or directory', "/tmp is the pod's own"),
    ],
)
def test_a_program_that_is_not_there_is_named(said: str, reports: str) -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0))
    world.settle()
    world.assign()
    world.settle()
    world.fail("job-worker-0", code=128, reason="StartError", message=said)
    world.settle()
    assert reports in world.status["message"]


@pytest.mark.parametrize(
    ("said", "is_hidden"),
    [
        ("python: can't open file '/tmp/x/train.py': [Errno 2] No such file or directory", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/tmp/x/data.txt'", True),
        ("FileNotFoundError: /tmp/x/data.npy not found.", True),
        ("sh: 1: /tmp/x/run.sh: not found", True),
        ("ValueError: /tmp/x/model.pdmodel doesn't exist", True),
        ("RuntimeError: path /tmp/x does not exist", True),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/var/tmp/x/data.txt'", False),
        ("FileNotFoundError: /var/tmp/x/data.npy not found.", False),
        ("ValueError: /tmp/x/data.txt has no header", False),
    ],
)
def test_a_file_that_a_pods_own_tmp_hides_is_explained(said: str, is_hidden: bool) -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0)).start()
    world.fail("job-worker-0", code=2, message=said)
    world.settle()
    assert said in world.status["message"]
    assert ("/tmp is the pod's own" in world.status["message"]) is is_hidden


def test_a_paddle_without_servers_fails_at_once_with_the_cure() -> None:
    world = JobCluster(paddlejob(ps=1, worker=1, withGloo=1)).start()
    world.fail("job-worker-0", code=1, message="ImportError: cannot import name 'CommContext' from 'libpaddle'")
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "NoParameterServer")
    assert "use 2.6.2" in world.status["message"]


CLONE = "TypeError: clone(): incompatible function arguments. The following argument types are supported:"
"""What Paddle 3.3 raises in a job with servers; pybind prints the whole program after it."""
PROGRAM = "\n".join(
    ["Invoked with: {", *(f'    (%{n}) = "pd_op.matmul"' for n in range(60)), "}; kwargs: for_test=False"]
)


@pytest.mark.parametrize(("ps", "kind"), [(1, "NoParameterServer"), (0, "UserError")])
@pytest.mark.parametrize(
    "said",
    [">>> pred = paddle.less_than(x, y)\n>>> paddle.static.nn.cond(pred, ...)", f"{CLONE}\n{PROGRAM}", PROGRAM],
    ids=["cond", "clone", "clone-cut-off"],
)
def test_a_static_program_that_servers_cannot_use_is_reported_only_where_there_are_servers(
    ps: int, kind: str, said: str
) -> None:
    world = JobCluster(paddlejob(worker=1, withGloo=1, backoffLimit=0, **({"ps": ps} if ps else {}))).start()
    world.fail("job-worker-0", code=1, message=said)
    world.settle()
    assert world.status["failures"][-1]["failureClass"] == kind


def test_the_line_of_an_exception_is_kept_however_long_its_text_is() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0)).start()
    world.fail("job-worker-0", code=1, message=f"Traceback:\n{CLONE}\n{PROGRAM}")
    world.settle()
    assert f"UserError (exit code 1): {CLONE}" in world.status["message"]
    kept = world.status["failures"][-1]["message"]
    assert (kept.splitlines()[0], kept.splitlines()[-1]) == (CLONE, "}; kwargs: for_test=False")


def test_a_node_that_does_not_know_its_own_name_is_reported_with_the_cure() -> None:
    """As gloo said it on the network of a real node."""
    world = JobCluster(paddlejob(worker=1, intranet="Host", backoffLimit=0)).start()
    said = (
        "(InvalidArgument)  network node3: cannot be obtained. Details: Temporary failure in name resolution."
        "\n  [Hint: Expected n == 0, but received n:-3 != 0:0.] (at /paddle/phi/core/distributed/store/tcp_utils.cc:63)"
    )
    world.fail("job-worker-0", code=1, message=said)
    world.settle()
    assert world.status["failures"][-1]["failureClass"] == "NoHostName"
    assert "GLOO_SOCKET_IFNAME" in world.status["message"]


def restarted(world: JobCluster, name: str, times: int) -> None:
    container = world.pods[name]["status"]["containerStatuses"][0]
    container["restartCount"] = times
    container["lastState"] = {"terminated": {"exitCode": 1, "reason": "Error", "message": "ValueError: no"}}


def test_restart_scope_pod_leaves_restarting_to_the_kubelet_within_the_budget() -> None:
    world = JobCluster(paddlejob(worker=2, restartScope="Pod", backoffLimit=2)).start()
    assert {pod["spec"]["restartPolicy"] for pod in world.pods.values()} == {"OnFailure"}
    restarted(world, "job-worker-0", 2)
    world.settle()
    assert (world.phase, world.status["restarts"], world.status["generation"]) == ("Running", 2, 0)
    restarted(world, "job-worker-1", 1)
    world.settle()
    assert (world.phase, world.status["reason"]) == ("Failed", "BackoffLimitExceeded")
    assert "ValueError: no" in world.status["message"]


def test_a_job_that_may_be_silent_for_so_long_is_restarted_when_it_is() -> None:
    world = JobCluster(paddlejob(worker=2, hangDetection={"logSilenceSeconds": 60})).start()
    world.last_log_line = world.now
    assert world.plan().after == pytest.approx(60)
    world.now += 61
    world.last_log_line = world.now - 5
    world.settle()
    assert world.phase == "Running", "somebody wrote a line five seconds ago"
    world.now += 60
    world.step()
    assert (world.phase, world.status["reason"], world.status["restarts"]) == ("Restarting", "Hung", 1)


NOISE = "\n".join(f"epoch {n}: loss {n / 7:.5f}" for n in range(200))


@pytest.mark.parametrize(
    ("output", "begins", "ends"),
    [
        (f"{NOISE}\n{TRACEBACK}", "epoch ", "ValueError: wrong shape"),
        ("ValueError: " + "tensor " * 300, "tensor tensor", "tensor"),
        ("x" * 2000, "xxx", "xxx"),
        (TRACEBACK, TRACEBACK[:20], "ValueError: wrong shape"),
    ],
    ids=["lines", "one line of many words", "one word", "short"],
)
def test_a_long_message_is_cut_between_lines_or_words(output: str, begins: str, ends: str) -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0)).start()
    world.fail("job-worker-0", message=output)
    world.settle()
    message = world.status["failures"][0]["message"].rstrip()
    assert (message.startswith(begins), message.endswith(ends), len(message) <= 800) == (True, True, True), message


def test_a_long_verdict_ends_between_words() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=0)).start()
    world.fail("job-worker-0", message="ValueError: " + "dimension " * 100)
    world.settle()
    assert world.status["message"].endswith("dimension …")


def test_only_the_newest_failure_keeps_its_last_lines() -> None:
    world = JobCluster(paddlejob(worker=1, backoffLimit=2)).start()
    for restart in range(3):
        world.fail("job-worker-0", message=TRACEBACK)
        world.settle()
        world.obey()
        world.now += 600
        if restart < 2:
            world.start()
    messages = [record["message"] for record in world.status["failures"]]
    assert messages == ["ValueError: wrong shape", "ValueError: wrong shape", TRACEBACK]


def test_a_failed_job_counts_no_pod_as_running() -> None:
    world = JobCluster(paddlejob(worker=3, ps=1, backoffLimit=0)).start()
    world.fail("job-worker-0", message=TRACEBACK)
    world.settle()
    assert (world.phase, world.status["worker"]["ready"], world.status["ps"]["ready"]) == ("Failed", "0/3", "0/1")
    counts = {name: number for name, number in world.status["worker"].items() if isinstance(number, int)}
    assert counts == {"failed": 1}
    assert len(world.status["worker"]["refs"]) == 3


SHUT_DOWN = {
    "reason": "Terminated",
    "message": "the platform was stopped while the pod ran",
    "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}],
}


def test_a_planned_stop_of_the_node_costs_a_job_none_of_its_budgets() -> None:
    rules = [{"action": "Fail", "exitCodes": ["128-159"]}]
    job = paddlejob(worker=2, backoffLimit=0, failurePolicy={"rules": rules})
    world = JobCluster(job).start()
    for _ in range(25):
        for name in list(world.pods):
            world.fail(name, code=137, pod=SHUT_DOWN)
        world.settle()
        world.obey()
        world.start()
    assert (world.status.get("restarts"), world.status.get("disruptions")) == (None, None)
    assert {record["failureClass"] for record in world.status["failures"]} == {"NodeShutdown"}
    assert [event for event in world.events if event.startswith("Warning")] == []
    assert any("Normal Restarting: job-worker-0 ended: NodeShutdown" in event for event in world.events)
