"""`successCondition` and `failureCondition` of resource templates: selectors over the fields of an object. Pure.

As Argo: the syntax of label selectors, `status.succeeded > 0, status.phase in (Running, Succeeded)`; names are paths,
and values are compared as texts, with `>` and `<` as whole numbers.
"""

from __future__ import annotations

import json
import re
from typing import Any

from paddlecloud.local.workflow.executor.orders import ExecutorError

_REQUIREMENT = re.compile(
    r"""\s*(?:
        (?P<absent>!)\s*(?P<missing>[^\s=!<>,()]+)
      | (?P<path>[^\s=!<>,()]+)\s*(?:
            (?P<operator>==|=|!=|>|<)\s*(?P<value>[^\s,()]*)
          | (?P<set>notin|in)\s*\((?P<values>[^()]*)\)
        )?
    )\s*(?:,|$)""",
    re.VERBOSE,
)
Requirement = tuple[str, str, tuple[str, ...]]


def parsed(text: str) -> list[Requirement]:
    """Path, operator, values; raises `ExecutorError`."""
    made: list[Requirement] = []
    at = 0
    while at < len(text.rstrip()):
        found = _REQUIREMENT.match(text, at)
        if found is None or found.end() == at:
            raise ExecutorError(f"the condition {text!r} cannot be read from {text[at:].strip()!r} on")
        at = found.end()
        if found["absent"]:
            made.append((found["missing"], "absent", ()))
        elif found["set"]:
            made.append((found["path"], found["set"], tuple(each.strip() for each in found["values"].split(","))))
        elif found["operator"]:
            made.append((found["path"], found["operator"], (found["value"],)))
        else:
            made.append((found["path"], "present", ()))
        if made[-1][1] in "<>":
            _number(found["value"], text)
    return made


def _number(value: str, text: str) -> int:
    try:
        return int(value)
    except ValueError:
        raise ExecutorError(f"the condition {text!r} compares with {value!r}, which is no whole number") from None


def holds(requirement: Requirement, obj: Any) -> bool:
    """As Kubernetes' `Requirement.Matches`: `!=` and `notin` hold where there is no such field."""
    path, operator, values = requirement
    found = _at(obj, path)
    if operator in ("absent", "!=", "notin") and found is None:
        return True
    if found is None or operator == "absent":
        return False
    if operator in ("<", ">"):
        try:
            number = int(found)
        except ValueError:
            return False
        return number > int(values[0]) if operator == ">" else number < int(values[0])
    return operator == "present" or (found in values) == (operator in ("=", "==", "in"))


def _at(value: Any, path: str) -> str | None:
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isdecimal() and int(part) < len(value):
            value = value[int(part)]
        else:
            return None
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))
