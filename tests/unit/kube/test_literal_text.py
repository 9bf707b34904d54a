"""What a user typed reaches the program as it was typed, wherever this project makes a container of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api import paddleservice
from paddlecloud.controllers.paddleservice.template import Site, wanted
from paddlecloud.kube.literal_text import literal
from paddlecloud.local.kubelet.pod.env import expand
from paddlecloud.modelhub import origin
from paddlecloud.pipelines.components import operator_set
from paddlecloud.pipelines.launchers import serving, training
from paddlecloud.pipelines.launchers.arguments import parse
from paddlecloud.sdk.training import Training, job
from paddlecloud.visualdl import server
from paddlecloud.visualdl.flags import Flags

TYPED = "echo $$; kill -9 $$; echo $(HOSTNAME) $$(HOSTNAME) $HOME $"
ENVIRONMENT = {"HOSTNAME": "of-kubernetes"}


def container_of(obj: dict[str, Any]) -> dict[str, Any]:
    spec = obj["spec"]
    found: dict[str, Any] = (spec.get("worker") or spec)["template"]["spec"]["containers"][0]
    return found


def of_a_service() -> dict[str, Any]:
    spec = {"model": f"https://models.example/{TYPED}"}
    service = {"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": {"name": "x"}}
    settings, _ = paddleservice.normalise(paddleservice.decode({**service, "spec": spec}))
    found: dict[str, Any] = wanted(settings, Site(), {})["default"].spec["containers"][0]
    return found


def of_the_component() -> dict[str, Any]:
    options = {one.parameter: one.option for one in operator_set.TRAINING.inputs}
    given = {
        "name": "det",
        "project": "PaddleOCR",
        "image": "ocr:1",
        "config_path": "c",
        "dataset": "d",
        "pvc_name": "task",
    }
    given |= {"worker_replicas": "1"}
    words = [word for name, value in given.items() for word in (options[name], value)]
    return container_of(training.paddle_job(parse(operator_set.TRAINING, words)[0], TYPED).body)


MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "pdc run and jobs.run": lambda: container_of(job(Training(command=["sh", "-c", TYPED]), name="x")),
    "visualdl": lambda: server.container(Flags(logdirs=(TYPED,)), []),
    "model of a service": of_a_service,
    "training component": of_the_component,
    "serving component": lambda: {"args": [serving.arg(f"http://store/{TYPED}", "det", 9292)]},
}


@pytest.mark.parametrize("made", MADE.values(), ids=list(MADE))
def test_words_reach_the_program_as_they_were_typed(made: Callable[[], dict[str, Any]]) -> None:
    container = made()
    words = [str(word) for key in ("command", "args") for word in container.get(key) or ()]
    assert any(TYPED in expand(word, ENVIRONMENT) for word in words)


def test_values_of_variables_reach_the_program_as_they_were_typed() -> None:
    env = container_of(job(Training(command=["true"], env={"WORDS": TYPED}), name="x"))["env"]
    assert expand(next(one["value"] for one in env if one["name"] == "WORDS"), ENVIRONMENT) == TYPED


def test_a_version_records_the_command_that_was_typed() -> None:
    made = job(Training(command=["sh", "-c", TYPED]), name="x")
    assert origin.of_job(made)["command"] == f"sh -c {TYPED}"


@given(st.text("$()AB {", max_size=12))
def test_any_text_survives_what_kubernetes_replaces(text: str) -> None:
    assert expand(literal(text), {"A": "1", "AB": "2", "": "3"}) == text


def test_a_shell_variable_stays_readable_in_the_object() -> None:
    assert literal("echo $HOME costs 5$") == "echo $HOME costs 5$"
