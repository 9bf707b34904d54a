"""The cache server as a pod of the embedded platform: its image, its volumes, its address."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import ssl
import urllib.request
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from harness import eventually, need
from paddlecloud.controllers.sampledata.servers import access
from paddlecloud.drivers import JUICEFS, LOCAL, drivers_of
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, PODS, SECRETS, Object
from paddlecloud.local.images.store import ImageStore
from unit.local.kubelet.machine import TestMachine, running_machine

KEYS = access.fresh()
TOKEN = base64.b64decode(KEYS["token"]).decode()
IMAGE = "paddlecloud/runtime:0.1.0"


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[TestMachine]:
    data = tmp_path / "data"
    async with running_machine(data, images=ImageStore(), drivers=drivers_of(data)) as running:
        await running.client.create(SECRETS, {"metadata": {"name": "keys"}, "data": dict(KEYS)}, namespace="default")
        yield running


async def volume(machine: TestMachine, name: str, csi: Object) -> None:
    """A volume and its claim, bound as a controller would bind them."""
    resources = {"requests": {"storage": "10Pi"}}
    wanted = {"accessModes": ["ReadWriteMany"], "resources": resources, "volumeName": name, "storageClassName": ""}
    claim = await machine.client.create(
        PERSISTENTVOLUMECLAIMS, {"metadata": {"name": name}, "spec": wanted}, namespace="default"
    )
    reference = {"namespace": "default", "name": name, "uid": claim["metadata"]["uid"]}
    spec = {"capacity": {"storage": "10Pi"}, "accessModes": ["ReadWriteMany"], "csi": csi, "claimRef": reference}
    await machine.client.create(PERSISTENTVOLUMES, {"metadata": {"name": name}, "spec": spec})
    bound = {"status": {"phase": "Bound"}}
    await machine.client.patch(PERSISTENTVOLUMECLAIMS, name, bound, namespace="default", subresource="status")


def runtime_pod(name: str, volumes: list[Object], mounts: list[Object], *flags: str) -> Object:
    asked = {"path": "/readyz", "port": 7716, "scheme": "HTTPS"}
    return {
        "metadata": {"name": f"{name}-runtime-0"},
        "spec": {
            "nodeName": "node-1",
            "volumes": [*volumes, {"name": "keys", "secret": {"secretName": "keys"}}],
            "containers": [
                {
                    "name": "runtime",
                    "image": IMAGE,
                    "command": ["nuwa", "server", f"--dataDir=/mnt/{name}", "--keys=/keys", *flags],
                    "readinessProbe": {"httpGet": asked, "periodSeconds": 1},
                    "volumeMounts": [*mounts, {"name": "keys", "mountPath": "/keys", "readOnly": True}],
                }
            ],
        },
    }


def ready(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    return any(condition["type"] == "Ready" and condition["status"] == "True" for condition in conditions)


def _trusting() -> ssl.SSLContext:
    context = ssl.create_default_context(cadata=base64.b64decode(KEYS["tls.crt"]).decode())
    context.check_hostname = False
    return context


async def call(pod: Object, method: str, path: str, body: Any = None) -> Any:
    def send() -> Any:
        request = urllib.request.Request(
            f"https://{pod['status']['podIP']}:7716{path}",
            method=method,
            data=None if body is None else json.dumps(body).encode(),
            headers={"Authorization": f"Bearer {TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=30, context=_trusting()) as answer:
            return json.load(answer)

    return await asyncio.to_thread(send)


async def do(pod: Object, job: str, kind: str, options: Any = None) -> Any:
    await call(pod, "PUT", f"/v2/jobs/{job}", {"type": kind, "options": options or {}})
    while (answer := await call(pod, "GET", f"/v2/jobs/{job}"))["state"] in ("Queued", "Running"):
        await asyncio.sleep(0.05)
    return answer


@pytest.mark.timeout(300)  # the image is built on first use
async def test_a_set_is_synced_warmed_and_read_by_another_pod(machine: TestMachine, tmp_path: Path) -> None:
    source, cache = tmp_path / "source", tmp_path / "cache"
    source.mkdir()
    for number in range(20):
        (source / f"{number:02}.jpg").write_bytes(bytes([number]) * 1000)
    await volume(machine, "digits", {"driver": LOCAL, "volumeHandle": "default-digits"})
    claim = {"name": "digits", "persistentVolumeClaim": {"claimName": "digits"}}
    host = {"name": "cache", "hostPath": {"path": str(cache), "type": "DirectoryOrCreate"}}
    origin = {"name": "origin", "hostPath": {"path": str(source)}}  # pods have a /tmp of their own
    mounts = [
        {"name": "digits", "mountPath": "/mnt/digits"},
        {"name": "cache", "mountPath": "/cache/c"},
        {"name": "origin", "mountPath": "/origin"},
    ]
    flags = ("--driver=local", "--cacheDirs=/cache/c")
    await machine.create(runtime_pod("digits", [claim, host, origin], mounts, *flags))
    pod = await machine.until("digits-runtime-0", ready, deadline=240)

    options = {"source": "file:///origin", "destination": "file:///mnt/digits"}
    job = await do(pod, "sync", "sync", options)
    assert job["state"] == "Succeeded", job
    assert (await do(pod, "warm", "warmup"))["coverage"] == {"planned": 20, "cached": 20, "missing": []}
    assert len(list(cache.glob("*.jpg"))) == 20
    data = machine.data / "samplesets" / "default" / "digits" / "data"
    assert len(list(data.glob("*.jpg"))) == 20

    reader = {"volumeMounts": [{"name": "digits", "mountPath": "/data"}]}
    await machine.run("cat /data/*.jpg | wc -c", container=reader, volumes=[claim])
    await machine.phase("pod", "Succeeded")
    assert (await machine.log("pod")).strip() == "20000"


async def test_a_volume_that_is_not_of_this_namespace_is_refused(machine: TestMachine) -> None:
    await volume(machine, "other", {"driver": LOCAL, "volumeHandle": "elsewhere-other"})
    claim = {"name": "other", "persistentVolumeClaim": {"claimName": "other"}}
    reader = {"volumeMounts": [{"name": "other", "mountPath": "/data"}]}
    await machine.run("true", container=reader, volumes=[claim])

    def refused(pod: Object) -> bool:
        return "must be called default-NAME" in json.dumps(pod["status"])

    await machine.until("pod", refused)


# JuiceFS


def juicefs_mounts(folder: Path) -> list[str]:
    """Mounts of JuiceFS below a folder."""
    lines = Path("/proc/mounts").read_text().splitlines()
    return [line for line in lines if "fuse.juicefs" in line and str(folder) in line]


@pytest.mark.timeout(300)
async def test_a_juicefs_volume_is_mounted_once_per_node_and_unmounted_by_the_last_pod(
    machine: TestMachine, tmp_path: Path
) -> None:
    need("fuse", have=os.path.exists("/dev/fuse") and os.geteuid() == 0, hint="/dev/fuse and root")
    secret = {
        "name": "tests",
        "metaurl": f"sqlite3://{tmp_path}/meta.db\n",
        "storage": "file",
        "bucket": f"{tmp_path}/objects/",
        "format-options": "trash-days=0",
    }
    await machine.client.create(SECRETS, {"metadata": {"name": "fs"}, "stringData": secret}, namespace="default")
    options = f"cache-dir={tmp_path}/cache,cache-size=100,sub-dir=/,http-port=1"
    await volume(
        machine,
        "pictures",
        {
            "driver": JUICEFS,
            "fsType": "juicefs",
            "volumeHandle": "default-pictures",
            "volumeAttributes": {"mountOptions": options},
            "nodePublishSecretRef": {"name": "fs", "namespace": "default"},
        },
    )
    claim = {"name": "pictures", "persistentVolumeClaim": {"claimName": "pictures"}}
    mounts = [{"name": "pictures", "mountPath": "/mnt/pictures"}]
    host = {"name": "cache", "hostPath": {"path": str(tmp_path / "cache"), "type": "DirectoryOrCreate"}}
    mounts.append({"name": "cache", "mountPath": "/cache/c"})
    await machine.run(
        "mkdir /mnt/pictures/train; for i in 1 2 3; do echo $i > /mnt/pictures/train/$i; done",
        container={"volumeMounts": mounts},
        volumes=[claim, host],
    )
    await machine.phase("pod", "Succeeded")
    flags = ("--driver=juicefs", "--cacheDirs=/cache/c")
    await machine.create(runtime_pod("pictures", [claim, host], mounts, *flags))
    pod = await machine.until("pictures-runtime-0", ready, deadline=240)
    job = await do(pod, "warm", "warmup")
    assert job["coverage"] == {"planned": 3, "cached": 3, "missing": []}
    assert len(juicefs_mounts(tmp_path)) == 1

    await machine.client.delete(PODS, "pictures-runtime-0", namespace="default")
    await machine.gone("pictures-runtime-0")
    await machine.client.delete(PODS, "pod", namespace="default")
    await machine.gone("pod")

    await eventually(lambda: juicefs_mounts(tmp_path), [])


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ({"name": "tests", "storage": "file"}, "its Secret has no metaurl, bucket"),
        (
            {"name": "tests", "metaurl": "redis://:geheim@127.0.0.1:1/1", "storage": "file", "bucket": "/tmp/x/"},
            "the metadata server 127.0.0.1:1 does not answer",
        ),
    ],
)
async def test_a_file_system_that_cannot_be_mounted_says_why(
    machine: TestMachine, secret: dict[str, str], words: str
) -> None:
    need("fuse", have=os.path.exists("/dev/fuse") and os.geteuid() == 0, hint="/dev/fuse and root")
    await machine.client.create(SECRETS, {"metadata": {"name": "fs"}, "stringData": secret}, namespace="default")
    reference = {"name": "fs", "namespace": "default"}
    await volume(
        machine, "broken", {"driver": JUICEFS, "volumeHandle": "default-broken", "nodePublishSecretRef": reference}
    )
    claim = {"name": "broken", "persistentVolumeClaim": {"claimName": "broken"}}
    await machine.run("true", container={"volumeMounts": [{"name": "broken", "mountPath": "/data"}]}, volumes=[claim])
    pod = await machine.until("pod", lambda pod: words in json.dumps(pod["status"]), deadline=90)
    assert "geheim" not in json.dumps(pod)
