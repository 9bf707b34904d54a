"""A step that ran again although it was cached: what was different from the nearest earlier execution."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from paddlecloud.pipelines import ir
from paddlecloud.pipelines.ir.caching import Attempt, cache_name, parts_of, why_missed

SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")


def reference(**more: object) -> str:
    return json.dumps({"uri": "s3://b/k", "key": "k", "type": {}, "metadata": {}, **more})


@pytest.mark.parametrize(
    ("earlier", "step", "sentence"),
    [
        ([], Attempt("k", {}), "has not run before"),
        ([Attempt("k1", {"x": "1"})], Attempt("k2", {"x": "1"}), "the component was changed"),
        ([Attempt("k1", {}, {"image": "a:1", "env": "A=1"})], Attempt("k2", {}, {"image": "a:2", "env": "A=1"}),
         "the component was changed: image was 'a:1', now 'a:2'"),
        ([Attempt("k1", {}, {"args": "def f():\n  return 1"})], Attempt("k2", {}, {"args": "def f():\n  return 2"}),
         "args was 'return 1', now 'return 2'"),
        ([Attempt("k", {"x": "1"})], Attempt("k", {"x": "2"}), "x was '1', now '2'"),
        ([Attempt("k", {"x": "1"})], Attempt("k", {"x": "1"}), "nothing changed"),
        ([Attempt("k", {})], Attempt("k", {"x": "1"}), "x was '', now '1'"),
        # the nearest of several counts
        ([Attempt("k", {"x": "1", "y": "1"}), Attempt("k", {"x": "2", "y": "1"})], Attempt("k", {"x": "2", "y": "2"}),
         "y was '1', now '2'"),
        # the same content at another place is the same
        ([Attempt("k", {"artifact-d": reference(key="old", digest="sha256:a")})],
         Attempt("k", {"artifact-d": reference(key="new", digest="sha256:a")}), "nothing changed"),
        ([Attempt("k", {"artifact-d": reference(digest="sha256:a")})],
         Attempt("k", {"artifact-d": reference(digest="sha256:b")}), "artifact-d was"),
    ],
)  # fmt: skip
def test_the_reason_names_what_changed(earlier: list[Attempt], step: Attempt, sentence: str) -> None:
    assert sentence in why_missed(step, earlier)


def test_the_program_of_a_python_component_is_read_from_what_the_step_starter_gets() -> None:
    made = ir.translate(Path(__file__).with_name("golden").joinpath("python_steps.yaml").read_bytes(), {}, "x")
    add = next(each for each in made["spec"]["templates"] if each["name"] == "add")
    parts = parts_of(add)
    assert parts["image"] == "paddlecloud/kfp:2"
    assert "def add(" in parts["command"]
    assert "PIPELINE_STEP" not in parts["env"]


@pytest.mark.parametrize(
    ("pipeline", "component", "name"),
    [
        ("loops", "comp-double", "pipeline-cache-team-a.loops-double"),
        ("My pipeline", "comp-a", "pipeline-cache-team-a.my-pipeline-a-"),
        ("a.b", "comp-c", "pipeline-cache-team-a.a-b-c-"),
        ("x" * 200, "comp-a", "pipeline-cache-team-a.xxx"),
        ("文本检测", "comp-训练", "pipeline-cache-team-a."),
    ],
)
def test_the_config_map_has_a_name_that_kubernetes_takes(pipeline: str, component: str, name: str) -> None:
    found = cache_name(pipeline, component).replace("{{workflow.namespace}}", "team-a")
    assert found.startswith(name)
    assert len(found) <= 200
    assert SUBDOMAIN.fullmatch(found)


def test_the_answers_of_two_namespaces_never_meet_whatever_their_pipelines_are_called() -> None:
    """Argo keeps the ConfigMaps of all namespaces in its own."""

    def in_namespace(namespace: str, pipeline: str) -> str:
        return cache_name(pipeline, "comp-c").replace("{{workflow.namespace}}", namespace)

    assert in_namespace("team", "a-b") != in_namespace("team-a", "b")
    assert in_namespace("team", "a.b") != in_namespace("team-a", "b")
