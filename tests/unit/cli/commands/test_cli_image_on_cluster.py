"""`pdc image build --on-cluster`: what is refused before a pod is made, and what the pod may do. Real builds are in
tests/cluster/test_tekton.py."""

from __future__ import annotations

import argparse
import json
from typing import Any

import pytest

from paddlecloud.cli.commands.image_on_cluster import builder_pod
from paddlecloud.cli.failures import USAGE
from unit.cli.conftest import Pdc


def flags(**given: Any) -> argparse.Namespace:
    none = {"push_secret": None, "plain_http": False, "pip_index": None, "builder": None}
    return argparse.Namespace(push="registry.example.org/team/demo:1", **{**none, **given})


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("build python --on-cluster", "--on-cluster takes --push REGISTRY/NAME:TAG"),
        ("build python --on-cluster --push demo:1", "demo:1 is no name of an image"),
        ("build python --on-cluster --push docker://r/demo:1", "is no name of an image"),
        ("build python --on-cluster --push=-v/x", "is no name of an image"),
        ("build --on-cluster --push r/demo:1", "one NAME of a recipe, or -f FILE"),
        ("build python --push r/demo:1", "--push is for builds on a cluster"),
        ("build python --plain-http", "--plain-http is for builds on a cluster"),
        ("ls --on-cluster", "image ls takes no --on-cluster"),
    ],
)
def test_what_cannot_be_meant_is_refused_with_what_can(pdc: Pdc, arguments: str, says: str) -> None:
    done = pdc("image", *arguments.split())
    assert done.code == USAGE
    assert says in done.err


def test_the_pod_has_no_token_and_no_privileges_and_ends_by_itself() -> None:
    spec = builder_pod("team", flags())["spec"]
    assert spec["automountServiceAccountToken"] is False
    assert spec["activeDeadlineSeconds"] > 0
    assert "securityContext" not in json.dumps(spec)


def test_keys_of_the_registry_come_from_a_secret_and_are_no_variables() -> None:
    spec = builder_pod("team", flags(push_secret="docker-push"))["spec"]
    assert {"name": "REGISTRY_AUTH_FILE", "value": "/keys/config.json"} in spec["containers"][0]["env"]
    (keys,) = (volume for volume in spec["volumes"] if "secret" in volume)
    assert keys["secret"]["secretName"] == "docker-push"


@pytest.mark.parametrize(("url", "trusted"), [("http://index.example.org:80/simple", ["index.example.org"]),
                                              ("https://index.example.org/simple", [])])  # fmt: skip
def test_pip_trusts_an_index_by_name_only_without_tls(url: str, trusted: list[str]) -> None:
    env = builder_pod("team", flags(pip_index=url))["spec"]["containers"][0]["env"]
    assert [each["value"] for each in env if each["name"] == "PIP_TRUSTED_HOST"] == trusted
