"""Where a program in a pod finds the hub; outside of pods nothing is guessed."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from paddlecloud.modelhub import discovery

IN_POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1"}
BESIDE = {**IN_POD, "MODELHUB_SERVICE_HOST": "10.0.0.7", "MODELHUB_SERVICE_PORT": "8890"}
SYSTEM = "http://modelhub.kube-system:8890"


@pytest.mark.parametrize(
    ("environ", "known", "found"),
    [
        ({"PADDLECLOUD_MODEL_HUB": "https://hub"}, True, "https://hub"),
        ({**BESIDE, "PADDLECLOUD_MODEL_HUB": "https://hub"}, True, "https://hub"),
        ({}, True, ""),
        (BESIDE, True, "http://modelhub:8890"),
        ({**BESIDE, "MODELHUB_SERVICE_PORT": "80"}, False, ""),
        (IN_POD, True, SYSTEM),
        (IN_POD, False, ""),
    ],
    ids=["given", "given in a pod", "outside", "beside the pod", "another service", "embedded", "nowhere"],
)
def test_the_hub_is_found(environ: dict[str, str], known: bool, found: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def resolve(host: str, port: int) -> Any:
        if not known:
            raise socket.gaierror(host)
        assert (host, port) == ("modelhub.kube-system", 8890)
        return []

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    assert discovery.address(environ) == found
