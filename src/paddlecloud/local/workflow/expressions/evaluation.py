"""The value of an expression: `evaluate(text, variables)`.

Semantics are those of expr-lang's virtual machine (vm/vm.go, vm/runtime): a key that a map does not have is nil, a
member of nil is an error, `/` gives a float. There is no type check before: what expr-lang refuses for its types alone,
though it would have a value (`1 == "a"`), has that value here. `variables` hold plain values, maps of them, and the
functions that the caller offers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from paddlecloud.api.pattern import PatternError, TooCostly, compile_pattern
from paddlecloud.local.workflow.expressions import functions
from paddlecloud.local.workflow.expressions.budget import Budget, take_work
from paddlecloud.local.workflow.expressions.parser import PREDICATES, parse
from paddlecloud.local.workflow.expressions.tokens import ExpressionError
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
from paddlecloud.local.workflow.expressions.values import Value, equal, is_number, is_whole, to_int, type_name, wrapped

Variables = Mapping[str, Value]

_LONGEST_KEPT = 1024
"""Characters of an expression whose tree is kept: trees take some hundred bytes for each sign."""

_kept = lru_cache(maxsize=512)(parse)


def parsed(text: str) -> Node:
    if len(text) <= _LONGEST_KEPT:
        return _kept(text)
    take_work(len(text))
    return parse(text)


def evaluate(text: str, variables: Variables) -> Value:
    """Raises `ExpressionError`: no expression, an unknown name, types that do not go together, or too much work."""
    try:
        return _Evaluation(dict(variables), Budget()).value(parsed(text))
    except RecursionError:
        raise ExpressionError("the expression has too many operators in one chain") from None


class _NilChain(Exception):
    """`a?.b` where `a` is nil: the whole chain is."""


class _Evaluation:
    def __init__(self, variables: dict[str, Value], budget: Budget) -> None:
        self._variables = variables
        self._budget = budget
        self._pointers: list[dict[str, Value]] = []

    def value(self, node: Node) -> Value:
        self._budget.step()
        return _RULES[type(node)](self, node)

    # Leaves

    def _literal(self, node: Literal) -> Value:
        return node.value

    def _name(self, node: Name) -> Value:
        if node.name == "$env":
            return self._variables
        if node.name not in self._variables:
            raise ExpressionError(f"unknown name {node.name}")
        return self._variables[node.name]

    def _pointer(self, node: Pointer) -> Value:
        if not self._pointers or node.name not in self._pointers[-1]:
            raise ExpressionError(f"unknown pointer #{node.name}")
        return self._pointers[-1][node.name]

    # Operators

    def _unary(self, node: Unary) -> Value:
        value = self.value(node.operand)
        if node.sign in ("not", "!"):
            return not _boolean(value, node.sign)
        if not is_number(value):
            raise ExpressionError(f"invalid operation: {node.sign} {type_name(value)}")
        return value if node.sign == "+" else _number(-value)

    def _binary(self, node: Binary) -> Value:
        sign, left = node.sign, self.value(node.left)
        if sign == "??":
            return self.value(node.right) if left is None else left
        if sign in ("&&", "and"):
            return self.value(node.right) if _boolean(left, sign) else False
        if sign in ("||", "or"):
            return True if _boolean(left, sign) else self.value(node.right)
        right = self.value(node.right)
        if sign == "..":
            return self._range(left, right)
        self._spend_on(sign, left, right)
        return self._budget.counted(_OPERATORS[sign](left, right))

    def _spend_on(self, sign: str, left: Value, right: Value) -> None:
        """Operators that go through their operands: texts at the speed of memory, all else element by element."""
        if sign == "matches" and isinstance(left, str) and isinstance(right, str):
            self._budget.spend((len(left) + 1) * (len(right) + 1))
        elif isinstance(left, str) and isinstance(right, str):
            self._budget.spend((len(left) + len(right)) // 16)
        elif sign in ("==", "!="):
            self._budget.whole(left, right)
        elif sign == "in" and isinstance(right, list):
            self._budget.whole(right)
            self._budget.elements(len(right) * (len(left) if isinstance(left, (list, dict)) else 0))

    def _range(self, first: Value, last: Value) -> list[int]:
        start, end = to_int(first), to_int(last)
        self._budget.elements(max(0, end - start + 1))
        return list(range(start, end + 1))

    def _choice(self, node: Choice) -> Value:
        return self.value(node.yes if _boolean(self.value(node.condition), "?") else node.no)

    def _let(self, node: Let) -> Value:
        if node.name in self._variables:
            raise ExpressionError(f"cannot redeclare {node.name}")
        self._variables[node.name] = self.value(node.value)
        try:
            return self.value(node.then)
        finally:
            del self._variables[node.name]

    def _sequence(self, node: Sequence) -> Value:
        return [self.value(each) for each in node.nodes][-1]

    # Members

    def _chain(self, node: Chain) -> Value:
        try:
            return self.value(node.of)
        except _NilChain:
            return None

    def _member(self, node: Member) -> Value:
        of = self.value(node.of)
        if of is None and node.optional:
            raise _NilChain
        if isinstance(of, str) and not of.isascii():
            self._budget.spend(len(of))
        return functions.fetch(of, self.value(node.key))

    def _slice(self, node: Slice) -> Value:
        of = self.value(node.of)
        if not isinstance(of, (str, list)):
            raise ExpressionError(f"cannot slice {type_name(of)}")
        start = 0 if node.start is None else to_int(self.value(node.start))
        end = None if node.end is None else to_int(self.value(node.end))
        if isinstance(of, list):
            return self._budget.counted(of[start:end])
        if of.isascii():
            return self._budget.counted(of[start:end])
        self._budget.spend(len(of))
        return self._budget.counted(of.encode()[start:end].decode(errors="replace"))

    # What is built

    def _array(self, node: Array) -> list[Value]:
        return self._budget.counted([self.value(each) for each in node.items])

    def _map(self, node: Map) -> dict[str, Value]:
        made = {}
        for key_node, value_node in node.pairs:
            key = self.value(key_node)
            if not isinstance(key, str):
                raise ExpressionError(f"a key of a map is a string, not {type_name(key)}")
            made[key] = self.value(value_node)
        return self._budget.counted(made)

    # Functions

    def _call(self, node: Call) -> Value:
        if isinstance(node.function, Name):
            name = node.function.name
            if name not in self._variables:
                if name in PREDICATES:
                    return self._budget.counted(self._over_elements(name, node.arguments))
                if name in functions.BUILT_IN:
                    arguments = [self.value(each) for each in node.arguments]
                    return self._budget.counted(functions.call(name, functions.BUILT_IN[name], arguments, self._budget))
            label = name
        else:
            label = "function"
            if isinstance(node.function, Member) and isinstance(node.function.key, Literal):
                label = str(node.function.key.value)
        function = self.value(node.function)
        if not callable(function):
            raise ExpressionError(f"{label} is no function")
        arguments = [self.value(each) for each in node.arguments]
        return self._budget.counted(functions.call(label, function, arguments, self._budget))

    def _over_elements(self, name: str, arguments: tuple[Node, ...]) -> Value:
        if not 1 <= len(arguments) <= PREDICATES[name] or (len(arguments) < 2 and name not in ("count", "sum")):
            raise ExpressionError(f"{name}: {len(arguments)} arguments")
        elements = self.value(arguments[0])
        if not isinstance(elements, list):
            raise ExpressionError(f"builtin {name} takes an array, not {type_name(elements)}")
        predicate = arguments[1] if len(arguments) > 1 else None
        rest = [self.value(each) for each in arguments[2:]]
        if name == "reduce":
            return self._reduce(elements, predicate, rest)
        if name in ("findLast", "findLastIndex"):
            return self._find_last(name, elements, predicate)
        return functions.OVER_ELEMENTS[name](elements, self._results(elements, predicate), *rest)

    def _results(self, items: list[Value], predicate: Node | None) -> Iterator[Value]:
        """What the predicate says of each element, asked only as far as the function looks."""
        for index, item in enumerate(items):
            yield item if predicate is None else self._of_element(predicate, item, index)

    def _of_element(self, predicate: Node, item: Value, index: int, **more: Value) -> Value:
        self._pointers.append({"": item, "index": index, **more})
        try:
            return self.value(predicate)
        finally:
            self._pointers.pop()

    def _find_last(self, name: str, items: list[Value], predicate: Node | None) -> Value:
        assert predicate is not None
        for index in reversed(range(len(items))):
            if functions.truth(self._of_element(predicate, items[index], index)):
                return index if name == "findLastIndex" else items[index]
        return None

    def _reduce(self, items: list[Value], predicate: Node | None, rest: list[Value]) -> Value:
        assert predicate is not None
        if not items and not rest:
            raise ExpressionError("reduce of empty array with no initial value")
        value, start = (rest[0], 0) if rest else (items[0], 1)
        for index in range(start, len(items)):
            value = self._of_element(predicate, items[index], index, acc=value)
        return value


_RULES: dict[type[Node], Callable[[_Evaluation, Any], Value]] = {
    Literal: _Evaluation._literal,
    Name: _Evaluation._name,
    Pointer: _Evaluation._pointer,
    Unary: _Evaluation._unary,
    Binary: _Evaluation._binary,
    Choice: _Evaluation._choice,
    Let: _Evaluation._let,
    Sequence: _Evaluation._sequence,
    Chain: _Evaluation._chain,
    Member: _Evaluation._member,
    Slice: _Evaluation._slice,
    Array: _Evaluation._array,
    Map: _Evaluation._map,
    Call: _Evaluation._call,
}


def _boolean(value: Value, sign: str) -> bool:
    if not isinstance(value, bool):
        raise ExpressionError(f"invalid operation: {sign} needs a bool, not {type_name(value)}")
    return value


def _number(value: int | float) -> int | float:
    return wrapped(value) if isinstance(value, int) else value


def _mismatch(sign: str, a: Value, b: Value) -> ExpressionError:
    return ExpressionError(f"invalid operation: {type_name(a)} {sign} {type_name(b)}")


def _plus(a: Value, b: Value) -> Value:
    if isinstance(a, str) and isinstance(b, str):
        return a + b
    return _arithmetic("+", lambda x, y: x + y)(a, b)


def _arithmetic(sign: str, rule: Callable[[Any, Any], Any]) -> Callable[[Value, Value], Value]:
    def applied(a: Value, b: Value) -> Value:
        if not (is_number(a) and is_number(b)):
            raise _mismatch(sign, a, b)
        return _number(rule(a, b))

    return applied


def _divided(a: float, b: float) -> float:
    a, b = float(a), float(b)
    if b != 0:
        return a / b
    return math.nan if a == 0 or math.isnan(a) else math.copysign(math.inf, a) * math.copysign(1, b)


def _power(a: float, b: float) -> float:
    try:
        return math.pow(a, b)
    except OverflowError:
        return math.inf
    except ValueError:
        return math.nan


def _remainder(a: Value, b: Value) -> int:
    """With the sign of the dividend, as in Go."""
    if not (is_whole(a) and is_whole(b)):
        raise _mismatch("%", a, b)
    if b == 0:
        raise ExpressionError("integer divide by zero")
    return (1 if a >= 0 else -1) * int(abs(a) % abs(b))


def _ordered(sign: str, rule: Callable[[Any, Any], bool]) -> Callable[[Value, Value], bool]:
    def applied(a: Value, b: Value) -> bool:
        if (is_number(a) and is_number(b)) or (isinstance(a, str) and isinstance(b, str)):
            return rule(a, b)
        raise _mismatch(sign, a, b)

    return applied


def _of_strings(sign: str, rule: Callable[[str, str], bool]) -> Callable[[Value, Value], bool]:
    def applied(a: Value, b: Value) -> bool:
        if a is None or b is None:
            return False
        if not (isinstance(a, str) and isinstance(b, str)):
            raise _mismatch(sign, a, b)
        return rule(a, b)

    return applied


def _matches(text: str, pattern: str) -> bool:
    try:
        return compile_pattern(pattern).search(text)
    except PatternError as why:
        raise ExpressionError(f"{pattern!r} is no regular expression: {why}") from None
    except TooCostly:
        raise ExpressionError("matching the regular expression takes too long") from None


def _among(a: Value, b: Value) -> bool:
    if b is None:
        return False
    if isinstance(b, list):
        return any(equal(each, a) for each in b)
    if isinstance(b, dict):
        return isinstance(a, str) and a in b
    raise ExpressionError(f'operator "in" not defined on {type_name(b)}')


_OPERATORS: dict[str, Callable[[Value, Value], Value]] = {
    "+": _plus,
    "-": _arithmetic("-", lambda a, b: a - b),
    "*": _arithmetic("*", lambda a, b: a * b),
    "/": _arithmetic("/", _divided),
    "%": _remainder,
    "**": _arithmetic("**", _power),
    "^": _arithmetic("^", _power),
    "==": equal,
    "!=": lambda a, b: not equal(a, b),
    "<": _ordered("<", lambda a, b: a < b),
    ">": _ordered(">", lambda a, b: a > b),
    "<=": _ordered("<=", lambda a, b: a <= b),
    ">=": _ordered(">=", lambda a, b: a >= b),
    "in": _among,
    "contains": _of_strings("contains", lambda a, b: b in a),
    "startsWith": _of_strings("startsWith", str.startswith),
    "endsWith": _of_strings("endsWith", str.endswith),
    "matches": _of_strings("matches", _matches),
}
