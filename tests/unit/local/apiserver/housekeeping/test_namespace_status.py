"""The conditions of a dying namespace."""

from __future__ import annotations

from paddlecloud.kube.clock import rfc3339
from paddlecloud.local.apiserver.housekeeping.namespace_status import conditions
from paddlecloud.local.store.record import ObjectAddress, Record, encode

NOW = 1_700_000_000.0


def record(collection: str, name: str, *finalizers: str) -> Record:
    obj = {"metadata": {"name": name, "namespace": "ns", "uid": name, "finalizers": list(finalizers)}}
    return Record(ObjectAddress(collection, "ns", name), 1, encode(obj))


def test_kinds_and_finalizers_that_remain_are_named_once() -> None:
    pods = [record("/pods", "p", "a.org/y"), record("/pods", "q", "b.org/x")]
    left = [record("apps/deployments", "d", "b.org/x"), *pods]
    reported = {c["type"]: c for c in conditions(left, (), NOW)}
    assert reported["NamespaceContentRemaining"]["status"] == "True"
    assert reported["NamespaceContentRemaining"]["message"] == "Some resources are remaining: deployments.apps, pods"
    assert reported["NamespaceFinalizersRemaining"]["message"].endswith("remaining: a.org/y, b.org/x")
    assert reported["NamespaceDeletionContentFailure"]["status"] == "False"
    assert all(c["lastTransitionTime"] == rfc3339(NOW) for c in reported.values())


def test_what_has_not_changed_keeps_its_time_however_many_are_left() -> None:
    first = conditions([record("/pods", "p"), record("/pods", "q")], (), NOW)
    assert conditions([record("/pods", "q")], first, NOW + 60) == first
    changed = conditions([record("/secrets", "s")], first, NOW + 60)
    assert [c["type"] for c, was in zip(changed, first, strict=True) if c != was] == ["NamespaceContentRemaining"]
