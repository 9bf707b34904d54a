"""Placeholders of kfp in commands and arguments: `{{$.inputs.parameters['x']}}`, IfPresent, Concat. Pure.

`arguments` settles what is known when a pipeline is translated: which inputs are there. `parts` takes a text apart:
`steps.py` puts Argo's tags in place of placeholders. `step_starter.py`, which imports nothing, has its own reader.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from paddlecloud.pipelines.ir.errors import InvalidPipeline

EXECUTOR_INPUT = "{{$}}"
_PLACEHOLDER = re.compile(r"\{\{\$(?P<path>[^{}]*)\}\}")
_PATH = re.compile(
    r"""\.(?P<side>inputs|outputs)\.(?P<what>parameters|artifacts)\[(?P<quote>['"])(?P<name>[^'"]+)(?P=quote)\]
    (?:\.(?P<field>path|uri|output_file|metadata)(?:\[(?P<inner>['"])(?P<key>[^'"]+)(?P=inner)\])?)?""",
    re.VERBOSE,
)
_DEEPEST = 20


class Placeholder:
    """`$.inputs.artifacts['data'].metadata['rows']`; `word` is the rest of one that names no input or output."""

    def __init__(self, path: str) -> None:
        self.text = path
        match = _PATH.fullmatch(path)
        self.side = match["side"] if match else ""
        self.what = match["what"] if match else ""
        self.name = match["name"] if match else ""
        self.field = (match["field"] or "") if match else ""
        self.key = (match["key"] or "") if match else ""
        self.word = "" if match else path.removeprefix(".")


def parts(text: str) -> Iterator[str | Placeholder]:
    at = 0
    for match in _PLACEHOLDER.finditer(text):
        if match.start() > at:
            yield text[at : match.start()]
        yield Placeholder(match["path"])
        at = match.end()
    if at < len(text):
        yield text[at:]


def arguments(texts: Sequence[str], present: Collection[str], path: str) -> list[str]:
    """With IfPresent and Concat settled, and without what belongs to inputs that are not there."""
    made: list[str] = []
    for index, text in enumerate(texts):
        made += _settled(_structure(text), present, f"{path}[{index}]", 0)
    return made


def _structure(text: str) -> Any:
    """kfp writes IfPresent and Concat as JSON into one argument."""
    if not (text.startswith("{") and ('"IfPresent"' in text or '"Concat"' in text)):
        return text
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return found if isinstance(found, dict) and set(found) <= {"IfPresent", "Concat"} else text


def _settled(value: Any, present: Collection[str], path: str, depth: int) -> list[str]:
    if depth > _DEEPEST:
        raise InvalidPipeline(path, f"placeholders are nested more than {_DEEPEST} deep")
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [each for inner in value for each in _settled(inner, present, path, depth + 1)]
    if isinstance(value, dict) and isinstance(value.get("Concat"), list):
        return ["".join(_settled(value["Concat"], present, path, depth + 1))]
    if isinstance(value, dict) and isinstance(choice := value.get("IfPresent"), dict):
        chosen = choice.get("Then") if choice.get("InputName") in present else choice.get("Else")
        return [] if chosen is None else _settled(chosen, present, path, depth + 1)
    raise InvalidPipeline(path, f"is neither a text nor Concat nor IfPresent: {str(value)[:60]!r}")
