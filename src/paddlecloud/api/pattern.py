"""Regular expressions that users write, matched in linear time.

`pattern` in a CRD comes from its author and the value from the author of the object; `messagePattern` of a PaddleJob
and the message both come from a tenant. Kubernetes matches with RE2, which cannot be made to hang; Python's `re` can,
by a pattern as short as `(a+)+$`, and would hang for all tenants. So the expression becomes an automaton whose states
are explored lazily: the cost is bounded by pattern times value, and `limit` bounds that.
"""

from __future__ import annotations

from functools import lru_cache

from paddlecloud.api.pattern_syntax import MATCH, WORD, Compiler, PatternError

__all__ = ["Pattern", "PatternError", "TooCostly", "compile_pattern"]

MAX_STEPS = 500_000
_MAX_CACHED = 4096
_UNSEEN: frozenset[int] = frozenset((-1,))


class TooCostly(Exception):
    """Value and pattern together exceed what one match may cost."""


class Pattern:
    """A compiled expression. `search` says whether it matches anywhere in the text."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._states, self._start = Compiler(text).compile()
        self._moves: dict[tuple[frozenset[int], str, str], frozenset[int] | None] = {}

    def search(self, value: str, *, limit: int = MAX_STEPS) -> bool:
        """Raises `TooCostly` beyond `limit` steps."""
        states: frozenset[int] = frozenset()
        before = ""
        budget = limit - len(value)
        for char in (*value, ""):  # the empty string stands for what is beyond either end
            key = (states, before if not before else _kind(before), char)
            after = self._moves.get(key, _UNSEEN)
            if after is _UNSEEN:
                after, cost = self._move(states, before, char)
                budget -= cost
                if budget < 0:
                    raise TooCostly
                if len(self._moves) >= _MAX_CACHED:
                    self._moves.clear()
                self._moves[key] = after
            if after is None:
                return True
            states, before = after, char
        return False

    def _move(self, states: frozenset[int], before: str, char: str) -> tuple[frozenset[int] | None, int]:
        """States after `char`, None once the accepting one was met; a match may begin at every place."""
        todo = [self._start, *states]
        seen = set(todo)
        after: set[int] = set()
        while todo:
            index = todo.pop()
            if index == MATCH:
                return None, len(seen)
            state = self._states[index]
            if state.chars is not None:
                if char and char in state.chars:
                    after.add(state.next[0])
                continue
            if state.test and not _holds(state.test, before, char):
                continue
            for other in state.next:
                if other not in seen:
                    seen.add(other)
                    todo.append(other)
        return frozenset(after), len(seen) + 1


def _kind(char: str) -> str:
    """All that a test can ask of the character before: a newline, a word character, or neither."""
    return "\n" if char == "\n" else "w" if char in WORD else "-"


def _holds(test: str, before: str, char: str) -> bool:
    if test == "A":
        return not before
    if test == "z":
        return not char
    if test == "^":
        return not before or before == "\n"
    if test == "$":
        return not char or char == "\n"
    boundary = (bool(before) and before in WORD) != (bool(char) and char in WORD)
    return boundary == (test == "b")


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    return Pattern(text)
