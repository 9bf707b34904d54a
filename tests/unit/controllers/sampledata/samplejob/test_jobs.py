"""SampleJobs on a cluster on paper: types, terminate, failures, re-runs, deletion, schedules."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.controllers.sampledata.sampleset import cache_status
from paddlecloud.controllers.sampledata.servers.requests import ServerRefused, Work
from paddlecloud.controllers.sampledata.servers.responses import Coverage, Figures, JobReport, Progress
from paddlecloud.kube.clock import parse_rfc3339, rfc3339
from paddlecloud.kube.resource import SAMPLEJOBS, SAMPLESETS, SECRETS, Object
from unit.controllers.sampledata.world import NAMESPACE, SampleDataCluster, condition, done, failed, world

RUNTIMES = ["imagenet-runtime-0", "imagenet-runtime-1"]


@pytest.fixture
async def here(tmp_path: Path) -> AsyncIterator[SampleDataCluster]:
    """A set of two partitions that is ready, and the Secret of a public source."""
    async with world(tmp_path / "data", nodes=2) as found:
        await found.create_set(partitions=2)
        await found.create_secret("none")
        await found.phase("Ready")
        found.servers.orders.clear()
        yield found


async def ended(here: SampleDataCluster, name: str, phase: str = "Succeeded") -> Object:
    return await here.phase(phase, name, of=SAMPLEJOBS)


async def runs(here: SampleDataCluster) -> list[str]:
    jobs = (await here.client.list(SAMPLEJOBS, NAMESPACE)).items
    return sorted(job["metadata"]["name"] for job in jobs if job["metadata"].get("ownerReferences"))


@pytest.mark.parametrize(
    ("type", "spec", "pods", "options"),
    [
        (
            "sync",
            {"secretRef": {"name": "none"}, "syncOptions": {"destination": "train", "threads": 20, "update": True}},
            RUNTIMES[:1],
            {
                "source": "bos://bucket.endpoint/imagenet",
                "destination": "file:///mnt/imagenet/train",
                "threads": 20,
                "update": True,
            },
        ),
        ("rmr", {"rmrOptions": {"paths": ["n01514859"]}}, RUNTIMES[:1], {"paths": ["/mnt/imagenet/n01514859"]}),
        (
            "warmup",
            {"warmupOptions": {"paths": ["train"], "strategyName": "sampler", "batchSize": 32, "partitions": 9}},
            RUNTIMES,
            {
                "paths": ["/mnt/imagenet/train"],
                "partitions": 2,
                "strategyName": "sampler",
                "threads": 50,
                "batchSize": 32,
                "shuffle": False,
                "epochs": 1,
                "ranksPerNode": 1,
            },
        ),
        (
            "warmup",
            {},
            RUNTIMES,
            {"paths": ["/mnt/imagenet"], "partitions": 2, "strategyName": "sequence", "threads": 50},
        ),
        ("clear", {}, RUNTIMES, {"paths": ["/cache/var-lib-sets-default-imagenet-cache/*"]}),
    ],
)
async def test_each_type_goes_to_its_servers_with_absolute_paths(
    here: SampleDataCluster, type: str, spec: Object, pods: list[str], options: Object
) -> None:
    await here.create_job("job", type, **spec)
    status = await ended(here, "job")
    asked = here.servers.asked(type)
    assert sorted(asked) == pods
    assert all(work.options == options for work in asked.values())
    assert {work.id for work in asked.values()} == {status["jobName"]}
    assert status["partitions"] == len(pods)
    assert status["completionTime"]
    name = {"sync": "SyncJob", "warmup": "WarmupJob", "rmr": "RmrJob", "clear": "ClearJob"}[type]
    await here.said("job", f"Do{name}Successfully")
    reasons = await here.reasons("job")
    assert reasons.count(f"Create{name}Successfully") == 1
    assert reasons.count(f"Do{name}Successfully") == 1


async def test_a_job_is_pending_then_running_and_shows_the_progress_of_all_its_servers(here: SampleDataCluster) -> None:
    progress = Progress(files=5, files_total=50, bytes=100, bytes_total=1000, bytes_per_second=10, seconds_left=90)
    here.servers.ends["warmup"] = JobReport(state="Queued", position=2)
    await here.create_job("warm", "warmup")

    async def queued() -> bool:
        return (await here.status(SAMPLEJOBS, "warm")).get("message") == "2 before it"

    await here.until(queued)
    here.servers.ends["warmup"] = JobReport(state="Running", progress=progress)
    await ended(here, "warm", "Running")

    async def shown() -> Any:
        found = (await here.status(SAMPLEJOBS, "warm")).get("progress")
        return found if found and found["files"] else None

    found = await here.until(shown)
    assert (found["files"], found["totalFiles"], found["secondsLeft"]) == (10, 100, 90)
    here.servers.ends["warmup"] = done()
    await ended(here, "warm")
    assert here.history["warm"] == ["Pending", "Running", "Succeeded"]


async def test_a_set_is_warm_after_a_warm_up_of_all_of_it_until_it_is_cleared_or_grows(here: SampleDataCluster) -> None:
    async def warm(value: str, reason: str) -> None:
        async def is_so() -> bool:
            conditions = (await here.status(SAMPLESETS, "imagenet"))["conditions"]
            return next((c["status"], c["reason"]) for c in conditions if c["type"] == "Warm") == (value, reason)

        await here.until(is_so)

    await here.create_job("part", "warmup", warmupOptions={"paths": ["train"]})
    await ended(here, "part")
    await warm("False", "NotWarmedUp")
    await here.create_job("all", "warmup")
    await warm("True", "WarmedUp")
    await here.pass_time(2)
    await here.create_job("empty", "clear")
    await warm("False", "Cleared")
    await here.pass_time(2)
    await here.create_job("again", "warmup")
    await warm("True", "WarmedUp")
    del here.servers.ends["warmup"]
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 1})
    await warm("False", "Scaled")
    here.servers.ends["warmup"] = done()
    await warm("True", "WarmedUp")


async def test_a_warm_set_that_is_scaled_is_warmed_up_again_in_the_same_way(here: SampleDataCluster) -> None:
    options = {"strategyName": "sampler", "batchSize": 8, "shuffle": True}
    await here.create_job("warm", "warmup", warmupOptions=options)
    await ended(here, "warm")
    await here.edit(SAMPLESETS, "imagenet", {"partitions": 1})

    async def again() -> Any:
        return (await here.status(SAMPLESETS, "imagenet")).get("jobsName", {}).get("warmupJobName")

    name = await here.until(again)
    await ended(here, name)
    work = list(here.servers.orders.values())[-1]
    assert (work.type, work.options["partitions"], work.options["batchSize"]) == ("warmup", 1, 8)
    await here.pass_time(120)
    jobs = (await here.client.list(SAMPLEJOBS, NAMESPACE)).items
    assert sorted(job["metadata"]["name"] for job in jobs) == sorted(["warm", name]), "once"


async def test_partial_coverage_is_a_failure_that_names_what_is_missing(here: SampleDataCluster) -> None:
    covered = Coverage(planned=40, cached=37, missing=("a.jpg", "b.jpg", "c.jpg"))
    here.servers.ends["warmup"] = JobReport(state="Succeeded", coverage=covered)
    await here.create_job("warm", "warmup")
    status = await ended(here, "warm", "Failed")
    assert "partition 0 has 37 of 40 files (a.jpg, b.jpg, c.jpg)" in status["message"]
    assert status["missing"] == ["partition 0", "partition 1"]
    await here.said("warm", "ErrorDoWarmupJob")


async def test_a_server_that_stays_away_for_two_minutes_fails_its_partition_only(here: SampleDataCluster) -> None:
    del here.servers.ends["warmup"]
    await here.create_job("warm", "warmup")
    await ended(here, "warm", "Running")
    here.servers.ends["warmup"] = done()
    here.servers.silent.add("imagenet-runtime-1")
    await here.pass_time(115)
    assert (await here.status(SAMPLEJOBS, "warm"))["phase"] == "Running"
    await here.pass_time(20)
    status = await ended(here, "warm", "Failed")
    assert status["missing"] == ["partition 1"]
    assert "imagenet-runtime-1 is gone" in status["message"]


async def test_a_server_that_lost_the_work_is_given_it_again(here: SampleDataCluster) -> None:
    del here.servers.ends["warmup"]
    await here.create_job("warm", "warmup")
    status = await ended(here, "warm", "Running")
    here.servers.orders.clear()
    here.servers.ends["warmup"] = done()
    again = await ended(here, "warm")
    assert again["jobName"] == status["jobName"]
    assert sorted(pod for pod, _ in here.servers.orders) == RUNTIMES


async def test_a_failed_job_is_run_again_when_its_spec_is_corrected(here: SampleDataCluster) -> None:
    here.servers.ends["rmr"] = failed("no such file: typo")
    await here.create_job("rm", "rmr", rmrOptions={"paths": ["typo"]})
    status = await ended(here, "rm", "Failed")
    assert status["message"] == "imagenet-runtime-0: no such file: typo"
    await here.pass_time(120)
    assert (await here.status(SAMPLEJOBS, "rm"))["jobName"] == status["jobName"], "nothing changed: it stays failed"
    here.servers.ends["rmr"] = done()
    await here.edit(SAMPLEJOBS, "rm", {"rmrOptions": {"paths": ["right"]}})
    again = await ended(here, "rm")
    assert again["jobName"] != status["jobName"]
    assert "missing" not in again


async def test_a_failed_job_is_run_again_when_its_secret_changes_or_when_asked(here: SampleDataCluster) -> None:
    here.servers.ends["sync"] = failed("access denied")
    await here.create_job("in", "sync", secretRef={"name": "none"})
    first = await ended(here, "in", "Failed")
    await here.client.patch(SECRETS, "none", {"stringData": {"access-key": "k"}}, namespace=NAMESPACE)

    async def other() -> Any:
        status = await here.status(SAMPLEJOBS, "in")
        return status if status.get("jobName") not in (None, first["jobName"]) and status["phase"] == "Failed" else None

    second = await here.until(other)
    here.servers.ends["sync"] = done()
    annotation = {"metadata": {"annotations": {"paddlepaddle.org/retry-at": "now"}}}
    await here.client.patch(SAMPLEJOBS, "in", annotation, namespace=NAMESPACE)
    third = await ended(here, "in")
    assert third["jobName"] not in (first["jobName"], second["jobName"])
    assert third["retriedAt"] == "now", "who asked sees that it was followed"


async def test_a_succeeded_job_is_not_run_again(here: SampleDataCluster) -> None:
    await here.create_job("rm", "rmr", rmrOptions={"paths": ["a"]})
    await ended(here, "rm")
    await here.edit(SAMPLEJOBS, "rm", {"rmrOptions": {"paths": ["b"]}})
    await here.pass_time(60)
    assert len(here.servers.asked("rmr")) == 1


async def test_an_invalid_job_fails_at_once_and_runs_when_mended(here: SampleDataCluster) -> None:
    await here.create_job("rm", "rmr")
    status = await ended(here, "rm", "Failed")
    assert "say which data to remove" in status["message"]
    assert here.servers.orders == {}
    await here.edit(SAMPLEJOBS, "rm", {"rmrOptions": {"paths": ["a"]}})
    await ended(here, "rm")


async def test_what_a_server_refuses_fails_the_job_with_its_words(
    here: SampleDataCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def refuse(server: object, work: Work) -> JobReport:
        raise ServerRefused("imagenet-runtime-0: sync has no option 'x'")

    monkeypatch.setattr(here.servers, "submit", refuse)
    await here.create_job("in", "sync", secretRef={"name": "none"})
    assert "has no option" in (await ended(here, "in", "Failed"))["message"]


async def test_a_sync_of_the_sets_own_source_has_the_keys_of_the_set_also_on_a_schedule(
    here: SampleDataCluster,
) -> None:
    await here.create_secret("keys", access_key="AK", secret_key="SK")
    await here.edit(SAMPLESETS, "imagenet", {"source": {"secretRef": {"name": "keys"}}})
    await here.create_job("again", "sync")
    await here.create_job("nightly", "sync", schedule="* * * * *")
    await ended(here, "again")
    await here.create_job("public", "sync", secretRef={"name": "none"})
    await ended(here, "public")
    await here.until(lambda: runs(here))
    [run] = await runs(here)
    await ended(here, run)
    given = {}
    for name in ("again", "public", run):
        id = (await here.status(SAMPLEJOBS, name))["jobName"]
        given[name] = here.servers.orders[RUNTIMES[0], id].credentials
    keys = {"access-key": "AK", "secret-key": "SK"}
    assert given == {"again": keys, run: keys, "public": {}}


async def test_what_is_missing_is_reported_and_waited_for(here: SampleDataCluster) -> None:
    await here.create_job("in", "sync", set="coco", secretRef={"name": "keys"})

    async def reported(text: str) -> None:
        async def is_said() -> bool:
            return text in (await here.status(SAMPLEJOBS, "in")).get("message", "")

        await here.until(is_said, seconds=20)

    await reported("SampleSet coco does not exist")
    await here.said("in", "ErrorSampleSetNotExist")
    await here.create_set("coco")
    await reported("Secret default/keys does not exist")
    await here.create_secret("keys")
    await ended(here, "in")


async def test_terminate_ends_what_others_asked_for_and_cancel_one_job(here: SampleDataCluster) -> None:
    del here.servers.ends["warmup"]
    await here.create_job("long", "warmup")
    victim = (await ended(here, "long", "Running"))["jobName"]
    await here.create_job("one", "clear", cancel=victim)
    await ended(here, "one")
    assert set(here.servers.cancelled) == {(pod, victim) for pod in RUNTIMES}
    here.servers.cancelled.clear()
    await here.create_job("all", "clear", terminate=True)
    own = (await ended(here, "all"))["jobName"]
    assert {(pod, victim) for pod in RUNTIMES} <= set(here.servers.cancelled)
    assert own not in {id for _, id in here.servers.cancelled}
    await here.said("all", "CreateTerminateSuccessfully")


async def test_deleting_a_job_stops_its_work(here: SampleDataCluster) -> None:
    del here.servers.ends["warmup"]
    await here.create_job("long", "warmup")
    id = (await ended(here, "long", "Running"))["jobName"]
    found = await here.get(SAMPLEJOBS, "long")
    assert found is not None
    assert found["metadata"]["finalizers"] == ["paddlepaddle.org/samplejob-long"]
    await here.client.delete(SAMPLEJOBS, "long", namespace=NAMESPACE)
    await here.gone(SAMPLEJOBS, "long")
    assert set(here.servers.cancelled) == {(pod, id) for pod in RUNTIMES}


async def test_a_finished_job_goes_after_its_time_to_live(here: SampleDataCluster) -> None:
    await here.create_job("brief", "clear", ttlSecondsAfterFinished=30)
    await ended(here, "brief")
    await here.pass_time(20)
    assert await here.get(SAMPLEJOBS, "brief") is not None
    await here.gone(SAMPLEJOBS, "brief")


# Schedules


async def cron(here: SampleDataCluster, **spec: Any) -> None:
    await here.create_job("nightly", "clear", schedule="*/10 * * * *", **spec)

    async def planned() -> Any:
        return (await here.status(SAMPLEJOBS, "nightly")).get("nextScheduleTime")

    await here.until(planned)


async def test_figures_that_servers_give_late_are_right_within_half_a_minute_of_a_jobs_end(
    here: SampleDataCluster,
) -> None:
    """The promise of the manual, with servers that count for another 15 seconds. All seconds are the clock's."""
    await here.create_job("clears", "clear")
    await ended(here, "clears")
    await here.pass_time(15)
    for pod in RUNTIMES:
        here.servers.figures_of[pod] = Figures(total_bytes=4 << 30, cached_bytes=0, disk_avail_bytes=12 << 30)

    async def right() -> bool:
        return bool((await here.status(SAMPLESETS, "imagenet"))["cacheStatus"]["cachedSize"] == "0 B")

    assert not await right()
    await here.until(right, seconds=15)


