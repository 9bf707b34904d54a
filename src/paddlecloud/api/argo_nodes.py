"""Nodes of large workflows: `.status.compressedNodes`, as Argo's `workflow/packer` writes them. Pure.

A status with thousands of nodes is too large for an object, its managed fields most of all. Packed it has a tenth of
the size; Argo's clients read both forms. Every writer of a workflow may write its status, so what is read from it is
bounded. The embedded platform writes and reads this form; `pipelines` reads it, also on a cluster.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import zlib
from typing import Any

import msgspec

from paddlecloud.api.json_values import has_more_values

COMPRESSED = "compressedNodes"
PACKED_FROM = 1024 * 1024
"""Bytes of the stored object from which on its nodes are packed: Argo's limit of a workflow."""
MOST_UNPACKED = 32 * 1024 * 1024
MOST_VALUES = 1_000_000
"""Values of all nodes: 6,000 nodes have some 200,000. As Python's objects so many have up to 130 MiB; 32 MiB of
JSON with the smallest values there are would have 800 MiB."""


class BadPacking(ValueError):
    """What is stored as compressed nodes cannot be read."""


def is_packed(workflow: dict[str, Any]) -> bool:
    status = workflow.get("status")
    return isinstance(status, dict) and bool(status.get(COMPRESSED)) and not status.get("nodes")


def unpacked(workflow: dict[str, Any]) -> dict[str, Any]:
    """The workflow with its nodes as a map. Raises `BadPacking`."""
    if not is_packed(workflow):
        return workflow
    status = {key: value for key, value in workflow["status"].items() if key != COMPRESSED}
    return {**workflow, "status": {**status, "nodes": _nodes(workflow["status"][COMPRESSED])}}


def packed(status: dict[str, Any]) -> dict[str, Any]:
    """Raises `BadPacking` for nodes that `unpacked` would refuse."""
    nodes = msgspec.json.encode(status.get("nodes") or {})
    _check(nodes)
    text = base64.b64encode(gzip.compress(nodes, compresslevel=4, mtime=0)).decode()
    return {**{key: value for key, value in status.items() if key != "nodes"}, COMPRESSED: text}


def _nodes(text: Any) -> dict[str, Any]:
    try:
        opened = zlib.decompressobj(wbits=31)
        data = opened.decompress(base64.b64decode(text, validate=True), MOST_UNPACKED)
        if opened.unconsumed_tail:
            raise BadPacking(f"compressed nodes are more than {MOST_UNPACKED:,} bytes")
        _check(data)
        nodes = msgspec.json.decode(data)
    except (binascii.Error, zlib.error, msgspec.MsgspecError, TypeError, RecursionError) as why:
        raise BadPacking(f"compressed nodes cannot be read: {why}") from None
    if not isinstance(nodes, dict):
        raise BadPacking("compressed nodes are no map")
    return nodes


def _check(nodes: bytes) -> None:
    if len(nodes) > MOST_UNPACKED:
        raise BadPacking(f"compressed nodes are more than {MOST_UNPACKED:,} bytes")
    if has_more_values(nodes, MOST_VALUES):
        raise BadPacking(f"compressed nodes have more than {MOST_VALUES:,} values")
