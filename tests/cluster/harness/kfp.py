"""Kubeflow Pipelines: its backend from upstream's manifests; database, metadata and objects on the control machine.

Its workflows run on the add-on `argo`, whose object store it shares, so it is installed after that. Its namespace is
`kfp`; steps have the account `pipeline-runner` there, with upstream's rights and those of our own launchers.
"""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from pathlib import Path

import yaml

from tools import argo as argo_files
from tools import environments, kfp_backend
from tools.kfp_backend import DEPLOYMENTS, NAMESPACE, PORTS, Program, Programs, Stores

from . import argo, kfp_sources, preflight
from .addons import Site
from .base_images import program_image
from .errors import HarnessError, with_log
from .layout import CONTROL, CONTROL_ADDRESS
from .machine import Machine

ENGINE = "kfp"
PATIENCE = 60.0  # seconds, for each program of the control machine
_REGISTRY = "ghcr.io/kubeflow"


def install(site: Site) -> None:
    if not Machine(site.layout, CONTROL).runs("weed"):
        raise HarnessError("the add-on kfp needs argo's object store: name argo before it", reason="NoArgo")
    preflight.install_programs({"mariadbd": "mariadb-server-core"}, site.say)
    try:
        _start(site, "mysql", kfp_backend.database)
        _start(site, "metadata-grpc-service", kfp_backend.metadata)
    except environments.NoEnvironment as error:
        raise HarnessError(f"there is no ml-metadata for the add-on kfp: {error}", reason="NoDownload") from error
    stores = Stores(CONTROL_ADDRESS, {**PORTS, "minio-service": argo.S3_PORT}, argo.KEYS)
    site.apply(kfp_backend.objects(site.manifests / kfp_backend.MODULE, _programs(site), stores))
    site.kubectl(
        "apply", "--server-side", "--force-conflicts", "--namespace", NAMESPACE, "--filename", "-",
        input=yaml.safe_dump_all(argo.namespace_objects(argo_files.files(), NAMESPACE)),
    )  # fmt: skip
    site.await_deployments(NAMESPACE, *DEPLOYMENTS)


def _programs(site: Site) -> Programs:
    made = []
    for name in kfp_backend.BINARIES:
        path, image = f"/bin/{name}", f"{_REGISTRY}/kfp-{name}"
        site.offer({image: program_image(site.images, site.binaries[name], path=path).digest})
        made.append(Program(f"{image}:{kfp_sources.VERSION}", path))
    return Programs(*made)


# --- programs of the control machine ---


def _start(site: Site, name: str, command: Callable[[Path, str, int], list[str]]) -> None:
    """The program behind a Service; `command` is made of its folder, address and port."""
    port = PORTS[name]
    if _answers(port):
        return
    folder = site.layout.run / name
    folder.mkdir(parents=True, exist_ok=True)
    Machine(site.layout, CONTROL).start(name, command(folder, CONTROL_ADDRESS, port), own_files=False)
    deadline = time.monotonic() + PATIENCE
    while not _answers(port):
        if time.monotonic() > deadline:
            log = site.layout.log(CONTROL, name)
            raise HarnessError(with_log(f"{name} does not answer after {PATIENCE:.0f} s", log), reason="NotReady")
        time.sleep(0.1)


def _answers(port: int) -> bool:
    try:
        with socket.create_connection((CONTROL_ADDRESS, port), timeout=2):
            return True
    except OSError:
        return False
