"""What pods report: what becomes of it in the status, how often it is written, and what silence leads to."""

from __future__ import annotations

import re
from typing import Any

import pytest

from paddlecloud.controllers.paddlejob import JobOptions
from paddlecloud.controllers.paddlejob.reports.report import (
    Listener,
    Message,
    Reports,
    SaidCache,
    SaidCheckpoint,
    SaidEpoch,
)
from paddlecloud.kube.times import two_units
from unit.controllers.paddlejob.world import START, JobCluster, paddlejob

WORKER0, WORKER1 = ("worker", 0), ("worker", 1)
SECONDS_PER_WRITE = 10


def listener(*said: tuple[float, tuple[str, int], Message]) -> Reports:
    receiver = Listener(0, START)
    for after, rank, message in said:
        receiver.take(rank, message, START + after)
    return receiver.reports()


# What is known


def test_progress_with_a_total_says_how_far_and_how_long() -> None:
    reports = listener(
        (0, WORKER0, Message(step=100, total_steps=300, loss=0.7)),
        (50, WORKER0, Message(step=200, total_steps=300, epoch=2, loss=0.5, metrics={"acc": 0.9})),
    )
    progress = reports.progress
    assert progress is not None
    assert (progress.step, progress.total_steps, progress.epoch, progress.loss) == (200, 300, 2, 0.5)
    assert (progress.done, progress.eta_seconds, progress.eta) == ("200/300 (66%)", 50, "50s")
    assert progress.metrics == {"acc": 0.9}


def test_a_restart_from_a_checkpoint_does_not_spoil_the_estimate() -> None:
    """Steps done before are not counted as done in no time."""
    reports = listener(
        (0, WORKER0, Message(step=900, total_steps=1000)), (20, WORKER0, Message(step=920, total_steps=1000))
    )
    assert reports.progress is not None
    assert reports.progress.eta_seconds == 80


@pytest.mark.parametrize(
    ("message", "done"),
    [
        (Message(step=7), "7"),
        (Message(epoch=3, total_epochs=10), "epoch 3/10 (30%)"),
        (Message(loss=0.1), None),
        (Message(step=0, total_steps=0), "0"),
    ],
)
def test_how_far_in_words(message: Message, done: str | None) -> None:
    reports = listener((0, WORKER0, message))
    assert reports.progress is not None
    assert reports.progress.done == done


def test_the_lowest_rank_that_reports_progress_stands_for_the_job() -> None:
    reports = listener(
        (0, WORKER1, Message(step=5)),
        (1, WORKER0, Message(step=4)),
        (2, WORKER1, Message(step=9)),
        (3, ("ps", 0), Message(step=1)),
    )
    assert reports.progress is not None
    assert reports.progress.step == 4
    assert reports.last_report == {WORKER1: START + 2, WORKER0: START + 1, ("ps", 0): START + 3}


def test_cache_use_is_added_up_over_ranks() -> None:
    reports = listener(
        (0, WORKER0, Message(cache=SaidCache(hits=10, misses=5, stall_seconds=0.5))),
        (1, WORKER1, Message(cache=SaidCache(hits=1, misses=1, stall_seconds=0.25))),
        (2, WORKER0, Message(cache=SaidCache(hits=20, misses=5, stall_seconds=1.5))),
    )
    assert reports.cache is not None
    assert (reports.cache.hits, reports.cache.misses, reports.cache.stall_seconds) == (21, 6, 1.8)
    assert reports.cache.epochs is None


def test_cache_use_is_added_up_by_epoch_and_the_last_ten_are_kept() -> None:
    def said(rank: int) -> Message:
        epochs = [SaidEpoch(epoch=number + rank, hits=8, misses=2, stall_seconds=0.5) for number in range(10)]
        return Message(cache=SaidCache(hits=80, misses=20, stall_seconds=5, epochs=epochs))

    reports = listener((0, WORKER0, said(0)), (1, WORKER1, said(1)))
    assert reports.cache is not None
    assert reports.cache.epochs is not None
    found = [(each.epoch, each.hits, each.misses, each.stall_seconds) for each in reports.cache.epochs]
    assert found == [*((epoch, 16, 4, 1.0) for epoch in range(1, 10)), (10, 8, 2, 0.5)]


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (45, "45s"), (130, "2m10s"), (3600, "1h"), (4800, "1h20m"), (273_600, "3d4h")]
)
def test_durations_for_people(seconds: int, text: str) -> None:
    assert two_units(seconds) == text


# What is written


