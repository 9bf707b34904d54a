"""A PaddleService as data: how one is made of a model, where it answers, and a client for it that is ready to use."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from paddlecloud.api.names import ELASTIC_SERVING, SERVING
from paddlecloud.kube.resource import PADDLESERVICES, Object
from paddlecloud.sdk.manifest import Manifest

GROUPS = (f"{SERVING}/", f"{ELASTIC_SERVING}/")
HTTP2 = ("grpc", "h2c")


class NotServed(Exception):
    """The service does not answer yet, or its newest revision failed; the text says what its status says."""


def service_of(
    model: str,
    *,
    name: str,
    namespace: str,
    follow: bool = False,
    scale: Mapping[str, int | None] | None = None,
    allow: Mapping[str, bool] | None = None,
) -> Object:
    """The PaddleService of a model: what `pdc serve` and `client.models.serve` apply. Pure."""
    given = {field: value for field, value in (scale or {}).items() if value is not None}
    set_true = {field: True for field, value in {**(allow or {}), "follow": follow}.items() if value}
    return {
        "apiVersion": PADDLESERVICES.api_version,
        "kind": PADDLESERVICES.kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"model": model, **set_true, **({"service": given} if given else {})},
    }


class ServiceManifest(Manifest):
    """A PaddleService."""

    @property
    def url(self) -> str:
        """Where it answers. On the embedded platform every program of the machine can call it, whatever it resolves.
        Raises `NotServed` before there is one."""
        status = self.body.get("status") or {}
        if not status.get("url"):
            why = f": {status['message']}" if status.get("message") else ""
            raise NotServed(f"{self.name} has no URL yet{why}; wait_for('Ready') waits for it")
        return str(status["url"])

    @property
    def address(self) -> str:
        """The same as `HOST:PORT`, for clients of gRPC."""
        place = urlsplit(self.url)
        return place.netloc if place.port else f"{place.netloc}:80"

    def triton(self, **options: Any) -> Any:
        """Triton's own client for it: of `tritonclient.grpc` for a service with `protocol: grpc`, else of
        `tritonclient.http`. `options` are those of its `InferenceServerClient`.

        Needs `pip install 'tritonclient[grpc,http]'`."""
        import importlib

        name = "tritonclient.grpc" if (self.body.get("spec") or {}).get("protocol") in HTTP2 else "tritonclient.http"
        address = self.address
        try:
            client = importlib.import_module(name)
        except ImportError as error:
            raise ImportError(f"{name} is not installed: pip install 'tritonclient[grpc,http]'") from error
        return client.InferenceServerClient(address, **options)


def is_service(body: Mapping[str, Any]) -> bool:
    return body.get("kind") == "PaddleService" and str(body.get("apiVersion", "")).startswith(GROUPS)
