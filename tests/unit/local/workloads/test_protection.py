"""What is in use stays, though it was deleted; what is not goes at once."""

from __future__ import annotations

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.workloads.protection import FINALIZERS, decide

from .cluster import START, make

OTHER = "example.com/mine"


def held(kind: str, *, deleted: bool, finalizers: list[str]) -> Object:
    obj = make(kind, "v1", "data", {}, resourceVersion="7", finalizers=finalizers)
    if deleted:
        obj["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    return obj


@pytest.mark.parametrize("kind", sorted(FINALIZERS))
@pytest.mark.parametrize(
    ("deleted", "in_use", "others", "left"),
    [
        (False, False, [], "unchanged"),
        (True, True, [], "unchanged"),
        (True, False, [], None),
        (True, False, [OTHER], [OTHER]),
    ],
)
def test_the_finalizer_goes_when_the_object_is_deleted_and_unused(
    kind: str, deleted: bool, in_use: bool, others: list[str], left: object
) -> None:
    plan = decide(held(kind, deleted=deleted, finalizers=[FINALIZERS[kind], *others]), in_use, START)
    if left == "unchanged":
        assert plan.patch == []
        return
    (patch,) = plan.patch
    assert patch.resource.kind == kind
    assert patch.patch == {"metadata": {"resourceVersion": "7", "finalizers": left}}


def test_an_object_without_the_finalizer_is_none_of_our_business() -> None:
    assert decide(held("PersistentVolume", deleted=True, finalizers=[OTHER]), False, START).patch == []
