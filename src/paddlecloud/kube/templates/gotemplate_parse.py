r"""The syntax of Go's text/template: text with actions in double braces, into nodes that `gotemplate` carries out.

Understood: `{{pipeline}}`, `if`, `range`, `with` (each with `else`, `else if`, `else with`), `break`, `continue`,
`define`, `template`, `block`, comments, `{{-` and `-}}`, variables, parentheses, text in quotes or backquotes,
characters and numbers. As in Go's text/template/parse; delimiters cannot be changed.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any


class GoTemplateError(Exception):
    """The template cannot be understood, or not be carried out on the object that it met."""


@dataclass(frozen=True)
class Text:
    text: str


@dataclass(frozen=True)
class Literal:
    value: Any


@dataclass(frozen=True)
class Dot:
    pass


@dataclass(frozen=True)
class Nil:
    pass


@dataclass(frozen=True)
class Function:
    name: str


@dataclass(frozen=True)
class Variable:
    name: str


@dataclass(frozen=True)
class Chain:
    """Fields of a value: `.a.b` of the dot, `$x.a`, `(index .items 0).a`."""

    base: Any
    names: tuple[str, ...]


@dataclass(frozen=True)
class Pipe:
    commands: tuple[tuple[Any, ...], ...]
    variables: tuple[str, ...] = ()
    declares: bool = False


@dataclass(frozen=True)
class Branch:
    """`if`, `with` or `range`."""

    word: str
    pipe: Pipe
    body: list[Any]
    otherwise: list[Any]


@dataclass(frozen=True)
class Invoke:
    name: str
    pipe: Pipe | None


@dataclass(frozen=True)
class Leave:
    """`break` or `continue`."""

    word: str


@dataclass
class Parsed:
    main: list[Any]
    named: dict[str, list[Any]] = field(default_factory=dict)


_TOKEN = re.compile(
    r"""(?P<space>\s+)
      | (?P<string>"(?:\\.|[^"\\\n])*"|`[^`]*`)
      | (?P<char>'(?:\\.[0-9a-fA-F]*|[^'\\\n])')
      | (?P<number>[+-]?(?:0[xX][0-9a-fA-F_]+|\d[\d_]*(?:\.\d*)?(?:[eE][+-]?\d+)?|\.\d+(?:[eE][+-]?\d+)?)(?![\w.]))
      | (?P<field>\.[^\W\d]\w*)
      | (?P<variable>\$\w*)
      | (?P<word>[^\W\d]\w*)
      | (?P<mark>:=|[=|(),.])""",
    re.VERBOSE,
)
_ENDS = re.compile(r'(?P<quoted>"(?:\\.|[^"\\\n])*"|`[^`]*`|\'(?:\\.[0-9a-fA-F]*|[^\'\\\n])\')|(?P<end>(?:\s-)?\}\})')
_COMMENT = re.compile(r"\{\{(-\s)?/\*.*?\*/(\s-)?\}\}", re.DOTALL)
_BRANCHES = ("if", "range", "with")

Token = tuple[str, str]


def parse(text: str, functions: Collection[str]) -> Parsed:
    """Raises `GoTemplateError` for what is no template, also for names of functions that there are not."""
    return _Parser(text, functions).parse()


def _pieces(text: str) -> Iterator[tuple[str, Any]]:
    """Text and the tokens of actions in turn, with the white space cut that the actions ask to cut."""
    place, cut = 0, False
    while True:
        begin = text.find("{{", place)
        plain = text[place:] if begin < 0 else text[place:begin]
        plain = plain.lstrip(" \t\r\n") if cut else plain
        trims = begin >= 0 and re.match(r"\{\{-\s", text[begin:]) is not None
        yield "text", plain.rstrip(" \t\r\n") if trims else plain
        if begin < 0:
            return
        comment = _COMMENT.match(text, begin)
        if comment:
            place, cut = comment.end(), comment[2] is not None
            continue
        begin += 3 if trims else 2
        found = next((match for match in _ENDS.finditer(text, begin) if match["end"]), None)
        if found is None:
            raise GoTemplateError("an action is not closed with }}")
        place, cut = found.end(), found["end"] != "}}"
        yield "action", _tokens(text[begin : found.start()])


def _tokens(text: str) -> list[Token]:
    found, place = [], 0
    text = text.strip()
    while place < len(text):
        match = _TOKEN.match(text, place)
        if match is None:
            raise GoTemplateError(f"{text[place]!r} in {{{{{text}}}}} is not understood")
        found.append((str(match.lastgroup), match[0]))
        place = match.end()
    return found


class _Parser:
    def __init__(self, text: str, functions: Collection[str]) -> None:
        self._pieces = _pieces(text)
        self._functions = functions
        self._named: dict[str, list[Any]] = {}
        self._variables = ["$"]
        self._ranges = 0

    def parse(self) -> Parsed:
        body, word, _ = self._body()
        if word:
            raise GoTemplateError(f"unexpected {{{{{word}}}}}")
        return Parsed(body, self._named)

    def _body(self) -> tuple[list[Any], str, _Action | None]:
        """Nodes up to `end` or `else`, which word it was, and what follows it; no word at the end of the text."""
        nodes: list[Any] = []
        for kind, piece in self._pieces:
            if kind == "text":
                nodes += [Text(piece)] if piece else []
                continue
            action = _Action(piece, self._functions, self._variables)
            word = action.keyword()
            if word in ("end", "else"):
                return nodes, word, action
            nodes += self._node(word, action)
        return nodes, "", None

    def _node(self, word: str, action: _Action) -> list[Any]:
        if word in _BRANCHES:
            return [self._branch(word, action)]
        if word in ("break", "continue"):
            if not self._ranges:
                raise GoTemplateError(f"{{{{{word}}}}} outside {{{{range}}}}")
            return [Leave(word)]
        if word in ("define", "block"):
            name = action.name()
            pipe = action.pipe() if word == "block" else None
            outer, self._variables[:] = list(self._variables), ["$"]
            body, end, _ = self._body()
            self._variables[:] = outer
            if end != "end":
                raise GoTemplateError(f'{{{{{word} "{name}"}}}} is not closed with {{{{end}}}}')
            self._named[name] = body
            return [Invoke(name, pipe)] if word == "block" else []
        if word == "template":
            name = action.name()
            return [Invoke(name, action.pipe() if action.left() else None)]
        return [action.pipe(declaring=True)]

    def _branch(self, word: str, action: _Action) -> Branch:
        known = len(self._variables)
        pipe = action.pipe(declaring=True, several=word == "range")
        self._ranges += word == "range"
        body, end, rest = self._body()
        self._ranges -= word == "range"
        otherwise: list[Any] = []
        if end == "else" and rest is not None:
            again = rest.keyword()
            if again in ("if", "with") and word in ("if", "with"):
                otherwise, end = [self._branch(again, rest)], "end"
            else:
                otherwise, end, _ = self._body()
        if end != "end":
            raise GoTemplateError(f"{{{{{word}}}}} is not closed with {{{{end}}}}")
        del self._variables[known:]
        return Branch(word, pipe, body, otherwise)


class _Action:
    """The words of one action, taken from the left."""

    def __init__(self, tokens: list[Token], functions: Collection[str], variables: list[str]) -> None:
        self._tokens = tokens
        self._place = 0
        self._functions = functions
        self._variables = variables

    def left(self) -> bool:
        self._skip()
        return self._place < len(self._tokens)

    def keyword(self) -> str:
        words = (*_BRANCHES, "else", "end", "break", "continue", "define", "block", "template")
        self._skip()
        kind, text = self._peek()
        if kind == "word" and text in words:
            self._place += 1
            return text
        return ""

    def name(self) -> str:
        self._skip()
        kind, text = self._next()
        if kind != "string":
            raise GoTemplateError("the name of a template is text in quotes")
        return str(_constant(kind, text))

    def pipe(self, *, declaring: bool = False, several: bool = False, inner: bool = False) -> Pipe:
        variables, declares = self._declared(several) if declaring else ((), False)
        commands: list[tuple[Any, ...]] = []
        while True:
            commands.append(self._command())
            kind, text = self._peek()
            if (kind, text) == ("mark", "|"):
                self._place += 1
                continue
            if inner and (kind, text) == ("mark", ")"):
                self._place += 1
            elif kind or inner:
                raise GoTemplateError(f"unexpected {text or 'end'} in a pipeline")
            break
        for variable in variables:
            if declares:
                self._variables.append(variable)
            elif variable not in self._variables:
                raise GoTemplateError(f'undefined variable "{variable}"')
        return Pipe(tuple(commands), variables, declares)

    def _declared(self, several: bool) -> tuple[tuple[str, ...], bool]:
        """`$x :=`, `$i, $x :=`, `$x =`; nothing, where it is a use of the variable."""
        begin, names = self._place, []
        while True:
            self._skip()
            kind, text = self._peek()
            if kind != "variable":
                break
            names.append(text)
            self._place += 1
            self._skip()
            if self._peek() == ("mark", ",") and several and len(names) == 1:
                self._place += 1
                continue
            if self._peek() in (("mark", ":="), ("mark", "=")):
                return tuple(names), self._next()[1] == ":="
            break
        self._place = begin
        return (), False

    def _command(self) -> tuple[Any, ...]:
        operands = []
        while True:
            self._skip()
            kind, text = self._peek()
            if not kind or (text in ("|", ")") and kind == "mark"):
                break
            operands.append(self._operand())
        if not operands:
            raise GoTemplateError("missing value for command")
        return tuple(operands)

    def _operand(self) -> Any:
        kind, text = self._next()
        names: list[str] = []
        base: Any
        if kind == "field":
            base, names = Dot(), [text[1:]]
        elif kind == "variable":
            if text not in self._variables:
                raise GoTemplateError(f'undefined variable "{text}"')
            base = Variable(text)
        elif kind == "word":
            base = self._word(text)
        elif (kind, text) == ("mark", "."):
            base = Dot()
        elif (kind, text) == ("mark", "("):
            base = self.pipe(inner=True)
        elif kind in ("string", "char", "number"):
            base = Literal(_constant(kind, text))
        else:
            raise GoTemplateError(f"unexpected {text!r} in a pipeline")
        while self._peek()[0] == "field":
            names.append(self._next()[1][1:])
        return Chain(base, tuple(names)) if names else base

    def _word(self, text: str) -> Any:
        if text in ("true", "false"):
            return Literal(text == "true")
        if text == "nil":
            return Nil()
        if text not in self._functions:
            raise GoTemplateError(f'function "{text}" not defined')
        return Function(text)

    def _skip(self) -> None:
        while self._peek()[0] == "space":
            self._place += 1

    def _peek(self) -> Token:
        return self._tokens[self._place] if self._place < len(self._tokens) else ("", "")

    def _next(self) -> Token:
        token = self._peek()
        self._place += 1
        return token


def _constant(kind: str, text: str) -> Any:
    try:
        if kind == "number":
            plain = text.replace("_", "")
            return int(plain, 0) if re.fullmatch(r"[+-]?(0[xX][0-9a-fA-F]+|[1-9]\d*|0)", plain) else float(plain)
        if kind == "char":
            return ord(ast.literal_eval(text))
        return text[1:-1] if text.startswith("`") else ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError) as error:
        raise GoTemplateError(f"{text} is not understood: {error}") from error
