"""Volumes as programs in pods meet them."""

from __future__ import annotations

import base64
import os
from collections.abc import AsyncIterator, Collection
from pathlib import Path
from typing import Any

import pytest

from harness import eventually
from paddlecloud.kube.resource import (
    CONFIGMAPS,
    NAMESPACES,
    PERSISTENTVOLUMECLAIMS,
    PERSISTENTVOLUMES,
    PODS,
    SECRETS,
    Object,
)
from paddlecloud.local.volumes.drivers import MountRequest
from unit.local.kubelet.machine import TestMachine, is_ready, running_machine, state_of


async def token(pod: Object, audience: str, seconds: int) -> str:
    return f"token-of-{pod['spec']['serviceAccountName']}-{audience}-{seconds}"


class FolderDriver:
    """A storage driver whose volumes are folders."""

    def __init__(self, base: Path) -> None:
        self._base = base
        self.published: list[MountRequest] = []
        self.unpublished: list[str] = []
        self.kept: set[str] | None = None

    async def publish(self, request: MountRequest) -> Path:
        self.published.append(request)
        folder = self._base / request.handle.replace("/", "_")
        folder.mkdir(exist_ok=True)
        return folder

    async def unpublish(self, request: MountRequest) -> None:
        self.unpublished.append(request.handle)

    async def keep_only(self, pods: Collection[str]) -> None:
        self.kept = set(pods)


@pytest.fixture
def driver(tmp_path: Path) -> FolderDriver:
    return FolderDriver(tmp_path)


@pytest.fixture
async def machine(tmp_path: Path, driver: FolderDriver) -> AsyncIterator[TestMachine]:
    data = tmp_path / "data"
    async with running_machine(data, token=token, drivers={"folders.example.com": driver}) as running:
        yield running


async def output(machine: TestMachine, script: str, *volumes: Any, mounts: Any = None) -> str:
    mounted = mounts or [{"name": v["name"], "mountPath": f"/v/{v['name']}"} for v in volumes]
    await machine.run(script, container={"volumeMounts": mounted}, volumes=list(volumes))
    await machine.phase("pod", "Succeeded", "Failed")
    return await machine.log("pod")


async def test_configmaps_and_secrets_are_files_with_their_modes(machine: TestMachine) -> None:
    await machine.client.create(
        CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"a": "one\n", "b": "two\n"}}, namespace="default"
    )
    secret = {"metadata": {"name": "s"}, "data": {"key": base64.b64encode(b"geheim\n").decode()}}
    await machine.client.create(SECRETS, secret, namespace="default")
    text = await output(
        machine,
        "cat /v/all/a /v/all/b /v/some/deep/x /v/secret/key; stat -L -c %a /v/secret/key; touch /v/all/new || echo ro",
        {"name": "all", "configMap": {"name": "c"}},
        {"name": "some", "configMap": {"name": "c", "items": [{"key": "a", "path": "deep/x"}]}},
        {"name": "secret", "secret": {"secretName": "s", "defaultMode": 0o400}},
    )
    lines = [line for line in text.splitlines() if "touch" not in line]
    assert lines == ["one", "two", "one", "geheim", "400", "ro"]


async def test_another_user_reads_what_its_pod_was_given(machine: TestMachine) -> None:
    """The platform makes private files (umask 077); a program that runs as another user is in its pod all the same."""
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"a": "one\n"}}, namespace="default")
    deep = {"name": "c", "items": [{"key": "a", "path": "deep/x"}]}
    old = os.umask(0o077)
    try:
        await machine.run(
            "cat /v/deep/x; grep -c localhost /etc/hosts; cat /etc/hostname; touch /sub/made && echo written",
            container={"volumeMounts": [
                {"name": "v", "mountPath": "/v"}, {"name": "e", "mountPath": "/sub", "subPath": "one/two"},
            ]},
            volumes=[{"name": "v", "configMap": deep}, {"name": "e", "emptyDir": {}}],
            securityContext={"runAsUser": 1234},
        )  # fmt: skip
        await machine.phase("pod", "Succeeded", "Failed")
    finally:
        os.umask(old)
    assert (await machine.log("pod")).split() == ["one", "2", "pod", "written"]


async def test_a_running_pod_sees_a_changed_configmap_at_once(machine: TestMachine) -> None:
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"k": "old"}}, namespace="default")
    await machine.run(
        'until [ "$(cat /v/k)" = new ]; do sleep 0.02; done; ls /v',
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "configMap": {"name": "c"}}],
    )
    await machine.until("pod", is_ready)
    await machine.client.patch(CONFIGMAPS, "c", {"data": {"k": "new", "more": "1"}}, namespace="default")
    await machine.phase("pod", "Succeeded")
    assert (await machine.log("pod")).split() == ["k", "more"]


