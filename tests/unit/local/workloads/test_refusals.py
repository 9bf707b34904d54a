"""What nothing acts on is refused with its field and what to do instead."""

from __future__ import annotations

import pytest

from paddlecloud.kube.errors import Invalid
from paddlecloud.kube.resource import JOBS, STATEFULSETS, Object, Resource
from paddlecloud.local.apiserver.objects.admission import WriteOptions
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.workloads.refusals import refuse_unserved

from .cluster import make


def refuse(resource: Resource, spec: Object) -> None:
    info = KindInfo(resource, singular=resource.kind.lower())
    refuse_unserved(info, make(resource.kind, resource.api_version, "x", spec), None, WriteOptions("test"))


@pytest.mark.parametrize(
    ("resource", "spec", "field"),
    [
        (
            STATEFULSETS,
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
            "spec.updateStrategy.rollingUpdate.maxUnavailable",
        ),
    ],
)
def test_what_is_not_served_is_refused(resource: Resource, spec: Object, field: str) -> None:
    with pytest.raises(Invalid) as refused:
        refuse(resource, spec)
    assert refused.value.details is not None
    assert [cause["field"] for cause in refused.value.details["causes"]] == [field]


@pytest.mark.parametrize(
    ("resource", "spec"),
    [
        (JOBS, {"backoffLimit": 3, "updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}),
        (STATEFULSETS, {"updateStrategy": {"rollingUpdate": {"partition": 1}}}),
        (STATEFULSETS, {"updateStrategy": None}),
        (
            Resource("example.com", "v1", "statefulsets", "StatefulSet"),
            {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}},
        ),
    ],
)
def test_what_is_served_passes(resource: Resource, spec: Object) -> None:
    refuse(resource, spec)
