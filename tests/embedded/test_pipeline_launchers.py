"""Launchers of pipeline components against a platform: what they create, wait for, copy and delete."""

from __future__ import annotations

import asyncio
import json
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl, Target, eventually, until
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import NotFound, Unreachable
from paddlecloud.kube.http import HttpTransport
from paddlecloud.kube.resource import JOBS, Object
from paddlecloud.kube.transport import JSON, Response
from paddlecloud.pipelines.launchers import __main__ as edge
from paddlecloud.pipelines.launchers import objects
from paddlecloud.pipelines.launchers.arguments import Values
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.step import DesiredObject, LauncherStep


def worker(command: str) -> str:
    container = {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}
    return json.dumps({"replicas": 1, "template": {"spec": {"containers": [container]}}})


@pytest.fixture
def launcher(server: Target, namespace: str, tmp_path: Path) -> Any:
    def start(name: str, *flags: str) -> subprocess.Popen[str]:
        command = [
            sys.executable,
            "-u",
            "-m",
            "paddlecloud.pipelines.launchers",
            name,
            "--namespace",
            namespace,
            *flags,
        ]
        return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=server.env)

    return start


def finished(process: subprocess.Popen[str], timeout: float = 100) -> tuple[int, str]:
    output, _ = process.communicate(timeout=timeout)
    return process.returncode, output


def names(kubectl: Kubectl, kind: str) -> list[str]:
    return [line.partition("/")[2] for line in kubectl("get", kind, "-o", "name").stdout.split()]


# As programs


def test_a_job_is_run_its_log_is_copied_and_it_is_deleted_when_asked(launcher: Any, kubectl: Kubectl) -> None:
    flags = ("--name", "train", "--worker", worker("printf 'a\\nhello from the worker\\nb\\n'"))
    code, output = finished(launcher("paddlejob", *flags, "--deleteAfterDone", "True"))
    assert code == 0, output
    copied = [line for line in output.splitlines() if line.startswith("[train-worker-0] ")]
    assert copied == ["[train-worker-0] a", "[train-worker-0] hello from the worker", "[train-worker-0] b"]
    assert names(kubectl, "paddlejobs.batch.paddlepaddle.org") == []


@pytest.mark.parametrize(
    ("policy", "ends", "kept"),
    [((), "true", 0), (("--cleanPodPolicy", "OnFailure"), "false", 0), (("--cleanPodPolicy", "Never"), "true", 1)],
)
def test_pods_are_cleaned_up_as_asked_after_their_log_is_read(
    launcher: Any, kubectl: Kubectl, policy: tuple[str, ...], ends: str, kept: int
) -> None:
    """Pods of a moment were gone before anybody had read them."""
    code, output = finished(launcher("paddlejob", "--name", "quick", "--worker", worker(f"echo said; {ends}"), *policy))
    assert code == int(ends == "false"), output
    assert "[quick-worker-0] said" in output.splitlines()
    until(lambda: len(names(kubectl, "pods")), kept)


def test_a_job_that_has_ended_is_patched_without_waiting_for_another_run(launcher: Any) -> None:
    flags = ("--name", "over", "--worker", worker("true"))
    assert finished(launcher("paddlejob", *flags))[0] == 0
    code, output = finished(launcher("paddlejob", *flags, "--action", "patch", "--cleanPodPolicy", "Always"))
    assert code == 0, output


def test_a_failed_job_fails_the_step_with_its_message_and_stays(launcher: Any, kubectl: Kubectl) -> None:
    code, output = finished(launcher("paddlejob", "--name", "bad", "--worker", worker("echo reason; exit 3")))
    assert code == 1, output
    assert "failed:" in output
    assert names(kubectl, "paddlejobs.batch.paddlepaddle.org") == ["bad"]


def test_a_stopped_step_deletes_what_it_started(launcher: Any, kubectl: Kubectl) -> None:
    process = launcher("paddlejob", "--name", "long", "--worker", worker("echo started; sleep 600"))
    assert process.stdout is not None
    for line in process.stdout:
        if "started" in line and line.startswith("["):
            break
    process.send_signal(signal.SIGTERM)
    code, output = finished(process)
    assert code == 143, output
    assert "deleted, because the step was stopped" in output
    until(lambda: names(kubectl, "paddlejobs.batch.paddlepaddle.org"), [])


