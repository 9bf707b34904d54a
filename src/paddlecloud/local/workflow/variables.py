"""Tags in the texts of a workflow: `{{inputs.parameters.x}}` and expressions, `{{=asInt(inputs.parameters.n)}}`. Pure.

As Argo's util/template: a variable that is not known yet is left as it stands (`lenient`), since the same text is
substituted again when more is known; where everything must be known, it is an error. A nested tag,
`{{inputs.parameters.{{item}}}}`, is resolved from the inside out, one level in each pass.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.expressions.budget import ELEMENT, take_work
from paddlecloud.local.workflow.expressions.evaluation import evaluate, parsed
from paddlecloud.local.workflow.expressions.jsonpath import jsonpath
from paddlecloud.local.workflow.expressions.names import names_in
from paddlecloud.local.workflow.expressions.sprig import SPRIG
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
from paddlecloud.local.workflow.expressions.values import Value, to_float, to_int, to_json

Variables = Mapping[str, Any]
"""By their whole name, `inputs.parameters.x`. None is an output that was never made: of a step that was skipped."""

LONGEST_TEXT = 256 * 1024
"""Characters of a text whose tags were replaced; Argo bounds a parameter to as much."""
_LATER = frozenset((
    "item", "retries", "lastRetry.exitCode", "lastRetry.status", "lastRetry.duration", "lastRetry.message",
    "workflow.status", "workflow.failures",
))  # fmt: skip
"""Variables of a later pass: an expression that names one of them waits for it."""
_FUNCTIONS = {"asInt": to_int, "asFloat": to_float, "jsonpath": jsonpath, "toJson": to_json, "sprig": SPRIG}


class UnresolvedVariable(ValueError):
    """A text names a variable that there is not."""


def substitute(value: Value, variables: Variables, *, lenient: bool) -> Value:
    """A copy of anything made of maps, lists and texts, with the tags in its texts replaced."""
    return _Substitution(variables, lenient).of(value)


def unresolved(value: Value, *prefixes: str) -> str | None:
    """The first tag that is left in anything and begins with one of these."""
    if isinstance(value, str):
        return next((tag for tag in tags_in(value) if tag.startswith(prefixes)), None)
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return next((found for each in inner if (found := unresolved(each, *prefixes))), None)


def substitute_text(text: str, variables: Variables, *, lenient: bool) -> str:
    return _Substitution(variables, lenient).text(text)


def tags_in(text: str) -> Iterator[str]:
    """The names of simple tags; expressions are left out."""
    return (inner.strip() for _, _, inner in _tags(text) if not inner.startswith("="))


def _tags(text: str) -> Iterator[tuple[int, int, str]]:
    """Where each tag begins and ends, and what is inside. Linear in the text: a pattern would begin anew at every `{{`
    that is never closed."""
    end = 0
    while (start := text.find("{{", end)) >= 0 and (closing := text.find("}}", start + 2)) >= 0:
        end = closing + 2
        yield start, end, text[start + 2 : closing]


class _Substitution:
    """The same variables for many texts. What expressions see of them is made once, where an expression is met."""

    def __init__(self, variables: Variables, lenient: bool) -> None:
        self._variables = variables
        self._lenient = lenient
        self._nested: dict[str, Any] | None = None

    def of(self, value: Value) -> Value:
        if isinstance(value, str):
            return self.text(value)
        if not isinstance(value, (dict, list)):
            return value
        take_work(0, len(value) * ELEMENT)  # it is copied, whether or not there are tags in it
        if isinstance(value, dict):
            return {key: self.of(each) for key, each in value.items()}
        return [self.of(each) for each in value]

    def text(self, text: str) -> str:
        if "{{" not in text:
            return text
        if text.rfind("{{") > text.rfind("}}"):
            raise UnresolvedVariable("cannot find the end of a tag: }} is missing")
        take_work(0, len(text))
        made, length, at = [], 0, 0
        for start, end, inner in _tags(text):
            replacement = self._replacement(inner)
            take_work(2, len(replacement))
            part = text[at:start] + replacement
            at = end
            made.append(part)
            length += len(part)
            if length > LONGEST_TEXT:
                raise UnresolvedVariable(
                    f"a text is longer than {LONGEST_TEXT:,} characters once its tags are replaced"
                )
        return "".join([*made, text[at:]])

    def _replacement(self, tag: str) -> str:
        if tag.startswith("="):
            return self._expression(tag[1:])
        name = tag.strip()
        if name in self._variables:
            return _as_text(tag, self._variables[name])
        before, opening, inner = tag.rpartition("{{")
        if opening and before and inner in self._variables:
            return "{{" + before + _as_text(tag, self._variables[inner])
        if not self._lenient:
            raise UnresolvedVariable(f"failed to resolve {{{{{tag}}}}}")
        return "{{" + tag + "}}"

    def _expression(self, text: str) -> str:
        whole = "{{=" + text + "}}"
        if self._nested is None:
            self._nested = expression_variables(self._variables)
        try:
            value = None if self._lenient and _waits(text, self._nested) else evaluate(text, self._nested)
        except ExpressionError as why:
            if self._lenient:
                return whole
            raise UnresolvedVariable(f"failed to evaluate expression: {why}") from None
        if value is None:
            if self._lenient:
                return whole
            raise UnresolvedVariable(f"failed to evaluate expression {text!r}: its value is nil")
        return value if isinstance(value, str) else to_json(value)


def _as_text(tag: str, value: Any) -> str:
    if value is None:
        raise UnresolvedVariable(f"unable to substitute {{{{{tag}}}}}: a skipped step made no such output")
    if not isinstance(value, str):
        raise UnresolvedVariable(f"failed to resolve {{{{{tag}}}}} to string")
    return value


def expression_variables(variables: Variables) -> dict[str, Any]:
    """The same variables as expressions see them: as maps in maps, with Argo's functions beside them."""
    take_work(len(variables))
    return {**_nested(variables), **_FUNCTIONS}


def _waits(text: str, nested: dict[str, Any]) -> bool:
    """Whether an expression names a variable of a later pass."""
    try:
        return any(name in _LATER and not _has(nested, name) for name in names_in(parsed(text)))
    except RecursionError:
        return False


def _nested(variables: Variables) -> dict[str, Any]:
    """`{"a.b": 1}` as `{"a": {"b": 1}}`; of `a` and `a.b` the longer name counts."""
    made: dict[str, Any] = {}
    for name in sorted(variables, key=lambda name: name.count(".")):
        *path, last = name.split(".")
        place = made
        for part in path:
            inner = place.get(part)
            if not isinstance(inner, dict):
                inner = place[part] = {}
            place = inner
        place[last] = variables[name]
    return made


def _has(nested: Value, name: str) -> bool:
    for part in name.split("."):
        if not isinstance(nested, dict) or part not in nested:
            return False
        nested = nested[part]
    return True
