"""One job's part of what the caches hold."""

from __future__ import annotations

from typing import Any

from paddlecloud.controllers.paddlejob.caches import in_the_way
from paddlecloud.kube.resource import Object


class Counted(dict[str, Any]):
    """An object that counts how often it is compared with another."""

    comparisons = 0

    def __eq__(self, other: object) -> bool:
        Counted.comparisons += 1
        return dict.__eq__(self, other)  # type: ignore[arg-type]

    __hash__ = None  # type: ignore[assignment]


def pod(number: int, *, kind: str = "PaddleJob", uid: str = "earlier") -> Object:
    owner = {"apiVersion": "v1", "kind": kind, "name": "job", "uid": uid, "controller": True}
    return Counted(kind="Pod", metadata={"name": f"job-worker-{number}", "ownerReferences": [owner]})


def test_leftovers_are_counted_and_objects_of_others_named() -> None:
    others = [pod(0, uid="own"), pod(1), pod(2, kind="Job"), {"kind": "Service", "metadata": {"name": "job"}}, pod(3)]
    assert in_the_way(others, "own") == (2, ("Pod job-worker-2", "Service job"))


def test_ten_thousand_leftovers_are_not_compared_with_one_another() -> None:
    leftovers = [pod(number) for number in range(10_000)]
    assert in_the_way(leftovers, "own") == (10_000, ())
    assert Counted.comparisons == 0