TRAINING = ["--project", "PaddleOCR", "--image", "ocr:1", "--config_path", "configs/det.yml", "--dataset", "words",
            "--pvc_name", "task", "--worker_replicas", "1", "--use_visualdl", "True"]  # fmt: skip
DELETIONS = {
    "paddlejob": (["--worker", "{}"], ["PaddleJob"]),
    "samplejob": (["--type", "sync", "--sampleSetRef", '{"name": "x"}'], ["SampleJob"]),
    "sampleset": ([], ["SampleSet"]),
    "elasticserving": (["--default", "{}"], ["PaddleService"]),
    "visualdl": (["--pvc_name", "task", "--mount_path", "/mnt", "--logdir", "/mnt/log"], ["Service", "Deployment"]),
    "dataset": (["--source_uri", "bos://a/b", "--source_secret", "s"], ["SampleJob", "SampleJob"]),
    "training": (TRAINING, ["Job", "Job", "PaddleJob", "Deployment", "Service"]),
    "modelhub": (["--model_name", "det", "--pvc_name", "task"], ["Job"]),
    "serving": (["--image", "serving:1", "--model_name", "det"], ["PaddleService"]),
    "program": (["--image", "clas:1", "--command", "true", "--pvc_name", "task"], ["PaddleJob"]),
    "model_service": (["--model", "det:1"], ["PaddleService"]),
}
"""Launchers: the flags that they need, and the kinds of what they delete."""


@pytest.mark.parametrize("name", DELETIONS)
def test_deleting_what_is_not_there_is_done(name: str, launcher: Any, kubectl: Kubectl) -> None:
    """The original's launchers failed, or waited for ever."""
    flags, kinds = DELETIONS[name]
    code, output = finished(launcher(name, "--name", "absent", "--action", "delete", *flags))
    assert code == 0, output
    absent = [line.split()[0] for line in output.splitlines() if line.endswith("does not exist")]
    assert sorted(absent) == sorted(kinds), output
    for kind in ("jobs", "deployments", "services", "paddlejobs.batch.paddlepaddle.org", "samplejobs"):
        assert names(kubectl, kind) == []


def test_create_refuses_what_exists_and_apply_replaces_it(launcher: Any, kubectl: Kubectl) -> None:
    flags = ("--name", "once", "--worker")
    assert finished(launcher("paddlejob", *flags, worker("echo first")))[0] == 0
    code, output = finished(launcher("paddlejob", *flags, worker("echo second")))
    assert code == 1
    assert "exists already; delete it, or use the action apply" in output
    code, output = finished(launcher("paddlejob", *flags, worker("echo third"), "--action", "apply"))
    assert code == 0, output
    assert "of another attempt is replaced" in output
    code, output = finished(launcher("paddlejob", *flags, worker("true"), "--action", "destroy"))
    assert code == 1
    assert "'destroy' is none of create, apply, patch, delete" in output


def test_a_refused_object_is_an_error_with_the_field(launcher: Any) -> None:
    code, output = finished(
        launcher("samplejob", "--name", "bad", "--type", "dance", "--sampleSetRef", '{"name": "x"}')
    )
    assert code == 1
    assert "spec.type" in output
    assert "Traceback" not in output


# As steps


class Flaky:
    """A transport that loses every n-th answer after the request was carried out, as a restarting server does."""

    def __init__(self, inner: HttpTransport, every: int) -> None:
        self._inner, self._every, self._count = inner, every, 0

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = JSON,
        accept: str = JSON,
    ) -> Response:
        answer = await self._inner.request(
            method, path, query=query, body=body, content_type=content_type, accept=accept
        )
        self._count += 1
        if self._count % self._every == 0:
            raise Unreachable("the answer was lost")
        return answer

    def stream(self, path: str, *, query: Mapping[str, str] | None = None, accept: str = JSON) -> AsyncIterator[bytes]:
        return self._inner.stream(path, query=query, accept=accept)

    async def close(self) -> None:
        await self._inner.close()


