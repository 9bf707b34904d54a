"""The condition of a task (`triggerPolicy.condition`, in CEL) as an expression of Argo. Pure.

kfp writes comparisons of inputs and constants, joined by `&&`, `||` and `!`, with `int()`, `double()` and `string()`
around inputs. Nothing else is accepted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from paddlecloud.pipelines.ir.errors import InvalidPipeline
from paddlecloud.pipelines.ir.sources import ValueSource, quoted

LONGEST = 16 * 1024
_TOKENS = re.compile(
    r"""\s*(?:
      (?P<input>inputs\.parameter_values\[(?P<quote>['"])(?P<name>[^'"]+)(?P=quote)\])
    | (?P<text>'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")
    | (?P<number>-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?)
    | (?P<word>true|false|int|double|string|bool)\b
    | (?P<sign>==|!=|<=|>=|<|>|&&|\|\||!|\(|\))
    )""",
    re.VERBOSE,
)
_FUNCTIONS = {"int": "int", "double": "float", "string": "string"}


def when_of(condition: str, inputs: Mapping[str, ValueSource], path: str) -> str:
    """The expression without its braces."""
    if len(condition) > LONGEST:
        raise InvalidPipeline(path, f"a condition has at most {LONGEST:,} characters")
    made: list[str] = []
    at, text = 0, condition.rstrip()
    while at < len(text):
        match = _TOKENS.match(text, at)
        if match is None:
            raise InvalidPipeline(
                path, f"cannot be read at {text[at : at + 30]!r}: conditions compare inputs and constants"
            )
        made.append(_code(match, inputs, path))
        at = match.end()
    if made.count("(") != made.count(")"):
        raise InvalidPipeline(path, "brackets do not match")
    return " ".join(made)


def _code(match: re.Match[str], inputs: Mapping[str, ValueSource], path: str) -> str:
    if name := match["name"]:
        if name not in inputs:
            raise InvalidPipeline(path, f"compares the input {name!r}, which the task does not have")
        return inputs[name].typed()
    if text := match["text"]:
        return quoted(re.sub(r"\\(.)", r"\1", text[1:-1]))
    if word := match["word"]:
        if word == "bool":
            raise InvalidPipeline(path, "bool() is not carried out; compare with true or false")
        return _FUNCTIONS.get(word, word)
    return match["number"] or match["sign"]