async def test_a_schedule_makes_a_job_each_time_and_keeps_a_few(here: SampleDataCluster) -> None:
    await cron(here, successfulJobsHistoryLimit=2)
    status = await here.status(SAMPLEJOBS, "nightly")
    due = parse_rfc3339(status["nextScheduleTime"])
    assert due % 600 == 0
    assert due > here.clock.now()
    await here.pass_time(31 * 60)
    names = await runs(here)
    last = int(here.clock.now() // 600 * 600) // 60
    assert names == [f"nightly-{last - 10}", f"nightly-{last}"]
    status = await here.status(SAMPLEJOBS, "nightly")
    assert status["lastScheduleTime"] == rfc3339(last * 60)
    assert status["lastSuccessfulTime"]
    assert status["phase"] == "Pending"
    child = await here.get(SAMPLEJOBS, names[0])
    assert child is not None
    assert "schedule" not in child["spec"]
    assert len(here.servers.orders) >= 3 * 2


@pytest.mark.parametrize(("policy", "active"), [("Forbid", 1), ("Allow", 2), ("Replace", 1)])
async def test_a_run_that_is_due_while_another_runs(here: SampleDataCluster, policy: str, active: int) -> None:
    del here.servers.ends["clear"]
    await cron(here, concurrencyPolicy=policy)
    await here.pass_time(601)
    (first,) = await runs(here)
    await here.pass_time(600)
    names = await runs(here)
    assert len(names) == active
    assert (first in names) is (policy != "Replace")
    status = await here.status(SAMPLEJOBS, "nightly")
    assert status["phase"] == "Running"
    assert [ref["name"] for ref in status["active"]] == names
    if policy == "Replace":
        assert here.servers.cancelled
    if policy == "Forbid":
        await here.said("nightly", "JobAlreadyActive")
        here.servers.ends["clear"] = done()
        await here.pass_time(30)
        assert await runs(here) == names, "runs that were missed are not run later"


async def test_a_suspended_schedule_makes_nothing_and_resumes(here: SampleDataCluster) -> None:
    await cron(here)
    await here.edit(SAMPLEJOBS, "nightly", {"suspend": True})
    await here.pass_time(1300)
    assert await runs(here) == []
    assert (await here.status(SAMPLEJOBS, "nightly"))["message"] == "suspended"
    await here.edit(SAMPLEJOBS, "nightly", {"suspend": False})
    await here.pass_time(601)
    assert len(await runs(here)) == 1


async def test_of_the_runs_missed_while_the_controller_was_down_the_latest_is_run_or_all_are_skipped(
    here: SampleDataCluster,
) -> None:
    await cron(here, startingDeadlineSeconds=60)
    await here.create_job("patient", "clear", schedule="*/10 * * * *", set="imagenet")
    await here.pass_time(5)
    await here.stop_controllers()
    now = here.clock.now()
    await here.clock.advance(3600 + 300 - now % 600)
    here.start_controllers()
    await here.pass_time(20)
    assert len([name for name in await runs(here) if name.startswith("patient")]) == 1
    assert not [name for name in await runs(here) if name.startswith("nightly")]
    await here.said("nightly", "MissSchedule")


async def test_runs_go_with_their_schedule(here: SampleDataCluster) -> None:
    await cron(here)
    await here.pass_time(601)
    (name,) = await runs(here)
    await here.client.delete(SAMPLEJOBS, "nightly", namespace=NAMESPACE)
    await here.gone(SAMPLEJOBS, "nightly")
    await here.gone(SAMPLEJOBS, name)


@pytest.mark.parametrize("noted", [True, False], ids=["noted", "of-an-earlier-release"])
async def test_a_job_of_a_deleted_set_is_not_credited_to_the_next_set_of_that_name(
    here: SampleDataCluster, noted: bool
) -> None:
    await here.create_job("again", "sync", secretRef={"name": "none"})
    await ended(here, "again")
    if not noted:
        without = {"status": {"sampleSetUid": None}}
        await here.client.patch(SAMPLEJOBS, "again", without, namespace=NAMESPACE, subresource="status")
    await here.client.delete(SAMPLESETS, "imagenet", namespace=NAMESPACE)
    await here.gone(SAMPLESETS, "imagenet")
    await here.create_set(partitions=2)
    status = await here.phase("Ready")
    assert condition(status, "Warm") == ("False", "no SampleJob of type warmup has been run on all of it")


async def test_a_job_that_runs_when_its_set_is_made_anew_fails_and_is_not_done_to_the_new_one(
    here: SampleDataCluster,
) -> None:
    del here.servers.ends["warmup"]
    await here.create_job("warm", "warmup")
    await here.phase("Running", "warm", of=SAMPLEJOBS)
    await here.stop_controllers()
    of_another = {"status": {"sampleSetUid": "of-another"}}
    await here.client.patch(SAMPLEJOBS, "warm", of_another, namespace=NAMESPACE, subresource="status")
    here.start_controllers()
    status = await ended(here, "warm", "Failed")
    assert status["message"] == "SampleSet imagenet was deleted"


@pytest.mark.parametrize(
    ("type", "progress", "text"),
    [
        ("rmr", Progress(files=1, bytes=264_192), "1 file removed (258 KiB)"),
        ("warmup", Progress(files=2, skipped=2), "0 files brought (0 B), 2 cached already"),
        ("warmup", Progress(files=3, skipped=1, bytes=4096), "2 files brought (4.0 KiB), 1 cached already"),
        ("sync", Progress(files=3, skipped=1, bytes=4096), "2 files copied (4.0 KiB), 1 unchanged"),
        ("clear", Progress(), "done"),
    ],
)
def test_what_was_done_is_said_in_the_words_of_its_type(type: str, progress: Progress, text: str) -> None:
    assert cache_status.done([JobReport(type=type, state="Succeeded", progress=progress)]) == text


def test_a_dry_run_says_what_would_be_done() -> None:
    progress = Progress(files=3, skipped=1, bytes=4096, deleted=2)
    said = cache_status.done([JobReport(type="sync", state="Succeeded", progress=progress)], dry=True)
    assert said == "dry run: would copy 2 files (4.0 KiB), delete 2; 1 unchanged"
