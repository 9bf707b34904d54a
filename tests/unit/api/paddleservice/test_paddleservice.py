"""PaddleService: what is understood, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import paddleservice
from paddlecloud.api.paddleservice.spec import ONE_DEFAULT
from paddlecloud.api.schema import root_schema
from paddlecloud.local.apiserver.schema import structural

ENDPOINT = {"containerImage": "resnet", "tag": "latest", "port": 9292, "arg": "serve"}


def service(spec: dict[str, Any], name: str = "demo") -> paddleservice.PaddleService:
    return paddleservice.decode({"apiVersion": "serving.paddlepaddle.org/v1", "metadata": {"name": name}, "spec": spec})


def settings(spec: dict[str, Any]) -> paddleservice.ServiceSettings:
    return paddleservice.normalise(service(spec)).settings


def test_defaults_are_those_of_the_original_controller() -> None:
    found = settings({"default": ENDPOINT})
    scaling = found.scaling
    assert (scaling.autoscaler, scaling.metric, scaling.target) == ("kpa.autoscaling.knative.dev", "concurrency", 100)
    assert (scaling.target_utilization, scaling.window) == ("70", "60s")
    assert (scaling.panic_window, scaling.panic_threshold) == ("10", "200")
    assert (scaling.min_scale, scaling.max_scale) == (0, 0)
    assert found.resources == {
        "requests": {"cpu": "0.2", "memory": "512Mi"},
        "limits": {"cpu": "0.2", "memory": "512Mi"},
    }
    assert (found.timeout_seconds, found.container_concurrency, found.canary_percent) == (300, 0, 0)


def test_an_endpoint_is_an_image_and_a_shell_line() -> None:
    default = settings({"default": ENDPOINT}).default
    assert default is not None
    assert (default.image, default.port, default.command) == ("resnet:latest", 9292, ("/bin/bash", "-c", "serve"))


def test_without_a_shell_line_the_entrypoint_of_the_image_runs() -> None:
    default = settings({"default": {**ENDPOINT, "arg": ""}}).default
    assert default is not None
    assert default.command == ()


@pytest.mark.parametrize(
    ("field", "attribute", "written", "meant"),
    [
        ("targetUtilization", "target_utilization", 70, "70"),
        ("targetUtilization", "target_utilization", "70%", "70"),
        ("panicWindow", "panic_window", 10, "10"),
        ("panicThreshold", "panic_threshold", "150", "150"),
        ("window", "window", 30, "30s"),
        ("window", "window", "1m", "1m"),
        ("autoscaler", "autoscaler", "kpa", "kpa.autoscaling.knative.dev"),
        ("autoscaler", "autoscaler", "hpa", "hpa.autoscaling.knative.dev"),
    ],
)
def test_numbers_and_short_names_are_understood(field: str, attribute: str, written: Any, meant: str) -> None:
    spec = {"default": ENDPOINT, "service": {field: written}}
    assert getattr(settings(spec).scaling, attribute) == meant
    assert paddleservice.validate(service(spec)) == []


def test_half_of_the_traffic_goes_to_a_canary_by_default() -> None:
    assert settings({"default": ENDPOINT, "canary": ENDPOINT}).canary_percent == 50
    assert settings({"default": ENDPOINT, "canary": ENDPOINT, "canaryTrafficPercent": 0}).canary_percent == 0
    ignored = paddleservice.normalise(service({"default": ENDPOINT, "canaryTrafficPercent": 10}))
    assert ignored.settings.canary_percent == 0
    assert "canary" in ignored.warnings[0]


def test_a_request_is_never_above_a_limit_that_was_filled_in() -> None:
    found = settings({"default": ENDPOINT, "resources": {"requests": {"cpu": 2}, "limits": {"nvidia.com/gpu": 1}}})
    assert found.resources["limits"] == {"nvidia.com/gpu": 1, "cpu": 2, "memory": "512Mi"}


def test_replicas_pin_the_scale() -> None:
    found = paddleservice.normalise(service({"default": ENDPOINT, "replicas": 3, "service": {"maxScale": 5}}))
    assert (found.settings.scaling.min_scale, found.settings.scaling.max_scale) == (3, 3)
    assert "replicas" in found.warnings[0]


def test_zero_replicas_take_the_pin_away() -> None:
    found = paddleservice.normalise(
        service({"default": ENDPOINT, "replicas": 0, "service": {"minScale": 2, "maxScale": 5}})
    )
    assert (found.settings.scaling.min_scale, found.settings.scaling.max_scale) == (2, 5)
    assert found.warnings == []


def test_a_model_needs_no_image() -> None:
    for spec in ({"model": "digits:1"}, {"default": {"model": "digits:1"}}):
        assert paddleservice.validate(service(spec)) == []
        default = settings(spec).default
        assert default is not None
        assert (default.model, default.image, default.port) == ("digits:1", "", 8080)


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.default", "FieldValueRequired"),
        ({"canary": ENDPOINT}, "spec.default", "FieldValueRequired"),
        ({"model": "http://host/m.tar.gz"}, "spec.model", "FieldValueInvalid"),
        ({"default": {"model": "HTTP://host/m.tar.gz"}}, "spec.default.model", "FieldValueInvalid"),
        ({"default": ENDPOINT, "canary": {"model": "http://h/m.tgz"}}, "spec.canary.model", "FieldValueInvalid"),
        ({"default": {"tag": "1"}}, "spec.default.containerImage", "FieldValueRequired"),
        ({"default": {**ENDPOINT, "port": 0}}, "spec.default.port", "FieldValueInvalid"),
        ({"default": {**ENDPOINT, "model": "a:1"}}, "spec.default.model", "FieldValueInvalid"),
        (
            {"default": ENDPOINT, "canary": ENDPOINT, "canaryTrafficPercent": 101},
            "spec.canaryTrafficPercent",
            "FieldValueInvalid",
        ),
        ({"default": ENDPOINT, "service": {"metric": "joy"}}, "spec.service.metric", "FieldValueNotSupported"),
        ({"default": ENDPOINT, "service": {"metric": "cpu"}}, "spec.service.metric", "FieldValueNotSupported"),
        ({"default": ENDPOINT, "service": {"window": "5s"}}, "spec.service.window", "FieldValueInvalid"),
        ({"default": ENDPOINT, "service": {"window": "soon"}}, "spec.service.window", "FieldValueInvalid"),
        (
            {"default": ENDPOINT, "service": {"panicThreshold": 100}},
            "spec.service.panicThreshold",
            "FieldValueInvalid",
        ),
        (
            {"default": ENDPOINT, "service": {"minScale": 3, "maxScale": 2}},
            "spec.service.minScale",
            "FieldValueInvalid",
        ),
        ({"default": ENDPOINT, "replicas": 99_999}, "spec.replicas", "FieldValueInvalid"),
        ({"default": ENDPOINT, "service": {"minScale": 99_999}}, "spec.service.minScale", "FieldValueInvalid"),
        ({"default": ENDPOINT, "runtimeVersion": "Paddle_1"}, "spec.runtimeVersion", "FieldValueInvalid"),
        ({"default": ENDPOINT, "rollout": {"steps": [50, 10]}}, "spec.rollout.steps[1]", "FieldValueInvalid"),
        ({"default": ENDPOINT, "rollout": {"steps": [0]}}, "spec.rollout.steps[0]", "FieldValueInvalid"),
        (
            {"default": ENDPOINT, "containerConcurrency": 2000},
            "spec.containerConcurrency",
            "FieldValueInvalid",
        ),
    ],
)
def test_bad_services_are_named_by_field_and_reason(spec: dict[str, Any], field: str, reason: str) -> None:
    found = paddleservice.validate(service(spec))
    assert (field, reason) in [(problem.field, problem.reason) for problem in found]
    paddleservice.normalise(service(spec))


@pytest.mark.parametrize(
    "spec",
    [
        {"model": "https://host/m.tar.gz"},
        {"model": f"http://host/m.tar.gz#sha256={'0' * 64}"},
        {"model": "http://host/m.tar.gz", "allowPlainHttp": True},
        {"model": "digits:v3"},
    ],
)
def test_models_that_can_be_checked_or_are_allowed_are_taken(spec: dict[str, Any]) -> None:
    assert paddleservice.validate(service(spec)) == []


@pytest.mark.parametrize(("name", "fits"), [("a" * 46, True), ("a" * 47, False), ("0a", False), ("a.b", False)])
def test_names_leave_room_for_those_of_revisions(name: str, fits: bool) -> None:
    assert (paddleservice.validate(service({"default": ENDPOINT}, name=name)) == []) == fits


@pytest.mark.parametrize(
    ("text", "seconds"), [("60s", 60), ("1m30s", 90), ("1h", 3600), ("10", None), ("1.5s", None), ("s", None)]
)
def test_windows_are_go_durations(text: str, seconds: int | None) -> None:
    assert paddleservice.window_seconds(text) == seconds


@pytest.mark.parametrize("name", ["n" * 46, "n" * 47, "n" * 70, "a.b", "1a", "a-1"])
def test_a_name_of_which_no_revision_could_be_named_is_refused_at_creation(name: str) -> None:
    obj = {"metadata": {"name": name}, "spec": {"default": ENDPOINT}}
    refused = structural.validate(obj, root_schema(paddleservice.DECLARATION), {})
    assert bool(refused) == bool(paddleservice.validate(service(obj["spec"], name)))


@pytest.mark.parametrize("field", ["model", "default"])
def test_the_refusal_of_both_fields_names_the_patch_that_removes_either(field: str) -> None:
    assert f"""'{{"spec":{{"{field}":null}}}}'""" in ONE_DEFAULT.message


NAMES = [
    ("ocr@production", None),
    ("ocr:7", None),
    ("ocr", None),
    ("PP_OCR:v3.1", None),  # of a model store, as the original has them
    ("file:///models/x@1", None),
    ("ocr@", "an alias is missing: it is NAME:VERSION or NAME@ALIAS, as ocr:7 or ocr@production"),
    ("@production", "the name of a model is missing"),
    ("ocr:", "a version is missing"),
    ("OCR@production", "'OCR' cannot be the name of a model: lower-case letters"),
    ("ocr@Production", "did you mean 'production'?"),
    ("ocr:7@production", "cannot be the name of a model"),
    ("ocr:7:8", "cannot be a version"),
    ("my ocr", "did you mean 'my-ocr'?"),
]


@pytest.mark.parametrize(("model", "why"), NAMES)
def test_a_bad_name_of_a_model_is_refused_by_the_api_server_and_by_the_controller(model: str, why: str | None) -> None:
    schema = root_schema(paddleservice.DECLARATION)
    for spec, field in (
        ({"model": model}, "spec.model"),
        ({"default": {"model": model}}, "spec.default.model"),
        ({"default": ENDPOINT, "canary": {"model": model}}, "spec.canary.model"),
    ):
        problems = [problem for problem in paddleservice.validate(service(spec)) if problem.field == field]
        assert (problems == []) == (why is None)
        assert all((why or "") in problem.message for problem in problems)
        refused = [str(error) for error in structural.validate({"metadata": {"name": "m"}, "spec": spec}, schema, {})]
        assert (refused == []) == (why is None)
        assert all(field in text and "NAME:VERSION or NAME@ALIAS, as ocr:7" in text for text in refused)
