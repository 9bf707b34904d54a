"""The word that was meant: in every message that asks “did you mean”."""

from __future__ import annotations

import pytest

from paddlecloud.kube.nearest import nearest

KINDS = ("pod", "pods", "pdj", "pds", "pvc", "paddlejobs")


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("pjd", KINDS, "pdj"),
        ("psd", KINDS, "pds"),
        ("pdos", KINDS, "pods"),
        ("pdjs", KINDS, "pdj"),
        ("slwo", ("slow", "slot"), "slow"),
        ("remove", ("add", "rm", "fail", "restore"), "rm"),
        ("delete", ("add", "rm", "fail", "restore"), "rm"),
        ("list", ("ls", "last"), "ls"),
        ("create", ("add", "rm"), "add"),
        ("rm", ("get", "delete"), "delete"),
        ("workers", ("replicas", "output"), "replicas"),
        ("no-wait", ("detach", "name"), "detach"),
        ("x", KINDS, ""),
    ],
)
def test_the_word_that_was_meant(word: str, known: tuple[str, ...], meant: str) -> None:
    assert nearest(word, known) == meant