def test_reports_reach_the_status_with_one_write_in_ten_seconds() -> None:
    world = JobCluster(paddlejob(worker=2)).start()
    receiver = Listener(0, world.now)
    before, began = len(world.writes), world.now
    for step in range(1, 101):
        world.now += 1
        receiver.take(WORKER0, Message(step=step, total_steps=100, loss=1 / step), world.now)
        world.reports = receiver.reports()
        world.settle()
    written = len(world.writes) - before
    assert written <= (world.now - began) / SECONDS_PER_WRITE + 1
    assert written >= 9
    world.succeed("job-worker-0", "job-worker-1")
    world.settle()
    assert world.phase == "Completed"
    progress = world.status["progress"]
    assert (progress["step"], progress["done"], progress["loss"]) == (100, "100/100 (100%)", 0.01)
    assert "eta" not in progress, "what has ended takes no more time"


def test_heartbeats_alone_are_written_once_a_minute() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    receiver = Listener(0, world.now)
    before = len(world.writes)
    for _ in range(60):
        world.now += 5
        receiver.take(WORKER0, Message(), world.now)
        world.reports = receiver.reports()
        world.settle()
    assert len(world.writes) - before <= 6
    assert world.status["heartbeatTime"]


def test_what_was_reported_survives_a_restart_of_the_gang_and_of_the_controller() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    receiver = Listener(0, world.now)
    receiver.take(WORKER0, Message(step=30, checkpoint=SaidCheckpoint(path="/ckpt", step=30)), world.now)
    world.reports = receiver.reports()
    world.now += 10
    world.settle()
    world.reports = Reports(since=world.now)  # a controller that has just started
    world.fail("job-worker-0", code=137)
    world.settle()
    assert world.phase == "Restarting"
    assert world.status["checkpoint"]["path"] == "/ckpt"
    assert world.status["progress"]["step"] == 30


def test_the_first_progress_is_written_within_a_second_and_the_first_checkpoint_at_once() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    receiver = Listener(0, world.now)
    receiver.take(WORKER0, Message(step=1, total_steps=40), world.now)
    world.reports = receiver.reports()
    world.now += 1
    world.settle()
    assert world.status["progress"]["done"] == "1/40 (2%)"
    receiver.take(WORKER0, Message(step=2, checkpoint=SaidCheckpoint(path="/ckpt", step=2)), world.now)
    world.reports = receiver.reports()
    world.settle()
    assert world.status["checkpoint"]["path"] == "/ckpt"
    receiver.take(WORKER0, Message(step=3, checkpoint=SaidCheckpoint(path="/ckpt", step=3)), world.now)
    world.reports = receiver.reports()
    before = len(world.writes)
    world.settle()
    assert len(world.writes) == before, "later ones are grouped"


def test_the_progress_of_a_run_that_ended_is_not_shown_as_the_next_ones() -> None:
    world = JobCluster(paddlejob(worker=1)).start()
    receiver = Listener(0, world.now)
    for step in (10, 16):
        receiver.take(WORKER0, Message(step=step, total_steps=40, checkpoint=SaidCheckpoint(path="/ckpt")), world.now)
        world.now += 10
    world.reports = receiver.reports()
    world.settle()
    world.fail("job-worker-0", code=137)
    world.reports = Reports(since=world.now)
    world.settle()
    assert (world.phase, world.status["progress"]["done"]) == ("Restarting", "16/40 (40%)"), "how far it came"
    assert "eta" not in world.status["progress"]
    world.now += 60
    world.start()
    assert world.phase == "Running"
    assert "progress" not in world.status
    assert world.status["checkpoint"]["path"] == "/ckpt"
    world.now += 60
    receiver = Listener(1, world.now)
    receiver.take(WORKER0, Message(step=17, total_steps=40), world.now)
    world.reports = receiver.reports()
    world.settle()
    assert world.status["progress"]["done"] == "17/40 (42%)"
    world.reports = Reports(since=world.now)  # another controller
    world.now += 60
    world.settle()
    assert world.status["progress"]["done"] == "17/40 (42%)"


# How pods know where to report


def reporting(world: JobCluster, pod: str = "job-worker-0") -> dict[str, Any]:
    entries = world.pods[pod]["spec"]["containers"][0]["env"]
    return {entry["name"]: entry for entry in entries if "PADDLECLOUD" in entry["name"] or "PYTHON" in entry["name"]}