async def test_a_projected_volume_follows_all_its_sources_at_once(machine: TestMachine) -> None:
    secret = {"metadata": {"name": "s"}, "stringData": {"secret": "old"}}
    await machine.client.create(SECRETS, secret, namespace="default")
    await machine.client.create(CONFIGMAPS, {"metadata": {"name": "c"}, "data": {"map": "old"}}, namespace="default")
    labels = {"items": [{"path": "label", "fieldRef": {"fieldPath": "metadata.labels['state']"}}]}
    sources = [{"configMap": {"name": "c"}}, {"secret": {"name": "s"}}, {"downwardAPI": labels}]
    await machine.run(
        'for f in map secret label; do until [ "$(cat /v/$f)" = new ]; do sleep 0.02; done; done',
        metadata={"labels": {"state": "old"}},
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "projected": {"sources": sources}}],
    )
    await machine.until("pod", is_ready)
    await machine.client.patch(CONFIGMAPS, "c", {"data": {"map": "new"}}, namespace="default")
    await machine.client.patch(SECRETS, "s", {"stringData": {"secret": "new"}}, namespace="default")
    await machine.client.patch(PODS, "pod", {"metadata": {"labels": {"state": "new"}}}, namespace="default")
    await machine.phase("pod", "Succeeded")


async def test_a_limit_that_a_container_does_not_have_is_what_the_node_can_give(machine: TestMachine) -> None:
    items = [
        {"path": name, "resourceFieldRef": {"containerName": "main", "resource": f"limits.{name}"}}
        for name in ("cpu", "memory")
    ]
    text = await output(machine, "cat /v/d/cpu; echo; cat /v/d/memory", {"name": "d", "downwardAPI": {"items": items}})
    cpu, memory = map(int, text.split())
    assert (cpu, memory > 2**28) == (os.cpu_count(), True)


async def test_a_missing_secret_holds_the_pod_until_it_comes(machine: TestMachine) -> None:
    await machine.run(
        "cat /v/k",
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "secret": {"secretName": "late"}}],
    )

    def reported(pod: Object) -> bool:
        waiting = state_of(pod).get("state", {}).get("waiting") or {}
        return 'secret "late" not found' in waiting.get("message", "")

    await machine.until("pod", reported)
    secret = {"metadata": {"name": "late"}, "data": {"k": base64.b64encode(b"here").decode()}}
    await machine.client.create(SECRETS, secret, namespace="default")
    await machine.phase("pod", "Succeeded")
    assert await machine.log("pod") == "here"


async def test_downward_and_projected_files_describe_the_pod(machine: TestMachine) -> None:
    downward = {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}
    await machine.run(
        "cat /info/labels; echo; cat /info/who; echo; cat /var/run/secrets/kubernetes.io/serviceaccount/namespace",
        metadata={"labels": {"app": "x"}},
        container={"volumeMounts": [{"name": "info", "mountPath": "/info"}]},
        volumes=[
            {
                "name": "info",
                "projected": {
                    "sources": [
                        {"downwardAPI": downward},
                        {"serviceAccountToken": {"path": "who", "audience": "me", "expirationSeconds": 600}},
                    ]
                },
            }
        ],
    )
    await machine.phase("pod", "Succeeded")
    assert (await machine.log("pod")).splitlines() == ['app="x"', "token-of-default-me-600", "default"]


async def test_containers_share_an_empty_dir_also_one_in_memory(machine: TestMachine) -> None:
    volumes = [
        {"name": "disk", "emptyDir": {}},
        {"name": "fast", "emptyDir": {"medium": "Memory", "sizeLimit": "8Mi"}},
    ]
    mounts = [{"name": "disk", "mountPath": "/disk"}, {"name": "fast", "mountPath": "/dev/shm"}]
    first = {
        "name": "first",
        "image": "busybox",
        "command": ["sh", "-c", "echo d > /disk/f; echo m > /dev/shm/f"],
        "volumeMounts": mounts,
    }
    await machine.run(
        "cat /disk/f /dev/shm/f; stat -f -c %T /dev/shm; head -c 9000000 /dev/zero > /dev/shm/big || echo full",
        container={"volumeMounts": mounts},
        volumes=volumes,
        initContainers=[first],
    )
    await machine.phase("pod", "Succeeded")
    lines = (await machine.log("pod", "main")).splitlines()
    assert [line for line in lines if "head" not in line] == ["d", "m", "tmpfs", "full"]


