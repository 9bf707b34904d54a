"""`data` templates: the paths in an artifact repository, as expressions of the template make something of them.

As Argo's executor (workflow/executor/data.go, workflow/data): the result is JSON.
"""

from __future__ import annotations

import json
import os
import stat
from typing import Any

from paddlecloud.local.workflow.executor import trees
from paddlecloud.local.workflow.executor.keys import names_of
from paddlecloud.local.workflow.executor.orders import ARTIFACTS, MOST_VALUE, ExecutorError
from paddlecloud.local.workflow.executor.s3 import Bucket
from paddlecloud.local.workflow.expressions.evaluation import evaluate
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import to_json


def carry_out(order: dict[str, Any]) -> str:
    """`order` has the place of the paths and `transformation`. Gives the result."""
    data: Any = sorted(_paths(order))
    for number, expression in enumerate(order.get("transformation") or ()):
        try:
            data = evaluate(str(expression), {"data": data})
        except ExpressionError as why:
            raise ExecutorError(
                f"unable to process data template: error processing data step {number}: {why}"
            ) from None
    result = to_json(data)
    if len(result.encode()) > MOST_VALUE:
        raise ExecutorError(f"the result is larger than {MOST_VALUE:,} bytes; filter it")
    print(result, flush=True)
    return result


def _paths(order: dict[str, Any]) -> list[str]:
    if "s3" in order:
        prefix = str(order["s3"].get("key") or "").strip("/")
        return [name for name in Bucket(order["s3"]).keys(f"{prefix}/" if prefix else "") if not name.endswith("/")]
    prefix = str(order.get("key") or "").strip("/")
    return [path for key in _keys(prefix) for path in _files(key)]


def _keys(prefix: str) -> list[str]:
    """Keys of the repository of the namespace, by its records."""
    found = []
    folder = os.path.join(ARTIFACTS, "records")
    for name in os.listdir(folder):
        if not name.endswith(".json"):
            continue
        with open(os.path.join(folder, name), encoding="utf-8") as file:
            key = str(json.load(file)["key"]).strip("/")
        if not prefix or key == prefix or key.startswith(f"{prefix}/"):
            found.append(key)
    return found


def _files(key: str) -> list[str]:
    """A file has its key as its path; a folder that is stored as it is has those of its files, as in S3."""
    root, names = os.path.join(ARTIFACTS, "files"), names_of(key)
    try:
        with trees.entered(root, names[:-1]) as around:
            if not stat.S_ISDIR(trees.mode_of(names[-1], around) or 0):
                return [key]
            with trees.entered(around, names[-1:]) as folder:
                return [f"{key}/{'/'.join(parts)}" for parts, mode in trees.walk(folder) if stat.S_ISREG(mode)]
    except (FileNotFoundError, NotADirectoryError):
        return []  # it was deleted meanwhile
