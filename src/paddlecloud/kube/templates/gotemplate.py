r"""Go's templates on objects of the API: `-o go-template=`, with what kubectl prints for the same template and object.

Values are decoded JSON: whole numbers are integers as in kubectl, others float64, and the two cannot be compared.
Functions are those of text/template, but for `call`, and kubectl's `exists` and `base64decode`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from paddlecloud.kube.templates.gotemplate_functions import FUNCTIONS, MISSING, is_true, to_text
from paddlecloud.kube.templates.gotemplate_parse import (
    Branch,
    Chain,
    Dot,
    Function,
    GoTemplateError,
    Invoke,
    Leave,
    Literal,
    Nil,
    Parsed,
    Pipe,
    Text,
    Variable,
    parse,
)

__all__ = ("GoTemplate", "GoTemplateError")

DEEPEST = 100
"""Templates may call themselves; Go stops them at 100,000."""


class GoTemplate:
    def __init__(self, text: str) -> None:
        self._parsed = parse(text, {*FUNCTIONS, "and", "or"})

    def render(self, value: Any) -> str:
        """Raises `GoTemplateError` where the object is not what the template takes it for."""
        return "".join(_Run(self._parsed, value).main())


class _Left(Exception):
    """A `break` or `continue` on its way to its range."""

    def __init__(self, word: str) -> None:
        self.word = word


class _Run:
    def __init__(self, parsed: Parsed, data: Any, depth: int = 0) -> None:
        self._parsed = parsed
        self._variables: list[tuple[str, Any]] = [("$", data)]
        self._dot = data
        self._depth = depth

    def main(self) -> Iterator[str]:
        return self._write(self._parsed.main, self._dot)

    def _write(self, nodes: Iterable[Any], dot: Any) -> Iterator[str]:
        for node in nodes:
            if isinstance(node, Text):
                yield node.text
            elif isinstance(node, Pipe):
                value = self._value(node, dot)
                if not node.variables:
                    yield "<no value>" if value is None or value is MISSING else to_text(value)
            elif isinstance(node, Branch):
                known = len(self._variables)
                yield from (self._range if node.word == "range" else self._choice)(node, dot)
                del self._variables[known:]
            elif isinstance(node, Invoke):
                yield from self._invoke(node, dot)
            elif isinstance(node, Leave):
                raise _Left(node.word)

    def _choice(self, node: Branch, dot: Any) -> Iterator[str]:
        value = self._value(node.pipe, dot)
        if is_true(value):
            yield from self._write(node.body, value if node.word == "with" else dot)
        else:
            yield from self._write(node.otherwise, dot)

    def _range(self, node: Branch, dot: Any) -> Iterator[str]:
        names = node.pipe.variables
        value = self._value(Pipe(node.pipe.commands), dot)
        items = _items(value)
        if not items:
            yield from self._write(node.otherwise, dot)
        known = len(self._variables)
        for key, item in items:
            self._variables += zip(names, (key, item) if len(names) == 2 else (item,), strict=False)
            try:
                yield from self._write(node.body, item)
            except _Left as left:
                if left.word == "break":
                    return
            finally:
                del self._variables[known:]

    def _invoke(self, node: Invoke, dot: Any) -> Iterator[str]:
        body = self._parsed.named.get(node.name)
        if body is None:
            raise GoTemplateError(f'template "{node.name}" not defined')
        if self._depth >= DEEPEST:
            raise GoTemplateError(f"templates call each other more than {DEEPEST} deep")
        value = self._value(node.pipe, dot) if node.pipe else None
        yield from _Run(self._parsed, value, self._depth + 1)._write(body, value)

    def _value(self, pipe: Pipe, dot: Any) -> Any:
        given: tuple[Any, ...] = ()
        for command in pipe.commands:
            given = (self._command(command, dot, given),)
        for name in pipe.variables:
            if pipe.declares:
                self._variables.append((name, given[0]))
            else:
                place = max(index for index, (known, _) in enumerate(self._variables) if known == name)
                self._variables[place] = (name, given[0])
        return given[0]

    def _command(self, command: Sequence[Any], dot: Any, final: tuple[Any, ...]) -> Any:
        first, *rest = command
        if not isinstance(first, Function):
            if rest or final:
                raise GoTemplateError("an argument is given to what is no function")
            if isinstance(first, Nil):
                raise GoTemplateError("nil is not a command")
            return self._operand(first, dot)
        if first.name in ("and", "or"):
            return self._shortened(first.name, rest, dot, final)
        arguments = [self._operand(one, dot) for one in rest]
        try:
            return FUNCTIONS[first.name](*arguments, *final)
        except TypeError as error:
            raise GoTemplateError(f"{first.name}: wrong number of arguments") from error

    def _shortened(self, name: str, operands: Sequence[Any], dot: Any, final: tuple[Any, ...]) -> Any:
        """`and` and `or` evaluate no more than they need."""
        value: Any = MISSING
        for operand in operands:
            value = self._operand(operand, dot)
            if is_true(value) is (name == "or"):
                return value
        if not operands and not final:
            raise GoTemplateError(f"{name}: wrong number of arguments")
        return final[0] if final else value

    def _operand(self, node: Any, dot: Any) -> Any:
        if isinstance(node, Literal):
            return node.value
        if isinstance(node, Dot):
            return dot
        if isinstance(node, Nil):
            return None
        if isinstance(node, Variable):
            return next(value for name, value in reversed(self._variables) if name == node.name)
        if isinstance(node, Chain):
            return _fields(self._operand(node.base, dot), node.names)
        if isinstance(node, Pipe):
            return self._value(node, dot)
        return self._command((node,), dot, ())  # a function without arguments


def _fields(value: Any, names: Iterable[str]) -> Any:
    for name in names:
        if value is None or value is MISSING:
            return MISSING
        if not isinstance(value, Mapping):
            raise GoTemplateError(f"can't evaluate field {name} in type interface {{}}")
        value = value.get(name, MISSING)
    return value


def _items(value: Any) -> list[tuple[Any, Any]]:
    if value is None or value is MISSING:
        return []
    if isinstance(value, Mapping):
        return sorted(value.items())
    if isinstance(value, list):
        return list(enumerate(value))
    raise GoTemplateError(f"range can't iterate over {to_text(value)}")
