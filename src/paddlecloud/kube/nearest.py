"""The right word next to a misspelt one, for messages: `did you mean "paddlejobs"?`"""

from __future__ import annotations

from collections.abc import Iterable

LONGEST = 100
"""Characters: the time to compare two words grows with the square of their lengths, and strangers choose them."""
MOST = 1_000
"""Words that are compared, the first ones of the alphabet."""


SAME = (
    frozenset({"rm", "remove", "delete", "del", "destroy"}),
    frozenset({"ls", "list"}),
    frozenset({"add", "create", "new"}),
    frozenset({"replicas", "workers"}),
    frozenset({"detach", "no-wait", "background"}),
)
"""Words that mean one thing, of which a command knows one."""


def nearest(word: str, known: Iterable[str]) -> str:
    """The known word that was most likely meant: another for the same thing, one with two letters swapped, or the most
    alike; empty when none is close."""
    import difflib  # here, because it is needed for mistakes alone

    if len(word) > LONGEST:
        return ""
    short = sorted({one for one in known if len(one) <= LONGEST}, reverse=True)
    by_lower = {one.lower(): one for one in short[-MOST:]}
    for one in (*_same(word.lower()), *_swapped(word.lower())):
        if one in by_lower:
            return by_lower[one]
    close = difflib.get_close_matches(word.lower(), by_lower, n=5, cutoff=0.6)
    if not close:
        return ""

    def likeness(one: str) -> tuple[float, int]:
        """Of two that are equally close, the one that begins as the word does: `pdjs` means `pdj`, not `pds`."""
        matcher = difflib.SequenceMatcher(None, one, word.lower())
        first = matcher.get_matching_blocks()[0]
        return matcher.ratio(), first.size if first.a == first.b == 0 else 0

    return by_lower[max(close, key=likeness)]


def _same(word: str) -> list[str]:
    return sorted(one for group in SAME if word in group for one in group - {word})


def _swapped(word: str) -> list[str]:
    """With two neighbours in the other order: "pjd" means "pdj", though "pod" is as much like it."""
    return [word[:i] + word[i + 1] + word[i] + word[i + 2 :] for i in range(len(word) - 1)]


def question(word: str, known: Iterable[str]) -> str:
    """`did you mean "x"?`, or nothing."""
    found = nearest(word, known)
    return f'did you mean "{found}"?' if found else ""
