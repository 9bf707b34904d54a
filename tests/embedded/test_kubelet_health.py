"""Probes and lifecycle hooks of running pods, and the time they have to end."""

from __future__ import annotations

from pathlib import Path

import pytest

from harness import eventually
from paddlecloud.kube.resource import PODS, Object
from paddlecloud.local.kubelet.shim import processes
from unit.local.kubelet.machine import TestMachine, is_ready, state_of

SERVER = (
    "import http.server, os\n"
    "class H(http.server.BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        ok = os.path.exists('/tmp/ok')\n"
    "        self.send_response(200 if ok else 503); self.end_headers()\n"
    "    def log_message(self, *a): pass\n"
    "http.server.HTTPServer(('', 8080), H).serve_forever()\n"
)


async def test_a_pod_is_ready_when_its_server_says_so_and_not_ready_when_it_says_so_again(
    machine: TestMachine,
) -> None:
    probe = {"httpGet": {"path": "/", "port": "web"}, "periodSeconds": 1, "failureThreshold": 1}
    container = {
        "image": "python",
        "command": ["python3", "-c", SERVER],
        "ports": [{"name": "web", "containerPort": 8080}],
        "readinessProbe": probe,
    }
    await machine.run("", container=container)
    pod = await machine.phase("pod", "Running")
    assert not is_ready(pod)
    await machine.exec("pod", "touch", "/tmp/ok")
    pod = await machine.until("pod", is_ready)
    await machine.exec("pod", "rm", "/tmp/ok")
    pod = await machine.until("pod", lambda pod: not is_ready(pod))
    unready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    assert unready["reason"] == "ContainersNotReady"
    assert unready["message"] == "containers with unready status: [main]"


async def test_a_container_that_is_no_longer_alive_is_restarted(machine: TestMachine) -> None:
    probe = {"exec": {"command": ["sh", "-c", "! test -e /tmp/sick"]}, "periodSeconds": 1, "failureThreshold": 1}
    await machine.run("sleep 600", policy="Always", container={"livenessProbe": probe}, terminationGracePeriodSeconds=1)
    await machine.until("pod", is_ready)
    await machine.exec("pod", "touch", "/tmp/sick")
    pod = await machine.until("pod", lambda pod: state_of(pod).get("restartCount") == 1)
    assert state_of(pod)["lastState"]["terminated"]["exitCode"] == 143


async def test_other_probes_wait_for_the_startup_probe(machine: TestMachine) -> None:
    started = {"exec": {"command": ["test", "-e", "/tmp/started"]}, "periodSeconds": 1, "failureThreshold": 60}
    never = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    await machine.run(
        "sleep 600",
        policy="Never",
        container={"startupProbe": started, "livenessProbe": never},
        terminationGracePeriodSeconds=0,
    )
    pod = await machine.phase("pod", "Running")
    assert state_of(pod)["started"] is False
    await machine.exec("pod", "touch", "/tmp/started")
    pod = await machine.phase("pod", "Failed")
    assert state_of(pod)["state"]["terminated"]["exitCode"] == 137


async def test_a_tcp_probe_connects_to_the_pods_address(machine: TestMachine) -> None:
    probe = {"tcpSocket": {"port": 8080}}
    container = {"image": "python", "command": ["python3", "-c", SERVER], "readinessProbe": probe}
    await machine.run("", container=container)
    await machine.until("pod", is_ready)


async def test_post_start_runs_before_the_container_counts_as_started(machine: TestMachine) -> None:
    hook = {"postStart": {"exec": {"command": ["sh", "-c", "echo prepared > /tmp/hook"]}}}
    await machine.run("sleep 600", container={"lifecycle": hook})
    await machine.until("pod", is_ready)
    assert await machine.exec("pod", "cat", "/tmp/hook") == (0, "prepared\n")


