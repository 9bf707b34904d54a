"""Volcano: gang scheduling, queues and its own jobs, from the manifest of its release."""

from __future__ import annotations

import base64

from paddlecloud.local.apiserver.http import certs

from .addons import Object, Site, read
from .base_images import program_image

ENGINE = "volcano"
_NAMESPACE = "volcano-system"
_SERVICE = "volcano-admission-service"
_PROGRAMS = ("scheduler", "controller-manager", "webhook-manager")


def install(site: Site) -> None:
    site.offer({f"volcanosh/vc-{name}": program_image(site.images, site.binaries[name]).digest for name in _PROGRAMS})
    objects = read(site.manifests / "volcano.sh/volcano" / "installer" / "volcano-development.yaml")
    namespaces = [each for each in objects if each["kind"] == "Namespace"]
    site.apply([*namespaces, _certificates(site)])
    # The Job would make the certificates with kubectl and openssl, which images of one program do not hold.
    site.apply([each for each in objects if each["kind"] not in ("Namespace", "Job")])
    site.await_deployments(_NAMESPACE, "volcano-admission", "volcano-controllers", "volcano-scheduler")


def _certificates(site: Site) -> Object:
    made = certs.ensure(site.layout.pki / "volcano", {_SERVICE, f"{_SERVICE}.{_NAMESPACE}.svc"})
    files = {"ca.crt": made.ca_cert, "tls.crt": made.server_cert, "tls.key": made.server_key}
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "volcano-admission-secret", "namespace": _NAMESPACE},
        "data": {name: base64.b64encode(path.read_bytes()).decode() for name, path in files.items()},
    }