@asynccontextmanager
async def step(server: Target, run: str, *, lose_every: int = 0) -> AsyncIterator[tuple[LauncherStep, list[str]]]:
    transport: Any = HttpTransport(config.load(str(server.kubeconfig)))
    client = Client(Flaky(transport, lose_every) if lose_every else transport)
    lines: list[str] = []
    try:
        yield LauncherStep(client, run=run, image="unused", report=lines.append), lines
    finally:
        await client.close()


def job(namespace: str, command: str, name: str = "work") -> DesiredObject:
    made = objects.job(name, namespace, {"name": "main", "image": "busybox", "command": ["sh", "-c", command]}, "claim")
    made.body["spec"]["template"]["spec"] |= {"volumes": []}
    made.body["spec"]["template"]["spec"]["containers"][0].pop("volumeMounts")
    return made


def uid(obj: Object | None) -> str:
    assert obj is not None
    return str(obj["metadata"]["uid"])


async def test_another_attempt_of_the_same_run_goes_on_with_the_work_of_the_first(
    server: Target, namespace: str
) -> None:
    wanted = job(namespace, "echo once")
    async with step(server, "run-a") as (first, _):
        begun = await first.ensure("apply", wanted)
    async with step(server, "run-a") as (second, lines):
        done = await second.carry_out("apply", wanted)
        assert uid(done) == uid(begun)
        assert any("was started by this run already" in line for line in lines)
    async with step(server, "run-b") as (other, _):
        assert uid(await other.carry_out("apply", wanted)) != uid(begun)


async def test_a_failed_attempt_of_the_same_run_is_replaced(server: Target, namespace: str) -> None:
    wanted = job(namespace, "exit 1")
    async with step(server, "run-a") as (first, _):
        with pytest.raises(StepFailed, match="Job .*/work failed"):
            await first.carry_out("apply", wanted)
        failed = await first.client.get(JOBS, "work", namespace)
    async with step(server, "run-a") as (second, _):
        assert uid(await second.ensure("create", wanted)) != uid(failed)


async def test_lost_answers_neither_fail_a_step_nor_start_its_work_twice(
    server: Target, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with step(server, "run-a", lose_every=2) as (flaky, lines):
        await flaky.carry_out("apply", job(namespace, "echo done"))
        assert any("trying again" in line for line in lines)
        assert sum("created" in line for line in lines) == 1


async def test_an_object_that_somebody_deletes_ends_the_wait(server: Target, namespace: str) -> None:
    async with step(server, "run-a") as (waiting, lines):
        task = asyncio.create_task(waiting.carry_out("apply", job(namespace, "sleep 600")))
        await eventually(lambda: any("created" in line for line in lines))
        await waiting.client.delete(JOBS, "work", namespace=namespace, propagation="Background")
        with pytest.raises(StepFailed, match="was deleted while the step waited for it"):
            await task


async def test_a_step_whose_time_is_over_deletes_what_it_started(
    server: Target, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(server.kubeconfig))

    async def program(step: LauncherStep, values: Values) -> dict[str, str]:
        await step.carry_out("apply", job(namespace, "sleep 600"))
        return {}

    with pytest.raises(asyncio.TimeoutError):
        await edge.carry_out(program, Values({}), 2.0)
    async with step(server, "later") as (later, _):

        async def gone() -> bool:
            try:
                found = await later.client.get(JOBS, "work", namespace)
            except NotFound:
                return True
            return bool(found["metadata"].get("deletionTimestamp"))

        await eventually(gone)


def test_outputs_are_written_whether_or_not_their_folder_exists(tmp_path: Path) -> None:
    """The original wrote them only if the folder did not exist."""
    for _ in range(2):
        edge.write_output(tmp_path / "outputs" / "url" / "data", "http://x")
    assert (tmp_path / "outputs" / "url" / "data").read_text() == "http://x"
