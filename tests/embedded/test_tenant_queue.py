"""Gangs of a tenant are in its queue, by the annotation of their namespace."""

from __future__ import annotations

import json
from typing import Any

import pytest

from harness import Kubectl

QUEUE = "scheduling.volcano.sh/queue-name"


def group(**spec: Any) -> str:
    kind = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "PodGroup", "metadata": {"name": "gang"}}
    return json.dumps({**kind, "spec": {"minMember": 1, **spec}})


@pytest.mark.parametrize(
    ("annotation", "named", "queue"),
    [("team", {}, "team"), ("team", {"queue": "default"}, "team"), ("team", {"queue": "other"}, "other"),
     ("", {}, "default")],
)  # fmt: skip
def test_a_gang_that_names_no_queue_gets_that_of_its_namespace(
    kubectl: Kubectl, namespace: str, annotation: str, named: dict[str, str], queue: str
) -> None:
    if annotation:
        kubectl("annotate", "namespace", namespace, f"{QUEUE}={annotation}")
    kubectl("create", "-f", "-", input=group(**named))
    assert kubectl("get", "podgroup", "gang", "-o", "jsonpath={.spec.queue}").stdout == queue
