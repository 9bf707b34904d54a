"""The graph of a run: which boxes there are, how they are joined and where they stand; of anybody's nodes."""

from __future__ import annotations

import itertools
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paddlecloud.pipelines.runs.nodes import nodes_of
from paddlecloud.ui import run_graph
from paddlecloud.ui.run_graph import HEIGHT, MOST_ITEMS, MOST_NODES, WIDTH, RunGraph, graph, shortened

NOW = 1_800_000_000.0
AT = "2026-01-01T00:00:{:02}Z"


def node(name: str, *children: str, type: str = "Pod", phase: str = "Succeeded", **more: Any) -> dict[str, Any]:
    return {"name": f"w.{name}", "displayName": name, "type": type, "phase": phase, "children": [*children], **more}


def names(found: RunGraph) -> list[str]:
    return [box.name for box in found.boxes]


def columns(found: RunGraph) -> list[list[str]]:
    ordered = sorted(found.boxes, key=lambda box: (box.x, box.y))
    return [[box.name for box in each] for _, each in itertools.groupby(ordered, key=lambda box: box.x)]


def test_a_diamond_stands_from_left_to_right_and_its_root_is_no_box() -> None:
    nodes = {
        "w": node("w", "a", type="DAG"),
        "a": node("a", "b", "c", startedAt=AT.format(1)),
        "b": node("b", "d", startedAt=AT.format(2)),
        "c": node("c", "d", startedAt=AT.format(3)),
        "d": node("d", phase="Pending"),
    }
    found = graph(nodes, NOW)
    assert columns(found) == [["a"], ["b", "c"], ["d"]]
    assert len(found.lines) == 4


def test_steps_of_groups_are_joined_through_them() -> None:
    nodes = {
        "w": node("w", "g0", type="Steps"),
        "g0": node("[0]", "a", "b", type="StepGroup"),
        "a": node("a", "g1"),
        "b": node("b", "g1"),
        "g1": node("[1]", "c", type="StepGroup"),
        "c": node("c"),
    }
    found = graph(nodes, NOW)
    assert columns(found) == [["a", "b"], ["c"]]
    assert len(found.lines) == 2


def test_attempts_of_a_step_are_one_box() -> None:
    nodes = {
        "r": node("flaky", "1", "2", type="Retry"),
        "1": node("flaky(0)", phase="Failed"),
        "2": node("flaky(1)", "z"),
        "z": node("z"),
    }
    found = graph(nodes, NOW)
    assert columns(found) == [["flaky"], ["z"]]
    assert found.boxes[0].detail == "×2"


@pytest.mark.parametrize(("items", "boxes"), [(MOST_ITEMS, MOST_ITEMS), (MOST_ITEMS + 1, 1)])
def test_many_items_of_a_loop_are_one_box_with_the_worst_of_their_states(items: int, boxes: int) -> None:
    nodes = {f"i{n}": node(f"train({n}:x)", "end", phase="Failed" if n == 3 else "Succeeded") for n in range(items)}
    found = graph({**nodes, "end": node("end")}, NOW)
    assert len(found.boxes) == boxes + 1
    if boxes == 1:
        assert names(found)[1] == f"train ×{items}"
        assert found.boxes[1].phase == "Failed"
        assert found.boxes[1].detail == f"{items - 1} Succeeded 1 Failed"
        assert len(found.lines) == 1


def test_the_exit_handler_comes_last() -> None:
    nodes = {"a": node("a", "b"), "b": node("b"), "x": {**node("x"), "name": "w.onExit", "displayName": "w.onExit"}}
    assert columns(graph(nodes, NOW)) == [["a"], ["b"], ["w.onExit"]]


def test_more_nodes_than_can_be_drawn_are_left_to_the_table() -> None:
    many = {str(n): node(f"n{n}") for n in range(MOST_NODES + 1)}
    assert graph(many, NOW) == run_graph.NOTHING
    assert graph(dict(itertools.islice(many.items(), run_graph.MOST_BOXES + 1)), NOW) == run_graph.NOTHING


def test_what_runs_shows_for_how_long_and_what_was_cached_shows_that() -> None:
    nodes = {
        "a": node("a", phase="Running", startedAt="2027-01-15T07:59:30Z"),
        "b": node("b", startedAt=AT.format(1), finishedAt=AT.format(1), memoizationStatus={"hit": True}),
        "c": node("c", type="Skipped", phase="Omitted", startedAt=AT.format(1), finishedAt=AT.format(1)),
    }
    assert {box.name: box.detail for box in graph(nodes, NOW).boxes} == {"a": "30s", "b": "cached · 0s", "c": ""}


@pytest.mark.parametrize(
    ("text", "shown"), [("short", "short"), ("x" * 30, "x" * 20 + "…"), ("数据" * 10, "数据" * 4 + "数" + "…")]
)
def test_a_name_fits_into_its_box(text: str, shown: str) -> None:
    assert shortened(text) == shown


KEYS = st.sampled_from("abcdef")
ANY = st.none() | st.integers() | st.text(max_size=3) | st.lists(KEYS, max_size=3)
NODE = st.fixed_dictionaries(
    {"children": st.lists(KEYS, max_size=4) | ANY},
    optional={
        "type": st.sampled_from(["Pod", "Retry", "DAG", "Skipped"]) | ANY,
        "name": st.sampled_from(["w.a", "w.a(0)", "w.onExit"]) | ANY,
        "displayName": ANY,
        "phase": ANY,
        "boundaryID": KEYS | ANY,
        "startedAt": ANY,
        "memoizationStatus": ANY,
    },
)


@settings(max_examples=60)
@given(st.dictionaries(KEYS, NODE))
def test_of_any_nodes_no_two_boxes_cover_one_another_and_all_are_inside(nodes: dict[str, Any]) -> None:
    """Circles and values of any type: what a tenant writes into the status of a workflow."""
    workflow = {"metadata": {"name": "w"}, "status": {"nodes": nodes}}
    found = graph(nodes_of(workflow), NOW)
    places = [(box.x, box.y) for box in found.boxes]
    assert len(set(places)) == len(places)
    assert all(x + WIDTH <= found.width and y + HEIGHT <= found.height for x, y in places)
