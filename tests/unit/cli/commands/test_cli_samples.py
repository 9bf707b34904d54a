"""What the command lines of `pdc samplejob` and `pdc sampleset` mean, without a server."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from typing import Any

import pytest

from harness import until
from paddlecloud.api.samplejob import decode, validate
from paddlecloud.cli.command_table import find
from paddlecloud.cli.commands import samplejob, sampleset
from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render.transfer_bar import describe
from unit.cli.stub import Stub


def job(*words: str) -> dict[str, Any]:
    parsers = Parsers()
    samplejob.add_commands(parsers)
    command = find("samplejob")
    assert command is not None
    body = samplejob.build(parsers.parse(command, list(words)), "team")
    assert validate(decode(body)) == []
    return body


def test_a_sync_has_a_secret_and_its_options_in_the_words_of_the_kind() -> None:
    body = job("sync", "imagenet", "--source", "bos://b.ep/p", "--threads", "20", "--update", "--name", "in")
    assert body["metadata"] == {"name": "in", "namespace": "team"}
    assert body["spec"] == {
        "type": "sync",
        "sampleSetRef": {"name": "imagenet"},
        "secretRef": {"name": "none"},
        "syncOptions": {"source": "bos://b.ep/p", "threads": 20, "update": True},
    }


def test_a_sync_of_the_sets_own_source_leaves_the_secret_to_the_set() -> None:
    assert "secretRef" not in job("sync", "imagenet", "--schedule", "@daily")["spec"]
    assert job("sync", "imagenet", "--secret", "keys")["spec"]["secretRef"] == {"name": "keys"}


def test_a_warm_up_takes_paths_and_the_parameters_of_the_sampler() -> None:
    body = job("warmup", "imagenet", "train", "--strategy", "sampler", "--batch-size", "32", "--shuffle")
    assert body["spec"]["warmupOptions"] == {
        "paths": ["train"],
        "strategyName": "sampler",
        "batchSize": 32,
        "shuffle": True,
    }
    assert body["metadata"]["generateName"] == "imagenet-warmup-"
    assert body["spec"]["ttlSecondsAfterFinished"] == 24 * 3600, "what got no name goes by itself"


def test_a_store_of_plain_http_is_synced_from() -> None:
    options = job("sync", "imagenet", "--source", "minio://127.0.0.1:9000/b", "--no-https")["spec"]["syncOptions"]
    assert options == {"source": "minio://127.0.0.1:9000/b", "no-https": True}


def test_a_schedule_stays_and_terminate_is_passed_on() -> None:
    spec = job("clear", "imagenet", "--schedule", "@daily", "--terminate")["spec"]
    assert (spec["schedule"], spec["terminate"]) == ("@daily", True)
    assert "ttlSecondsAfterFinished" not in spec


@pytest.mark.parametrize(
    "words",
    [
        ("clear", "imagenet", "--update"),
        ("sync", "imagenet", "train"),
        ("rmr", "imagenet"),
        ("rmr", "imagenet", "../../"),
        ("rmr", "imagenet", "/"),
        ("warmup", "imagenet", "train/../.."),
        ("warmup", "imagenet", "--source", "file:///x"),
        ("melt", "imagenet"),
        ("warmup", "imagenet", "--batch-size", "0"),
        ("clear", "imagenet", "--schedule", "30 2 * *"),
        ("clear", "imagenet", "--schedule", "99 2 * * *"),
        ("clear", "imagenet", "--schedule", ""),
    ],
)
def test_what_makes_no_sense_is_refused_before_anything_is_sent(words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError):
        job(*words)


@pytest.mark.parametrize(("text", "expected"), [("50Mbit", 6.25e6), ("6MB", 6e6), ("1Gbit/s", 1.25e8), ("8kbit", 1e3)])
def test_rates_are_read_in_bits_and_bytes(text: str, expected: float) -> None:
    assert sampleset.rate(text) == expected


@pytest.mark.parametrize("text", ["50", "fast", "-1Mbit", "5 Mbit"])
def test_what_is_no_rate_is_refused(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        sampleset.rate(text)


@pytest.mark.parametrize(("text", "size"), [("4.2 GiB", 4509715660), ("200 B", 200), ("", 0), ("?", 0)])
def test_sizes_of_a_status_are_read_back(text: str, size: int) -> None:
    assert sampleset.read_size(text) == size


def test_progress_is_described_in_one_line() -> None:
    progress = {
        "files": 1200,
        "totalFiles": 4000,
        "bytes": 1_200_000,
        "totalBytes": 4_000_000,
        "bytesPerSecond": 300_000,
    }
    shown = describe({"phase": "Running", "progress": {**progress, "secondsLeft": 9}})
    assert shown == "Running, 1,200 of 4,000 files, 1.2 MB of 4.0 MB, 300 kB/s, 9 s left"
    assert describe({"phase": "Pending", "message": "2 before it"}) == "Pending, 2 before it"
    assert describe({}) == "waiting"


def test_ctrl_c_leaves_the_job_alone_and_says_how_to_look_at_it_and_to_stop_it(stub: Stub) -> None:
    stub.add({"apiVersion": "batch.paddlepaddle.org/v1alpha1", "kind": "SampleSet", "metadata": {"name": "photos"}})
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "samplejob", "warmup", "photos", "--name", "w"],
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stderr is not None
    assert "w created" in child.stderr.readline()
    until(lambda: any("watch=" in str(asked) or asked[0] == "GET" for asked in stub.requests[-1:]))
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert "it goes on: pdc describe samplejob/w. To stop it: pdc delete samplejob/w\n" in err
    assert [asked[0] for asked in stub.requests if asked[0] == "DELETE"] == []
