"""Tables of the manual, printed by real kubectl from objects in the state the manual shows.

The last column is an age, so it is compared by its header only.
"""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from unit.api.examples import ROOT, documents

from .conftest import Kubectl

MANUAL = ROOT / "manual"


def cached(total: str, size: str, avail: str) -> dict[str, Any]:
    return {
        "phase": "Ready",
        "cacheStatus": {"totalSize": total, "cachedSize": size, "diskAvail": avail},
        "runtimeStatus": {"runtimeReady": "1/1", "specReplicas": 1, "readyReplicas": 1},
    }


def running(ps: str, worker: str, phase: str) -> dict[str, Any]:
    return {"phase": phase, "mode": "PS", "ps": {"ready": ps}, "worker": {"ready": worker}}


SAMPLE_SETS = "NAME TOTAL_SIZE CACHED_SIZE AVAIL_SPACE RUNTIME PHASE AGE"
TABLES: list[tuple[str, str, dict[str, Any], str, list[str]]] = [
    ("coco.yaml", "sampleset coco -n kubeflow", cached("20 GiB", "2.4 GiB", "13 GiB"), SAMPLE_SETS,
     ["coco", "20 GiB", "2.4 GiB", "13 GiB", "1/1", "Ready"]),
    ("hiertext.yaml", "sampleset hiertext -n paddlecloud", cached("3.3 GiB", "3.2 GiB", "12 GiB"), SAMPLE_SETS,
     ["hiertext", "3.3 GiB", "3.2 GiB", "12 GiB", "1/1", "Ready"]),
    ("imagenet.yaml", "sampleset -n paddle-system", cached("58 MiB", "200 B", "12 GiB"), SAMPLE_SETS,
     ["imagenet", "58 MiB", "200 B", "12 GiB", "1/1", "Ready"]),
    ("imagenet-rmr.yaml", "samplejob imagenet-rmr -n paddle-system", {"phase": "Succeeded"}, "NAME PHASE",
     ["imagenet-rmr", "Succeeded"]),
    ("imagenet-sync.yaml", "samplejob imagenet-sync -n paddle-system", {"phase": "Succeeded"}, "NAME PHASE",
     ["imagenet-sync", "Succeeded"]),
    ("imagenet-clear.yaml", "samplejob imagenet-clear -n paddle-system", {"phase": "Succeeded"}, "NAME PHASE",
     ["imagenet-clear", "Succeeded"]),
    ("imagenet-warmup.yaml", "samplejob imagenet-warmup -n paddle-system", {"phase": "Succeeded"}, "NAME PHASE",
     ["imagenet-warmup", "Succeeded"]),
    ("wide-and-deep.yaml", "pdj -n paddle-system", running("2/2", "0/2", "Completed"),
     "NAME STATUS MODE PS WORKER AGE", ["wide-ande-deep", "Completed", "PS", "2/2", "0/2"]),
    ("ps-demo.yaml", "paddlejob -n paddle-system", running("1/1", "1/1", "Running"),
     "NAME STATUS MODE PS WORKER AGE", ["ps-demo", "Running", "PS", "1/1", "1/1"]),
]  # fmt: skip


def cells(line: str) -> list[str]:
    return re.split(r" {2,}", line.strip())


@pytest.mark.parametrize(("name", "get", "status", "header", "row"), TABLES, ids=[table[0] for table in TABLES])
def test_kubectl_prints_the_table_of_the_manual(
    shell: Kubectl, name: str, get: str, status: dict[str, Any], header: str, row: list[str]
) -> None:
    (obj,) = documents(MANUAL / name)
    obj["metadata"].setdefault("namespace", "paddle-system")
    shell("create", "-f", "-", input=obj)
    place = ("-n", obj["metadata"]["namespace"])
    try:
        target = (obj["kind"].lower(), obj["metadata"]["name"])
        change = json.dumps({"status": status})
        shell(*place, "patch", *target, "--subresource=status", "--type=merge", "--patch", change)
        first, second = shell("get", *get.split()).stdout.splitlines()
        assert cells(first) == [word.replace("_", " ") for word in header.split()]
        assert cells(second)[: len(row)] == row
    finally:
        shell("delete", "-f", "-", "--wait=false", input=obj)


def test_the_kinds_of_the_manual_are_listed_as_crds(shell: Kubectl) -> None:
    first, *lines = shell("get", "crd").stdout.splitlines()
    assert cells(first) == ["NAME", "CREATED AT"]
    dates = dict(cells(line) for line in lines)
    for name in ("paddlejobs", "samplejobs", "samplesets"):
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", dates[f"{name}.batch.paddlepaddle.org"])
