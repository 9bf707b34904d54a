"""The SDK on the embedded platform: real jobs, real processes, blocking and asynchronous."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import paddlecloud as pc
from harness import Target, until
from paddlecloud.kube.errors import AlreadyExists, ConfigError, Conflict, Invalid, NotFound, Unreachable
from paddlecloud.platform import endpoint
from paddlecloud.sdk.training import TrainingError

PYTHON = "python:3.11"


@pytest.fixture
def client(server: Target, namespace: str) -> Iterator[pc.Client]:
    with pc.connect(kubeconfig=server.kubeconfig, namespace=namespace) as made:
        yield made


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def script(folder: Path, name: str, text: str) -> str:
    (folder / name).write_text(text)
    return name


RANK = "import os\nprint('rank', os.environ['PADDLE_TRAINER_ID'], 'of', os.environ['PADDLE_TRAINERS_NUM'])\n"


# Training


def test_a_program_is_run_followed_and_read_again(client: pc.Client, here: Path) -> None:
    job = client.jobs.run(script(here, "train.py", RANK), workers=2, image=PYTHON)
    followed = sorted((line.tag, str(line)) for line in job.logs(follow=True))
    assert followed == [("worker-0", "rank 0 of 2"), ("worker-1", "rank 1 of 2")]
    assert job.wait(timeout=60) == "Completed"
    assert (job.name, job.status.phase, job.status.mode) == ("train-1", "Completed", "Collective")
    assert sorted((line.rank, str(line)) for line in job.logs()) == [(0, "rank 0 of 2"), (1, "rank 1 of 2")]
    assert list(job.logs(ranks=[1])) == ["rank 1 of 2"]
    for follow in (False, True):
        with pytest.raises(NotFound, match="no pod of train-1 has rank 7; its ranks: 0 to 1"):
            list(job.logs(ranks=[1, 7], follow=follow))
    assert client.jobs.run("train.py", image=PYTHON).name == "train-2"


def test_numbers_are_taken_where_they_are_natural(client: pc.Client) -> None:
    show = "import os, sys; print(os.environ['LR'], os.environ['EPOCHS'], *sys.argv[1:])"
    job = client.jobs.run(["python", "-c", show], "--lr", 0.5, 3, image=PYTHON, cpu=0.25, env={"LR": 0.1, "EPOCHS": 3})
    assert job.wait(timeout=60) == "Completed"
    assert list(job.logs()) == ["0.1 3 --lr 0.5 3"]
    (pod,) = job.pods()
    assert pod.spec["containers"][0]["resources"]["requests"] == {"cpu": "250m"}


def test_a_script_that_does_not_exist_is_refused(client: pc.Client, here: Path) -> None:
    script(here, "train.py", RANK)
    with pytest.raises(TrainingError, match='there is no tarin.py in .*; did you mean "train.py"'):
        client.jobs.run("tarin.py", image=PYTHON)
    assert client.jobs.list() == []


def test_a_volume_that_does_not_exist_is_refused(client: pc.Client, namespace: str) -> None:
    with pytest.raises(TrainingError, match=f'SampleSet "imagnet" in namespace {namespace}; a directory is written'):
        client.jobs.run("true", image=PYTHON, volumes=["imagnet:/data"])
    assert client.jobs.list() == []


def test_a_failure_is_raised_when_asked_for(client: pc.Client, here: Path) -> None:
    job = client.jobs.run(["python", "-c", "raise SystemExit(3)"], image=PYTHON, name="bad")
    assert job.wait(timeout=60) == "Failed"
    with pytest.raises(pc.JobFailed, match="exit code 3"):
        job.wait(timeout=60, check=True)
    with pytest.raises(AlreadyExists):
        client.jobs.run("true", image=PYTHON, name="bad")


def test_a_job_that_has_ended_is_retried(client: pc.Client, here: Path) -> None:
    program = Path(script(here, "flaky.py", "open('once', 'x')\nraise SystemExit(3)\n"))
    job = client.jobs.run(program, image=PYTHON, name="flaky", directory=here)
    assert job.wait(timeout=60) == "Failed"
    assert job.retry() is job
    assert job.wait(timeout=60) == "Failed"
    assert "FileExistsError" in "\n".join(job.logs()), "it ran again"
    sleeping = client.jobs.run("sleep 600", image=PYTHON, name="sleeping")
    with pytest.raises(Conflict, match="has not ended"):
        sleeping.retry()


def test_waiting_has_an_end(client: pc.Client) -> None:
    job = client.jobs.run("sleep 600", image=PYTHON)
    with pytest.raises(TimeoutError):
        job.wait(timeout=0.5)
    job.wait_for(check=lambda body: body.get("status", {}).get("phase") == "Running", timeout=60)
    with pytest.raises(TimeoutError, match=r"is still Running .*after 0\.5 s"):
        job.wait(timeout=0.5)
    with pytest.raises(ValueError, match='never has the condition "PodReady": .*did you mean "PodsReady"?'):
        job.wait_for("PodReady", timeout=60)
    job.delete()
    with pytest.raises(NotFound):
        job.wait(timeout=60)
    with pytest.raises(NotFound):
        job.refresh()


def test_following_survives_restarts(client: pc.Client, here: Path) -> None:
    text = (
        "import os, sys, time\n"
        "begin = int(open('n').read()) if os.path.exists('n') else 0\n"
        "for n in range(begin, begin + 3): print('line', n, flush=True)\n"
        "open('n', 'w').write(str(begin + 3))\n"
        "while not os.path.exists(f'seen-{begin + 3}'): time.sleep(0.02)\n"
        "sys.exit(0 if begin == 6 else 1)\n"
    )
    job = client.jobs.run(script(here, "count.py", text), image=PYTHON, retries=2)
    lines = job.logs(follow=True)
    for seen in (3, 6, 9):
        assert [next(lines) for _ in range(3)] == [f"line {n}" for n in range(seen - 3, seen)]
        (here / f"seen-{seen}").touch()
    assert list(lines) == []
    assert job.wait(timeout=60) == "Completed"


def test_following_can_be_left(client: pc.Client, here: Path) -> None:
    job = client.jobs.run(
        script(here, "talk.py", "import time\nwhile True: print('x'); time.sleep(0.05)\n"), image=PYTHON
    )
    lines = job.logs(follow=True)
    assert [next(lines), next(lines)] == ["x", "x"]
    lines.close()
    job.refresh()
    assert job.phase == "Running", "the job goes on"
    job.delete(wait=True, timeout=60)


def test_jobs_are_suspended_resumed_and_scaled(client: pc.Client) -> None:
    job = client.jobs.run("sleep 600", image=PYTHON, elastic=(1, 3), name="flexible")
    job.wait_for(check=lambda body: body.get("status", {}).get("phase") == "Running", timeout=60)
    assert job.suspend() is job
    job.wait_for(check=lambda body: body["status"].get("phase") == "Suspended", timeout=60)
    assert job.resume().scale(2).refresh() is job
    job.wait_for(check=lambda body: (body["status"].get("worker") or {}).get("running") == 2, timeout=60)
    assert len(job.pods()) == 2
    assert {"Suspended", "Scaling"} & {event["reason"] for event in job.events()}


def test_programs_run_in_chosen_ranks(client: pc.Client) -> None:
    job = client.jobs.run("sleep 600", image=PYTHON, workers=2)
    job.wait_for(check=lambda body: (body.get("status", {}).get("worker") or {}).get("running") == 2, timeout=60)
    for rank in (0, 1):
        done = job.exec(["sh", "-c", "echo $PADDLE_TRAINER_ID; cat; exit 5"], rank=rank, input=b"given")
        assert done == (5, f"{rank}\ngiven", "")
    with pytest.raises(NotFound, match="rank 9"):
        job.exec(["true"], rank=9)


def test_what_makes_no_job_is_refused_before_anything_is_sent(client: pc.Client) -> None:
    with pytest.raises(TrainingError, match="elastic"):
        client.jobs.run("x", elastic=(3, 1))
    with pytest.raises(TrainingError, match="there is no"):
        client.jobs.run("x", volumes=["./nowhere:/data"])
    assert client.jobs.list() == []


# Objects


def config(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def test_objects_are_applied_listed_and_deleted(client: pc.Client, here: Path, namespace: str) -> None:
    assert client.apply(config("a", x="1")).body["data"] == {"x": "1"}
    assert client.apply(config("a", y="2")).body["data"] == {"y": "2"}, "what is left out is removed"
    (here / "two.yaml").write_text(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: b, labels: {app: z}}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"
    )
    assert [one.name for one in client.apply_all("two.yaml")] == ["b", "c"]
    with pytest.raises(ValueError, match="apply_all"):
        client.apply("two.yaml")
    ours = [one.name for one in client.list("configmaps") if one.name in "abc"]
    assert ours == ["a", "b", "c"]
    assert [one.name for one in client.list("cm", labels={"app": "z"})] == ["b"]
    assert [one.name for one in client.list("cm", fields="metadata.name=c")] == ["c"]
    assert any(one.namespace == namespace for one in client.list("cm", all_namespaces=True))
    client.delete("cm", "a", wait=True, timeout=30)
    with pytest.raises(NotFound):
        client.delete("cm", "a")


def test_another_owner_of_a_field_is_a_conflict(client: pc.Client, server: Target, namespace: str) -> None:
    subprocess.run(
        ["kubectl", "-n", namespace, "create", "configmap", "c", "--from-literal=x=theirs"],
        env=server.env, check=True, capture_output=True, timeout=30,
    )  # fmt: skip
    with pytest.raises(Conflict):
        client.apply(config("c", x="ours"))
    assert client.apply(config("c", x="ours"), force=True).body["data"] == {"x": "ours"}


def test_unknown_fields_and_kinds_are_refused(client: pc.Client) -> None:
    with pytest.raises(Exception, match="dada"):
        client.apply({**config("c"), "dada": {}})
    with pytest.raises(Exception, match="Gadget"):
        client.apply({"apiVersion": "example.org/v1", "kind": "Gadget", "metadata": {"name": "g"}})
    with pytest.raises(Invalid):
        client.apply(config("Not_A_Name"))


def test_a_kind_is_there_right_after_its_definition(client: pc.Client, namespace: str) -> None:
    plural = f"w{os.getpid()}s"
    kind = plural.title()
    definition = {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.example.org"},
        "spec": {
            "group": "example.org",
            "names": {"plural": plural, "kind": kind},
            "scope": "Namespaced",
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
                }
            ],
        },
    }
    assert client.list("nodes"), "discovery has been asked before the kind exists"
    thing = {"apiVersion": "example.org/v1", "kind": kind, "metadata": {"name": "one"}, "spec": {"n": 1}}
    applied = client.apply_all([thing, definition])
    try:
        assert [one.kind for one in applied] == ["CustomResourceDefinition", kind]
        assert client.get(plural, "one").spec == {"n": 1}
    finally:
        client.delete("crd", f"{plural}.example.org")


def test_an_object_deleted_is_the_one_that_was_read(client: pc.Client) -> None:
    old = client.apply(config("c"))
    client.delete("cm", "c", wait=True, timeout=30)
    new = client.apply(config("c"))
    with pytest.raises(Conflict):
        old.delete()
    new.refresh()


# Event loops and servers


def test_it_works_inside_a_running_loop(client: pc.Client) -> None:
    """As in a notebook cell."""

    async def cell() -> list[str]:
        return [one.kind for one in client.list("nodes")]

    assert asyncio.run(cell()) == ["Node"]


async def test_many_jobs_are_followed_at_once(server: Target, namespace: str, here: Path) -> None:
    script(here, "train.py", RANK)
    async with pc.connect_async(kubeconfig=server.kubeconfig, namespace=namespace) as client:

        async def train(name: str) -> tuple[str, list[str]]:
            job = await client.jobs.run("train.py", image=PYTHON, name=name)
            lines = [str(line) async for line in job.logs(follow=True)]
            return await job.wait(timeout=80), lines

        results = await asyncio.gather(*(train(f"job-{n}") for n in range(3)))
    assert results == [("Completed", ["rank 0 of 1"])] * 3


def test_no_cluster_and_no_answer_are_distinguished(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(here))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    with pytest.raises(ConfigError):
        pc.connect()
    (here / "config").write_text(
        '{"current-context": "x", "contexts": [{"name": "x", "context": {"cluster": "x"}}],'
        ' "clusters": [{"name": "x", "cluster": {"server": "http://127.0.0.1:1"}}]}'
    )
    with pc.connect(kubeconfig=here / "config") as client, pytest.raises(Unreachable):
        client.jobs.list()


# A platform of one's own


def test_a_temporary_platform_leaves_nothing() -> None:
    with pc.embedded() as client:
        data = client.data
        running = endpoint.find(data)
        assert running is not None
        assert running.alive
        client.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}})
    assert not data.exists()
    process = Path(f"/proc/{running.pid}/cmdline")
    assert not process.exists() or process.read_bytes() == b"", "it has ended, even if nobody has collected it yet"


def test_a_platform_is_kept_with_its_directory_and_shared(here: Path) -> None:
    with pc.embedded(here / "data") as first:
        first.apply(config("kept"))
        with pc.embedded(here / "data") as second:
            assert second.get("cm", "kept").name == "kept"
        first.get("cm", "kept")  # who did not start it did not stop it
    found = endpoint.find(here / "data")
    assert found is None or not found.alive
    with pc.embedded(here / "data") as again:
        assert again.get("cm", "kept").name == "kept"


def test_a_crashed_platform_is_closed_from_a_notebook_which_has_an_event_loop_of_its_own(here: Path) -> None:
    async def cell() -> None:
        with pc.embedded(here / "data"):
            found = endpoint.find(here / "data")
            assert found is not None
            os.kill(found.pid, signal.SIGKILL)
            until(lambda: not endpoint.is_daemon(found.pid, here / "data"))

    asyncio.run(cell())
    assert endpoint.find(here / "data") is None


def test_a_platform_ends_with_the_process_that_started_it(here: Path) -> None:
    code = "import paddlecloud as pc; print(pc.embedded().data)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=90, check=True)
    data = Path(done.stdout.strip())
    until(lambda: not data.exists())
    assert done.stderr == ""
