"""One verdict everywhere: `status.message`, `pdc explain`, `pdc describe` and the last line of `pdc run` agree.

Every phase is combined with every obstacle that can be met in it. The cause nearest to the user is expected: what
somebody must mend before what may pass, and never the wait of one pod for the others of its job.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from paddlecloud.cli.objects import outcome
from paddlecloud.cli.objects.members import member
from paddlecloud.cli.objects.why import why
from paddlecloud.cli.render import description
from paddlecloud.kube.resource import Object

from .world import JobCluster, paddlejob

LAST = "job-worker-2"
NO_CPU = "0/1 nodes are available: 1 Insufficient cpu. cpu: needs 800m, 400m free of 2"
ABSENT = 'no recipe answers for image "nosuch:1". Write image.yaml, then: pdc image build nosuch:1'


def first_time() -> JobCluster:
    world = JobCluster(paddlejob(worker=3))
    world.settle()
    return world


def restarting() -> JobCluster:
    world = JobCluster(paddlejob(worker=3)).start()
    world.fail("job-worker-0")
    return formed_again(world)


def scaled() -> JobCluster:
    world = JobCluster(paddlejob(worker=2)).start()
    world.job["spec"]["worker"]["replicas"] = 3
    return formed_again(world)


def formed_again(world: JobCluster) -> JobCluster:
    world.settle()
    world.obey()
    world.settle()
    assert LAST in world.pods
    return world


PHASES = {"Pending or Starting": first_time, "Restarting": restarting, "Scaling": scaled}


def waits(world: JobCluster, name: str, reason: str, message: str) -> None:
    state = {"waiting": {"reason": reason, "message": message}}
    world.pods[name]["status"]["containerStatuses"] = [{"name": "paddle", "ready": False, "state": state}]


NO_FOLDER = 'MountVolume.SetUp failed for volume "data" : hostPath type check failed: /data/x is not a directory'


def no_room(world: JobCluster) -> None:
    """As Kubernetes' kubelet reports the pods that have a node: the key of their barrier is missing."""
    world.assign("job-worker-0", "job-worker-1")
    generation = world.status.get("generation") or 0
    for name in ("job-worker-0", "job-worker-1"):
        lacks = f"couldn't find key PADDLE_GENERATION_{generation} in ConfigMap default/job"
        waits(world, name, "CreateContainerConfigError", lacks)
    refused = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "message": NO_CPU}
    world.pods[LAST]["status"]["conditions"] = [refused]


def barrier(world: JobCluster) -> None:
    """As the embedded kubelet reports it."""
    world.assign("job-worker-0", "job-worker-1")
    for name in ("job-worker-0", "job-worker-1"):
        waits(world, name, "ContainerCreating", "waiting until every pod of job job has an address")


def no_image(world: JobCluster) -> None:
    world.assign()
    waits(world, LAST, "ErrImagePull", ABSENT)


def no_image_and_no_room(world: JobCluster) -> None:
    no_room(world)
    waits(world, "job-worker-1", "ImagePullBackOff", ABSENT)


def broken_build(world: JobCluster) -> None:
    world.assign()
    log = "\n".join(f"Collecting package-{number}" for number in range(40))
    waits(
        world,
        LAST,
        "ErrImagePull",
        f"image mine: pip ended with 1\n{log}\nTo see the whole build: pdc image build mine",
    )


def no_secret(world: JobCluster) -> None:
    world.assign()
    waits(world, LAST, "CreateContainerConfigError", 'secret "keys" not found')


def no_volume(world: JobCluster) -> None:
    world.assign()
    waits(world, LAST, "ContainerCreating", "claim data is not bound")


def no_folder(world: JobCluster) -> None:
    world.assign()
    waits(world, LAST, "ContainerCreating", NO_FOLDER)


def no_folder_and_no_room(world: JobCluster) -> None:
    no_room(world)
    waits(world, "job-worker-1", "ContainerCreating", NO_FOLDER)


OBSTACLES: dict[str, tuple[Callable[[JobCluster], None], str, str]] = {
    "no room for one pod": (no_room, "Unschedulable", f"{LAST} is not scheduled: {NO_CPU}"),
    "the others only": (barrier, "", "waiting for the addresses of 1 of 3 pods"),
    "no such image": (no_image, "ErrImagePull", f"{LAST}: ErrImagePull: {ABSENT}"),
    "no image, and no room": (no_image_and_no_room, "ImagePullBackOff", f"job-worker-1: ImagePullBackOff: {ABSENT}"),
    "an image that cannot be built": (
        broken_build,
        "ErrImagePull",
        f"{LAST}: ErrImagePull: image mine: pip ended with 1; To see the whole build: pdc image build mine",
    ),
    "no Secret": (
        no_secret,
        "CreateContainerConfigError",
        f'{LAST}: CreateContainerConfigError: secret "keys" not found',
    ),
    "no folder": (no_folder, "FailedMount", f"{LAST}: FailedMount: {NO_FOLDER}"),
    "no folder, and no room": (
        no_folder_and_no_room,
        "FailedMount",
        f"job-worker-1: FailedMount: {NO_FOLDER}",
    ),
    "no volume": (no_volume, "ContainerCreating", f"{LAST}: ContainerCreating: claim data is not bound"),
}


