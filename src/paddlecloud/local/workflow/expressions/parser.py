"""From the text of an expression to its tree: `parse`. Pure.

Precedence and associativity are those of expr-lang (parser/operator/operator.go): operators are read by precedence
climbing. `not in` and its kin are one operator, comparisons chain (`1 < x < 5`), and `??` needs brackets beside others.
"""

from __future__ import annotations

from paddlecloud.local.workflow.expressions.tokens import ExpressionError, Token, tokens
from paddlecloud.local.workflow.expressions.tree import (
    Array,
    Binary,
    Call,
    Chain,
    Choice,
    Let,
    Literal,
    Map,
    Member,
    Name,
    Node,
    Pointer,
    Sequence,
    Slice,
    Unary,
)

MOST_NODES = 10_000
DEEPEST = 60

_BINARY = {
    "|": 0, "or": 10, "||": 10, "and": 15, "&&": 15,
    "==": 20, "!=": 20, "<": 20, ">": 20, ">=": 20, "<=": 20,
    "in": 20, "matches": 20, "contains": 20, "startsWith": 20, "endsWith": 20,
    "..": 25, "+": 30, "-": 30, "*": 60, "/": 60, "%": 60, "**": 100, "^": 100, "??": 500,
}  # fmt: skip
_UNARY = {"not": 50, "!": 50, "-": 90, "+": 90}
_RIGHT = ("**", "^")
_ORDER = ("<", ">", ">=", "<=")
_NEGATABLE = ("contains", "matches", "startsWith", "endsWith", "in")

PREDICATES = {
    "all": 2, "none": 2, "any": 2, "one": 2, "filter": 2, "map": 2, "find": 2, "findIndex": 2, "findLast": 2,
    "findLastIndex": 2, "count": 2, "sum": 2, "groupBy": 2, "sortBy": 3, "reduce": 3,
}  # fmt: skip
"""Functions whose second argument is evaluated for each element, and the number of their arguments at most."""


def parse(text: str) -> Node:
    return _Parser(tokens(text)).whole()


