"""Values of parameters: typed JSON on the side of kfp, texts on the side of Argo.

The text of a STRING is the string itself, that of every other type its JSON. This is what the backend of Kubeflow
Pipelines puts in place of `{{$.inputs.parameters['x']}}`, so that Argo's own tags give programs the same arguments.
"""

from __future__ import annotations

import json
import math
from typing import Any

from paddlecloud.pipelines.ir.errors import InvalidPipeline

TYPES = ("STRING", "NUMBER_INTEGER", "NUMBER_DOUBLE", "BOOLEAN", "LIST", "STRUCT", "TASK_FINAL_STATUS", "TASK_CONFIG")
_NAMES = {
    "STRING": "a text", "NUMBER_INTEGER": "a whole number", "NUMBER_DOUBLE": "a number", "BOOLEAN": "true or false",
    "LIST": "a list", "STRUCT": "a map", "TASK_FINAL_STATUS": "a map", "TASK_CONFIG": "a map",
}  # fmt: skip


def text_of(value: Any, kind: str, path: str) -> str:
    """The text of a value of this type; raises InvalidPipeline where it is of another one."""
    if not _fits(value, kind):
        raise InvalidPipeline(path, f"must be {_NAMES.get(kind, kind)} ({kind}), not {_short(value)}")
    return value if isinstance(value, str) and kind == "STRING" else json_of(value)


def given_text(value: Any, kind: str, path: str) -> str:
    """As `text_of`, of what a user gave for a parameter: command lines and forms give texts for all types."""
    if isinstance(value, str) and kind != "STRING":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InvalidPipeline(path, f"must be {_NAMES.get(kind, kind)} ({kind}), not {_short(value)}") from None
    elif kind == "STRING" and not isinstance(value, str):
        return json_of(value)
    return text_of(value, kind, path)


def json_of(value: Any) -> str:
    """JSON with whole numbers as such: the IR keeps every number as a double, and 3 comes as 3.0."""
    return json.dumps(_whole(value), ensure_ascii=False, separators=(",", ":"), sort_keys=True)


def _fits(value: Any, kind: str) -> bool:
    if kind == "STRING":
        return isinstance(value, str)
    if kind == "BOOLEAN":
        return isinstance(value, bool)
    if kind == "NUMBER_INTEGER":
        return _is_number(value) and float(value).is_integer()
    if kind == "NUMBER_DOUBLE":
        return _is_number(value)
    return isinstance(value, list if kind == "LIST" else dict)


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _whole(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        return int(value)
    if isinstance(value, list):
        return [_whole(each) for each in value]
    if isinstance(value, dict):
        return {key: _whole(each) for key, each in value.items()}
    return value


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "…"
