"""The verdict in words, English and Chinese, and what the flags about nodes accept."""

from __future__ import annotations

import argparse
import string
from typing import Any

import pytest

from paddlecloud.cli.objects.node_values import pairs, quantities, taint
from paddlecloud.cli.phrases import LANGUAGES, PHRASES
from paddlecloud.cli.render.scheduling import Cluster, explanation, fitting_workers, lines_of
from paddlecloud.local.scheduler.explanation.remedies import KINDS
from unit.local.scheduler.scheduler_things import group, node, pod, queue


def verdict(nodes: list[Any], pods: list[Any], name: str, language: str = "en", **kinds: Any) -> list[str]:
    cluster = Cluster(nodes, pods, kinds.get("groups", []), kinds.get("queues", []), [], {})
    found = explanation(cluster, next(obj for obj in pods if obj["metadata"]["name"] == name))
    assert found is not None
    return lines_of(found, language)


def test_every_remedy_has_words_in_both_languages() -> None:
    assert {f"remedy-{kind}" for kind in KINDS} <= set(PHRASES)


@pytest.mark.parametrize("key", sorted(PHRASES))
def test_both_languages_show_the_same_values(key: str) -> None:
    def fields(text: str) -> set[str]:
        return {name for _, name, _, _ in string.Formatter().parse(text) if name}

    english, chinese = PHRASES[key]
    assert fields(english) == fields(chinese)


def test_one_pod_that_does_not_fit() -> None:
    lines = verdict([node("n", "4"), node("m", "2")], [pod("there", "3", on="n"), pod("p", "3")], "p")
    assert lines == [
        "needs           cpu 3, on one node",
        "free            m: cpu 2 of 2",
        "                n: cpu 1 of 4",
        "                in all: cpu 3",
        "held by         default/there on n: cpu 3, priority 0",
        "would start if  these ended: default/there (n)",
        "                its priority were 1 or more",
        "                each pod asked for at most cpu 2",
        "                there were 1 more node(s) with cpu 3  (pdc node add NAME --capacity cpu=3)",
    ]


def test_a_pod_that_asks_for_nothing_and_must_stand_alone_needs_one_more_node() -> None:
    apart = {"labelSelector": {"matchLabels": {"app": "cache"}}, "topologyKey": "kubernetes.io/hostname"}
    rule = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    asking: dict[str, Any] = {"labels": {"app": "cache"}, "container": {"resources": {}}}
    pods = [pod("there", on="n", **asking), pod("p", affinity=rule, **asking)]
    lines = verdict([node("n", "4")], pods, "p")
    assert lines[0] == "needs           a node that its rules admit"
    assert lines[1].startswith("free            n: 1 pod(s) with app=cache")
    assert lines[-1] == "                there were 1 more node(s)  (pdc node add NAME)"


def test_the_same_in_chinese() -> None:
    lines = verdict([node("n", "4")], [pod("there", "3", on="n"), pod("p", "3")], "p", "zh")
    assert lines[0] == "需要            cpu 3（同一节点）"
    assert lines[2] == "被占用          default/there（n）：cpu 3，优先级 0"
    assert lines[3] == "可启动条件      以下 Pod 结束：default/there (n)"


def test_a_gang_says_how_many_and_how_big() -> None:
    members = [pod(f"g{number}", "2", group="g") for number in range(3)]
    lines = verdict([node("n", "4")], members, "g0", groups=[group("g", 3)])
    assert lines[0] == "needs           3 pods at once (0 have a node), each cpu 2"
    assert any("its PodGroup needed only 2 pods" in line for line in lines)


def test_what_somebody_must_open_comes_with_the_command() -> None:
    lines = verdict([node("n", unschedulable=True)], [pod("p")], "p")
    assert any(line.endswith("node n took pods again  (kubectl uncordon n)") for line in lines)
    lines = verdict([node("n")], [pod("p", nodeSelector={"disk": "ssd"})], "p")
    assert any("kubectl label node n disk=ssd --overwrite" in line for line in lines)


def test_a_full_queue_is_named() -> None:
    pods = [pod("t", "3", on="n", queue="q"), pod("p", "2", queue="q")]
    lines = verdict([node("n", "8")], pods, "p", queues=[queue("q", capability={"cpu": "4"})])
    assert any("queue q might use cpu 5" in line for line in lines)


@pytest.mark.parametrize(("language", "words"), [("en", "it tolerated the taint"), ("zh", "它容忍污点")])
@pytest.mark.parametrize(("value", "taint"), [("yes", "gpu=yes:NoSchedule"), ("", "gpu:NoSchedule")])
def test_a_taint_that_keeps_a_pod_out_is_named(language: str, words: str, value: str, taint: str) -> None:
    refusing = {"key": "gpu", "effect": "NoSchedule", **({"value": value} if value else {})}
    lines = verdict([node("n", taints=[refusing])], [pod("p")], "p", language)
    assert any(f"{words} {taint}" in line for line in lines)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_fits_is_said_to_be_placed(language: str) -> None:
    assert "n" in verdict([node("n")], [pod("p")], "p", language)[0]


def test_flags_about_nodes() -> None:
    assert pairs("a=b, c=d") == {"a": "b", "c": "d"}
    assert quantities("cpu=8,memory=32Gi") == {"cpu": "8", "memory": "32Gi"}
    assert taint("gpu=yes:NoSchedule") == {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
    assert taint("gpu:NoExecute") == {"key": "gpu", "effect": "NoExecute"}


@pytest.mark.parametrize(
    ("read", "text"),
    [(pairs, "a"), (pairs, "=b"), (quantities, "cpu=much"), (quantities, "cpu=-1"), (taint, "a"), (taint, "a=b:Never")],
)
def test_flags_that_cannot_be_read(read: Any, text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        read(text)


@pytest.mark.parametrize(
    ("elastic", "least", "placed", "fewer"),
    [(1, 1, 2, 2), (None, 1, 2, 0), (1, 3, 2, 0), (1, 1, 0, 0), (1, 1, 3, 0)],
    ids=["fits with two", "not elastic", "too few", "none has a node", "all have a node"],
)
def test_an_elastic_job_may_be_scaled_to_the_workers_that_have_a_node(
    elastic: int | None, least: int, placed: int, fewer: int
) -> None:
    spec = {"elastic": elastic, "worker": {"replicas": 3, "requests": least}}
    job = {"kind": "PaddleJob", "metadata": {"name": "big"}, "spec": spec}
    pods = [
        {"metadata": {"name": f"big-worker-{n}"}, "spec": {"nodeName": "n"} if n < placed else {}} for n in range(3)
    ]
    assert fitting_workers(job, pods) == fewer
