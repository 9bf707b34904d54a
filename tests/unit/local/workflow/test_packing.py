"""Workflows with thousands of nodes: their status fits, as Argo's clients read it."""

from __future__ import annotations

import base64
import gzip
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paddlecloud.local.workflow.limits import MOST_STORED, fits, stored_size
from unit.api.test_argo_nodes import UNREADABLE
from unit.local.workflow.simulation import Simulation, workflow

MANY = """
    entrypoint: main
    templates:
    - {name: main, steps: [[{name: a, template: run, withSequence: {count: COUNT}}]]}
    - {name: run, container: {image: busybox, command: ["true"]}}
"""


def test_a_workflow_of_five_thousand_steps_fits_and_ends() -> None:
    simulation = Simulation(workflow(MANY.replace("COUNT", "5000")))
    for _ in range(60):
        for pod in simulation.step():
            simulation.finish(pod)
        assert stored_size(simulation.workflow, simulation.status) < MOST_STORED
        if simulation.status["phase"] != "Running":
            break
    assert (simulation.status["phase"], simulation.status.get("message")) == ("Succeeded", None)
    assert len(set(simulation.created)) == len(simulation.created) == 5000
    assert "nodes" not in simulation.status
    nodes = json.loads(gzip.decompress(base64.b64decode(simulation.status["compressedNodes"])))
    assert len(nodes) == 5002
    assert {node["phase"] for node in nodes.values()} == {"Succeeded"}


VALUES = st.recursive(
    st.none() | st.integers(0, 9) | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=2), inner, max_size=6) | st.lists(inner, max_size=3),
    max_leaves=30,
)


@given(st.dictionaries(st.text(max_size=1), VALUES, max_size=8), st.integers(0, 12_000))
@example({chr(at): {} for at in range(0x4E00, 0x5200)}, 40_000)
@example({str(at): {"": {}} for at in range(1000)}, 60_000)
def test_a_status_fits_as_far_as_its_stored_size_does(status: dict[str, object], most: int) -> None:
    made = workflow(MANY.replace("COUNT", "1"))
    assert fits(made, status, most) == (stored_size(made, status) <= most)


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_ends_the_workflow_with_the_reason(text: object) -> None:
    made = workflow(MANY.replace("COUNT", "1"))
    made["status"] = {"phase": "Running", "compressedNodes": text}
    assert Simulation(made).run().status["phase"] == "Error"
