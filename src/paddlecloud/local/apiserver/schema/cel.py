"""Expressions of CEL, as far as rules between the fields of one object need them.

The subset: literals, `self`, `oldSelf` and their fields, `has()`, `size()`, indexes, lists, `in`, comparisons,
`contains()`, `startsWith()` and `endsWith()` of strings, whole-number and floating-point arithmetic, `+` of strings and
of lists, `!`, `&&`, `||` and `? :`, and `matches()` of an expression that is written out, which is matched in linear
time (`api.pattern`). There are no macros over lists, so an expression takes time in proportion to its own length and
that of the strings and lists that it names. Everything else is `Unsupported`: the caller decides what to do with such a
rule. Semantics are those of the language definition (google/cel-spec,
doc/langdef.md): whole numbers have 64 bits and overflow is an error, `&&` and `||` ignore an error on one side where
the other decides.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from paddlecloud.api.pattern import PatternError, TooCostly, compile_pattern
from paddlecloud.local.apiserver.schema import cel_operations as ops
from paddlecloud.local.apiserver.schema.cel_operations import EvaluationError, Expression, Value

LONGEST = 4096
"""Characters of an expression; longer ones are not evaluated."""
_DEEPEST = 40

_TOKEN = re.compile(
    r"\s*(?:(?P<number>(?:\d+\.\d+(?:[eE][+-]?\d+)?|\d+))(?![\w.])"
    r"|(?P<name>[A-Za-z_]\w*)"
    r"|(?P<string>\"[^\"\\\n]*\"|'[^'\\\n]*')"
    r"|(?P<sign>&&|\|\||[=!<>]=|[-+*/%<>!?:.,()\[\]]))"
)
_WORDS: dict[str, Any] = {"true": True, "false": False, "null": None}
_VARIABLES = {"self": 0, "oldSelf": 1}


class CompiledRule(NamedTuple):
    expression: Expression
    transition: bool
    """Whether it names `oldSelf`: such a rule is judged only where a value replaces another."""

    def __call__(self, value: Value, old: Value = None) -> Value:
        return self.expression((value, old))


class Unsupported(ValueError):
    """The text is no expression of the subset; the message says what is not understood."""


def compile_rule(text: str) -> CompiledRule:
    """The expression as a function of `self` and `oldSelf`."""
    if len(text) > LONGEST:
        raise Unsupported(f"longer than {LONGEST} characters")
    parser = _Parser(_tokens(text))
    expression = parser.ternary(0)
    parser.expect_end()
    return CompiledRule(expression, parser.transition)


def _tokens(text: str) -> list[tuple[str, str]]:
    found, at = [], 0
    text = text.rstrip()
    while at < len(text):
        match = _TOKEN.match(text, at)
        if match is None:
            raise Unsupported(f"{text[at:].strip()[:20]!r}")
        found.append((str(match.lastgroup), match[str(match.lastgroup)]))
        at = match.end()
    return found


class _Parser:
    """Precedence climbing, one method per level, as the grammar of the language definition has them."""

    def __init__(self, tokens: list[tuple[str, str]]) -> None:
        self._tokens = tokens
        self._at = 0
        self.transition = False
        self._selected: tuple[Expression, str] | None = None
        """Object and name of the field that was read last; None where it was something else."""

    def expect_end(self) -> None:
        if self._at < len(self._tokens):
            raise Unsupported(f"{self._tokens[self._at][1]!r} after the end")

    def ternary(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise Unsupported("nested too deeply")
        test = self._or(depth)
        if not self._take("?"):
            return test
        then = self.ternary(depth + 1)
        self._expect(":")
        return ops.choice(test, then, self.ternary(depth + 1))

    def _or(self, depth: int) -> Expression:
        return self._chain(depth, self._and, {"||": functools.partial(ops.either, True)})

    def _and(self, depth: int) -> Expression:
        return self._chain(depth, self._relation, {"&&": functools.partial(ops.either, False)})

    def _relation(self, depth: int) -> Expression:
        return self._chain(depth, self._sum, ops.RELATIONS)

    def _sum(self, depth: int) -> Expression:
        return self._chain(depth, self._product, ops.SUMS)

    def _product(self, depth: int) -> Expression:
        return self._chain(depth, self._unary, ops.PRODUCTS)

    def _chain(
        self,
        depth: int,
        part: Callable[[int], Expression],
        joints: Mapping[str, Callable[[Expression, Expression], Expression]],
    ) -> Expression:
        left, length = part(depth), 0
        while (sign := self._peek()) in joints:
            self._at += 1
            length += 1
            if length > _DEEPEST:
                raise Unsupported(f"more than {_DEEPEST} terms joined by {sign}")
            left = joints[sign](left, part(depth))
        return left

    def _unary(self, depth: int) -> Expression:
        if depth > _DEEPEST:
            raise Unsupported("nested too deeply")
        if self._take("!"):
            return ops.negation(self._unary(depth + 1))
        if self._take("-"):
            return ops.arithmetic(operator.sub, lambda _: 0, self._unary(depth + 1))
        return self._member(depth)

    def _member(self, depth: int) -> Expression:
        value, length = self._primary(depth), 0
        while (sign := self._peek()) in (".", "["):
            self._at += 1
            length += 1
            if length > _DEEPEST:
                raise Unsupported("nested too deeply")
            if sign == "." and self._calls("matches"):
                value = self._matched(value)
                self._selected = None
            elif sign == "." and self._calls(*ops.ON_STRINGS):
                of = ops.ON_STRINGS[self._next()[1]]
                self._expect("(")
                value = ops.string_test(of, value, self.ternary(depth + 1))
                self._expect(")")
                self._selected = None
            elif sign == ".":
                selected = (value, self._field())
                value = ops.index(value, ops.constant(selected[1]))
                self._selected = selected
            else:
                value = ops.index(value, self.ternary(depth + 1))
                self._expect("]")
                self._selected = None
        return value

    def _matched(self, value: Expression) -> Expression:
        self._next()
        self._expect("(")
        kind, text = self._next()
        self._expect(")")
        if kind != "string":
            raise Unsupported("matches() of an expression that is not written out")
        try:
            pattern = compile_pattern(text[1:-1])
        except PatternError as error:
            raise Unsupported(f"matches(): {error}") from None

        def of(found: str, _: str) -> bool:
            try:
                return pattern.search(found)
            except TooCostly:
                raise EvaluationError("matches(): the text is too long for the expression") from None

        return ops.string_test(of, value, ops.constant(""))

    def _calls(self, *names: str) -> bool:
        """Whether one of these functions of strings follows the dot."""
        name, bracket = (text for _, text in (*self._tokens[self._at : self._at + 2], ("", ""), ("", ""))[:2])
        return name in names and bracket == "("

    def _field(self) -> str:
        kind, name = self._next()
        if kind != "name" or name in _WORDS or "__" in name or self._peek() == "(":
            raise Unsupported(f".{name}")
        return name

    def _primary(self, depth: int) -> Expression:
        kind, text = self._next()
        if kind == "number":
            return ops.constant(float(text) if "." in text else ops.whole(int(text)))
        if kind == "string":
            return ops.constant(text[1:-1])
        if kind == "name" and text in _WORDS:
            return ops.constant(_WORDS[text])
        if kind == "name" and text in _VARIABLES:
            self.transition |= text == "oldSelf"
            return operator.itemgetter(_VARIABLES[text])
        if kind == "name" and text == "size" and self._take("("):
            inner = self.ternary(depth + 1)
            self._expect(")")
            return ops.size(inner)
        if kind == "name" and text == "has" and self._take("("):
            self._selected = None
            self._member(depth + 1)
            self._expect(")")
            if self._selected is None:
                raise Unsupported("has() of what is no field")
            return ops.has(*self._selected)
        if text == "(":
            inner = self.ternary(depth + 1)
            self._expect(")")
            return inner
        if text == "[" and kind == "sign":
            return self._list(depth)
        raise Unsupported(repr(text))

    def _list(self, depth: int) -> Expression:
        parts: list[Expression] = []
        while not self._take("]"):
            if parts:
                self._expect(",")
            parts.append(self.ternary(depth + 1))
        return lambda self: [part(self) for part in parts]

    def _peek(self) -> str:
        """The next sign, or the word `in`; strings and numbers are no signs."""
        kind, text = self._tokens[self._at] if self._at < len(self._tokens) else ("", "")
        return text if kind == "sign" or text == "in" else ""

    def _next(self) -> tuple[str, str]:
        if self._at >= len(self._tokens):
            raise Unsupported("the end")
        self._at += 1
        return self._tokens[self._at - 1]

    def _take(self, sign: str) -> bool:
        if self._peek() != sign:
            return False
        self._at += 1
        return True

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise Unsupported(f"no {sign!r} where one is needed")


# --- values -----------------------------------------------------------------------------------------------------------
