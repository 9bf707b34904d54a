"""A registry to which pods push what they build, and the image with which they build.

The fixture's own registry is read-only. This one is Debian's docker-registry on the control machine; it uses plain
HTTP, and nodes pull from it under its address. The builder is Debian's buildah, which needs no privileges of its pod
beyond those of root in a container.
"""

from __future__ import annotations

import shutil
import time
import urllib.request
from pathlib import Path

import yaml

from . import libraries, preflight
from .addons import Site
from .base_images import ACCOUNTS, busybox_program
from .errors import HarnessError, with_log
from .layout import CONTROL, CONTROL_ADDRESS, REGISTRY_PORT, Layout
from .machine import Machine
from .oci import BlobStore, Descriptor, Entry, Settings

PORT = 5050
HOST = f"{CONTROL_ADDRESS}:{PORT}"
"""The registry as pods and nodes name it."""
BUILDER = "quay.io/buildah/stable"
_PACKAGES = {"buildah": "buildah", "docker-registry": "docker-registry"}
_PATIENCE = 60.0  # seconds
_REGISTRIES = f"""unqualified-search-registries = ["docker.io"]
[[registry]]
location = "docker.io"
[[registry.mirror]]
location = "{CONTROL_ADDRESS}:{REGISTRY_PORT}"
insecure = true
"""
_POLICY = b'{"default": [{"type": "insecureAcceptAnything"}]}\n'


def start(site: Site) -> None:
    """The registry runs, the nodes pull from it, and the builder's image can be had."""
    preflight.install_programs(_PACKAGES, site.say)
    site.offer({BUILDER: _builder_image(site).digest})
    _start_registry(site.layout)
    for machine in site.layout.machine("").iterdir():
        _let_pull(machine / "registries" / HOST)


def _start_registry(layout: Layout) -> None:
    machine = Machine(layout, CONTROL)
    if not machine.runs("docker-registry"):
        folder = layout.run / "pushed"
        folder.mkdir(parents=True, exist_ok=True)
        settings = {
            "version": 0.1,
            "storage": {"filesystem": {"rootdirectory": str(folder)}, "delete": {"enabled": True}},
            "http": {"addr": HOST},
        }
        (folder / "config.yml").write_text(yaml.safe_dump(settings))
        program = shutil.which("docker-registry")
        assert program is not None, "installed above"
        machine.start("docker-registry", [program, "serve", str(folder / "config.yml")], own_files=False)
    deadline = time.monotonic() + _PATIENCE
    while not _answers():
        if time.monotonic() > deadline:
            log = layout.log(CONTROL, "docker-registry")
            raise HarnessError(
                with_log(f"the registry does not answer after {_PATIENCE:.0f} s", log), reason="NotReady"
            )
        time.sleep(0.1)


def _answers() -> bool:
    try:
        with urllib.request.urlopen(f"http://{HOST}/v2/", timeout=2):
            return True
    except OSError:
        return False


def _let_pull(folder: Path) -> None:
    """containerd reads this for each pull: it need not be restarted."""
    folder.mkdir(parents=True, exist_ok=True)
    here = f"http://{HOST}"
    (folder / "hosts.toml").write_text(f'server = "{here}"\n[host."{here}"]\n  capabilities = ["pull", "resolve"]\n')


def _builder_image(site: Site) -> Descriptor:
    """buildah with the libraries that it loads, a shell, and the files without which it refuses to pull."""
    found = shutil.which("buildah")
    assert found is not None, "installed above"
    program = Path(found).resolve()

    def make(store: BlobStore) -> Descriptor:
        settings = (
            Entry("etc/containers/policy.json", data=_POLICY, mode=0o644),
            Entry("etc/containers/registries.conf", data=_REGISTRIES.encode(), mode=0o644),
        )
        links = [Entry(name, link=f"usr/{name}") for name in ("bin", "lib", "lib64")]
        shell = [Entry("usr/bin/busybox", source=busybox_program())]
        applets = ("sh", "cat", "cp", "ls", "mkdir", "rm", "tar", "sleep", "sed", "test", "mv", "find", "tr", "grep")
        named = [Entry(f"usr/bin/{name}", link="busybox") for name in applets]
        loaded = libraries.entries(libraries.closure([program]).libraries)
        folders = [Entry("var/lib/containers"), Entry("var/tmp", mode=0o1777), Entry("run"), Entry("root")]
        return store.add_image(
            [store.add_layer([*links, *ACCOUNTS, *settings, *folders, *shell, *named,
                              Entry("usr/bin/buildah", source=program), *loaded])],
            Settings(env={"BUILDAH_ISOLATION": "chroot", "STORAGE_DRIVER": "vfs"}),
        )  # fmt: skip

    return site.images.ensure(("builder", 2, str(program), program.stat().st_size), make)
