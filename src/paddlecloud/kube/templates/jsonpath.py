r"""Kubernetes' dialect of JSONPath: printer columns, `-o jsonpath=`, `--sort-by`, `wait --for=jsonpath=`.

Two forms. A *path* (`.status.conditions[?(@.type=="Ready")].status`, braces and leading dot optional) finds values:
`compile`. A *template* (`{range .items[*]}{.metadata.name}{"\n"}{end}`) writes text: `Template`.

Supported: fields (`.a`, `['a']`, `.a\.b`), indexes (negative too), slices with a step, wildcards, unions, recursive
descent, filters with `== != < <= > >=` or existence, `$` for the whole object, `@` for the current value, quoted text,
`range … end`. Regular expressions and script expressions do not exist in Kubernetes and are refused here too.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube.templates.jsonpath_steps import (
    Descend,
    Field,
    Filter,
    Index,
    JsonPathError,
    Literal,
    Path,
    PathStep,
    Slice,
    Union,
    Wildcard,
    to_text,
)

__all__ = ("JsonPathError", "Template", "compile", "to_text")


def compile(text: str) -> Callable[[Any], list[Any]]:  # the name every parser of patterns has
    """A function from an object to the values the path finds in it; what is missing is not found, never an error."""
    path = _parse_path(_relaxed(text))
    names = [step.name for step in path.steps if isinstance(step, Field)]
    if len(names) == len(path.steps):  # plain `.a.b.c`: nearly every printer column
        return lambda obj: _walk(obj, names)
    return lambda obj: path.find(obj, obj, strict=False)


def _walk(value: Any, names: Sequence[str]) -> list[Any]:
    for name in names:
        if not isinstance(value, dict) or name not in value:
            return []
        value = value[name]
    return [value]


class Template:
    """Text with actions in braces. `strict` refuses objects that lack a named field, as `--allow-missing…=false`."""

    def __init__(self, text: str, *, strict: bool = False) -> None:
        self._nodes = _parse_template(text)
        self._strict = strict

    def render(self, obj: Any) -> str:
        out: list[str] = []
        self._write(self._nodes, obj, obj, out)
        return "".join(out)

    def _write(self, nodes: Iterable[_Node], value: Any, root: Any, out: list[str]) -> None:
        for node in nodes:
            if isinstance(node, str):
                out.append(node)
            elif isinstance(node, Path):
                found = node.find(value, root, strict=self._strict)
                out.append(" ".join(map(to_text, found)))
            else:
                for item in node.path.find(value, root, strict=self._strict):
                    self._write(node.body, item, root, out)


@dataclass(frozen=True, slots=True)
class _Range:
    path: Path
    body: list[_Node]


_Node = str | Path | _Range

# --- parsing ---

_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<=": operator.le,
    ">=": operator.ge,
    "<": operator.lt,
    ">": operator.gt,
}
_SPACE = re.compile(r"\s*")
_FIELD = re.compile(r"(?:\\.|[^\s.\[\](){}|,\"'$@?=!<>*\\])+")
_INTEGER = re.compile(r"[+-]?\d+")
_SLICE = re.compile(r"\s*([+-]?\d+)?\s*:\s*([+-]?\d+)?\s*(?::\s*([+-]?\d+)?\s*)?(?=\])")
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")
_QUOTED = re.compile(r"\"((?:\\.|[^\"\\])*)\"|'((?:\\.|[^'\\])*)'", re.DOTALL)
_WORDS = {"true": True, "false": False, "null": None, "nil": None}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r"}
_COMPARISON = re.compile(r"==|!=|<=|>=|<|>")
_DEEPEST = 32  # filters within filters, ranges within ranges


def _relaxed(text: str) -> str:
    """`x.y`, `.x.y`, `{x.y}` and `{.x.y}` are the same path."""
    text = text.strip()
    if text.startswith("{") and text.endswith("}"):
        text = text[1:-1].strip()
    return text if text[:1] in ("", ".", "[", "$", "@") else f".{text}"


def _parse_path(text: str) -> Path:
    scanner = _Scanner(text)
    path = scanner.path()
    scanner.space()
    if scanner.at < len(text):
        raise scanner.error()
    return path


def _parse_template(text: str) -> list[_Node]:
    scanner = _Scanner(text)
    stack: list[tuple[Path | None, list[_Node]]] = [(None, [])]
    while scanner.at < len(text):
        brace = text.find("{", scanner.at)
        if brace != scanner.at:
            literal = text[scanner.at : brace if brace >= 0 else None]
            stack[-1][1].append(literal)
            scanner.at += len(literal)
            continue
        scanner.at += 1
        _parse_action(scanner, stack)
    if len(stack) > 1:
        raise JsonPathError(f"unclosed range in {text!r}: add {{end}}")
    return stack[0][1]


def _parse_action(scanner: _Scanner, stack: list[tuple[Path | None, list[_Node]]]) -> None:
    """One `{...}`: any number of texts and paths, or `range PATH`, or `end`."""
    while True:
        scanner.space()
        if scanner.take("}"):
            return
        if scanner.word("range"):
            if len(stack) > _DEEPEST:
                raise JsonPathError(f"more than {_DEEPEST} ranges within each other")
            scanner.space()
            stack.append((scanner.path(), []))
        elif scanner.word("end"):
            path, body = stack.pop()
            if path is None:
                raise JsonPathError("not in range, nothing to end")
            stack[-1][1].append(_Range(path, body))
        elif (quoted := scanner.quoted()) is not None:
            stack[-1][1].append(quoted)
        else:
            stack[-1][1].append(scanner.path())


class _Scanner:
    """Recursive descent over the text; `at` is where it stands."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._depth = 0

    def error(self, expected: str = "") -> JsonPathError:
        where = self.text[self.at : self.at + 20] or "the end"
        hint = f", expected {expected}" if expected else ""
        return JsonPathError(f"unrecognized JSONPath at {where!r} in {self.text!r}{hint}")

    def space(self) -> None:
        if match := _SPACE.match(self.text, self.at):
            self.at = match.end()

    def take(self, token: str) -> bool:
        if self.text.startswith(token, self.at):
            self.at += len(token)
            return True
        return False

    def word(self, word: str) -> bool:
        match = re.compile(rf"{word}\b").match(self.text, self.at)
        self.at = match.end() if match else self.at
        return match is not None

    def quoted(self) -> str | None:
        match = _QUOTED.match(self.text, self.at)
        if match is None:
            return None
        self.at = match.end()
        body = match[1] if match[1] is not None else match[2]
        return re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), body, flags=re.DOTALL)

    def path(self) -> Path:
        start = self.at
        from_root = self.take("$")
        if not from_root:
            self.take("@")
        steps: list[PathStep] = []
        while True:
            if self.take(".."):
                steps.append(Descend())
                if self.text[self.at : self.at + 1] not in ("[", "*"):
                    steps.append(Field(self._field()))
                elif self.take("*"):
                    steps.append(Wildcard())
            elif self.take("."):
                if self.take("*"):
                    steps.append(Wildcard())
                elif self.text[self.at : self.at + 1] not in ("", "[", "}", " ", ")"):
                    steps.append(Field(self._field()))
            elif self.take("["):
                steps.append(self._bracket())
            else:
                break
        if self.at == start and self.text:
            raise self.error("a path such as .metadata.name")
        return Path(tuple(steps), from_root)

    def _field(self) -> str:
        match = _FIELD.match(self.text, self.at)
        if match is None:
            raise self.error("a field name")
        self.at = match.end()
        return re.sub(r"\\(.)", r"\1", match[0])

    def _bracket(self) -> PathStep:
        self.space()
        if self.take("?("):
            step = self._filter()
        elif match := _SLICE.match(self.text, self.at):
            self.at = match.end()
            start, stop, stride = (int(part) if part else None for part in match.groups())
            if stride is not None and stride <= 0:
                raise JsonPathError(f"step of a slice must be positive, is {stride}")
            step = Slice(start, stop, stride)
        else:
            members = [self._member()]
            self.space()
            while self.take(","):
                members.append(self._member())
                self.space()
            step = members[0] if len(members) == 1 else Union(tuple(members))
        self.space()
        if not self.take("]"):
            raise self.error("]")
        return step

    def _member(self) -> PathStep:
        self.space()
        if self.take("*"):
            return Wildcard()
        if (name := self.quoted()) is not None:
            return Field(name)
        if match := _INTEGER.match(self.text, self.at):
            self.at = match.end()
            return Index(int(match[0]))
        return Field(self._field())

    def _filter(self) -> PathStep:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise JsonPathError(f"more than {_DEEPEST} filters within each other")
        left = self._operand()
        self.space()
        compare = right = None
        if match := _COMPARISON.match(self.text, self.at):
            self.at = match.end()
            compare = _COMPARISONS[match[0]]
            right = self._operand()
            self.space()
        if not self.take(")"):
            raise self.error(")")
        self._depth -= 1
        return Filter(left, compare, right)

    def _operand(self) -> PathStep:
        self.space()
        if (quoted := self.quoted()) is not None:
            return Literal(quoted)
        if match := _NUMBER.match(self.text, self.at):
            self.at = match.end()
            return Literal(float(match[0]) if match[1] else int(match[0]))
        for word, value in _WORDS.items():
            if self.word(word):
                return Literal(value)
        return self.path()