async def test_a_failed_post_start_ends_the_container(machine: TestMachine) -> None:
    hook = {"postStart": {"exec": {"command": ["false"]}}}
    await machine.run("sleep 600", container={"lifecycle": hook}, terminationGracePeriodSeconds=1)
    pod = await machine.phase("pod", "Failed")
    assert state_of(pod)["state"]["terminated"]["exitCode"] == 143


async def test_pre_stop_runs_before_the_container_is_asked_to_end(machine: TestMachine, tmp_path: Path) -> None:
    hook = {"preStop": {"exec": {"command": ["sh", "-c", "echo hook >> /out/order"]}}}
    await machine.run(
        "trap 'echo term >> /out/order; exit 0' TERM; echo up; while :; do sleep 0.02; done",
        container={"lifecycle": hook, "volumeMounts": [{"name": "out", "mountPath": "/out"}]},
        volumes=[{"name": "out", "hostPath": {"path": str(tmp_path / "out")}}],
    )
    await machine.printed("pod", "up")
    await machine.client.delete(PODS, "pod", namespace="default")
    await machine.gone("pod")
    assert (tmp_path / "out" / "order").read_text() == "hook\nterm\n"


STUBBORN = "trap '' TERM; echo up; while :; do sleep 0.02; done"
"""Ends only by force: with a grace of ten minutes a test that passes has seen another one at work."""


@pytest.mark.parametrize("probe", ["livenessProbe", "startupProbe"])
async def test_a_failed_probe_may_have_a_grace_of_its_own(machine: TestMachine, probe: str) -> None:
    failing: Object = {"exec": {"command": ["false"]}, "periodSeconds": 1, "failureThreshold": 1}
    failing["terminationGracePeriodSeconds"] = 1
    await machine.run(STUBBORN, policy="Always", container={probe: failing}, terminationGracePeriodSeconds=600)
    pod = await machine.until("pod", lambda pod: state_of(pod).get("restartCount", 0) >= 1)
    assert state_of(pod)["lastState"]["terminated"]["exitCode"] == 137


async def test_a_second_deletion_can_shorten_the_grace_and_never_lengthen_it(machine: TestMachine) -> None:
    created = await machine.run(STUBBORN, terminationGracePeriodSeconds=600)
    await machine.printed("pod", "up")
    await machine.client.delete(PODS, "pod", namespace="default")
    deleting = await machine.until("pod", lambda pod: pod["metadata"].get("deletionTimestamp"))
    assert deleting["metadata"]["deletionGracePeriodSeconds"] == 600
    await machine.client.delete(PODS, "pod", namespace="default", grace_period=1)
    await machine.gone("pod")
    await eventually(lambda: not any(processes.strays(created["metadata"]["uid"])))


async def test_without_any_grace_a_container_is_not_asked_first(machine: TestMachine, tmp_path: Path) -> None:
    out = tmp_path / "out"
    created = await machine.run(
        "trap 'touch /out/asked' TERM; echo up; while :; do sleep 0.02; done",
        container={
            "volumeMounts": [{"name": "out", "mountPath": "/out"}],
            "lifecycle": {"preStop": {"exec": {"command": ["touch", "/out/hook"]}}},
        },
        volumes=[{"name": "out", "hostPath": {"path": str(out), "type": "DirectoryOrCreate"}}],
        terminationGracePeriodSeconds=0,
    )
    await machine.printed("pod", "up")
    await machine.client.delete(PODS, "pod", namespace="default")
    await machine.gone("pod")
    await eventually(lambda: not any(processes.strays(created["metadata"]["uid"])))
    assert list(out.iterdir()) == []


async def test_a_hook_that_takes_too_long_is_cut_off_with_its_container(machine: TestMachine) -> None:
    hook = {"preStop": {"exec": {"command": ["sleep", "600"]}}}
    await machine.run(STUBBORN, container={"lifecycle": hook}, terminationGracePeriodSeconds=1)
    await machine.printed("pod", "up")
    await machine.client.delete(PODS, "pod", namespace="default")
    await machine.gone("pod")
