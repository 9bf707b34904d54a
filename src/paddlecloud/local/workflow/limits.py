"""How large a workflow may become. Workflows come from tenants, and one event loop decides about all of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.kube.resource import Object
from paddlecloud.local.workflow.templates import TemplateError

MOST_NODES = 6_000
MOST_ITEMS = 5_000
"""Steps and tasks that loops make, in all loops that one pass expands."""
MOST_TEXT = 8 * 1024 * 1024
"""Characters of all arguments that one pass makes, and of the inputs of all nodes."""
MOST_BEGUN = 500
"""Nodes that one pass begins; the next pass follows at once."""

LONGEST_NAME = 8 * 1024
"""Characters of a node's name: those of the items of all loops around it are in it."""
LONGEST_MESSAGE = 4 * 1024
MOST_STORED = 1500 * 1024
"""Bytes of the stored object. A custom object has at most 36 KiB more: room to say that the workflow has ended."""


class TooLarge(TemplateError):
    """The workflow exceeds a limit; the message names it."""


class Allowance:
    """What is left of the limits in one pass."""

    def __init__(self) -> None:
        self._items = MOST_ITEMS
        self._text = MOST_TEXT

    def take_items(self, count: int) -> None:
        self._items -= count
        if self._items < 0:
            raise TooLarge(f"loops make more than {MOST_ITEMS:,} steps")

    def take_text(self, length: int) -> None:
        self._text -= length
        if self._text < 0:
            raise TooLarge(f"arguments of steps are more than {MOST_TEXT:,} characters together")


def stored_size(workflow: Object, status: Mapping[str, Any]) -> int:
    """Bytes of the workflow with this status, and of the managed fields, which repeat the name of every field."""
    return _json_size(workflow, status) + _managed_size(workflow.get("spec")) + _managed_size(status)


def fits(workflow: Object, status: Mapping[str, Any], most: int) -> bool:
    """Whether `stored_size` is at most this. Managed fields have at most two and a half times the bytes of the JSON: an
    empty map with an empty name, `"":{},`, takes 6 bytes of JSON and 15 of managed fields. So an object whose JSON is a
    quarter of the limit or less fits, and its fields need not be counted one by one in each pass."""
    return 4 * _json_size(workflow, status) <= most or stored_size(workflow, status) <= most


def _json_size(workflow: Object, status: Mapping[str, Any]) -> int:
    meta = {key: value for key, value in workflow["metadata"].items() if key != "managedFields"}
    return len(msgspec.json.encode([meta, workflow.get("spec"), status]))


def _managed_size(value: Any) -> int:
    """Each field is `"f:NAME":{},` there, one with others inside has `".":{},` besides. Lists are whole."""
    size, todo = 0, [value]
    while todo:
        current = todo.pop()
        if not isinstance(current, Mapping):
            continue
        for name, each in current.items():
            size += len(name.encode()) + 8
            if isinstance(each, Mapping):
                size += 7
                todo.append(each)
    return size
