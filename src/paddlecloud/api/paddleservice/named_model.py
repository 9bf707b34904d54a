"""Models that a PaddleService names instead of giving an address: of the ModelHub, or of a model store. Pure.

`NAME@ALIAS` is always the ModelHub's. `NAME:VERSION` and `NAME` may be either: which of them is meant depends on what
exists (`controllers.paddleservice.resolution`), so their grammar here is that of both.
"""

from __future__ import annotations

import re

from paddlecloud.api.fields import Rule
from paddlecloud.api.model import reference
from paddlecloud.api.model.reference import BadReference, Reference

LONGEST_ADDRESS = 4096
_WORD = "[A-Za-z0-9][A-Za-z0-9._-]*"
_STORED = f"{_WORD}(:{_WORD})?"
"""As names of archives in a model store are written: the original's have upper-case letters and underscores too."""
_ALIASED = f"{reference.NAME_PATTERN[1:-1]}@{reference.ALIAS_PATTERN[1:-1]}"

NAMED_MODEL = Rule(
    f"self == '' || self.contains('/') || self.matches('^({_STORED}|{_ALIASED})$')",
    f"the name of a model is {reference.FORMS}: lower-case letters, digits and dashes, a version with dots besides; "
    "anything else is an address with slashes, as file:///models/x",
)
"""`problem` judges the same for objects that are stored already, and says what is wrong."""


def is_name(model: str) -> bool:
    """Whether it is the name of a model, and no address."""
    return bool(model) and "/" not in model


def problem(model: str) -> str | None:
    if not is_name(model):
        return None
    try:
        reference.parse(model)
    except BadReference as error:
        return None if "@" not in model and re.fullmatch(_STORED, model) else str(error)
    return None


def hub_reference(model: str) -> Reference | None:
    """What it means to the ModelHub; None for what only a model store can have."""
    try:
        return reference.parse(model) if is_name(model) else None
    except BadReference:
        return None


def stored_name(model: str) -> tuple[str, str]:
    """Name and version in a model store."""
    name, _, version = model.partition(":")
    return name, version or reference.LATEST
