"""RE2's syntax of regular expressions, read into a small automaton that `pattern` runs.

Refused as RE2 refuses it: back-references, look-around, unknown escapes, stacked quantifiers, repeats beyond 1,000.
Groups do not capture and lazy quantifiers equal greedy ones, because only whether there is a match is ever asked.
Unicode scripts (`\\p{Greek}`) are the one thing RE2 has and this has not: they are refused, not misread.
"""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any, NamedTuple

MAX_PROGRAM = 10_000
MAX_REPEAT = 1000  # RE2's own limit
MAX_NESTING = 100


class PatternError(ValueError):
    """The expression is not one RE2 accepts."""


_Tree = tuple[Any, ...]
"""`("seq", parts)`, `("or", options)`, `("chars", set)`, `("test", kind)` or `("repeat", part, low, high)`."""


# --- sets of characters ---------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CharSet:
    """Characters by ranges and by Unicode categories, perhaps all others instead."""

    ranges: tuple[tuple[int, int], ...] = ()
    categories: tuple[str, ...] = ()
    excluded: tuple[CharSet, ...] = ()  # sets whose complement is added: `[^\W]`, `[\D]`
    negated: bool = False
    fold: bool = False

    def __contains__(self, char: str) -> bool:
        found = self._has(char)
        if not found and self.fold:
            found = any(self._has(c) for c in {char.lower(), char.upper()} if len(c) == 1)
        return found != self.negated

    def _has(self, char: str) -> bool:
        code = ord(char)
        if any(low <= code <= high for low, high in self.ranges):
            return True
        if self.categories and unicodedata.category(char).startswith(self.categories):
            return True
        return any(char not in other for other in self.excluded)


def _ranges(text: str) -> tuple[tuple[int, int], ...]:
    """`azAZ__` read in pairs."""
    return tuple((ord(text[i]), ord(text[i + 1])) for i in range(0, len(text), 2))


_DIGIT = CharSet(_ranges("09"))
_SPACE = CharSet(_ranges("\t\n\f\r  "))
WORD = CharSet(_ranges("09AZaz__"))
_PERL = {"d": _DIGIT, "s": _SPACE, "w": WORD}
_POSIX = {
    "alnum": "09AZaz", "alpha": "AZaz", "ascii": "\0\x7f", "blank": "\t\t  ", "cntrl": "\0\x1f\x7f\x7f", "digit": "09",
    "graph": "!~", "lower": "az", "print": " ~", "punct": "!/:@[`{~", "space": "\t\r  ", "upper": "AZ",
    "word": "09AZaz__", "xdigit": "09AFaf",
}  # fmt: skip
_CONTROL = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_ANY = CharSet(negated=True)
_NOT_NEWLINE = CharSet(_ranges("\n\n"), negated=True)


# --- the program ----------------------------------------------------------------------------------------------------


class PatternState(NamedTuple):
    """One state of the automaton. `chars` consumes, `test` is a position to be at, neither: go to `next` for free."""

    chars: CharSet | None = None
    test: str = ""  # one of ^ $ A z b B
    next: tuple[int, ...] = ()


MATCH = 0  # the index of the accepting state


