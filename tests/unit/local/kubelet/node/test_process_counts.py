"""When the pods are counted: a pure rule over one number of the machine."""

from __future__ import annotations

from paddlecloud.local.kubelet.node import process_counts
from paddlecloud.local.kubelet.node.process_counts import ProcessCounts


def test_only_a_machine_that_grew_is_looked_at() -> None:
    watched = ProcessCounts(limit=100)
    assert [watched.alarming(total) for total in (500, 510, 520, 526)] == [False, False, False, True]


def test_after_a_look_in_vain_it_must_grow_again() -> None:
    watched = ProcessCounts(limit=100)
    assert not watched.alarming(500)
    watched.calmed(600)
    assert not watched.alarming(620)
    assert watched.alarming(626)
    assert not watched.alarming(300)
    assert watched.alarming(326)


def test_a_pod_at_its_limit_is_within_it() -> None:
    watched = ProcessCounts(limit=100)
    assert watched.verdict(100) == ""
    assert "101 processes and threads; a pod may have 100" in watched.verdict(101)


def test_the_machine_counts_itself() -> None:
    assert process_counts.machine_tasks() > 1
