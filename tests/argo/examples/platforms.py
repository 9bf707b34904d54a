"""The two platforms that cases run on: their own embedded one, and the fixture with the add-on `argo`."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cluster.harness.argo import BUCKETS, KEYS, namespace_objects
from cluster.harness.layout import Layout
from paddlecloud.kube import config
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import PERSISTENTVOLUMES, Object
from paddlecloud.kube.stdlib import StdlibTransport, drive
from tools import argo
from tools.s3 import S3Server

from . import images
from .runner import Platform
from .verdict import LIMIT

VOLUMES = 40
"""For claims on the fixture, which has no provisioner."""


@contextmanager
def embedded(*, at_once: int = 4, limit: float = LIMIT, quiet: float = 20) -> Iterator[Platform]:
    pdc = [sys.executable, "-m", "paddlecloud.cli.main"]
    with tempfile.TemporaryDirectory(prefix="pdc-argo-", dir="/var/tmp") as folder:
        Path(folder).chmod(0o755)  # containers of other users run what lies in it
        data, kubeconfig = Path(folder) / "data", Path(folder) / "kubeconfig"
        images.write_recipes(data / "images")
        flags = ["--data", str(data)]
        subprocess.run(
            [*pdc, "up", *flags, "--port", "0", "--kubeconfig", str(kubeconfig)], check=True, stdout=subprocess.DEVNULL
        )
        store = S3Server(Path(folder) / "s3", keys=KEYS).start()
        for bucket in BUCKETS:
            store.store(bucket).put("made", b"")
        files = argo.files()

        def prepare(namespace: str) -> Iterable[Object]:
            return namespace_objects(files, namespace, address=store.host, port=store.port)

        try:
            yield Platform(kubeconfig, prepare, at_once, limit, quiet)
        finally:
            store.stop()
            subprocess.run([*pdc, "down", *flags, "-y"], check=False, stdout=subprocess.DEVNULL)


def fixture(kubeconfig: Path, *, at_once: int = 12, limit: float = LIMIT, quiet: float = 40) -> Platform:
    """The running cluster, with the images, and volumes that claims without a class are bound to."""
    images.offer()
    client = Client(StdlibTransport(config.load(str(kubeconfig)), user_agent="argo-examples"))
    for number in range(VOLUMES):
        volume = _volume(f"examples-{number}", Layout.default().run / "volumes" / str(number))
        drive(client.patch(PERSISTENTVOLUMES, volume["metadata"]["name"], volume, kind="apply", force=True))
    drive(client.close())
    files = argo.files()
    return Platform(
        kubeconfig, lambda namespace: namespace_objects(files, namespace), at_once, limit, quiet, settle=2.0
    )


def _volume(name: str, folder: Path) -> Object:
    os.makedirs(folder, exist_ok=True)
    folder.chmod(0o777)
    spec = {
        "capacity": {"storage": "10Gi"},
        "accessModes": ["ReadWriteOnce", "ReadWriteMany"],
        "hostPath": {"path": str(folder)},
        "persistentVolumeReclaimPolicy": "Retain",
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}
