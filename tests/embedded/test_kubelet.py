"""Pods as processes through the real API: what `kubectl run` users see, from creation to removal."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    ENDPOINTSLICES,
    PODS,
    SERVICES,
)
from paddlecloud.local.kubelet.shim import wire
from unit.local.kubelet.machine import TestMachine, is_ready, running_machine, state_of, waiting_reason


async def test_a_pod_runs_reports_its_exit_and_keeps_its_log(machine: TestMachine) -> None:
    await machine.run("echo hello; hostname; pwd; exit 4", container={"workingDir": "/var"})
    pod = await machine.phase("pod", "Failed")
    ended = state_of(pod)["state"]["terminated"]
    assert (ended["exitCode"], ended["reason"]) == (4, "Error")
    assert pod["status"]["podIP"].startswith("127.")
    assert await machine.log("pod") == "hello\npod\n/var\n"


async def test_a_running_pod_is_ready_and_its_conditions_are_those_of_kubernetes(machine: TestMachine) -> None:
    await machine.run("sleep 600")
    pod = await machine.until("pod", is_ready)
    kinds = {condition["type"]: condition["status"] for condition in pod["status"]["conditions"]}
    assert kinds == dict.fromkeys(
        ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled"), "True"
    )
    status = state_of(pod)
    assert "running" in status["state"]
    assert status["containerID"].startswith("process://")
    assert pod["status"]["qosClass"] == "BestEffort"


async def test_a_pod_that_was_put_where_its_host_port_is_taken_fails_and_its_successor_runs(
    machine: TestMachine,
) -> None:
    port = {"ports": [{"containerPort": 21017, "hostPort": 21017}]}
    await machine.run("sleep 1000", name="first", container=port)
    await machine.phase("first", "Running")
    await machine.run("sleep 1000", name="second", container=port)
    failed = await machine.phase("second", "Failed")
    assert failed["status"]["reason"] == "NodePorts"
    assert "Pod was rejected: Predicate NodePorts failed" in failed["status"]["message"]
    await eventually(
        lambda: machine.events_of("second"), lambda events: ("Warning", "NodePorts") in {event[:2] for event in events}
    )
    await machine.client.delete(PODS, "first", namespace="default", grace_period=0)
    await machine.run("sleep 1000", name="third", container=port)
    await machine.phase("third", "Running")


async def test_a_quick_pod_costs_no_write_without_a_change(machine: TestMachine) -> None:
    created = await machine.run("sleep 0.05")
    phases = []
    version = created["metadata"]["resourceVersion"]
    async for event in machine.client.watch(PODS, "default", resource_version=version, timeout=20):
        phases.append(event.object["status"]["phase"])
        if phases[-1] == "Succeeded":
            break
    assert phases in (["Running", "Succeeded"], ["Pending", "Running", "Succeeded"])  # the second on a slow machine


async def test_pods_have_addresses_names_and_hosts_of_their_own(machine: TestMachine) -> None:
    await machine.run("sleep 600", name="one")
    await machine.run("sleep 600", name="two")
    one, two = await machine.until("one", is_ready), await machine.until("two", is_ready)
    assert one["status"]["podIP"] != two["status"]["podIP"]
    _, hosts = await machine.exec("one", "cat", "/etc/hosts", "/etc/hostname")
    assert f"{one['status']['podIP']}\tone\n" in hosts
    assert hosts.endswith("one\n")


async def test_service_names_resolve_in_running_pods_and_follow_changes(machine: TestMachine) -> None:
    await machine.run("sleep 600")
    await machine.until("pod", is_ready)
    created = await machine.client.create(
        SERVICES, {"metadata": {"name": "web"}, "spec": {"ports": [{"port": 80}]}}, namespace="default"
    )
    await machine.client.create(
        SERVICES, {"metadata": {"name": "db"}, "spec": {"clusterIP": "None"}}, namespace="default"
    )
    await machine.client.create(
        ENDPOINTSLICES,
        {
            "metadata": {"name": "db-1", "labels": {"kubernetes.io/service-name": "db"}},
            "addressType": "IPv4",
            "endpoints": [{"addresses": ["127.70.1.2"], "hostname": "db-0", "conditions": {"ready": True}}],
            "ports": [],
        },
        namespace="default",
    )

    async def resolved(name: str, ip: str) -> None:
        async def address() -> str:
            code, output = await machine.exec("pod", "getent", "hosts", name)
            return output.split()[0] if code == 0 else output

        await eventually(address, ip, what=name)

    for form in ("web", "web.default", "web.default.svc", "web.default.svc.cluster.local"):
        await resolved(form, created["spec"]["clusterIP"])
    await resolved("db-0.db.default.svc.cluster.local", "127.70.1.2")


async def test_a_missing_configmap_is_reported_and_its_arrival_starts_the_pod(machine: TestMachine) -> None:
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}]
    await machine.run('echo "got $V"', container={"env": env})
    pod = await machine.until("pod", waiting_reason)
    assert state_of(pod)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": 'configmap "late" not found',
    }
    assert pod["status"]["podIP"]
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "late"}, "data": {"k": "it"}}, namespace="default")
    await machine.phase("pod", "Succeeded")
    assert await machine.log("pod") == "got it\n"


async def test_a_condition_that_became_true_loses_the_reason_why_it_was_false(machine: TestMachine) -> None:
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "late", "key": "k"}}}]
    await machine.run("sleep 600", container={"env": env})
    pod = await machine.until("pod", waiting_reason)
    ready = next(c for c in pod["status"]["conditions"] if c["type"] == "Ready")
    assert ready["reason"] == "ContainersNotReady"
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "late"}, "data": {"k": "it"}}, namespace="default")
    pod = await machine.until("pod", is_ready)
    said = {c["type"]: (c["status"], c.get("reason"), c.get("message")) for c in pod["status"]["conditions"]}
    assert said == dict.fromkeys(said, ("True", None, None))


async def test_a_pod_finds_services_by_their_variables(machine: TestMachine) -> None:
    service = {"metadata": {"name": "my-db"}, "spec": {"ports": [{"port": 5432, "name": "sql"}]}}
    created = await machine.client.create(SERVICES, service, namespace="default")
    await machine.run("sleep 0; env", name="first")  # by the time it runs the kubelet knows the service
    await machine.phase("first", "Succeeded")
    await machine.run('echo "$MY_DB_SERVICE_HOST $MY_DB_SERVICE_PORT_SQL"', name="linked")
    await machine.run('echo "none:$MY_DB_SERVICE_HOST"', name="unlinked", enableServiceLinks=False)
    await machine.phase("linked", "Succeeded")
    await machine.phase("unlinked", "Succeeded")
    assert await machine.log("linked") == f"{created['spec']['clusterIP']} 5432\n"
    assert await machine.log("unlinked") == "none:\n"


async def test_a_pod_is_known_to_the_api_server_by_its_token(tmp_path: Path) -> None:
    async with running_machine(tmp_path, api_address=("127.0.0.1", 1)) as machine:
        folder = "/var/run/secrets/kubernetes.io/serviceaccount"
        await machine.run(f"cat {folder}/token; echo; cat {folder}/ca.crt | head -1; echo $KUBERNETES_SERVICE_HOST")
        await machine.phase("pod", "Succeeded")
        token, *rest = (await machine.log("pod")).splitlines()
        assert rest == ["-----BEGIN CERTIFICATE-----", "127.0.0.1"]
        user = machine.platform.authenticator.identify({"authorization": f"Bearer {token}"}, None, "/api")
        assert user.name == "system:serviceaccount:default:default"


async def test_a_failing_container_restarts_at_once_and_then_backs_off(machine: TestMachine) -> None:
    await machine.run("echo run; exit 1", policy="OnFailure")
    pod = await machine.until("pod", lambda pod: waiting_reason(pod) == "CrashLoopBackOff")
    status = state_of(pod)
    assert status["restartCount"] == 1
    assert status["lastState"]["terminated"]["exitCode"] == 1
    assert pod["status"]["phase"] == "Running"
    assert await machine.log("pod", previous=True) == "run\n"


async def test_init_containers_run_in_order_before_the_main_one(machine: TestMachine) -> None:
    mounts = [{"name": "shared", "mountPath": "/shared"}]

    def step(name: str, script: str) -> dict[str, object]:
        return {"name": name, "image": "busybox", "command": ["sh", "-c", script], "volumeMounts": mounts}

    await machine.run(
        "cat /shared/order",
        container={"volumeMounts": mounts},
        initContainers=[step("a", "echo a > /shared/order"), step("b", "echo b >> /shared/order")],
        volumes=[{"name": "shared", "emptyDir": {}}],
    )
    pod = await machine.phase("pod", "Succeeded")
    assert await machine.log("pod", "main") == "a\nb\n"
    assert [c["ready"] for c in pod["status"]["initContainerStatuses"]] == [True, True]


async def test_a_sidecar_runs_beside_the_main_container_and_ends_after_it(machine: TestMachine) -> None:
    sidecar = {
        "name": "side",
        "image": "busybox",
        "restartPolicy": "Always",
        "command": ["sh", "-c", "trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 0.02; done"],
    }
    await machine.run("sleep 0.1", initContainers=[sidecar])
    pod = await machine.phase("pod", "Succeeded")
    assert state_of(pod, "side")["state"]["terminated"]["exitCode"] == 0
    assert await machine.log("pod", "side") == "up\nbye\n"


async def test_deleting_asks_waits_and_removes_pod_and_directory(machine: TestMachine) -> None:
    pod = await machine.run(
        "trap 'echo asked; exit 0' TERM; echo up; while :; do sleep 0.02; done", terminationGracePeriodSeconds=20
    )
    await machine.printed("pod", "up")
    folder = machine.pod_dir(pod)
    shim = wire.lock_holder(str(folder))
    await machine.client.delete(PODS, "pod", namespace="default")
    ending = await machine.until("pod", lambda pod: pod["metadata"].get("deletionTimestamp"))
    assert ending["metadata"]["deletionGracePeriodSeconds"] == 20
    await machine.gone("pod")
    assert not folder.exists()
    assert shim is not None
    assert not Path(f"/proc/{shim}").exists()


async def test_a_pod_that_ignores_its_end_is_killed_after_the_grace_period(machine: TestMachine) -> None:
    await machine.run("trap '' TERM; echo up; while :; do sleep 0.02; done", terminationGracePeriodSeconds=1)
    await machine.printed("pod", "up")
    await machine.client.delete(PODS, "pod", namespace="default")
    await machine.gone("pod")


async def test_a_pod_removed_by_force_leaves_no_process(machine: TestMachine) -> None:
    pod = await machine.run("echo up; sleep 600")
    await machine.printed("pod", "up")
    folder = machine.pod_dir(pod)
    task = next(iter(machine.kubelet._worker_tasks.values()))
    await machine.client.delete(PODS, "pod", namespace="default", grace_period=0)
    await asyncio.wait_for(task, PATIENCE)
    assert not folder.exists()


async def test_a_deadline_ends_the_pod_with_its_reason(machine: TestMachine) -> None:
    await machine.run("sleep 600", activeDeadlineSeconds=1, terminationGracePeriodSeconds=0)
    pod = await machine.phase("pod", "Failed")
    assert pod["status"]["reason"] == "DeadlineExceeded"


async def test_a_container_over_its_memory_limit_is_oom_killed(machine: TestMachine) -> None:
    program = "import time; kept = b'x' * (96 << 20); time.sleep(600)"
    await machine.run(
        "",
        container={
            "image": "python",
            "command": ["python3", "-c", program],
            "resources": {"limits": {"memory": "64Mi"}},
        },
    )
    pod = await machine.phase("pod", "Failed")
    assert state_of(pod)["state"]["terminated"]["reason"] == "OOMKilled"


async def test_a_container_leaves_a_message_about_its_end(machine: TestMachine) -> None:
    await machine.run("echo written > /dev/termination-log; exit 1", name="written")
    await machine.run(
        "echo last words; exit 1", name="logged", container={"terminationMessagePolicy": "FallbackToLogsOnError"}
    )
    for name, message in (("written", "written\n"), ("logged", "last words\n")):
        pod = await machine.phase(name, "Failed")
        assert state_of(pod)["state"]["terminated"]["message"] == message


async def test_the_message_of_a_long_exception_begins_with_the_line_that_names_it(machine: TestMachine) -> None:
    """The end of a log alone would show what was printed after it, a whole program for instance."""
    await machine.run(
        "echo 'TypeError: clone()'; seq 1000; exit 1",
        container={"terminationMessagePolicy": "FallbackToLogsOnError"},
    )
    pod = await machine.phase("pod", "Failed")
    lines = state_of(pod)["state"]["terminated"]["message"].splitlines()
    assert (lines[0], lines[-1]) == ("TypeError: clone()", "1000")


async def test_a_killed_shim_is_noticed_and_its_container_restarted(machine: TestMachine) -> None:
    pod = await machine.run("echo up; sleep 600 & sleep 600", policy="Always")
    await machine.printed("pod", "up")
    shim = wire.lock_holder(str(machine.pod_dir(pod)))
    assert shim is not None
    os.kill(shim, signal.SIGKILL)
    pod = await machine.until("pod", lambda pod: state_of(pod).get("restartCount") == 1 and is_ready(pod))
    last = state_of(pod)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "ContainerStatusUnknown")


async def test_logs_of_what_is_not_there_are_refused_in_kubernetes_words(machine: TestMachine) -> None:
    await machine.run("sleep 600", initContainers=[{"name": "i", "image": "busybox", "command": ["true"]}])
    await machine.until("pod", is_ready)
    with pytest.raises(BadRequest, match="container none is not valid for pod pod"):
        await machine.log("pod", "none")
    with pytest.raises(BadRequest, match='previous terminated container "main" in pod "pod" not found'):
        await machine.log("pod", "main", previous=True)
    with pytest.raises(BadRequest, match=r"choose one of: \[main\] or one of the init containers: \[i\]"):
        await machine.log("pod")


async def test_a_finished_pod_keeps_its_log_and_gives_its_space_back(machine: TestMachine) -> None:
    created = await machine.run(
        "head -c 100000 /dev/zero > /v/big; cp /v/big /tmp/big; echo done",
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "emptyDir": {}}],
    )
    await machine.phase("pod", "Succeeded")
    assert await machine.log("pod") == "done\n"
    files = [path for path in machine.pod_dir(created).rglob("*") if path.is_file()]
    assert sum(path.stat().st_size for path in files) < 20_000


async def test_a_program_that_may_not_gain_privileges_gains_none(machine: TestMachine) -> None:
    await machine.run(
        "grep NoNewPrivs /proc/self/status", container={"securityContext": {"allowPrivilegeEscalation": False}}
    )
    await machine.phase("pod", "Succeeded")
    assert (await machine.log("pod")).split() == ["NoNewPrivs:", "1"]
