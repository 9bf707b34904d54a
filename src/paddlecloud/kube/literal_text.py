"""Texts of users in `command`, `args` and `env` of a container, where Kubernetes replaces `$(NAME)` and `$$`.

Code that makes a container of a text that was not written as part of a container's spec (a command line, a flag, an
address) passes it through `literal`. What a user wrote into a spec is left alone: there `$(NAME)` is Kubernetes' own
feature.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

_REPLACED = re.compile(r"\$+\(|\${2,}")
"""A dollar sign before anything else stays as it is, so that `$HOME` reads well in the object too."""


def literal(text: str) -> str:
    """The text that a container gets as `text` once Kubernetes has replaced what it replaces."""
    return _REPLACED.sub(lambda found: found[0].replace("$", "$$"), text)


def literals(texts: Iterable[str]) -> list[str]:
    return [literal(text) for text in texts]


def without_escapes(text: str) -> str:
    """As a person wrote it: the inverse of `literal`, and the text itself where nothing was escaped."""
    return text.replace("$$", "$")
