"""Names of models: `NAME:VERSION`, `NAME@ALIAS`, and `NAME` alone for `NAME@latest`. Pure.

Names become names of objects, labels and keys in stores, so they are a DNS label; versions may have dots besides.
`latest` is always an alias: `NAME:latest`, as the original has it, means `NAME@latest`, and no version is called so.
"""

from __future__ import annotations

import re
from typing import NamedTuple

LATEST = "latest"
LONGEST = 63

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
NAME_PATTERN = rf"^{_LABEL}$"
VERSION_PATTERN = rf"^{_LABEL}(\.{_LABEL})*$"
ALIAS_PATTERN = r"^[a-z]([-a-z0-9]*[a-z0-9])?$"
FORMS = "NAME:VERSION or NAME@ALIAS, as ocr:7 or ocr@production"


class BadReference(ValueError):
    """The text is no name of a model, a version or an alias; the message says what is allowed."""


class Reference(NamedTuple):
    """A model with a version or an alias; exactly one of the two is set."""

    model: str
    version: str = ""
    alias: str = ""

    def __str__(self) -> str:
        return f"{self.model}:{self.version}" if self.version else f"{self.model}@{self.alias}"


def parse(text: str) -> Reference:
    """Raises `BadReference`."""
    if "@" in text:
        name, _, alias = text.partition("@")
        return Reference(model_name(name), alias=alias_name(alias))
    name, colon, version = text.partition(":")
    if not colon or version == LATEST:
        return Reference(model_name(name), alias=LATEST)
    return Reference(model_name(name), version=version_name(version))


def alias_of(text: str) -> Reference:
    """`NAME@ALIAS`, written out: what moves or removes an alias does not take `NAME` for `NAME@latest`. Raises
    `BadReference`."""
    wanted = parse(text)
    if not wanted.alias or "@" not in text:
        raise BadReference(f"{text!r} names no alias: NAME@ALIAS, as {wanted.model}@production")
    return wanted


def model_name(text: str) -> str:
    return _checked("the name of a model", text, NAME_PATTERN, "letters, digits and dashes")


def namespace_name(text: str) -> str:
    return _checked("a namespace", text, NAME_PATTERN, "letters, digits and dashes")


def version_name(text: str) -> str:
    if text == LATEST:
        raise BadReference(
            f"{LATEST!r} is an alias, which moves; a version has a name of its own, such as 7, v1.2 or 2026-11-18"
        )
    return _checked("a version", text, VERSION_PATTERN, "letters, digits, dashes and dots")


def alias_name(text: str) -> str:
    return _checked("an alias", text, ALIAS_PATTERN, "letters, digits and dashes, beginning with a letter")


def object_name(model: str, version: str) -> str:
    """The name of the ModelVersion: models have no dots, so the first one separates."""
    return f"{model}.{version}"


def _checked(what: str, text: str, pattern: str, allowed: str) -> str:
    if not text:
        raise BadReference(f"{what} is missing: it is {FORMS}")
    if len(text) > LONGEST:
        raise BadReference(f"{text[:20] + '…'!r} is too long for {what}: {LONGEST} characters at most")
    if not re.fullmatch(pattern, text):
        meant = re.sub(r"[^a-z0-9.]+" if "dots" in allowed else r"[^a-z0-9]+", "-", text.lower()).strip("-.")
        hint = f"; did you mean {meant!r}?" if re.fullmatch(pattern, meant) else ""
        raise BadReference(f"{text!r} cannot be {what}: lower-case {allowed}, ending with a letter or a digit{hint}")
    return text
