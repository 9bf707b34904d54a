"""Every call of the SDK refuses arguments of a wrong type in one sentence, before anything is sent."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import paddlecloud
from paddlecloud.kube.config import Config
from paddlecloud.pipelines.runs.package import PackageError
from paddlecloud.sdk import core, embedded, handles, jobs, models, pipelines, sync, sync_handles
from paddlecloud.sdk.checking import ArgumentError, allows
from paddlecloud.sdk.members import member

CLASSES = (core.AsyncClient, jobs.AsyncJobs, models.AsyncModels, handles.AsyncHandle, handles.AsyncJob,
           sync.Client, sync.Jobs, sync.Models, sync_handles.Handle, sync_handles.Job, embedded.EmbeddedClient,
           pipelines.AsyncPipelineRun, pipelines.PipelineRun)  # fmt: skip
FUNCTIONS = (paddlecloud.connect, paddlecloud.connect_async, paddlecloud.embedded, pipelines.run, pipelines.client)

RIGHT = {"arguments": {}, "command": ["ls"], "member": member({"metadata": {"name": "x"}})}
"""Arguments that are not text."""


@pytest.fixture
def client() -> Iterator[sync.Client]:
    """Nobody listens there: a call that sent anything would answer otherwise."""
    with sync.Client(Config(server="http://127.0.0.1:9", context="nowhere", namespace="default")) as client:
        yield client


PAIR = "(a whole number, a whole number) or None, such as (1, 4)"
VARIABLES = 'a mapping of text to text or a number or None, such as {"LR": "0.1"}'
MOUNTS = 'a list of text, such as ["./data:/data:ro"]'


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"workers": "two"}, "run: workers is a whole number or None, not 'two'"),
        ({"workers": 2.5}, "run: workers is a whole number or None, not 2.5"),
        ({"workers": True}, "run: workers is a whole number or None, not True"),
        ({"wrokers": 2}, 'run takes no "wrokers"; did you mean "workers"?'),
        ({"gpus": "1"}, "run: gpus is a whole number, not '1'"),
        ({"cpu": [2]}, 'run: cpu is text or a number, such as "500m" or 0.5, not [2]'),
        ({"memory": 4}, 'run: memory is text, such as "4Gi", not 4'),
        ({"elastic": 3}, f"run: elastic is {PAIR}, not 3"),
        ({"elastic": (1, "3")}, f"run: elastic is {PAIR}, not (1, '3')"),
        ({"env": ["A=1"]}, f"run: env is {VARIABLES}, not ['A=1']"),
        ({"env": {"A": True}}, f"run: env is {VARIABLES}, not {{'A': True}}"),
        ({"volumes": "./data:/data"}, f"run: volumes is {MOUNTS}, not './data:/data'"),
        ({"volumes": {"./data": "/data"}}, f"run: volumes is {MOUNTS}, not {{'./data': '/data'}}"),
        ({"name": 7}, "run: name is text or None, not 7"),
    ],
)
def test_a_job_with_a_wrong_argument_is_refused_in_one_sentence(
    client: sync.Client, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ArgumentError) as refused:
        client.jobs.run("train.py", **arguments)
    assert str(refused.value) == sentence


def test_values_that_are_right_pass() -> None:
    assert allows(tuple[int, int] | None, [1, 3])
    assert allows(typing.Iterable[str], (text for text in "ab"))
    assert allows(float, 3)
    assert allows(Callable[[dict[str, Any]], bool] | None, bool)
    assert not allows(typing.Sequence[str], "train.py")


def _parameters() -> Iterator[Any]:
    """Every annotated parameter of every public call."""
    calls = [(cls.__name__, name, call) for cls in CLASSES for name, call in vars(cls).items()]
    calls += [("", call.__name__, call) for call in FUNCTIONS]
    for owner, name, call in calls:
        if not inspect.isfunction(call) or name.startswith("_"):
            continue
        for parameter in inspect.signature(call).parameters.values():
            if parameter.name != "self" and "Source" not in str(parameter.annotation):
                yield pytest.param(call, parameter.name, id=f"{owner}.{name}-{parameter.name}")


@pytest.mark.parametrize(("call", "name"), list(_parameters()))
def test_every_argument_of_every_call_is_checked(call: Callable[..., Any], name: str) -> None:
    positional: list[Any] = []
    given: dict[str, Any] = {}
    for parameter in inspect.signature(call).parameters.values():
        wrong = parameter.name == name
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY:
            given |= {name: object()} if wrong else {}
        elif parameter.kind is not inspect.Parameter.VAR_POSITIONAL or wrong:
            positional.append(object() if wrong else RIGHT.get(parameter.name, "x"))
    with pytest.raises(ArgumentError, match=rf"\b{name} is .*, not .*<object"):
        call(*positional, **given)


@pytest.mark.parametrize("name", ["nothing.py", "nothing.yaml"])
def test_a_pipeline_in_a_file_that_does_not_exist_is_refused_in_one_sentence(name: str) -> None:
    with pytest.raises(PackageError, match=f"^there is no file {name}$"):
        pipelines.run(name)