def test_pods_get_the_address_where_to_report_but_the_token_is_a_reference() -> None:
    options = JobOptions(report_url="http://127.0.0.1:4000", python_path="/library")
    world = JobCluster(paddlejob(worker=1, hangDetection={"heartbeatSeconds": 30}), options=options)
    world.settle()
    reports = reporting(world)
    assert reports["PADDLECLOUD_REPORT_URL"]["value"] == "http://127.0.0.1:4000/report/default/job/0/worker/0"
    secret = reports["PADDLECLOUD_REPORT_TOKEN"]["valueFrom"]["secretKeyRef"]
    assert (secret["key"], secret["optional"]) == ("token", True)
    assert re.fullmatch("job-report-[0-9a-f]{8}", secret["name"])
    assert reports["PADDLECLOUD_HEARTBEAT_SECONDS"]["value"] == "30"
    assert reports["PYTHONPATH"]["value"] == "/library"


def test_the_users_own_folders_come_first() -> None:
    job = paddlejob(worker=1)
    job["spec"]["worker"]["template"]["spec"]["containers"][0]["env"] = [{"name": "PYTHONPATH", "value": "/mine"}]
    world = JobCluster(job, options=JobOptions(python_path="/library"))
    world.settle()
    assert reporting(world)["PYTHONPATH"]["value"] == "$(PYTHONPATH):/library"


def test_where_nobody_listens_pods_get_no_address() -> None:
    world = JobCluster(paddlejob(worker=1, hangDetection={"heartbeatSeconds": 30}))
    world.settle()
    assert set(reporting(world)) == {"PYTHONUNBUFFERED"}
    assert any("heartbeatSeconds is not watched here" in event for event in world.events)


# Silence

HEARTBEAT = {"hangDetection": {"heartbeatSeconds": 30}}


def listened_to(**spec: Any) -> tuple[JobCluster, Listener]:
    world = JobCluster(paddlejob(**HEARTBEAT, **spec), options=JobOptions(report_url="http://x"))
    world.reports = Reports(since=world.now)
    world.start()
    return world, Listener(0, world.now)


def reported(world: JobCluster, receiver: Listener, *ranks: tuple[str, int], **message: Any) -> None:
    for rank in ranks:
        receiver.take(rank, Message(**message), world.now)
    world.reports = receiver.reports()
    world.settle()


def test_a_rank_that_stops_reporting_is_a_hang_and_its_stacks_are_reported() -> None:
    world, receiver = listened_to(worker=2)
    reported(world, receiver, WORKER0, WORKER1)
    world.now += 24
    reported(world, receiver, WORKER0)
    reported(world, receiver, WORKER1, stacks='File "train.py", line 7 in all_reduce')
    assert world.phase == "Running"
    world.now += 6
    reported(world, receiver, WORKER0)
    assert (world.phase, world.status["reason"], world.status["restarts"]) == ("Restarting", "Hung", 1)
    assert world.status["failures"][-1]["pod"] == "job-worker-1"
    assert "no report from job-worker-1 for 30 seconds" in world.status["message"]
    (dump,) = [event for event in world.events if "StackDump" in event]
    assert "job-worker-1" in dump
    assert "line 7 in all_reduce" in dump


def test_a_rank_that_never_reports_is_not_hung_while_others_report() -> None:
    world, receiver = listened_to(worker=2)
    for _ in range(20):
        world.now += 20
        reported(world, receiver, WORKER0)
    assert world.phase == "Running"


def test_a_job_that_never_reports_is_hung() -> None:
    world, receiver = listened_to(worker=2)
    assert world.plan().after == pytest.approx(30)
    world.now += 31
    reported(world, receiver)
    assert (world.phase, world.status["reason"]) == ("Restarting", "Hung")


def test_servers_have_nothing_to_report() -> None:
    world, receiver = listened_to(ps=1, worker=1, withGloo=1)
    reported(world, receiver, ("ps", 0))
    for _ in range(5):
        world.now += 20
        reported(world, receiver, WORKER0)
    assert world.phase == "Running"


def test_a_worker_that_is_done_is_not_silent() -> None:
    world, receiver = listened_to(worker=2)
    reported(world, receiver, WORKER0, WORKER1)
    world.succeed("job-worker-1")
    for _ in range(5):
        world.now += 20
        reported(world, receiver, WORKER0)
    assert world.phase == "Running"


def test_a_controller_that_has_just_started_gives_everybody_the_whole_time() -> None:
    world, _ = listened_to(worker=1)
    world.now += 1000
    fresh = Listener(0, world.now)
    reported(world, fresh)
    assert world.phase == "Running"
    world.now += 31
    reported(world, fresh)
    assert world.status["reason"] == "Hung"


def test_a_rank_that_comes_back_to_life_takes_its_stacks_back() -> None:
    world, receiver = listened_to(worker=1)
    reported(world, receiver, WORKER0, stacks="somewhere")
    reported(world, receiver, WORKER0)
    assert receiver.reports().stacks == {}
