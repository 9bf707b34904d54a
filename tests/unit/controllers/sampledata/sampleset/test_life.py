"""The life of a SampleSet on a cluster on paper: every arrow between its phases, and what users see on the way."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.api.names import RETRY_AT
from paddlecloud.controllers.sampledata.sampleset.pod_and_volume_views import sample_job_view
from paddlecloud.controllers.sampledata.servers.responses import Figures, JobReport, Progress
from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import (
    CSIDRIVERS,
    EVENTS,
    NAMESPACES,
    PADDLEJOBS,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    SAMPLEJOBS,
    SAMPLESETS,
    SECRETS,
    SERVICES,
    STATEFULSETS,
)
from unit.controllers.sampledata.world import NAMESPACE, SampleDataCluster, condition, done, failed, world

LABEL = "paddlepaddle.org/local-imagenet"


async def test_a_set_is_bound_mounted_synced_and_ready(here: SampleDataCluster) -> None:
    await here.create_set()
    status = await here.phase("Ready")
    assert here.history["imagenet"] == ["Bound", "Mount", "Syncing", "Mount", "PartialReady", "Ready"]
    assert status["driver"] == "local"
    assert status["runtimeStatus"] == {"runtimeReady": "1/1", "specReplicas": 1, "readyReplicas": 1}
    assert status["cacheStatus"]["totalSize"] == "4.0 GiB"
    assert status["cacheStatus"]["totalFiles"] == "128,660"
    assert status["cacheStatus"]["diskUsageRate"] == "0.0%"
    assert {c["type"]: c["status"] for c in status["conditions"]} == {
        "Valid": "True",
        "Bound": "True",
        "RuntimeReady": "True",
        "Synced": "True",
        "Warm": "False",
        "Ready": "True",
    }
    created = await here.get(SAMPLESETS, "imagenet")
    assert created is not None
    assert created["metadata"]["finalizers"] == ["paddlepaddle.org/sampleset-imagenet"]
    assert status["observedGeneration"] == created["metadata"]["generation"]
    (node,) = (await here.labels(LABEL)).items()
    assert node[1] == "imagenet-runtime-0"
    work = here.servers.asked("sync")["imagenet-runtime-0"]
    assert work.id == status["jobsName"]["syncJobName"]
    assert work.options == {"source": "bos://bucket.endpoint/imagenet", "destination": "file:///mnt/imagenet"}
    assert len(here.servers.tokens) == 1
    assert min(map(len, here.servers.tokens)) >= 32
    await here.said(
        "imagenet",
        "CreatePVSuccessfully",
        "CreatePVCSuccessfully",
        "CreateServiceSuccessfully",
        "CreateStatefulSetSuccessfully",
        "CreateSyncJobSuccessfully",
        "DoSyncJobSuccessfully",
    )


@pytest.mark.parametrize(
    ("more", "reported"),
    [(0, ""), (1, "1 file that the source did not have was"), (300, "300 files that the source did not have were")],
)
async def test_files_that_only_the_set_has_are_reported_with_the_command_that_deletes_them(
    here: SampleDataCluster, more: int, reported: str
) -> None:
    here.servers.ends["sync"] = JobReport(
        state="Succeeded", progress=Progress(files=40, files_total=40, only_here=more)
    )
    await here.create_set()
    message = condition(await here.phase("Ready"), "Synced")[1]
    assert message.startswith(reported)
    assert ("pdc samplejob sync imagenet --delete-dst" in message) is bool(more)


async def test_an_import_shows_its_progress_and_survives_a_restart_of_the_controller(here: SampleDataCluster) -> None:
    del here.servers.ends["sync"]
    await here.create_set()
    await here.phase("Syncing")
    here.servers.ends["sync"] = JobReport(
        state="Running",
        progress=Progress(files=10, files_total=100, bytes=1 << 20, bytes_total=10 << 20, bytes_per_second=1 << 18),
    )

    async def shown() -> Any:
        return (await here.status(SAMPLESETS, "imagenet")).get("progress")

    progress = await here.until(shown)
    assert (progress["files"], progress["totalFiles"], progress["bytesPerSecond"]) == (10, 100, 1 << 18)
    await here.stop_controllers()
    here.start_controllers()
    await here.pass_time(5)
    here.servers.ends["sync"] = done()
    await here.phase("Ready")
    assert len(here.servers.asked("sync")) == 1
    assert len(here.servers.orders) == 1, "the same request is the same job"


async def test_an_import_that_the_server_has_lost_is_handed_over_again_under_the_same_id(
    here: SampleDataCluster,
) -> None:
    del here.servers.ends["sync"]
    await here.create_set()
    status = await here.phase("Syncing")
    here.servers.orders.clear()

    async def again() -> Any:
        return here.servers.orders

    (order,) = await here.until(again)
    assert order == ("imagenet-runtime-0", status["jobsName"]["syncJobName"])


async def test_a_failed_import_says_why_and_goes_on_when_the_source_is_corrected(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("no such bucket")
    await here.create_set()
    status = await here.phase("SyncFailed")
    assert condition(status, "Synced") == ("False", "no such bucket")
    assert status["message"] == "no such bucket"
    await here.said("imagenet", "ErrorDoSyncJob")
    here.servers.ends["sync"] = done()
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "bos://other.endpoint/imagenet"}})
    await here.phase("Ready")
    assert {work.options["source"] for work in here.servers.orders.values()} == {
        "bos://bucket.endpoint/imagenet",
        "bos://other.endpoint/imagenet",
    }


OTHER = {"source": {"uri": "bos://other.endpoint/imagenet"}}


def sources(here: SampleDataCluster) -> set[str]:
    return {work.options["source"] for work in here.servers.orders.values()}


async def test_the_source_of_a_set_that_holds_data_stays_and_the_rest_of_its_spec_does_not(
    here: SampleDataCluster,
) -> None:
    await here.create_set()
    assert (await here.phase("Ready"))["source"] == "bos://bucket.endpoint/imagenet"
    for change in (OTHER, {"source": None}, {"source": {"uri": ""}, "noSync": True}):
        with pytest.raises(Invalid, match="data of two sources is never mixed: make another SampleSet"):
            await here.edit(SAMPLESETS, "imagenet", change)
    await here.edit(SAMPLESETS, "imagenet", {"source": {"secretRef": {"name": "none"}}, "partitions": 2})
    await here.client.patch(SAMPLESETS, "imagenet", {"metadata": {"labels": {"a": "b"}}}, namespace=NAMESPACE)


async def test_an_import_that_failed_half_way_holds_data_too(here: SampleDataCluster) -> None:
    half = Progress(files=3, files_total=6, bytes=30, bytes_total=60)
    here.servers.ends["sync"] = JobReport(state="Failed", message="connection lost", progress=half)
    await here.create_set()
    await here.phase("SyncFailed")
    with pytest.raises(Invalid, match="never mixed"):
        await here.edit(SAMPLESETS, "imagenet", OTHER)
    here.servers.ends["sync"] = failed("no route")
    await here.pass_time(120)
    with pytest.raises(Invalid, match="never mixed"):
        await here.edit(SAMPLESETS, "imagenet", OTHER)


async def test_a_source_that_is_changed_during_the_import_of_another_is_not_mixed_with_it(
    here: SampleDataCluster,
) -> None:
    del here.servers.ends["sync"]
    await here.create_set()
    await here.phase("Syncing")
    await here.edit(SAMPLESETS, "imagenet", OTHER)
    here.servers.ends["sync"] = done()

    async def held() -> bool:
        return condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[0] == "False"

    await here.until(held)
    status = await here.status(SAMPLESETS, "imagenet")
    assert "bos://other.endpoint/imagenet, but the set holds data of bos://bucket.endpoint" in status["message"]
    await here.said("imagenet", "ErrorSourceChanged")
    await here.create_job("again", "sync", secretRef={"name": "none"})
    waiting = await here.phase("Pending", "again", of=SAMPLEJOBS)
    assert "never mixed" in waiting["message"]
    await here.pass_time(120)
    assert sources(here) == {"bos://bucket.endpoint/imagenet"}
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "bos://bucket.endpoint/imagenet"}})
    await here.phase("Ready")
    await here.phase("Succeeded", "again", of=SAMPLEJOBS)
    assert sources(here) == {"bos://bucket.endpoint/imagenet"}


async def test_a_set_without_an_import_may_be_given_another_source(here: SampleDataCluster) -> None:
    await here.create_set(noSync=True)
    assert "source" not in await here.phase("Ready")
    await here.edit(SAMPLESETS, "imagenet", OTHER)


async def test_a_name_from_which_no_cache_server_could_be_named_is_refused(here: SampleDataCluster) -> None:
    for name, said in (("n" * 45, "may not be more than 44"), ("a.b", "beginning with a letter"), ("1a", "letter")):
        with pytest.raises(Invalid, match=said):
            await here.create_set(name)
    await here.create_set("n" * 44)
    await here.phase("Ready", "n" * 44)


async def test_a_job_may_have_a_name_of_any_length(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.create_job("j" * 200, "warmup")
    await here.phase("Succeeded", "j" * 200, of=SAMPLEJOBS)


async def test_the_answer_about_one_import_is_not_taken_for_that_about_the_next(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("no such bucket")
    await here.create_set()
    await here.phase("SyncFailed")
    del here.servers.ends["sync"]
    here.history.clear()
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "bos://other.endpoint/imagenet"}})
    await here.phase("Syncing")
    await here.pass_time(10)
    assert here.history["imagenet"] == ["Mount", "Syncing"]


async def test_a_failed_import_goes_on_when_the_secret_is_corrected(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("access denied")
    await here.create_secret("keys", access_key="a", secret_key="wrong")
    await here.create_set(source={"uri": "bos://bucket.endpoint/imagenet", "secretRef": {"name": "keys"}})
    await here.phase("SyncFailed")
    here.servers.ends["sync"] = done()
    await here.client.patch(SECRETS, "keys", {"stringData": {"secret-key": "right\n"}}, namespace=NAMESPACE)
    await here.phase("Ready")
    last = list(here.servers.orders.values())[-1]
    assert last.credentials == {"access-key": "a", "secret-key": "right"}
    everything = json.dumps([(await here.client.list(r, NAMESPACE)).items for r in (EVENTS, SAMPLESETS, STATEFULSETS)])
    assert "right" not in everything
    assert "wrong" not in everything


async def test_a_failed_import_is_tried_again_by_itself_after_15_seconds(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("the endpoint is away")
    await here.create_set()
    await here.phase("SyncFailed")
    here.servers.ends["sync"] = done()
    await here.pass_time(13)
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] == "SyncFailed"
    await here.pass_time(3)
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] != "SyncFailed"
    status = await here.phase("Ready")
    assert "syncAttempts" not in status


@pytest.mark.parametrize(
    ("options", "whole"),
    [({}, True), ({"force-update": True}, True), ({"destination": "x"}, False), ({"include": "*.jpg"}, False)],
)
def test_a_sync_of_the_whole_source_is_recognised(options: dict[str, Any], whole: bool) -> None:
    job = {"metadata": {"name": "by-hand"}, "spec": {"type": "sync", "syncOptions": options}}
    assert sample_job_view(job).whole is whole


@pytest.fixture
def no_retry_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("paddlecloud.controllers.sampledata.sampleset.decide")  # the package has a function so named
    monkeypatch.setattr(module, "FIRST_RETRY", 1e9)
    monkeypatch.setattr(module, "LAST_RETRY", 1e9)


@pytest.mark.usefixtures("no_retry_by_itself")
async def test_a_failed_import_is_tried_again_once_a_job_has_synced_all_of_the_source(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("1 of 30 files were not copied")
    await here.create_set()
    await here.phase("SyncFailed")
    await here.pass_time(2)
    here.servers.ends["sync"] = done()
    await here.create_job("by-hand", "sync")
    await here.phase("Succeeded", "by-hand", of=SAMPLEJOBS)
    await here.phase("Ready")


@pytest.mark.usefixtures("no_retry_by_itself")
async def test_a_failed_import_is_tried_again_when_asked(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("no such bucket")
    await here.create_set()
    await here.phase("SyncFailed")
    here.servers.ends["sync"] = done()
    request = {"metadata": {"annotations": {RETRY_AT: "2026-01-01T00:00:00Z"}}}
    await here.client.patch(SAMPLESETS, "imagenet", request, namespace=NAMESPACE)
    assert (await here.phase("Ready"))["retriedAt"] == "2026-01-01T00:00:00Z"


async def test_no_sync_skips_the_import_also_after_it_failed(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("no")
    await here.create_set()
    await here.phase("SyncFailed")
    await here.edit(SAMPLESETS, "imagenet", {"noSync": True})
    assert condition(await here.phase("Ready"), "Synced")[0] == "True"
    await here.create_set("other", noSync=True, source=None)
    await here.phase("Ready", "other")
    assert not any(pod.startswith("other") for pod, _ in here.servers.orders)


async def test_scaling_up_and_down_moves_labels_and_servers(here: SampleDataCluster) -> None:
    await here.create_set(partitions=1)
    await here.phase("Ready")
    here.history.clear()
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 3})

    async def grown() -> Any:
        return here.history.get("imagenet") == ["PartialReady", "Ready"]

    await here.until(grown)
    status = await here.phase("Ready")
    assert status["runtimeStatus"]["runtimeReady"] == "3/3"
    labels = await here.labels(LABEL)
    assert sorted(labels.values()) == [f"imagenet-runtime-{i}" for i in range(3)]
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 1})

    async def back() -> bool:
        return sorted((await here.labels(LABEL)).values()) == ["imagenet-runtime-0"]

    await here.until(back)
    assert (await here.phase("Ready"))["runtimeStatus"]["runtimeReady"] == "1/1"
    assert sorted(here.servers.asked("clear")) == ["imagenet-runtime-1", "imagenet-runtime-2"], "others keep theirs"


async def test_a_server_that_cannot_be_asked_to_empty_its_cache_goes_all_the_same(here: SampleDataCluster) -> None:
    del here.servers.ends["clear"]
    await here.create_set(partitions=2)
    await here.phase("Ready")
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 1})
    await here.pass_time(30)
    assert len(await here.labels(LABEL)) == 2

    async def gone() -> bool:
        return len(await here.labels(LABEL)) == 1

    await here.until(gone)


async def test_more_partitions_than_nodes_stay_partial_and_say_why(here: SampleDataCluster) -> None:
    await here.create_set(partitions=4)

    async def reported() -> str:
        status = await here.status(SAMPLESETS, "imagenet")
        ready, message = condition(status, "Ready")
        return message if ready == "False" and "3 of 4" in message and "imagenet-runtime-3" in message else ""

    text = await here.until(reported)
    assert "3 of 4 cache servers are ready; imagenet-runtime-3: " in text
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] == "PartialReady"


async def test_a_lost_node_is_noticed_and_its_partition_moves(here: SampleDataCluster) -> None:
    await here.create_set(partitions=2)
    await here.phase("Ready")
    lost = next(node for node, pod in (await here.labels(LABEL)).items() if pod == "imagenet-runtime-1")

    async def recorded() -> Any:
        return here.history.get("imagenet", [])[-1:] == ["Ready"]

    await here.until(recorded)  # the watch may be behind the status
    here.history.clear()
    await here.lose_node(lost)

    async def moved() -> Any:
        return here.history.get("imagenet") == ["PartialReady", "Ready"]

    await here.until(moved)
    labels = await here.labels(LABEL)
    assert lost not in labels
    assert sorted(labels.values()) == ["imagenet-runtime-0", "imagenet-runtime-1"]


async def test_objects_that_somebody_deleted_come_back(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.client.delete(SERVICES, "imagenet-runtime-service", namespace=NAMESPACE)

    async def back() -> Any:
        return await here.get(SERVICES, "imagenet-runtime-service")

    await here.until(back)


async def test_figures_are_refreshed_and_an_empty_set_is_not_an_error(here: SampleDataCluster) -> None:
    here.servers.figures_of["imagenet-runtime-0"] = Figures(disk_bytes=1 << 30)
    await here.create_set()
    status = await here.phase("Ready")
    assert status["cacheStatus"]["totalSize"] == "0 B"
    assert "errorMassage" not in status["cacheStatus"]
    here.servers.silent.add("imagenet-runtime-0")

    async def reported() -> Any:
        return (await here.status(SAMPLESETS, "imagenet"))["cacheStatus"].get("errorMassage")

    assert "does not answer" in await here.until(reported)


async def test_a_missing_secret_is_reported_and_waited_for(here: SampleDataCluster) -> None:
    await here.create_set(source={"uri": "bos://bucket.endpoint/x", "secretRef": {"name": "keys"}})

    async def reported() -> bool:
        status = await here.status(SAMPLESETS, "imagenet")
        return condition(status, "Valid") == ("False", "Secret default/keys does not exist")

    await here.until(reported, seconds=10)
    await here.said("imagenet", "ErrorSecretNotExist")
    await here.create_secret("keys")
    await here.phase("Ready")


async def test_juicefs_is_chosen_where_its_driver_is_served_and_needs_its_secret(here: SampleDataCluster) -> None:
    driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "csi.juicefs.com"}}
    await here.client.create(CSIDRIVERS, {**driver, "spec": {}})
    await here.create_secret("fs", name="imagenet", storage="redis", metaurl="redis://r/0")
    await here.create_set(secretRef={"name": "fs"})

    async def reported() -> bool:
        return "lacks bucket" in condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[1]

    await here.until(reported, seconds=10)
    await here.client.patch(SECRETS, "fs", {"stringData": {"bucket": "redis://r/1"}}, namespace=NAMESPACE)
    assert (await here.phase("Ready"))["driver"] == "juicefs"
    volume = await here.get(PERSISTENTVOLUMES, "imagenet", None)
    assert volume is not None
    assert volume["spec"]["csi"]["driver"] == "csi.juicefs.com"


async def test_sets_of_one_name_in_two_namespaces_do_not_meet(here: SampleDataCluster) -> None:
    await here.client.create(NAMESPACES, {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}})
    await here.create_set()
    await here.phase("Ready")
    await here.create_set(namespace="team")
    await here.phase("Ready", namespace="team")
    assert list((await here.labels(LABEL)).values()) == ["imagenet-runtime-0"]
    assert list((await here.labels("paddlepaddle.org/local-team.imagenet")).values()) == ["imagenet-runtime-0"]
    await here.client.delete(SAMPLESETS, "imagenet", namespace="team")
    await here.gone(SAMPLESETS, "imagenet", "team")
    assert await here.get(PERSISTENTVOLUMES, "imagenet", None) is not None
    assert (await here.status(SAMPLESETS, "imagenet"))["phase"] == "Ready"


async def test_an_object_that_is_not_ours_is_refused_and_left_alone(here: SampleDataCluster) -> None:
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "imagenet", "namespace": NAMESPACE},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "",
            "resources": {"requests": {"storage": "1Gi"}},
        },
    }
    await here.client.create(PERSISTENTVOLUMECLAIMS, claim)
    await here.create_set()

    async def refused() -> bool:
        return "ErrorPVCAlreadyExist" in await here.reasons("imagenet")

    await here.until(refused)
    found = await here.get(PERSISTENTVOLUMECLAIMS, "imagenet")
    assert found is not None
    assert found["spec"]["storageClassName"] == ""
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")
    assert await here.get(PERSISTENTVOLUMECLAIMS, "imagenet") is not None


async def test_an_invalid_set_is_reported_and_resumes_when_it_is_mended(here: SampleDataCluster) -> None:
    await here.create_set(source={"uri": "ftp://bucket.endpoint/x"})

    async def reported() -> bool:
        return "scheme ftp is unknown" in condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[1]

    await here.until(reported, seconds=10)
    await here.edit(SAMPLESETS, "imagenet", {"source": {"uri": "s3://bucket.endpoint/x"}})
    await here.phase("Ready")


async def test_how_jobs_read_the_set_is_reported_by_epoch_and_outlives_them(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.create_reader("train")
    epochs = [{"epoch": 0, "hits": 1, "misses": 99, "stallSeconds": 2.5}, {"epoch": 1, "hits": 100}]
    status = {"phase": "Running", "cache": {"hits": 101, "misses": 99, "epochs": epochs}}
    await here.client.patch(PADDLEJOBS, "train", {"status": status}, namespace=NAMESPACE, subresource="status")
    expected = [{"job": "train", **epoch} for epoch in epochs]

    async def reported() -> bool:
        return (await here.status(SAMPLESETS, "imagenet")).get("reads") == expected

    await here.until(reported)
    await here.client.delete(PADDLEJOBS, "train", namespace=NAMESPACE)
    await here.pass_time(30)
    assert await reported()


async def test_idle_sets_cost_no_writes(here: SampleDataCluster) -> None:
    await here.create_set()
    await here.phase("Ready")
    await here.pass_time(5)
    before = await here.get(SAMPLESETS, "imagenet")
    await here.pass_time(300)
    assert await here.get(SAMPLESETS, "imagenet") == before


async def test_no_engine_at_all_is_reported_and_one_that_is_installed_later_is_found(tmp_path: Path) -> None:
    async with world(tmp_path / "data", nodes=1) as here:
        await here.stop_controllers()
        here.options = type(here.options)(image="runtime", local_root="")
        here.start_controllers()
        await here.create_set()

        async def reported() -> bool:
            return "ErrorDriverNotExist" in await here.reasons("imagenet")

        await here.until(reported, seconds=10)
        assert "csi.juicefs.com is not installed" in condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[1]

        driver = {"apiVersion": "storage.k8s.io/v1", "kind": "CSIDriver", "metadata": {"name": "csi.juicefs.com"}}
        await here.client.create(CSIDRIVERS, {**driver, "spec": {}})

        async def found() -> bool:
            said = condition(await here.status(SAMPLESETS, "imagenet"), "Valid")[1]
            return "the juicefs engine needs the Secret" in said

        await here.until(found, seconds=20)