async def test_host_paths_are_real_and_checked(machine: TestMachine, tmp_path: Path) -> None:
    (tmp_path / "host").mkdir()
    text = await output(
        machine,
        "echo written > /v/h/f; ls /new/deep/place",
        {"name": "h", "hostPath": {"path": str(tmp_path / "host"), "type": "Directory"}},
        {"name": "n", "hostPath": {"path": str(tmp_path / "made"), "type": "DirectoryOrCreate"}},
        mounts=[{"name": "h", "mountPath": "/v/h"}, {"name": "n", "mountPath": "/new/deep/place"}],
    )
    assert text == ""
    assert (tmp_path / "host" / "f").read_text() == "written\n"
    assert (tmp_path / "made").is_dir()
    assert not Path("/new").exists()


async def test_a_host_path_of_the_wrong_type_is_reported(machine: TestMachine, tmp_path: Path) -> None:
    await machine.run(
        "true",
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "hostPath": {"path": str(tmp_path / "none"), "type": "Directory"}}],
    )
    pod = await machine.until(
        "pod", lambda pod: "message" in (state_of(pod)["state"].get("waiting") or {}) if state_of(pod) else False
    )
    said = f'MountVolume.SetUp failed for volume "v" : hostPath type check failed: {tmp_path / "none"}'
    assert state_of(pod)["state"]["waiting"]["message"].startswith(said)
    events = await eventually(lambda: machine.events_of("pod"), lambda found: "FailedMount" in {e[1] for e in found})
    assert next(event[2] for event in events if event[1] == "FailedMount").startswith(said), "as Kubernetes' kubelet"
    (tmp_path / "none").mkdir()
    await machine.phase("pod", "Succeeded")


async def test_sub_paths_and_read_only_mounts(machine: TestMachine) -> None:
    text = await output(
        machine,
        "echo x > /a/f; ls /whole/part; touch /ro/f || echo refused",
        {"name": "v", "emptyDir": {}},
        mounts=[
            {"name": "v", "mountPath": "/a", "subPath": "part"},
            {"name": "v", "mountPath": "/whole"},
            {"name": "v", "mountPath": "/ro", "readOnly": True},
        ],
    )
    assert [line for line in text.splitlines() if "touch" not in line] == ["f", "refused"]


async def test_a_claim_waits_for_its_volume_and_is_the_folder_behind_it(machine: TestMachine, tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    claim = {
        "metadata": {"name": "claim"},
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "manual",
            "volumeName": "volume",
        },
    }
    await machine.client.create(PERSISTENTVOLUMECLAIMS, claim, namespace="default")
    await machine.run(
        "echo kept > /data/f",
        container={"volumeMounts": [{"name": "v", "mountPath": "/data"}]},
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "claim"}}],
    )
    await machine.until("pod", lambda pod: "is not bound" in str((state_of(pod).get("state") or {}).get("waiting")))
    volume = {
        "metadata": {"name": "volume"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "manual",
            "hostPath": {"path": str(tmp_path / "store")},
        },
    }
    await machine.client.create(PERSISTENTVOLUMES, volume)
    await give_volume(machine)
    await mark_bound(machine)
    await machine.phase("pod", "Succeeded")
    assert (tmp_path / "store" / "f").read_text() == "kept\n"


async def test_a_claim_that_names_the_volume_of_another_does_not_get_it(machine: TestMachine, tmp_path: Path) -> None:
    """A name can be written between the two steps of binding; whose the volume is, the volume says."""
    modes = {"accessModes": ["ReadWriteOnce"], "storageClassName": "manual"}
    asked = {**modes, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "volume"}
    for name in ("claim", "thief"):
        body = {"metadata": {"name": name}, "spec": asked}
        await machine.client.create(PERSISTENTVOLUMECLAIMS, body, namespace="default")
        await mark_bound(machine, name)
    spec = {**modes, "capacity": {"storage": "1Gi"}, "hostPath": {"path": str(tmp_path)}}
    await machine.client.create(PERSISTENTVOLUMES, {"metadata": {"name": "volume"}, "spec": spec})
    await give_volume(machine)
    await machine.run(
        "touch /data/f",
        container={"volumeMounts": [{"name": "v", "mountPath": "/data"}]},
        volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "thief"}}],
    )
    text = 'persistentvolumeclaim "thief" is not bound to a volume yet'
    await machine.until("pod", lambda pod: text in str((state_of(pod).get("state") or {}).get("waiting")))