class Compiler:
    """Recursive descent over the expression, emitting states back to front: each part gets its next state."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.nesting = 0
        self.states: list[PatternState] = [PatternState()]
        self.flags = ""

    # Parsing gives a function that emits the part once what follows is known; repeats call it several times.

    def compile(self) -> tuple[list[PatternState], int]:
        tree = self._alternatives()
        if self.at < len(self.text):
            raise PatternError(f"unexpected ): `{self.text}`")
        return self.states, self._emit(tree, MATCH)

    def _alternatives(self) -> _Tree:
        options = [self._sequence()]
        while self._take("|"):
            options.append(self._sequence())
        return options[0] if len(options) == 1 else ("or", options)

    def _sequence(self) -> _Tree:
        parts: list[_Tree] = []
        while self.at < len(self.text) and self.text[self.at] not in "|)":
            part = self._atom()
            parts.append(self._repeated(part) if part is not None else ("seq", []))
        return ("seq", parts)

    def _repeated(self, part: _Tree) -> _Tree:
        start = self.at
        bounds = self._quantifier()
        if bounds is None:
            return part
        self._take("?")
        if self._quantifier() is not None:
            raise PatternError(f"invalid nested repetition operator: `{self.text[start : self.at]}`")
        return ("repeat", part, *bounds)

    def _quantifier(self) -> tuple[int, int | None] | None:
        for char, bounds in (("*", (0, None)), ("+", (1, None)), ("?", (0, 1))):
            if self._take(char):
                return bounds
        close = self.text.find("}", self.at)
        if close < 0 or self.text[self.at : self.at + 1] != "{":
            return None
        low, comma, high = self.text[self.at + 1 : close].partition(",")
        if not low.isdecimal() or not (high == "" or high.isdecimal()):
            return None  # RE2 takes such braces literally
        least = int(low)
        most = None if comma and not high else int(high or low)
        if max(least, most or 0) > MAX_REPEAT or (most is not None and most < least):
            raise PatternError(f"invalid repeat count: `{self.text[self.at : close + 1]}`")
        self.at = close + 1
        return least, most

    def _atom(self) -> _Tree | None:
        char = self.text[self.at]
        self.at += 1
        if char == "(":
            return self._group()
        if char == "[":
            return ("chars", self._bracket())
        if char == ".":
            return ("chars", _ANY if "s" in self.flags else _NOT_NEWLINE)
        if char == "^":
            return ("test", "^" if "m" in self.flags else "A")
        if char == "$":
            return ("test", "$" if "m" in self.flags else "z")
        if char == "\\":
            return self._escape()
        if char in "*+?":
            raise PatternError(f"missing argument to repetition operator: `{char}`")
        return ("chars", self._literal(char))

    def _group(self) -> _Tree | None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise PatternError("expression nests too deeply")
        outer = self.flags
        if self._take("?"):
            if self._take("P<") or self._take("<"):
                name, found, _ = self.text[self.at :].partition(">")
                if not found or not name.replace("_", "a").isalnum():
                    raise PatternError(f"invalid named capture: `(?<{name}`")
                self.at += len(name) + 1
            elif not self._flags():  # `(?i)`: holds until the enclosing group ends
                self.nesting -= 1
                return None
        tree = self._alternatives()
        if not self._take(")"):
            raise PatternError(f"missing closing ): `{self.text}`")
        self.flags = outer
        self.nesting -= 1
        return tree

    def _flags(self) -> bool:
        """Read `i-s:` or `i)`; true when a group follows."""
        on = True
        while self.at < len(self.text):
            char = self.text[self.at]
            self.at += 1
            if char in ":)":
                return char == ":"
            if char == "-":
                on = False
            elif char in "imsU":
                self.flags = self.flags + char if on else self.flags.replace(char, "")
            else:
                break
        raise PatternError(f"invalid or unsupported Perl syntax: `{self.text[: self.at]}`")

    def _escape(self) -> _Tree:
        if self.at == len(self.text):
            raise PatternError("trailing backslash at end of expression")
        char = self.text[self.at]
        if char in "AzbB":
            self.at += 1
            return ("test", char)
        if char == "Q":
            quoted, _, _ = self.text[self.at + 1 :].partition("\\E")
            self.at = min(len(self.text), self.at + 1 + len(quoted) + 2)
            return ("seq", [("chars", self._literal(c)) for c in quoted])
        found = self._class_escape()
        return ("chars", found if found is not None else self._literal(self._char_escape()))

    def _class_escape(self) -> CharSet | None:
        """After a backslash: `d`, `W`, `pL`, `P{Lu}`; None when it is a single character."""
        char = self.text[self.at : self.at + 1]
        if char.lower() in _PERL:
            self.at += 1
            found = _PERL[char.lower()]
            return CharSet(excluded=(found,)) if char.isupper() else found
        if char not in ("p", "P"):
            return None
        self.at += 1
        name = self.text[self.at : self.at + 1]
        if name == "{":
            name, closed, _ = self.text[self.at + 1 :].partition("}")
            self.at += len(name) + 2 if closed else 0
        else:
            self.at += 1
        if not (len(name) in (1, 2) and name[0] in "CLMNPSZ" and name[1:] in ("", *"cflmnostupdekoi")):
            raise PatternError(f"invalid character class range: `\\{char}{{{name}}}`")
        letters = CharSet(categories=(name,))
        return CharSet(excluded=(letters,)) if char == "P" else letters

    def _char_escape(self) -> str:
        char = self.text[self.at]
        self.at += 1
        if char in _CONTROL:
            return _CONTROL[char]
        if char == "x":
            digits = self.text[self.at : self.at + 2]
            width = 2
            if digits[:1] == "{":
                digits, _, _ = self.text[self.at + 1 :].partition("}")
                width = len(digits) + 2
            self.at += width
            try:
                return chr(int(digits, 16))
            except (ValueError, OverflowError):
                raise PatternError(f"invalid escape sequence: `\\x{digits}`") from None
        if char in "01234567" and (char == "0" or self.text[self.at : self.at + 1] in tuple("01234567")):
            digits = char
            while len(digits) < 3 and self.text[self.at : self.at + 1] in tuple("01234567"):
                digits += self.text[self.at]
                self.at += 1
            return chr(int(digits, 8))
        if char.isalnum():
            raise PatternError(f"invalid escape sequence: `\\{char}`")
        return char

    def _bracket(self) -> CharSet:
        negated = self._take("^")
        ranges: list[tuple[int, int]] = []
        categories: list[str] = []
        excluded: list[CharSet] = []
        first = True
        while first or not self._take("]"):
            if self.at >= len(self.text):
                raise PatternError(f"missing closing ]: `{self.text}`")
            first = False
            inner = self._bracket_class()
            if inner is not None:
                ranges += inner.ranges
                categories += inner.categories
                excluded += inner.excluded
                continue
            low = self._bracket_char()
            high = low
            if self.text[self.at : self.at + 1] == "-" and self.text[self.at + 1 : self.at + 2] not in ("]", ""):
                self.at += 1
                high = self._bracket_char()
            if high < low:
                raise PatternError(f"invalid character class range: `{low}-{high}`")
            ranges.append((ord(low), ord(high)))
        return CharSet(tuple(ranges), tuple(categories), tuple(excluded), negated, fold="i" in self.flags)

    def _bracket_class(self) -> CharSet | None:
        if self.text.startswith("[:", self.at) and ":]" in self.text[self.at :]:
            name, _, _ = self.text[self.at + 2 :].partition(":]")
            bare = name.removeprefix("^")
            if bare not in _POSIX:
                raise PatternError(f"invalid character class range: `[:{name}:]`")
            self.at += len(name) + 4
            found = CharSet(_ranges(_POSIX[bare]))
            return found if bare == name else CharSet(excluded=(found,))
        if self.text.startswith("\\", self.at):
            self.at += 1
            found_or_none = self._class_escape()
            if found_or_none is None:
                self.at -= 1
            return found_or_none
        return None

    def _bracket_char(self) -> str:
        if self._take("\\"):
            if self.at == len(self.text):
                raise PatternError("trailing backslash at end of expression")
            return self._char_escape()
        char = self.text[self.at]
        self.at += 1
        return char

    def _literal(self, char: str) -> CharSet:
        return CharSet(((ord(char), ord(char)),), fold="i" in self.flags)

    def _take(self, text: str) -> bool:
        if not self.text.startswith(text, self.at):
            return False
        self.at += len(text)
        return True

    # Emitting: the index of a state from which the part leads to `follow`.

    def _add(self, state: PatternState) -> int:
        if len(self.states) >= MAX_PROGRAM:
            raise PatternError("expression too large")
        self.states.append(state)
        return len(self.states) - 1

    def _emit(self, tree: _Tree, follow: int) -> int:
        kind = tree[0]
        if kind == "seq":
            for part in reversed(tree[1]):
                follow = self._emit(part, follow)
            return follow
        if kind == "or":
            return self._add(PatternState(next=tuple(self._emit(option, follow) for option in tree[1])))
        if kind == "chars":
            return self._add(PatternState(chars=tree[1], next=(follow,)))
        if kind == "test":
            return self._add(PatternState(test=tree[1], next=(follow,)))
        _, part, low, high = tree
        if high is None:
            loop = self._add(PatternState())
            self.states[loop] = PatternState(next=(self._emit(part, loop), follow))
            follow = loop
        else:
            for _ in range(high - low):
                follow = self._add(PatternState(next=(self._emit(part, follow), follow)))
        for _ in range(low):
            follow = self._emit(part, follow)
        return follow
