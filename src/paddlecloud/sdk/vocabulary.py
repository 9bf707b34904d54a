"""Conditions and phases that an object never has: waiting for one would never end. Pure."""

from __future__ import annotations

from typing import NamedTuple

from paddlecloud.kube.nearest import nearest
from paddlecloud.kube.resource import Object
from paddlecloud.sdk import outcome

SUCCEEDED = frozenset(("complete", "completed", "succeed"))
"""Words for the condition of a job that ended well, in lower case."""


class UnknownWord(NamedTuple):
    kind: str
    what: str
    """`condition` or `phase`."""
    word: str
    known: tuple[str, ...]
    meant: str
    """The nearest known word; empty where none is near."""

    @property
    def refusal(self) -> str:
        return f'a {self.kind} never has the {self.what} "{self.word}"'

    @property
    def why(self) -> str:
        known = f"its {self.what}s are {', '.join(self.known)}"
        return f'{known}; did you mean "{self.meant}"?' if self.meant else known


def unknown_word(obj: Object, *, condition: str = "", phase: str = "") -> UnknownWord | None:
    """What is wrong with a condition or phase that our controllers never write.

    None for kinds of others, whose conditions are not declared here, and for a condition that the object already has.
    """
    if not (condition or phase) or outcome.condition(obj, condition) is not None:
        return None
    from paddlecloud.api.catalogue import find

    declared = find(str(obj.get("apiVersion")), str(obj.get("kind")))
    if declared is None or declared.foreign:
        return None
    what, word, known = (
        ("condition", condition, declared.conditions) if condition else ("phase", phase, declared.phases)
    )
    if not known or word.lower() in (one.lower() for one in known):
        return None
    meant = "Succeeded" if word.lower() in SUCCEEDED and "Succeeded" in known else nearest(word, known)
    return UnknownWord(declared.kind, what, word, tuple(known), meant)
