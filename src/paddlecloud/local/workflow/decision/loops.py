"""Steps and tasks with `withItems`, `withParam` or `withSequence`: one for each item. Pure."""

from __future__ import annotations

import json
import re
from collections import ChainMap
from collections.abc import Mapping
from typing import Any

from paddlecloud.local.workflow.decision.when import BadCondition, holds
from paddlecloud.local.workflow.expressions.values import shown, to_json
from paddlecloud.local.workflow.limits import MOST_ITEMS, Allowance
from paddlecloud.local.workflow.templates import TemplateError
from paddlecloud.local.workflow.variables import substitute

Step = dict[str, Any]

_LOOPS = ("withItems", "withParam", "withSequence")
_LONGEST_FORMAT = 1024
_FORMAT = re.compile(r"%[-+ 0#]*\d{0,3}[dxXob]")


class BadLoop(TemplateError):
    """The items of a loop are not clear; the message says why."""


def is_loop(step: Step) -> bool:
    return any(step.get(field) for field in _LOOPS)


def expanded(step: Step, variables: Mapping[str, Any], allowance: Allowance) -> list[Step]:
    """The step for each item, or itself where it is no loop. References to other steps were substituted before."""
    if not is_loop(step):
        return [step]
    try:
        items = _items(step)
    except BadLoop:
        if not _is_skipped(step):
            raise
        items = []
    allowance.take_items(len(items))
    plain = {key: value for key, value in step.items() if key not in _LOOPS}
    lenient = _is_skipped(plain)
    known = {name: value for name, value in variables.items() if not lenient or value is not None}
    made = []
    for index, item in enumerate(items):
        made.append(_for_item(plain, index, item, known, lenient=lenient))
        allowance.take_text(text_in(made[-1].get("arguments")))
    return made


def text_in(value: Any) -> int:
    """Characters of all texts in anything."""
    if isinstance(value, str):
        return len(value)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(text_in(each) for each in inner)


def _is_skipped(step: Step) -> bool:
    try:
        return not holds(step.get("when", ""))
    except BadCondition:
        return False


def _for_item(step: Step, index: int, item: Any, variables: dict[str, Any], *, lenient: bool) -> Step:
    """The variables are those of thousands of items: they are looked into, not copied."""
    made: Step = substitute(step, ChainMap(_item_variables(item), variables), lenient=lenient)
    return {**made, "name": f"{step['name']}({index}:{_label(item)})", "template": step.get("template", "")}


def _item_variables(item: Any) -> dict[str, str]:
    if isinstance(item, dict):
        return {"item": to_json(item), **{f"item.{key}": _text(value) for key, value in item.items()}}
    return {"item": to_json(item) if isinstance(item, list) else _text(item)}


def _text(value: Any) -> str:
    return to_json(value) if isinstance(value, (dict, list)) else shown(value)


def _label(item: Any) -> str:
    """As Argo's `generateNodeName`: without parentheses."""
    if isinstance(item, dict):
        label = ",".join(sorted(f"{key}:{_text(value)}" for key, value in item.items()))
    elif isinstance(item, list):
        label = f"[{' '.join(_text(each) for each in item)}]"
    else:
        label = shown(item)
    return label.replace("(", "").replace(")", "")


def _items(step: Step) -> list[Any]:
    if step.get("withItems"):
        return list(step["withItems"])
    if step.get("withParam"):
        return _from_text(step["withParam"])
    return _sequence(step["withSequence"])


def _from_text(text: str) -> list[Any]:
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as why:
        raise BadLoop(f"withParam value could not be parsed as a JSON list: {text.strip()[:200]}: {why}") from None
    if not isinstance(items, list):
        raise BadLoop(f"withParam value could not be parsed as a JSON list: {text.strip()[:200]}")
    return items


def _sequence(sequence: dict[str, Any]) -> list[str]:
    start = _whole(sequence.get("start", 0))
    if sequence.get("end") not in (None, ""):
        end = _whole(sequence["end"])
    elif sequence.get("count") not in (None, ""):
        count = _whole(sequence["count"])
        if count <= 0:
            return []
        end = start + count - 1
    else:
        raise BadLoop("neither end nor count was specified in withSequence")
    if abs(end - start) >= MOST_ITEMS:
        raise BadLoop(f"withSequence has {abs(end - start) + 1} items; at most {MOST_ITEMS} are carried out")
    style = str(sequence.get("format") or "%d")
    if len(style) > _LONGEST_FORMAT:
        raise BadLoop(f"withSequence.format is longer than {_LONGEST_FORMAT:,} characters")
    if not _FORMAT.search(style) or style.count("%") != 1:
        raise BadLoop(f"withSequence.format {style!r} is not served: one verb such as %d, %02x")
    numbers = range(start, end + 1) if start <= end else range(start, end - 1, -1)
    return [_FORMAT.sub(lambda match, number=number: _formatted(match[0], number), style) for number in numbers]  # type: ignore[misc]


def _formatted(verb: str, number: int) -> str:
    return f"{number:b}".rjust(int(re.sub(r"\D", "", verb) or 0)) if verb.endswith("b") else verb % number


def _whole(value: Any) -> int:
    try:
        return int(str(value))
    except ValueError:
        raise BadLoop(f"withSequence takes whole numbers, not {value!r}") from None
