"""What can be put on a running cluster: each add-on names the programs it needs and how it is installed.

Upstream's manifests are applied as they are wherever that is possible: the registry answers for the images they name.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import yaml

from .api import ClusterApi
from .base_images import ImageCache
from .errors import HarnessError
from .layout import Layout
from .registry import Catalogue

Object = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Site:
    """The cluster as an installer sees it."""

    layout: Layout
    binaries: Mapping[str, Path]
    manifests: Path
    """Upstream's files, in a folder for each module."""
    say: Callable[[str], None]

    @property
    def images(self) -> ImageCache:
        return ImageCache(self.layout.images)

    def offer(self, names: Mapping[str, str]) -> None:
        """Put images (digests by name) into the registry."""
        Catalogue(self.layout.images).add(dict(names))

    def kubectl(self, *arguments: str, input: str | None = None) -> str:
        command = [str(self.binaries["kubectl"]), "--kubeconfig", str(self.layout.kubeconfig), *arguments]
        done = subprocess.run(command, input=input, capture_output=True, text=True, timeout=180)
        if done.returncode != 0:
            raise HarnessError(f"kubectl {arguments[0]} failed: {done.stderr.strip()[-2000:]}", reason="Refused")
        return done.stdout

    def apply(self, objects: Sequence[Object]) -> None:
        text = yaml.dump_all(objects, Dumper=getattr(yaml, "CSafeDumper", yaml.SafeDumper), sort_keys=False)
        self.kubectl("apply", "--server-side", "--force-conflicts", "--filename", "-", input=text)

    def await_deployments(self, namespace: str, *names: str, patience: float = 180) -> None:
        api = ClusterApi(self.layout)
        try:
            for name in names:
                self._await(f"{namespace}/{name}", partial(api.deployment_ready, namespace, name), patience)
        finally:
            api.close()

    def _await(self, what: str, check: Callable[[], bool], patience: float) -> None:
        deadline = time.monotonic() + patience
        while not check():
            if time.monotonic() > deadline:
                namespace = what.partition("/")[0]
                pods = self.kubectl("get", "pods", "--namespace", namespace)
                raise HarnessError(f"{what} is not available after {patience:.0f} s:\n{pods}", reason="NotReady")
            time.sleep(0.1)


_TRUST = "registry-authority"


def trust_registry(site: Site, deployment: Object, namespace: str) -> Object:
    """Have a controller that asks registries about images trust the fixture's; gives the ConfigMap to apply first."""
    pod = deployment["spec"]["template"]["spec"]
    pod.setdefault("volumes", []).append({"name": _TRUST, "configMap": {"name": _TRUST}})
    main = pod["containers"][0]
    main.setdefault("volumeMounts", []).append({"name": _TRUST, "mountPath": f"/{_TRUST}"})
    main.setdefault("env", []).append({"name": "SSL_CERT_FILE", "value": f"/{_TRUST}/ca.crt"})
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": _TRUST, "namespace": namespace},
        "data": {"ca.crt": (site.layout.pki / "registry" / "ca.crt").read_text()},
    }


def find(objects: Sequence[Object], kind: str, name: str) -> Object:
    (found,) = (each for each in objects if (each["kind"], each["metadata"]["name"]) == (kind, name))
    return found


def read(*files: Path) -> list[Object]:
    """The objects of YAML files, in order."""
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    return [document for file in files for document in yaml.load_all(file.read_text(), Loader=loader) if document]
