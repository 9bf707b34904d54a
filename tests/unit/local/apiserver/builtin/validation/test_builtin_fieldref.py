"""Fields of a pod that its containers may be given, and those they may not."""

from __future__ import annotations

import pytest

from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.builtin.validation.fieldref import files, variable


@pytest.mark.parametrize(
    ("wanted", "as_variable", "as_file"),
    [
        ("metadata.name", True, True),
        ("metadata.uid", True, True),
        ("status.podIP", True, False),
        ("spec.nodeName", True, False),
        ("metadata.labels", False, True),
        ("metadata.annotations", False, True),
        ("metadata.labels['app.kubernetes.io/name']", True, True),
        ("metadata.annotations['Example.org/x']", True, True),
        ("metadata.labels['not a key!']", False, False),
        ("spec.containers", False, False),
        ("x", False, False),
        ("", False, False),
    ],
)
def test_each_place_offers_its_own_fields(wanted: str, as_variable: bool, as_file: bool) -> None:
    assert (variable("env", {"fieldPath": wanted}) == []) is as_variable
    assert (files("volume", [{"path": "p", "fieldRef": {"fieldPath": wanted}}]) == []) is as_file


@pytest.mark.parametrize(("item", "ok"), [({}, False), ({"resourceFieldRef": {"resource": "limits.cpu"}}, True)])
def test_a_file_needs_a_source(item: Object, ok: bool) -> None:
    assert (files("volume", [item]) == []) is ok
