"""Ids say in which namespace an object is; what cannot be one is not found."""

from __future__ import annotations

import pytest

from paddlecloud.pipelines.api.identifiers import Identifier, namespace_named, read, shown
from paddlecloud.pipelines.api.replies import RequestRefused

UUID = "f25b328a-dcdf-498b-a5ea-5739216d1495"


def test_an_id_has_its_namespace_in_front_unless_it_is_the_default_one() -> None:
    assert shown("kubeflow", UUID, "kubeflow") == UUID
    assert shown("team-a", UUID, "kubeflow") == f"team-a.{UUID}"
    assert shown("team-a", "", "kubeflow") == ""
    for namespace in ("kubeflow", "team-a"):
        assert read(shown(namespace, UUID, "kubeflow"), "kubeflow") == Identifier(namespace, UUID)


@pytest.mark.parametrize("text", ["", ".", "a.", "a,b=c", "../x", "a/b", f"A.{UUID}", f"a.b.{UUID}", "x" * 64, "é"])
def test_what_cannot_be_an_id_is_not_found(text: str) -> None:
    with pytest.raises(RequestRefused, match="not found") as refused:
        read(text, "kubeflow", "run")
    assert refused.value.status == 404


def test_a_namespace_is_checked_before_it_becomes_part_of_a_path() -> None:
    assert namespace_named("", "kubeflow") == "kubeflow"
    with pytest.raises(RequestRefused, match="is no name of a namespace"):
        namespace_named("a/../b", "kubeflow")