class _Parser:
    def __init__(self, tokens: list[Token]) -> None:
        if len(tokens) > MOST_NODES:
            raise ExpressionError(f"the expression has more than {MOST_NODES} parts")
        self._tokens = tokens
        self._at = 0
        self._depth = 0
        self._predicates = 0

    # Reading tokens

    @property
    def _now(self) -> Token:
        return self._tokens[self._at]

    def _next(self) -> Token:
        token = self._now
        self._at = min(self._at + 1, len(self._tokens) - 1)
        return token

    def _is(self, *signs: str) -> bool:
        return self._now.kind == "sign" and self._now.text in signs

    def _take(self, sign: str) -> bool:
        if found := self._is(sign):
            self._next()
        return found

    def _expect(self, sign: str) -> None:
        if not self._take(sign):
            raise self._unexpected()

    def _expect_name(self) -> str:
        if self._now.kind != "name":
            raise self._unexpected()
        return self._next().text

    def _unexpected(self) -> ExpressionError:
        if self._now.kind == "end":
            return ExpressionError("unexpected end of expression")
        return ExpressionError(f"unexpected {self._now.text!r} at {self._now.at + 1}")

    # The grammar

    def whole(self) -> Node:
        node = self._sequence()
        if self._now.kind != "end":
            raise self._unexpected()
        return node

    def _sequence(self) -> Node:
        nodes = [self._expression(0)]
        while self._take(";") and self._now.kind != "end":
            nodes.append(self._expression(0))
        return nodes[0] if len(nodes) == 1 else Sequence(tuple(nodes))

    def _expression(self, precedence: int) -> Node:
        self._depth += 1
        if self._depth > DEEPEST:
            raise ExpressionError(f"the expression is nested more than {DEEPEST} times")
        try:
            if precedence == 0 and self._take("let"):
                return self._let()
            if precedence == 0 and self._take("if"):
                return self._if()
            node = self._operators(self._primary(), precedence)
            return self._ternary(node) if precedence == 0 else node
        finally:
            self._depth -= 1

    def _operators(self, left: Node, precedence: int) -> Node:
        before = ""
        while self._now.kind == "sign":
            at = self._at
            negated = self._take("not")
            sign = self._now.text
            if negated and sign not in _NEGATABLE:
                raise self._unexpected()
            if self._now.kind != "sign" or _BINARY.get(sign, -1) < precedence:
                self._at = at
                break
            if before == "??" and sign not in ("??", "|"):
                raise ExpressionError(f"{sign} and ?? cannot be mixed: put one of them in brackets")
            self._next()
            left = self._operator(sign, left)
            left = Unary("not", left) if negated else left
            before = sign
        return left

    def _operator(self, sign: str, left: Node) -> Node:
        if sign == "|":
            return self._postfix(self._call(Name(self._expect_name()), first=(left,)))
        if sign in _ORDER:
            return self._comparison(sign, left)
        right = self._expression(_BINARY[sign] + (0 if sign in _RIGHT else 1))
        return Binary(sign, left, right)

    def _comparison(self, sign: str, left: Node) -> Node:
        """`a < b < c` is `a < b && b < c`."""
        whole: Node | None = None
        while True:
            right = self._expression(_BINARY[sign] + 1)
            one = Binary(sign, left, right)
            whole = one if whole is None else Binary("&&", whole, one)
            if not self._is(*_ORDER):
                return whole
            sign, left = self._next().text, right

    def _let(self) -> Node:
        name = self._expect_name()
        self._expect("=")
        value = self._expression(0)
        self._expect(";")
        return Let(name, value, self._sequence())

    def _if(self) -> Node:
        condition = self._expression(0)
        yes = self._block()
        self._expect("else")
        return Choice(condition, yes, self._if() if self._take("if") else self._block())

    def _block(self) -> Node:
        self._expect("{")
        node = self._sequence()
        self._expect("}")
        return node

    def _ternary(self, node: Node) -> Node:
        while self._take("?"):
            if self._take(":"):
                node = Choice(node, node, self._expression(0))
                continue
            yes = self._expression(0)
            self._expect(":")
            node = Choice(node, yes, self._expression(0))
        return node

    def _primary(self) -> Node:
        if self._now.kind == "sign" and self._now.text in _UNARY:
            sign = self._next().text
            return self._postfix(Unary(sign, self._expression(_UNARY[sign])))
        if self._take("("):
            node = self._sequence()
            self._expect(")")
            return self._postfix(node)
        if self._predicates and self._is("#", "."):
            return self._postfix(self._pointer())
        if self._take("::"):
            return self._postfix(self._call(Name(self._expect_name())))
        return self._value()

    def _pointer(self) -> Node:
        """`#`, `#index`; `.name` is short for `#.name`."""
        if self._is("."):
            return Pointer("")
        sharp = self._next()
        following = self._now
        touching = following.kind == "name" and following.at == sharp.at + 1
        return Pointer(self._next().text if touching else "")

    def _value(self) -> Node:
        token = self._now
        if token.kind == "number":
            self._next()
            return _number(token.text)
        if token.kind == "string":
            self._next()
            return self._postfix(Literal(token.text))
        if token.kind == "name":
            self._next()
            if token.text in ("true", "false", "nil"):
                return Literal({"true": True, "false": False, "nil": None}[token.text])
            return self._postfix(self._call(Name(token.text)) if self._is("(") else Name(token.text))
        if self._is("["):
            return self._postfix(self._array())
        if self._is("{"):
            return self._postfix(self._map())
        raise self._unexpected()

    def _array(self) -> Node:
        self._expect("[")
        items: list[Node] = []
        while not self._is("]"):
            items.append(self._expression(0))
            if not self._take(","):
                break
        self._expect("]")
        return Array(tuple(items))

    def _map(self) -> Node:
        self._expect("{")
        pairs: list[tuple[Node, Node]] = []
        while not self._is("}"):
            if self._now.kind in ("number", "string", "name"):
                key: Node = Literal(self._next().text)
            elif self._is("("):
                key = self._expression(0)
            else:
                raise self._unexpected()
            self._expect(":")
            pairs.append((key, self._expression(0)))
            if not self._take(","):
                break
        self._expect("}")
        return Map(tuple(pairs))

    def _call(self, function: Node, first: tuple[Node, ...] = ()) -> Node:
        """`first` is what a pipe gives: `x | f(y)` is `f(x, y)`."""
        arguments = list(first)
        takes_predicate = isinstance(function, Name) and function.name in PREDICATES
        self._expect("(")
        while not self._is(")"):
            predicate = takes_predicate and len(arguments) == 1
            arguments.append(self._predicate() if predicate else self._expression(0))
            if not self._take(","):
                break
        self._expect(")")
        return Call(function, tuple(arguments))

    def _predicate(self) -> Node:
        self._predicates += 1
        try:
            return self._block() if self._is("{") else self._expression(0)
        finally:
            self._predicates -= 1

    def _postfix(self, node: Node) -> Node:
        while True:
            if self._is(".", "?."):
                node = self._member(node, optional=self._next().text == "?.")
            elif self._is("["):
                node = self._index(node, optional=False)
            else:
                return node

    def _member(self, node: Node, *, optional: bool) -> Node:
        if optional and self._is("["):
            return self._index(node, optional=True)
        token = self._next()
        if token.kind != "name" and not (token.kind == "sign" and token.text.isidentifier()):
            raise ExpressionError(f"expected a name at {token.at + 1}")
        chained = optional or isinstance(node, Chain)
        made: Node = Member(node.of if isinstance(node, Chain) else node, Literal(token.text), optional)
        if self._is("("):
            made = self._call(made)
        return Chain(made) if chained else made

    def _index(self, node: Node, *, optional: bool) -> Node:
        self._expect("[")
        start = None if self._is(":") else self._expression(0)
        if self._take(":"):
            end = None if self._is("]") else self._expression(0)
            self._expect("]")
            return Slice(node, start, end)
        self._expect("]")
        assert start is not None
        made = Member(node, start, optional)
        return Chain(made) if optional else made


def _number(text: str) -> Node:
    digits = text.replace("_", "").lower()
    is_float = not digits.startswith("0x") and any(mark in digits for mark in ".e")
    base = {"0x": 16, "0o": 8, "0b": 2}.get(digits[:2], 10)
    try:
        value: int | float = float(digits) if is_float else int(digits, base)
    except ValueError:
        raise ExpressionError(f"{text[:40]} is no number") from None
    if isinstance(value, int) and value >= 2**63:
        raise ExpressionError(f"{text[:40]} is too large for a whole number")
    return Literal(value)
