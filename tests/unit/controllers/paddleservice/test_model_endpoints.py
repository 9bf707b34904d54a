"""`model:` in a PaddleService: the arguments of the inference server, and where the model lies for it."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import paddleservice
from paddlecloud.controllers.paddleservice.template import Site, folder_problem, wanted


def pod(site: Site | None = None, **spec: Any) -> dict[str, Any]:
    service = {
        "apiVersion": "serving.paddlepaddle.org/v1",
        "kind": "PaddleService",
        "metadata": {"name": "digits", "namespace": "default"},
        "spec": spec,
    }
    settings, _ = paddleservice.normalise(paddleservice.decode(service))
    return wanted(settings, site or Site(), {})["default"].spec


def arguments(**spec: Any) -> list[str]:
    found: list[str] = pod(**spec)["containers"][0]["args"]
    return found


@pytest.mark.parametrize("model", ["digits:v3", "https://example.com/digits.tar.gz"])
def test_a_model_elsewhere_is_named_to_the_server(model: str) -> None:
    assert arguments(model=model) == ["--model", model, "--name", "digits", "--port", "8080"]
    assert "volumes" not in pod(model=model)


def test_only_the_service_allows_code_of_fetched_models_and_plain_http() -> None:
    allowed = arguments(model="http://h/m.tar.gz", allowModelCode=True, allowPlainHttp=True)
    assert allowed[-2:] == ["--allow-model-code", "--allow-plain-http"]
    assert not any(word.startswith("--allow") for word in arguments(model="digits", allowModelCode=False))


def test_a_folder_of_the_node_is_mounted() -> None:
    spec = pod(model="file:///models/my%20digits", volumes=[{"name": "other", "emptyDir": {}}])
    assert arguments(model="file:///models/digits")[:2] == ["--model", "/mnt/model"]
    assert spec["volumes"] == [
        {"name": "other", "emptyDir": {}},
        {"name": "model", "hostPath": {"path": "/models/my digits", "type": "Directory"}},
    ]
    assert spec["containers"][0]["volumeMounts"] == [{"name": "model", "mountPath": "/mnt/model", "readOnly": True}]
    assert spec["containers"][0]["env"] == [{"name": "PADDLECLOUD_MODEL_SOURCE", "value": "/models/my digits"}]


def test_a_folder_in_a_volume_of_the_services_own_is_taken_from_there() -> None:
    mounts = [{"name": "claim", "mountPath": "/models"}]
    volumes = [{"name": "claim", "persistentVolumeClaim": {"claimName": "models"}}]
    spec = pod(model="file:///models/digits", volumes=volumes, volumeMounts=mounts)
    assert spec["containers"][0]["args"][:2] == ["--model", "file:///models/digits"]
    assert spec["volumes"] == volumes


@pytest.mark.parametrize(
    ("spec", "reported"),
    [
        ({"model": "file:///models/digits"}, None),
        ({"model": "file:///models/a%20b"}, None),
        ({"model": "digits:v3"}, None),
        ({"model": "file:///etc"}, "folder /etc is not below one that the operator allows (/models)"),
        ({"model": "file:///"}, "folder / is not below"),
        ({"model": "file:///models/../etc"}, "'..'"),
        ({"model": "file:///models/%2e%2e/etc"}, "'..'"),
        ({"model": "file:///models/.ssh"}, "hidden"),
        ({"default": {"model": "digits:v3"}, "canary": {"model": "file:///root"}}, "canary model: folder /root"),
    ],
)
def test_a_folder_of_the_node_is_below_one_that_the_operator_allows(spec: dict[str, Any], reported: str | None) -> None:
    metadata = {"name": "digits", "namespace": "default"}
    service = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": metadata, "spec": spec}
    settings, _ = paddleservice.normalise(paddleservice.decode(service))
    found = folder_problem(settings, Site())
    assert (found is None) if reported is None else (reported in (found or ""))
    assert (
        folder_problem(settings, Site.from_environment({"PADDLECLOUD_READ_ROOTS": "/"})) is None
        or ".." in reported
        or "hidden" in reported
    )


def test_a_folder_in_a_volume_of_the_services_own_needs_no_permission() -> None:
    spec = {
        "model": "file:///opt/digits",
        "volumes": [{"name": "claim", "persistentVolumeClaim": {"claimName": "models"}}],
        "volumeMounts": [{"name": "claim", "mountPath": "/opt"}],
    }
    metadata = {"name": "digits", "namespace": "default"}
    service = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": metadata, "spec": spec}
    settings, _ = paddleservice.normalise(paddleservice.decode(service))
    assert folder_problem(settings, Site()) is None


STORE = {"name": "PADDLECLOUD_MODEL_ENDPOINT", "value": "http://models:9000"}
OWN = {"name": "PADDLECLOUD_MODEL_ENDPOINT", "value": "http://elsewhere"}


@pytest.mark.parametrize(
    ("model", "written", "env"),
    [
        ("digits:v3", [], [STORE]),
        ("digits", [{"name": "A", "value": "b"}], [STORE, {"name": "A", "value": "b"}]),
        ("digits:v3", [OWN], [OWN]),
        ("https://example.com/digits.tar.gz", [], None),
        ("file:///models/digits", [], [{"name": "PADDLECLOUD_MODEL_SOURCE", "value": "/models/digits"}]),
    ],
)
def test_a_name_is_looked_up_where_the_cluster_says_unless_the_service_does(model: str, written: Any, env: Any) -> None:
    site = Site.from_environment({"PADDLECLOUD_MODEL_ENDPOINT": "http://models:9000"})
    assert pod(site, model=model, env=written)["containers"][0].get("env") == env


def test_a_cluster_may_have_the_inference_server_under_another_name() -> None:
    site = Site.from_environment({"SERVING_IMAGE": "registry.example.com/serving:1"})
    assert pod(site, model="digits")["containers"][0]["image"] == "registry.example.com/serving:1"
    image = {"containerImage": "python", "tag": "3", "port": 80}
    assert pod(site, default=image)["containers"][0]["image"] == "python:3"


def test_grpc_gets_the_port_that_is_routed_to() -> None:
    assert arguments(model="digits", protocol="grpc")[-4:] == ["--grpc-port", "8080", "--port", "8081"]


@pytest.mark.parametrize(
    ("resources", "requests", "limits"),
    [
        ({}, {"cpu": "0.2", "memory": "512Mi"}, {"cpu": "2", "memory": "2Gi"}),
        ({"requests": {"memory": "4Gi"}}, {"cpu": "0.2", "memory": "4Gi"}, {"cpu": "2", "memory": "4Gi"}),
        ({"limits": {"memory": "1Gi"}}, {"cpu": "0.2", "memory": "1Gi"}, {"cpu": "2", "memory": "1Gi"}),
    ],
)
def test_there_is_room_for_loading_paddle(resources: Any, requests: Any, limits: Any) -> None:
    found = pod(model="digits", resources=resources)["containers"][0]["resources"]
    assert (found["requests"], found["limits"]) == (requests, limits)
