"""Pods as processes through the real API: what `kubectl run` users see, from creation to removal."""

from __future__ import annotations

import asyncio
import contextlib
import http.server
import json
import os
import signal
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from harness import PATIENCE, eventually
from paddlecloud.api import crd
from paddlecloud.api.paddlejob import DECLARATION
from paddlecloud.kube.errors import BadRequest, NotFound
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    CRDS,
    ENDPOINTSLICES,
    EVENTS,
    LEASES,
    NODES,
    PADDLEJOBS,
    PODS,
    SERVICES,
    Object,
    owner_reference,
)
from paddlecloud.local.kubelet.node.node import NodeConfig
from paddlecloud.local.kubelet.shim import wire
from unit.local.images.wheels import write_wheel
from unit.local.kubelet.machine import NODE, TestMachine, is_ready, running_machine, shell_pod, state_of, waiting_reason


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[TestMachine]:
    async with running_machine(tmp_path) as running:
        yield running


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


async def test_an_image_without_a_recipe_says_what_would_fix_it(machine: TestMachine) -> None:
    await machine.run("true", container={"image": "example.com/team/unknown:v1"})
    pod = await machine.until("pod", lambda pod: waiting_reason(pod) in ("ErrImagePull", "ImagePullBackOff"))
    message = state_of(pod)["state"]["waiting"]["message"]
    assert "pdc image build -f image.yaml -t example.com/team/unknown:v1" in message
    assert pod["status"]["phase"] == "Pending"


async def test_a_digest_that_no_recipe_declares_is_not_served_by_its_tag(machine: TestMachine) -> None:
    await machine.run("true", container={"image": f"busybox:1@sha256:{'0' * 64}"})
    pod = await machine.until("pod", lambda pod: waiting_reason(pod) in ("ErrImagePull", "ImagePullBackOff"))
    assert "is asked for by digest, and no recipe declares that digest" in state_of(pod)["state"]["waiting"]["message"]
    assert pod["status"]["phase"] == "Pending"


async def test_a_stand_in_says_so_in_an_event_and_in_the_first_line_of_every_log(machine: TestMachine) -> None:
    recipe = machine.data / "images" / "small" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("names: [example.com/suite:v1]\nstands-for: a small program for a suite\n")
    script = "[ -e /tmp/again ] || { touch /tmp/again; exit 1; }; echo out; sleep 600"
    await machine.run(script, name="suite", policy="OnFailure", container={"image": "example.com/suite:v1"})
    sentence = "image example.com/suite:v1 here is a stand-in: a small program for a suite"
    await machine.until("suite", lambda pod: is_ready(pod) and state_of(pod)["restartCount"] == 1)
    await machine.printed("suite", "out\n")
    lines = (await machine.log("suite")).splitlines()
    assert lines[0] == f"note: {sentence}"
    assert await machine.log("suite", stream="Stdout") == "out\n", "nothing is added to what the program prints"
    assert await machine.exec("suite", "echo", "answer") == (0, "answer\n"), "nor to what exec runs"

    async def shown() -> list[Object]:
        events = (await machine.client.list(EVENTS, "default")).items
        return [event for event in events if event["reason"] == "StandInImage"]

    (event,) = await eventually(shown)
    assert (event["type"], event["message"]) == ("Normal", f"container main: {sentence}")
    assert event["involvedObject"]["name"] == "suite"


async def reported(machine: TestMachine, name: str) -> list[tuple[str, str, str]]:
    """The Events of a pod as `kubectl describe` lists them: in the order of their names."""
    events = (await machine.client.list(EVENTS, "default", field_selector=f"involvedObject.name={name}")).items
    return [(event["type"], event["reason"], event["message"]) for event in events]


WELL = [
    ("Normal", "Pulled", 'Container image "busybox" already present on machine'),
    ("Normal", "Created", "Created container: main"),
    ("Normal", "Started", "Started container main"),
]


async def test_a_healthy_pod_has_the_events_of_kubernetes_and_no_warning(machine: TestMachine) -> None:
    await machine.run("sleep 600", name="well")
    await machine.until("well", is_ready)
    await eventually(lambda: reported(machine, "well"), WELL)
    await machine.kubelet.stop()
    await machine.start_kubelet()
    await machine.client.delete(PODS, "well", namespace="default", grace_period=1)
    killing = ("Normal", "Killing", "Stopping container main")
    await eventually(
        lambda: reported(machine, "well"), [*WELL, killing], what="a restarted kubelet starts nothing again"
    )


