"""The pod that trains, of jobs as people write them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.training_pod import training_container, training_pod


def role(name: str, **spec: Any) -> dict[str, Any]:
    return {name: {"template": {"spec": {"containers": [{"name": name}], **spec}}}}


@pytest.mark.parametrize(
    ("roles", "trains"),
    [
        (role("worker"), "worker"),
        ({**role("ps"), **role("worker")}, "worker"),
        ({**role("heter"), **role("ps")}, "ps"),
        ({"worker": None, **role("heter")}, "heter"),
    ],
)
def test_the_first_role_that_a_job_has_is_the_one_that_trains(roles: dict[str, Any], trains: str) -> None:
    assert training_container({"spec": roles}) == {"name": trains}


@pytest.mark.parametrize(
    "job",
    [
        {},
        {"spec": None},
        {"spec": "x"},
        {"spec": {"worker": {"template": "x"}}},
        {"spec": {"worker": {"template": {"spec": ["x"]}}}},
        {"spec": {"worker": {"template": {"spec": {"containers": "x"}}}}},
        {"spec": {"worker": {"template": {"spec": {"containers": ["x", None]}}}}},
    ],
)
def test_a_template_of_another_shape_has_no_container(job: dict[str, Any]) -> None:
    assert isinstance(training_pod(job), dict)
    assert training_container(job) == {}
