"""Field selectors read of a stored object what they are asked for, and the same as from the whole."""

from __future__ import annotations

import json
from typing import Any

import pytest

from paddlecloud.local.apiserver.objects.selection import SELECTABLE, STORED, decoder, field_text

OBJECTS: dict[str, dict[str, Any]] = {
    "full": {
        "metadata": {"name": "x", "labels": {"a": "b"}},
        "spec": {
            "nodeName": "n", "restartPolicy": "Always", "schedulerName": "s", "serviceAccountName": "a",
            "hostNetwork": True, "unschedulable": False, "clusterIP": "10.0.0.1", "type": "ClusterIP",
            "containers": [{"name": "main"}],
        },
        "status": {"phase": "Running", "podIP": "127.0.0.2", "replicas": 3, "successful": 1, "nominatedNodeName": ""},
        "involvedObject": {"kind": "Pod", "name": "x", "namespace": "d", "uid": "u", "apiVersion": "v1"},
        "reason": "Because", "source": {"component": "kubelet", "host": "n"}, "type": "Normal",
    },
    "empty": {},
    "null": {"spec": None, "status": None, "involvedObject": None, "source": None, "type": None},
}  # fmt: skip
PATHS = sorted({STORED.get(path, path) for paths in SELECTABLE.values() for path in paths})


@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("path", PATHS)
def test_a_field_reads_the_same_from_a_part_as_from_the_whole(name: str, path: str) -> None:
    obj = OBJECTS[name]
    part = decoder(frozenset({path}))(json.dumps(obj).encode())
    assert field_text(part, path) == field_text(obj, path)


def test_nothing_else_is_decoded() -> None:
    read = decoder(frozenset({"spec.nodeName", "spec.hostNetwork", "status.phase"}))
    assert read(json.dumps(OBJECTS["full"]).encode()) == {
        "spec": {"nodeName": "n", "hostNetwork": True},
        "status": {"phase": "Running"},
    }