async def mark_bound(machine: TestMachine, claim: str = "claim") -> None:
    bound = {"status": {"phase": "Bound"}}
    await machine.client.patch(PERSISTENTVOLUMECLAIMS, claim, bound, namespace="default", subresource="status")


async def give_volume(machine: TestMachine) -> None:
    claim = await machine.client.get(PERSISTENTVOLUMECLAIMS, "claim", "default")
    reference = {"namespace": "default", "name": "claim", "uid": claim["metadata"]["uid"]}
    await machine.client.patch(PERSISTENTVOLUMES, "volume", {"spec": {"claimRef": reference}})


async def test_a_driver_is_asked_by_its_name_with_secrets_and_called_when_the_pod_is_over(
    machine: TestMachine, driver: FolderDriver
) -> None:
    secret = {"metadata": {"name": "keys"}, "data": {"k": base64.b64encode(b"v").decode()}}
    await machine.client.create(SECRETS, secret, namespace="default")
    source = {
        "driver": "folders.example.com",
        "volumeAttributes": {"bucket": "b"},
        "nodePublishSecretRef": {"name": "keys"},
    }
    text = await output(machine, "touch /v/x/f; ls /v/x", {"name": "x", "csi": source})
    assert text == "f\n"
    request = driver.published[0]
    assert (dict(request.attributes), dict(request.secrets)) == ({"bucket": "b"}, {"k": "v"})
    assert driver.unpublished == [request.handle]


async def test_only_a_persistent_volume_may_name_a_secret_of_another_namespace(
    machine: TestMachine, driver: FolderDriver
) -> None:
    await machine.client.create(NAMESPACES, {"metadata": {"name": "elsewhere"}})
    for namespace, value in (("default", b"own"), ("elsewhere", b"foreign")):
        secret = {"metadata": {"name": "keys"}, "data": {"k": base64.b64encode(value).decode()}}
        await machine.client.create(SECRETS, secret, namespace=namespace)
    source = {
        "driver": "folders.example.com",
        "volumeHandle": "handle",
        "nodePublishSecretRef": {"name": "keys", "namespace": "elsewhere"},
    }
    modes = {"accessModes": ["ReadWriteMany"], "storageClassName": ""}
    volume = {"metadata": {"name": "volume"}, "spec": {**modes, "capacity": {"storage": "1Gi"}, "csi": source}}
    await machine.client.create(PERSISTENTVOLUMES, volume)
    asked = {**modes, "resources": {"requests": {"storage": "1Gi"}}, "volumeName": "volume"}
    await machine.client.create(
        PERSISTENTVOLUMECLAIMS, {"metadata": {"name": "claim"}, "spec": asked}, namespace="default"
    )
    await give_volume(machine)
    await mark_bound(machine)
    inline = {name: value for name, value in source.items() if name != "volumeHandle"}
    sources = ({"persistentVolumeClaim": {"claimName": "claim"}}, {"csi": inline})
    for number, found in enumerate(sources):
        mounts = {"volumeMounts": [{"name": "v", "mountPath": "/v"}]}
        await machine.run("true", name=f"pod-{number}", container=mounts, volumes=[{"name": "v", **found}])
        await machine.phase(f"pod-{number}", "Succeeded")
    assert [request.secrets["k"] for request in driver.published] == ["foreign", "own"]


async def test_a_driver_releases_pods_that_went_while_the_kubelet_was_down(
    machine: TestMachine, driver: FolderDriver
) -> None:
    volume = {"name": "x", "csi": {"driver": "folders.example.com"}}
    mounts = [{"name": "x", "mountPath": "/v/x"}]
    pods = [
        await machine.run("sleep 600", name=name, container={"volumeMounts": mounts}, volumes=[volume])
        for name in ("stays", "goes")
    ]
    for name in ("stays", "goes"):
        await machine.phase(name, "Running")
    await machine.kubelet.stop()
    await machine.client.delete(PODS, "goes", namespace="default", grace_period=0)
    driver.kept = None
    await machine.start_kubelet()
    stays, goes = (pod["metadata"]["uid"] for pod in pods)
    assert goes not in await eventually(lambda: driver.kept)
    assert stays in (driver.kept or ())


async def test_an_unknown_driver_is_named(machine: TestMachine) -> None:
    await machine.run(
        "true",
        container={"volumeMounts": [{"name": "v", "mountPath": "/v"}]},
        volumes=[{"name": "v", "csi": {"driver": "none.example.com"}}],
    )
    await machine.until(
        "pod",
        lambda pod: (
            "no driver none.example.com on this machine; registered: folders.example.com"
            in str((state_of(pod).get("state") or {}).get("waiting"))
        ),
    )
