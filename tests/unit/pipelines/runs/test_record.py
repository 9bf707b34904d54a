"""What a run did, from the Workflow's status and its pods; and two runs compared."""

from __future__ import annotations

from typing import Any

from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs.comparison import Difference, differences
from paddlecloud.pipelines.runs.record import Timing, steps

AT = "2026-01-01T00:00:{:02}Z"


def workflow(msg: str = "hi", accuracy: str = "0.9") -> dict[str, Any]:
    nodes = {
        "w": {"name": "w", "displayName": "w", "type": "DAG", "phase": "Succeeded", "children": ["a"]},
        "b": {
            "name": "w.b", "displayName": "train", "type": "Pod", "phase": "Succeeded", "boundaryID": "w",
            "startedAt": AT.format(5), "finishedAt": AT.format(9),
            "inputs": {"parameters": [{"name": "text", "value": msg}]},
            "outputs": {
                "exitCode": "0", "parameters": [{"name": "accuracy", "value": accuracy}],
                "artifacts": [{"name": "model", "path": "/m", "s3": {"key": "w/b/model.tgz"}}],
            },
            "memoizationStatus": {"hit": True, "key": "k1", "cacheName": "c"},
        },
        "a": {
            "name": "w.a", "displayName": "data", "type": "Pod", "phase": "Succeeded", "boundaryID": "w",
            "startedAt": AT.format(1), "finishedAt": AT.format(4), "children": ["b"],
        },
    }  # fmt: skip
    return {
        "metadata": {"name": "w"},
        "spec": {"arguments": {"parameters": [{"name": "msg", "value": msg}]}},
        "status": {"phase": "Succeeded", "nodes": nodes},
    }


POD = {
    "metadata": {"name": "w-b", "creationTimestamp": AT.format(5), "annotations": {names.NODE_ID: "b"}},
    "status": {
        "conditions": [{"type": "PodScheduled", "status": "True", "lastTransitionTime": AT.format(6)}],
        "containerStatuses": [
            {"name": "wait", "image": "other"},
            {
                "name": "main", "image": "busybox:1", "imageID": "busybox@sha256:1",
                "state": {"terminated": {"startedAt": AT.format(8), "finishedAt": AT.format(9)}},
            },
        ],
    },
}  # fmt: skip


def test_a_step_has_its_values_artifacts_image_times_and_cache_key() -> None:
    found = steps(workflow(), [POD], [{"node": "b", "name": "model", "digest": "sha256:2", "size": 7}])
    assert [(step.name, step.depth) for step in found] == [("w", 0), ("data", 1), ("train", 1)]
    train = found[2]
    assert (train.pod, train.image, train.image_digest) == ("w-b", "busybox:1", "busybox@sha256:1")
    assert train.timing == Timing(queued=1.0, pulling=2.0, running=1.0)
    assert (train.inputs, train.outputs) == ({"text": "hi"}, {"accuracy": "0.9", "exitCode": "0"})
    assert train.artifacts == (
        {"name": "model", "path": "/m", "place": "w/b/model.tgz", "digest": "sha256:2", "size": 7},
    )
    assert (train.cache_key, train.cache_hit, train.seconds) == ("k1", True, 4.0)


def test_without_pods_the_status_alone_is_reported() -> None:
    train = steps(workflow())[2]
    assert (train.pod, train.image, train.timing) == ("", "", Timing())
    assert train.report()["timing"] == {"queued": None, "pulling": None, "running": None}


def test_nodes_that_name_each_other_in_a_circle_or_nobody_are_listed_once() -> None:
    odd = workflow()
    odd["status"]["nodes"]["a"]["boundaryID"] = "b"
    odd["status"]["nodes"]["b"] |= {"boundaryID": "a", "children": ["w", "gone"]}
    assert sorted(step.id for step in steps(odd)) == ["a", "b", "w"]


def test_what_follows_a_loop_comes_after_its_last_iteration_and_attempts_are_in_their_step() -> None:
    def node(name: str, kind: str, *children: str, around: str = "w", at: int = 1) -> dict[str, Any]:
        return {
            "name": name, "displayName": name.rpartition(".")[2], "type": kind, "phase": "Succeeded",
            "boundaryID": around, "startedAt": AT.format(at), "children": list(children),
        }  # fmt: skip

    odd = workflow()
    odd["status"]["nodes"] = {
        "w": node("w", "DAG", "loop", around=""),
        "last(1)": node("w.last(1)", "Pod", at=9),
        "last(0)": node("w.last(0)", "Pod", at=7),
        "last": node("w.last", "Retry", "last(0)", "last(1)", at=7),
        "loop": node("w.loop", "TaskGroup", "one", "two"),
        "one": node("w.loop(0:a)", "DAG", "one.fit"),
        "one.fit": node("w.loop(0:a).fit", "Pod", "last", around="one", at=2),
        "two": node("w.loop(1:b)", "DAG", "two.fit", at=3),
        "two.fit": node("w.loop(1:b).fit", "Pod", "last", around="two", at=3),
    }
    assert [(step.depth, step.id) for step in steps(odd)] == [
        (0, "w"),
        (1, "loop"), (2, "one"), (3, "one.fit"), (2, "two"), (3, "two.fit"),
        (1, "last"), (2, "last(0)"), (2, "last(1)"),
    ]  # fmt: skip
    assert {step.id: step.after for step in steps(odd) if step.after} == {"last": ("fit",)}


def test_two_runs_differ_in_parameters_values_and_digests() -> None:
    first, second = workflow(), workflow(msg="yo", accuracy="0.8")
    before = steps(first, [POD], [{"node": "b", "name": "model", "digest": "sha256:2"}])
    after = steps(second, [POD], [{"node": "b", "name": "model", "digest": "sha256:3"}])
    assert differences(first, second, before, after) == [
        Difference("parameters.msg", "hi", "yo"),
        Difference("train.inputs.text", "hi", "yo"),
        Difference("train.outputs.accuracy", "0.9", "0.8"),
        Difference("train.artifacts.model", "sha256:2", "sha256:3"),
    ]
    assert differences(first, first, before, before) == []


def test_the_image_of_a_step_that_was_answered_from_the_cache_is_no_difference() -> None:
    first = workflow()
    before, after = steps(first, [POD]), steps(first)
    assert [step.image for step in (before[-1], after[-1])] == [before[-1].image, ""] != ["", ""]
    assert differences(first, first, before, after) == []
    ran = [step._replace(cache_hit=False) for step in before]
    gone = [step._replace(cache_hit=False) for step in after]
    assert [each.where for each in differences(first, first, ran, gone)] == ["train.image"]
