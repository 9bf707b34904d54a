"""Compressed nodes of workflows: read as they were written, within a limit."""

from __future__ import annotations

import base64
import gzip
import tracemalloc

import pytest

from paddlecloud.api.argo_nodes import BadPacking, packed, unpacked

UNREADABLE = {
    "no base64": "no base64",
    "a number": 3,
    "no gzip": base64.b64encode(b"no gzip").decode(),
    "a list": base64.b64encode(gzip.compress(b"[]")).decode(),
    "broken JSON": base64.b64encode(gzip.compress(b"{" * 10_000)).decode(),
    "very many values": base64.b64encode(gzip.compress(b'{"a":[' + b"[]," * 5_000_000 + b"[]]}")).decode(),
    "far too large": base64.b64encode(gzip.compress(b" " * 64 * 1024 * 1024)).decode(),
}
MANY_VALUES = {
    "empty nodes": b"{%s}" % b",".join(b'"%d":{}' % at for at in range(600_000)),
    "a list of lists": b'{"a":[%s]}' % b",".join([b"[]"] * 600_000),
    "one node with many texts": b'{"a":{%s}}' % b",".join(b'"%d":""' % at for at in range(1_100_000)),
}


def test_what_is_packed_is_unpacked() -> None:
    status = {"phase": "Running", "nodes": {"a": {"id": "a"}}}
    assert unpacked({"status": packed(status)}) == {"status": status}
    assert unpacked({"status": status}) == {"status": status}
    assert unpacked({"status": {**packed(status), "nodes": {"b": {}}}})["status"]["nodes"] == {"b": {}}


@pytest.mark.parametrize("inner", [[[]] * 1_000_000, "x" * 34_000_000], ids=["values", "text"])
def test_what_could_not_be_read_again_is_not_packed(inner: object) -> None:
    with pytest.raises(BadPacking, match="more than"):
        packed({"nodes": {"a": {"id": "a", "inputs": inner}}})


def test_a_status_of_few_bytes_does_not_become_many() -> None:
    tracemalloc.start()
    try:
        with pytest.raises(BadPacking):
            unpacked({"status": {"compressedNodes": UNREADABLE["very many values"]}})
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert most < 50_000_000


@pytest.mark.parametrize("text", UNREADABLE.values(), ids=UNREADABLE)
def test_what_cannot_be_read_is_refused(text: object) -> None:
    with pytest.raises(BadPacking, match="compressed nodes"):
        unpacked({"status": {"compressedNodes": text}})


@pytest.mark.parametrize("nodes", MANY_VALUES.values(), ids=MANY_VALUES)
def test_a_few_megabytes_that_would_fill_the_memory_are_refused(nodes: bytes) -> None:
    packed_nodes = base64.b64encode(gzip.compress(nodes, compresslevel=1)).decode()
    with pytest.raises(BadPacking, match="more than 1,000,000 values"):
        unpacked({"status": {"compressedNodes": packed_nodes}})


def test_commas_in_texts_do_not_count_as_values() -> None:
    status = {"nodes": {"a": {"inputs": {"parameters": [{"name": "list", "value": '[1, "\\\\",' + "{," * 1_000_000}]}}}}
    assert unpacked({"status": packed(status)})["status"] == status
