"""The data of a job: awaited, mounted, and read where it is cached."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controllers.node_folders import own_folder
from paddlecloud.controllers.paddlejob.pods import data
from unit.controllers.paddlejob.world import JobCluster, conditions, paddlejob, template


def with_data(**ref: Any) -> JobCluster:
    return JobCluster(
        paddlejob(worker=3, ps=1, withGloo=1, sampleSetRef={"name": "imagenet", "mountPath": "/mnt/x", **ref})
    )


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


def test_a_job_does_not_begin_with_a_set_that_is_being_deleted_and_one_that_has_begun_goes_on() -> None:
    world = JobCluster(paddlejob(worker=1))
    leaving = {"metadata": {"name": "imagenet", "deletionTimestamp": "2026-01-01T00:00:00Z"}}
    world.mounted_sets = (leaving,)
    world.settle()
    assert not world.pods
    assert world.status["message"] == "SampleSet default/imagenet is being deleted"
    assert (world.phase, conditions(world)["DataReady"]) == ("Pending", "False")
    world.mounted_sets = ()
    world.start()
    assert (world.phase, conditions(world)["DataReady"]) == ("Running", "True")
    world.mounted_sets = (leaving,)
    world.fail("job-worker-0", code=137)
    world.settle()
    world.now += 60
    world.start()
    assert world.phase == "Running", "the set waits for it"


def test_a_job_notes_the_state_of_its_data_when_its_pods_start_and_no_later_one() -> None:
    world = JobCluster(paddlejob(worker=1))

    def synced(revision: int, **figures: int) -> None:
        status = {"phase": "Ready", "content": {"revision": revision, **figures}}
        world.mounted_sets = ({"metadata": {"name": "words", "uid": "s-1"}, "status": status},)

    synced(1, files=1)
    world.settle()
    synced(2)
    world.settle()
    assert world.pods
    assert world.status["data"] == [{"name": "words", "uid": "s-1", "revision": 2}], "its pods have not started"
    world.start()
    synced(2, files=7, bytes=70)
    world.settle()
    (seen,) = world.status["data"]
    assert (seen["revision"], seen["files"]) == (2, 7), "measured a moment after the sync"
    synced(3, files=9)
    world.settle()
    assert world.status["data"] == [seen]
    world.fail("job-worker-0", code=137)
    world.settle()
    world.now += 60
    world.start()
    assert world.status["data"][0]["revision"] == 3, "it reads anew"


SYNCED = {"type": "Synced", "status": "True"}


@pytest.mark.parametrize(
    ("spec", "status", "goes"),
    [
        ({}, {}, False),
        ({}, {"phase": "Syncing", "conditions": [{**SYNCED, "status": "Unknown"}]}, False),
        ({}, {"phase": "SyncFailed", "conditions": [{**SYNCED, "status": "False"}]}, False),
        ({}, {"phase": "Mount", "conditions": [SYNCED]}, True),
        ({}, {"phase": "PartialReady"}, True),
        ({}, {"phase": "Ready"}, True),
        ({"noSync": True}, {"phase": "Bound"}, True),
    ],
)
def test_a_job_that_mounts_the_claim_of_a_set_begins_when_the_set_has_all_of_its_data(
    spec: dict[str, Any], status: dict[str, Any], goes: bool
) -> None:
    world = JobCluster(paddlejob(worker=1))
    ready = {"metadata": {"name": "words"}, "status": {"phase": "Ready"}}
    photos = {"metadata": {"name": "photos"}, "spec": spec, "status": {**status, "message": "because"}}
    world.mounted_sets = (ready, photos)
    world.settle()
    assert bool(world.pods) is goes
    assert conditions(world)["DataReady"] == str(goes)
    if not goes:
        phase = status.get("phase", "new")
        text = f"SampleSet default/photos is {phase}, waiting for its import: because"
        assert world.status["message"] == text
        world.mounted_sets = (ready, {**photos, "status": {"phase": "Ready"}})
        world.start()
    world.mounted_sets = (photos,)
    world.fail("job-worker-0", code=137)
    world.settle()
    world.now += 60
    world.start()
    assert world.phase == "Running", "a job that has begun with the data forms its gang anew"


def test_the_wait_of_a_reference_is_its_own_also_where_a_volume_names_the_same_claim() -> None:
    world = with_data(waitFor="None")
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {"metadata": {"name": "imagenet"}, "status": {"phase": "Syncing"}}
    world.mounted_sets = (world.sample_set,)
    world.settle()
    assert world.pods


def cache_below(path: str) -> str:
    return own_folder(path, "default", "imagenet")


@pytest.mark.parametrize(
    "folder",
    [
        "/",
        "/etc",
        "/dev/shm/a",
        own_folder("/dev/shm", "victim", "imagenet"),
        own_folder("/dev/shm", "default", "another"),
        own_folder("/etc", "default", "imagenet"),
        own_folder("/dev/shm/../../etc", "default", "imagenet"),
    ],
)
def test_a_status_cannot_make_pods_mount_a_folder_that_is_not_the_sets_own(folder: str) -> None:
    world = with_data()
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {"status": {"phase": "Ready", "driver": "local", "cacheDirs": [folder]}}
    world.settle()
    assert not [volume for volume in world.pods["job-worker-0"]["spec"]["volumes"] if "hostPath" in volume]


def test_programs_can_find_where_the_data_and_their_nodes_cache_of_it_are() -> None:
    world = with_data()
    world.claim = {"metadata": {"name": "imagenet"}}
    levels = [{"path": "/dev/shm/a:/data/b", "cacheSize": 100}, {"path": "/hdd/c", "cacheSize": 5000}]
    world.sample_set = {
        "spec": {"cache": {"levels": levels}},
        "status": {
            "phase": "Ready",
            "driver": "local",
            "cacheDirs": [cache_below("/dev/shm/a"), cache_below("/data/b")],
        },
    }
    world.settle()
    pod = world.pods["job-worker-0"]["spec"]
    env = {entry["name"]: entry.get("value") for entry in pod["containers"][0]["env"]}
    assert env["PADDLECLOUD_DATA_DIR"] == "/mnt/x"
    assert env["PADDLECLOUD_CACHE_DIR"] == "/cache/0:/cache/1"
    assert env["PADDLECLOUD_CACHE_BYTES"] == str(50 << 20), "of the first folder, where programs add copies"
    folders = [volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume]
    assert folders == [cache_below("/dev/shm/a"), cache_below("/data/b")]
    own = [mount["subPathExpr"] for mount in pod["containers"][0]["volumeMounts"] if "subPathExpr" in mount]
    assert own == ["$(NODE_NAME)", "$(NODE_NAME)"]


@pytest.mark.parametrize(
    ("total", "spec", "reports"),
    [
        ("90 MiB", {}, None),  # each node holds it
        ("150 MiB", {}, "7717"),  # only all together do
        ("1.5 GiB", {}, None),  # not even they do
        ("150 MiB", {"intranet": "Service"}, None),  # Services pass on one port, and not this
        ("", {}, None),  # nobody knows yet
    ],
)
def test_nodes_pass_samples_on_where_only_all_of_them_hold_the_set(
    total: str, spec: dict[str, Any], reports: str | None
) -> None:
    ref = {"name": "imagenet", "mountPath": "/mnt/x"}
    world = JobCluster(paddlejob(worker=3, withGloo=1, sampleSetRef=ref, **spec))
    world.claim = {"metadata": {"name": "imagenet"}}
    world.sample_set = {
        "spec": {"cache": {"levels": [{"path": "/dev/shm/a", "cacheSize": 100}]}},
        "status": {
            "phase": "Ready",
            "driver": "local",
            "cacheDirs": [cache_below("/dev/shm/a")],
            "cacheStatus": {"totalSize": total},
        },
    }
    world.settle()
    env = {each["name"]: each.get("value") for each in world.pods["job-worker-0"]["spec"]["containers"][0]["env"]}
    assert env.get("PADDLECLOUD_PEER_PORT") == reports


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
    world = JobCluster(paddlejob(worker=block, ps=1, withGloo=1, sampleSetRef=ref))
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