async def test_an_image_that_must_be_made_is_pulled_before_the_container_is_created(machine: TestMachine) -> None:
    recipe = machine.data / "images" / "small" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    recipe.write_text("names: [example.com/made:v1]\nbase: busybox\nfiles: {/app/hello: hello}\n")
    (recipe.parent / "hello").write_text("hello")
    await machine.run("true", name="made", container={"image": "example.com/made:v1"})
    await machine.phase("made", "Succeeded")
    steps = ["Pulling", "Pulled", "Created", "Started"]
    await eventually(lambda: _reasons(machine, "made"), steps)


@contextlib.contextmanager
def held_back(wheel: Path) -> Iterator[tuple[str, threading.Event]]:
    """A package index on this machine with one wheel, sent only after the event is set."""
    release = threading.Event()
    name = wheel.name.partition("-")[0]

    class Index(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            if self.path.endswith(".whl"):
                release.wait(PATIENCE)
                body = wheel.read_bytes()
            else:
                body = f'<a href="/files/{wheel.name}">{wheel.name}</a>'.encode()
            self.send_response(200 if name in self.path else 404)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with contextlib.suppress(OSError):  # the installer may be gone
                self.wfile.write(body)

        do_HEAD = do_GET

        def log_message(self, format: str, *args: object) -> None:
            """Nothing: the test's own output is what counts."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Index) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/simple", release
        finally:
            release.set()
            server.shutdown()
            thread.join()


async def test_while_an_image_is_built_the_pod_says_what_is_installed_and_how_far_it_is(
    machine: TestMachine, tmp_path: Path
) -> None:
    recipe = machine.data / "images" / "slow" / "image.yaml"
    recipe.parent.mkdir(parents=True)
    with held_back(write_wheel(tmp_path, "slowly")) as (index, release):
        body = {"names": ["example.com/slow:v1"], "pip": ["slowly"], "pip-options": ["--no-cache-dir", "-i", index]}
        recipe.write_text(json.dumps(body))
        await machine.run("true", name="slow", container={"image": "example.com/slow:v1"})
        pod = await machine.until("slow", lambda pod: "so far" in waiting_message(pod))
        assert waiting_reason(pod) == "ContainerCreating"
        assert waiting_message(pod).startswith('image "example.com/slow:v1": installing slowly: ')
        pulling = ("Normal", "Pulling", 'Pulling image "example.com/slow:v1": installing slowly')
        await eventually(lambda: _pulls(machine, "slow"), [pulling], what="a build on its way is no warning")
        release.set()
        await machine.phase("slow", "Succeeded")


def waiting_message(pod: Object) -> str:
    return str((state_of(pod).get("state", {}).get("waiting") or {}).get("message", ""))


async def _pulls(machine: TestMachine, name: str) -> list[tuple[str, str, str]]:
    return [event for event in await reported(machine, name) if event[1] != "Scheduled"]


async def _reasons(machine: TestMachine, name: str) -> list[str]:
    return [reason for _, reason, _ in await reported(machine, name)]


async def _made(machine: TestMachine, job: Object) -> Object | None:
    try:
        return await machine.client.create(PADDLEJOBS, job, namespace="default")
    except NotFound:
        return None


async def test_the_start_barrier_of_a_job_is_no_warning(machine: TestMachine) -> None:
    """Until its ConfigMap is there a pod of a PaddleJob is being created; the ConfigMap of anybody else is missing."""
    await machine.client.create(CRDS, crd.definition(DECLARATION))
    containers = [{"name": "main", "image": "busybox"}]
    spec = {"worker": {"replicas": 1, "template": {"spec": {"containers": containers}}}}
    job = {"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": "hi"}, "spec": spec}
    made = await eventually(lambda: _made(machine, job), what="the kind is served")
    env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "hi", "key": "k"}}}]
    member = shell_pod("true", name="hi-worker-0", container={"env": env})
    member["metadata"]["ownerReferences"] = [owner_reference(made)]
    await machine.create(member)
    pod = await machine.until("hi-worker-0", waiting_reason)
    assert state_of(pod)["state"]["waiting"] == {
        "reason": "ContainerCreating",
        "message": "waiting until every pod of job hi has an address",
    }
    stranger = shell_pod("true", name="stranger", container={"env": env})
    await machine.create(stranger)
    missing = ("Warning", "Failed", 'container main: configmap "hi" not found')
    await eventually(lambda: reported(machine, "stranger"), lambda shown: missing in shown)
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "hi"}, "data": {"k": "it"}}, namespace="default")
    await machine.phase("hi-worker-0", "Succeeded")
    await eventually(lambda: reported(machine, "hi-worker-0"), WELL)


async def test_a_key_that_a_job_does_not_write_is_missing_and_no_barrier(machine: TestMachine) -> None:
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "hi"}, "data": {"k": "it"}}, namespace="default")
    owner = {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "name": "hi",
        "uid": "u",
        "controller": True,
    }
    for name, key in (("hi-worker-0", "PADDLE_TRAINERS_NMU"), ("hi-worker-1", "PADDLE_GENERATION_7")):
        env = [{"name": "V", "valueFrom": {"configMapKeyRef": {"name": "hi", "key": key}}}]
        member = shell_pod("true", name=name, container={"env": env})
        member["metadata"]["ownerReferences"] = [owner]
        await machine.create(member)
    pod = await machine.until("hi-worker-0", waiting_reason)
    assert state_of(pod)["state"]["waiting"] == {
        "reason": "CreateContainerConfigError",
        "message": "couldn't find key PADDLE_TRAINERS_NMU in ConfigMap default/hi",
    }
    pod = await machine.until("hi-worker-1", waiting_reason)
    assert state_of(pod)["state"]["waiting"]["message"] == "waiting until every pod of job hi has an address"


async def test_a_pod_that_its_controller_ends_on_purpose_has_no_deadline_in_its_story(machine: TestMachine) -> None:
    await machine.run("sleep 600", name="server", terminationGracePeriodSeconds=1)
    await machine.until("server", is_ready)
    change = {
        "metadata": {"annotations": {"paddlepaddle.org/ended": "on purpose: its job is Failed"}},
        "spec": {"activeDeadlineSeconds": 1},
    }
    await machine.client.patch(PODS, "server", change, namespace="default")
    pod = await machine.phase("server", "Failed")
    assert (pod["status"]["reason"], pod["status"]["message"]) == ("Ended", "on purpose: its job is Failed")
    ended = ("Normal", "Ended", "on purpose: its job is Failed")
    await eventually(lambda: reported(machine, "server"), lambda shown: ended in shown)
    assert {kind for kind, _, _ in await reported(machine, "server")} == {"Normal"}


async def test_troubles_become_warnings(machine: TestMachine) -> None:
    await machine.run("exit 1", name="ill", policy="Always")
    shown = await eventually(
        lambda: reported(machine, "ill"), lambda shown: any(kind == "Warning" for kind, _, _ in shown)
    )
    (warning,) = [entry for entry in shown if entry[0] == "Warning"]
    assert warning[1] == "BackOff"
    assert "restarting failed container=main" in warning[2]


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


async def test_a_killed_shim_is_noticed_and_its_container_restarted(machine: TestMachine) -> None:
    pod = await machine.run("echo up; sleep 600 & sleep 600", policy="Always")
    await machine.printed("pod", "up")
    shim = wire.lock_holder(str(machine.pod_dir(pod)))
    assert shim is not None
    os.kill(shim, signal.SIGKILL)
    pod = await machine.until("pod", lambda pod: state_of(pod).get("restartCount") == 1 and is_ready(pod))
    last = state_of(pod)["lastState"]["terminated"]
    assert (last["exitCode"], last["reason"]) == (137, "ContainerStatusUnknown")


async def test_two_nodes_share_the_machine(tmp_path: Path) -> None:
    nodes = [NodeConfig(NODE), NodeConfig("node-2", labels={"zone": "b"}, capacity={"cpu": "1"})]
    async with running_machine(tmp_path, nodes=nodes) as machine:
        second = shell_pod("echo there", name="second")
        second["spec"]["nodeName"] = "node-2"
        await machine.run("echo here", name="first")
        await machine.create(second)
        await machine.phase("first", "Succeeded")
        await machine.phase("second", "Succeeded")
        node = await machine.client.get(NODES, "node-2")
        assert node["metadata"]["labels"]["zone"] == "b"
        assert node["status"]["capacity"]["cpu"] == "1"
        ready = {c["type"]: c["status"] for c in node["status"]["conditions"]}
        assert ready["Ready"] == "True"
        lease = await machine.client.get(LEASES, "node-2", "kube-node-lease")
        assert lease["spec"]["holderIdentity"] == "node-2"


async def test_logs_of_what_is_not_there_are_refused_in_kubernetes_words(machine: TestMachine) -> None:
    await machine.run("sleep 600", initContainers=[{"name": "i", "image": "busybox", "command": ["true"]}])
    await machine.until("pod", is_ready)
    with pytest.raises(BadRequest, match="container none is not valid for pod pod"):
        await machine.log("pod", "none")
    with pytest.raises(BadRequest, match='previous terminated container "main" in pod "pod" not found'):
        await machine.log("pod", "main", previous=True)
    with pytest.raises(BadRequest, match=r"choose one of: \[main\] or one of the init containers: \[i\]"):
        await machine.log("pod")


async def test_a_pod_sees_the_gpus_it_asked_for(tmp_path: Path) -> None:
    async with running_machine(tmp_path, gpus=["0", "1"]) as machine:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        script = 'echo "gpus=$CUDA_VISIBLE_DEVICES"'
        await machine.run(f"{script}; sleep 600", name="one", container=limits)
        await machine.printed("one", "gpus=0")
        await machine.run(script, name="two", container=limits)
        await machine.run(script, name="none")
        await machine.phase("two", "Succeeded")
        await machine.phase("none", "Succeeded")
        assert await machine.log("two") == "gpus=1\n"
        assert await machine.log("none") == "gpus=\n"
        node = await machine.client.get(NODES, NODE)
        assert node["status"]["allocatable"]["nvidia.com/gpu"] == "2"


async def test_a_pod_that_finds_no_gpu_free_starts_when_one_is(tmp_path: Path) -> None:
    """The scheduler sends none such; a pod that names its node comes past it."""
    async with running_machine(tmp_path, gpus=["0"]) as machine:
        limits = {"resources": {"limits": {"nvidia.com/gpu": "1"}}}
        await machine.run("exec sleep 600", name="one", container=limits)
        await machine.until("one", is_ready)
        await machine.run('echo "gpus=$CUDA_VISIBLE_DEVICES"', name="two", container=limits)
        shown = "1 GPUs wanted, 0 of 1 free on this machine"
        await machine.until("two", lambda pod: shown in str(pod.get("status")))
        await machine.client.delete(PODS, "one", namespace="default", grace_period=1)
        await machine.phase("two", "Succeeded")
        assert await machine.log("two") == "gpus=0\n"


async def test_a_node_that_declares_gpus_runs_its_pods_on_the_cpu_of_a_machine_that_has_some(tmp_path: Path) -> None:
    """Whatever it declares, beside the machine's own node the GPUs are counted once."""
    async with running_machine(tmp_path, gpus=["0"]) as machine:
        for name, capacity in (("declares", {"nvidia.com/gpu": "4"}), ("says-nothing", {})):
            await machine.kubelet.add_node(NodeConfig(name, capacity=capacity, declared=True))
        has = {name: (await machine.client.get(NODES, name))["status"]["allocatable"].get("nvidia.com/gpu")
               for name in (NODE, "declares", "says-nothing")}  # fmt: skip
        assert has == {NODE: "1", "declares": "4", "says-nothing": None}
        limits = {"resources": {"limits": {"nvidia.com/gpu": "2"}}}
        await machine.run('echo "gpus=$CUDA_VISIBLE_DEVICES"', name="cpu", container=limits, nodeName="declares")
        await machine.phase("cpu", "Succeeded")
        assert await machine.log("cpu") == "gpus=\n"


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


async def test_without_namespaces_home_and_scratch_are_the_containers_own_and_not_the_machines(tmp_path: Path) -> None:
    show = 'echo "$HOME $(stat -c %a "$HOME") $TMPDIR $LOGS $ELSEWHERE"'
    env = [
        {"name": "LOGS", "value": "/tmp/paddle-log/default/pod"},
        {"name": "ELSEWHERE", "value": "/tmpfs:http://x/tmp/y"},
    ]
    async with running_machine(tmp_path, forbid="root,user") as machine:
        created = await machine.run(
            f"{show}; exec sleep 600", container={"env": env}, automountServiceAccountToken=False
        )
        own = machine.pod_dir(created) / "private" / "main" / "tmp"
        expected = f"{own}/home 700 {own} {own}/paddle-log/default/pod /tmpfs:http://x/tmp/y"
        await machine.printed("pod", expected)
        assert await machine.exec("pod", "sh", "-c", show) == (0, f"{expected}\n"), "and for programs beside it"


async def test_a_machine_without_namespaces_runs_what_it_can_and_says_what_it_lacks(tmp_path: Path) -> None:
    async with running_machine(tmp_path, forbid="root,user") as machine:
        await machine.run("echo ran", automountServiceAccountToken=False)
        await machine.phase("pod", "Succeeded")
        assert await machine.log("pod") == "ran\n"

        async def shown() -> Object:
            async for event in machine.client.watch(EVENTS, "default"):
                if event.object["reason"] == "SandboxDegraded":
                    return event.object
            raise AssertionError("the watch ended")

        assert "no mount namespaces" in (await asyncio.wait_for(shown(), PATIENCE))["message"]
