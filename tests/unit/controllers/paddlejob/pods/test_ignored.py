"""Fields of a template that an API server drops are named; what it adds, or leaves out because it is empty, is not."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.controllers.paddlejob.pods.ignored import sentence


def pod(container: dict[str, Any], **spec: Any) -> dict[str, Any]:
    labels = {"paddlepaddle.org/role": "worker"}
    body = {"containers": [{"name": "paddle", **container}], **spec}
    return {"kind": "Pod", "metadata": {"name": "job-worker-0", "labels": labels}, "spec": body}


AWAY = {"key": "node.kubernetes.io/not-ready", "operator": "Exists", "tolerationSeconds": 30}
NAMED = {
    "a field of a container": (
        pod({"comand": ["true"], "image": "x"}),
        pod({"image": "x", "imagePullPolicy": "Always"}),
        'spec.worker.template.spec.containers[0].comand: did you mean "command"?',
    ),
    "a field of the pod": (
        pod({}, nodeSelectr={"a": "b"}),
        pod({}),
        'spec.worker.template.spec.nodeSelectr: did you mean "nodeSelector"?',
    ),
    "a field below": (
        pod({"resources": {"limts": {"cpu": "1"}}}),
        pod({"resources": {}}),
        'spec.worker.template.spec.containers[0].resources.limts: did you mean "limits"?',
    ),
    "a word that resembles none": (
        pod({"bananas": 3}),
        pod({}),
        "spec.worker.template.spec.containers[0].bananas",
    ),
    "beside a container that a webhook put first": (
        pod({"comand": ["true"]}),
        {**pod({}), "spec": {"containers": [{"name": "proxy", "comand": []}, {"name": "paddle"}]}},
        'spec.worker.template.spec.containers[0].comand: did you mean "command"?',
    ),
}


@pytest.mark.parametrize("case", NAMED)
def test_a_field_that_was_dropped_is_named_with_the_right_word(case: str) -> None:
    sent, stored, named = NAMED[case]
    assert sentence([sent], [stored]).endswith(f"ignores them: {named}")


UNNAMED = {
    "defaults": (pod({}), pod({"terminationMessagePath": "/dev/x"}, dnsPolicy="ClusterFirst")),
    "empty values": (pod({"command": [], "tty": False}, volumes=[], hostPID=None), pod({})),
    "two variables of one name": (
        pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}),
        pod({"env": [{"name": "A", "value": "1"}, {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "x"}}}]}),
    ),
    "tolerations of others": (pod({}, tolerations=[AWAY]), pod({}, tolerations=[{"key": "mine"}, AWAY])),
    "values in another form": (
        pod({"resources": {"limits": {"cpu": 0.5}}}),
        pod({"resources": {"limits": {"cpu": "500m"}}}),
    ),
}


@pytest.mark.parametrize("case", UNNAMED)
def test_what_a_server_adds_or_writes_otherwise_is_no_unknown_field(case: str) -> None:
    sent, stored = UNNAMED[case]
    assert sentence([sent], [stored]) == ""


def test_a_field_of_many_pods_is_named_once() -> None:
    sent = [pod({"comand": ["true"]}) for _ in range(3)]
    for number, one in enumerate(sent):
        one["metadata"]["name"] = f"job-worker-{number}"
    stored = [{**one, "spec": {"containers": [{"name": "paddle"}]}} for one in sent]
    assert sentence(sent, stored).count("comand") == 1