def agree(world: JobCluster, *, cause: str) -> Object:
    """What all of them say; the verdict as data."""
    world.now += 61
    world.settle()
    pods = list(world.pods.values())
    verdict = why(world.job, pods=pods, now=world.now)
    shown = description.describe(world.job, members=list(map(member, pods)), events=[], verdict=verdict, now=world.now)
    assert world.status["message"] == cause, "status.message"
    assert verdict.text.endswith(cause), "pdc explain, and what pdc run says while it waits"
    assert shown.splitlines()[0] == f"Why:          {verdict.text}", "pdc describe"
    end = outcome.finished(world.job)
    assert end is None or end.message == cause, "the last line of pdc run"
    return verdict._asdict()


@pytest.mark.parametrize("phase", PHASES.values(), ids=PHASES.keys())
@pytest.mark.parametrize("obstacle", OBSTACLES.values(), ids=OBSTACLES.keys())
def test_a_job_that_does_not_run_names_its_first_cause_everywhere(
    phase: Callable[[], JobCluster], obstacle: tuple[Callable[[JobCluster], None], str, str]
) -> None:
    hinder, reason, cause = obstacle
    world = phase()
    hinder(world)
    world.settle()
    # A job that never ran fails for an image that does not exist after a minute; before that it says the same.
    world.job["status"]["startTime"] = "2023-11-14T22:13:20Z"
    verdict = agree(world, cause=cause)
    assert verdict["state"] == "waiting"
    assert verdict["reason"] == reason or not reason


ENDS: dict[str, tuple[Callable[[JobCluster], None], str]] = {
    "the program fails": (
        lambda world: world.fail("job-worker-0", code=1, message="Traceback …\n  File\nValueError: no such column"),
        "job-worker-0 failed: UserError (exit code 1): ValueError: no such column",
    ),
    "a misspelt program": (
        lambda world: world.fail(
            "job-worker-0", code=128, reason="StartError", message='exec: "pyton": executable file not found in $PATH'
        ),
        "job-worker-0 failed: StartError (exit code 128): pyton: not found; did you mean python?",
    ),
}


@pytest.mark.parametrize(("how", "cause"), ENDS.values(), ids=ENDS.keys())
def test_a_job_that_failed_names_its_first_cause_everywhere(how: Callable[[JobCluster], None], cause: str) -> None:
    world = JobCluster(paddlejob(worker=2, backoffLimit=0)).start()
    how(world)
    world.settle()
    world.obey()
    verdict = agree(world, cause=cause)
    assert verdict["state"] == "failed"


def test_an_image_that_does_not_exist_is_the_same_cause_before_and_after_the_job_has_failed() -> None:
    world = first_time()
    no_image(world)
    world.settle()
    before = why(world.job, pods=list(world.pods.values()), now=world.now)
    assert before.text == f"Starting: {LAST}: ErrImagePull: {ABSENT}"
    agree(world, cause=f"{LAST} failed: Image: {ABSENT}")


def test_a_folder_that_is_not_there_is_the_same_cause_before_and_after_the_job_has_failed() -> None:
    world = first_time()
    no_folder(world)
    world.settle()
    before = why(world.job, pods=list(world.pods.values()), now=world.now)
    assert before.text == f"Starting: {LAST}: FailedMount: {NO_FOLDER}"
    agree(world, cause=f"{LAST} failed: Mount: {NO_FOLDER}")


UNMADE: dict[str, tuple[Callable[[JobCluster], None], str]] = {
    "a name that is taken": (
        lambda world: setattr(world, "blockers", ("ConfigMap job",)),
        "ConfigMap job exists and is not ours: rename the job or delete it",
    ),
    "an earlier job of the name": (
        lambda world: setattr(world, "leftovers", 2),
        "waiting for the 2 objects of an earlier job of this name to go",
    ),
}


@pytest.mark.parametrize(("hinder", "cause"), UNMADE.values(), ids=UNMADE.keys())
def test_a_job_whose_objects_cannot_be_made_says_why_everywhere(
    hinder: Callable[[JobCluster], None], cause: str
) -> None:
    world = JobCluster(paddlejob(worker=2))
    hinder(world)
    world.settle()
    assert agree(world, cause=cause)["state"] == "waiting"
