"""A run of a pipeline whose image nobody has is refused by the field; other workflows are Argo's own business."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.errors import Invalid
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workflow.names import WORKFLOWS
from paddlecloud.local.workflow.validation.images import MOST_ASKED, RUN_LABEL, judge_images

INFO = KindInfo(WORKFLOWS, "workflow")
RUN = {RUN_LABEL: "1"}


class Images:
    """Those of `known/…` are there; the others are asked for in vain."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def obstacle(self, image: str) -> str:
        self.asked.append(image)
        return "" if image.startswith("known/") else f"no recipe answers for {image}"


def judged(*templates: Any, labels: Any = None, old: Any = None, **spec: Any) -> Images:
    images = Images()
    workflow = {"metadata": {"name": "w", "labels": labels}, "spec": {"templates": list(templates), **spec}}
    judge_images(INFO, workflow, old, WriteOptions(manager="test"), obstacle=images.obstacle)
    return images


@pytest.mark.parametrize(
    ("template", "path"),
    [
        ({"container": {"image": "unknown"}}, "container.image"),
        ({"script": {"image": "unknown"}}, "script.image"),
        ({"containerSet": {"containers": [{"image": "unknown"}]}}, "containerSet.containers[0].image"),
        ({"container": {"image": "known/a"}, "sidecars": [{"image": "unknown"}]}, "sidecars[0].image"),
        ({"container": {"image": "known/a"}, "initContainers": [{"image": "unknown"}]}, "initContainers[0].image"),
    ],
)
def test_an_image_that_nobody_has_is_refused_by_its_field(template: Any, path: str) -> None:
    with pytest.raises(Invalid) as refused:
        judged({"name": "first", "dag": {}}, {"name": "train", **template}, labels=RUN)
    assert f"spec.templates[1].{path}: Invalid value: step 'train': no recipe answers for unknown" in str(refused.value)


@pytest.mark.parametrize(
    "case",
    [
        {"labels": {}},
        {"labels": RUN, "old": {}},
        {"labels": RUN, "tolerations": [{"operator": "Exists"}]},
        {"labels": RUN, "podSpecPatch": "containers: [{name: main, image: known/a}]"},
    ],
    ids=["not a run of a pipeline", "stored already", "may run on simulated nodes", "pods are patched"],
)
def test_these_are_not_asked_about(case: Any) -> None:
    assert judged({"name": "a", "container": {"image": "unknown"}}, **case).asked == []


@pytest.mark.parametrize(
    "template",
    [
        {"container": {"image": "{{inputs.parameters.image}}"}},
        {"container": {"image": "unknown"}, "tolerations": [{"operator": "Exists"}]},
        # As the backend of Kubeflow Pipelines writes them: its driver makes the patch, with the image.
        {"container": {"image": "should-be-overridden"}, "podSpecPatch": "{{inputs.parameters.pod-spec-patch}}"},
        {"container": "text"},
        {"container": {"image": 5}, "sidecars": "text", "containerSet": []},
        "text",
    ],
)
def test_images_that_cannot_be_known_and_odd_values_are_left_to_others(template: Any) -> None:
    assert judged(template, labels=RUN).asked == []


def test_a_run_asks_for_each_image_once_and_for_a_hundred_at_most() -> None:
    templates = [{"container": {"image": f"known/{at // 2}"}} for at in range(4 * MOST_ASKED)]
    assert judged(*templates, labels=RUN).asked == [f"known/{at}" for at in range(MOST_ASKED)]
