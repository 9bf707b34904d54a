"""In the init container of a pod: makes the input artifacts, each where the main container will find it."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from typing import Any

from paddlecloud.local.removal import remove_tree
from paddlecloud.local.workflow.executor import archives, sources
from paddlecloud.local.workflow.executor.orders import INPUTS, ExecutorError

Order = dict[str, Any]


def make(orders: list[Order]) -> None:
    """Each order has a name, a target, its archive strategy and one location."""
    os.makedirs(INPUTS, exist_ok=True)
    for order in orders:
        try:
            _make(order)
        except (ExecutorError, OSError) as why:
            if order.get("optional") and isinstance(why, sources.Missing):
                print(f"optional artifact {order['name']}: {why}; it is left out", file=sys.stderr)
                continue
            raise ExecutorError(f"failed to load artifact '{order['name']}': {why}") from None


def _make(order: Order) -> None:
    target = order["target"]
    os.makedirs(os.path.dirname(target), exist_ok=True)
    remove_tree(target)  # a container that is started again begins with nothing
    with tempfile.TemporaryDirectory(dir=os.path.dirname(target), prefix=".artifact-") as scratch:
        fetched = os.path.join(scratch, "fetched")
        sources.fetch(order, fetched)
        if os.path.isdir(fetched):
            shutil.move(fetched, target)
        else:
            archives.unpack(fetched, target, scratch, order.get("archive", ""))
    if order.get("mode") is not None:
        _set_mode(target, int(order["mode"]), bool(order.get("recurseMode")))


def _set_mode(target: str, mode: int, recursive: bool) -> None:
    if os.path.islink(target):
        return
    os.chmod(target, mode)
    if not recursive or not os.path.isdir(target):
        return
    for folder, folders, files in os.walk(target):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            if not os.path.islink(path):
                os.chmod(path, mode)
