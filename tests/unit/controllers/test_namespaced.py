"""A controller that serves one namespace asks for nothing outside of it: its release has no rights there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.controllers.model import ModelController
from paddlecloud.controllers.operator import Operator
from paddlecloud.controllers.paddlejob import JobOptions, PaddleJobController
from paddlecloud.controllers.paddleservice import PaddleServiceController
from paddlecloud.controllers.sampledata.samplejob import SampleJobController
from paddlecloud.controllers.sampledata.sampleset import SampleSetController, SampleSetOptions
from paddlecloud.local.control_plane import ControlPlane

CONTROLLERS: dict[Callable[..., Operator[Any, Any]], dict[str, object]] = {
    PaddleJobController: {"options": JobOptions()},
    SampleSetController: {"options": SampleSetOptions()},
    SampleJobController: {"options": SampleSetOptions()},
    PaddleServiceController: {},
    ModelController: {"store": None},
}


@pytest.mark.parametrize("controller", CONTROLLERS, ids=lambda operator: operator.__name__)
async def test_everything_with_a_namespace_is_watched_in_that_one(
    controller: Callable[..., Operator[Any, Any]], tmp_path: Path
) -> None:
    client = ControlPlane(tmp_path).client()
    operator = controller(client, namespace="team", **CONTROLLERS[controller])
    watched = [informer for informer in operator.informers if informer.resource.namespaced]
    assert watched
    assert {informer.resource.plural for informer in watched if informer.namespace != "team"} == set()
