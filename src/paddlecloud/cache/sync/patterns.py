"""Which keys a sync takes: `include` and `exclude` patterns as `juicefs sync` has them, and a range of keys. Pure.

Every prefix of a key (`a`, `a/b`, `a/b/c.jpg`) is held against the rules in turn and the first rule that matches
decides about it; a key is left out as soon as one of its prefixes is. A pattern with a slash in it is about whole
prefixes, one without about the last name; a leading slash pins it to the root, a trailing one to folders. `*` stops at
slashes, `**` does not, and `folder/***` is a folder with all it holds. A SampleJob has one field of each, without an
order between them, so includes come first: an included key is taken "although excluded".
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from paddlecloud.cache.errors import BadOptions


class Selection:
    def __init__(
        self, *, include: Sequence[str] = (), exclude: Sequence[str] = (), start: str = "", end: str = ""
    ) -> None:
        self._rules = [(True, _Rule(pattern)) for pattern in include] + [(False, _Rule(p)) for p in exclude]
        self._folders: dict[str, bool] = {"": True}
        self.start = start
        self._end = end

    def takes(self, key: str) -> bool:
        if key < self.start or (self._end and key > self._end):
            return False
        if not self._rules:
            return True
        folder, _, _ = key.rstrip("/").rpartition("/")
        return self._enters(folder) and self._allows(key.rstrip("/"), is_folder=key.endswith("/"))

    def _enters(self, folder: str) -> bool:
        """Whether the rules let us into a folder; remembered, for there are many files in each."""
        known = self._folders.get(folder)
        if known is None:
            known = self._enters(folder.rpartition("/")[0]) and self._allows(folder, is_folder=True)
            self._folders[folder] = known
        return known

    def _allows(self, path: str, *, is_folder: bool) -> bool:
        for takes, rule in self._rules:
            if rule.matches(path, is_folder=is_folder):
                return takes
        return True


class _Rule:
    def __init__(self, pattern: str) -> None:
        if not pattern.strip("/"):
            raise BadOptions(f"pattern {pattern!r} matches nothing")
        self._folders_only = pattern.endswith("/")
        inner = pattern.rstrip("/")
        self._whole = inner.endswith("/***")  # a folder and everything below it
        inner = inner.removesuffix("/***")
        self._anchored = inner.startswith("/")
        inner = inner.lstrip("/")
        self._by_name = "/" not in inner and "**" not in inner and not self._anchored and not self._whole
        try:
            end = r"(/.*)?\Z" if self._whole else r"\Z"
            self._expression = re.compile(_expression(inner) + end, re.DOTALL)
        except re.error as error:
            raise BadOptions(f"pattern {pattern!r} cannot be read: {error}") from error

    def matches(self, path: str, *, is_folder: bool) -> bool:
        if self._folders_only and not is_folder:
            return False
        if self._by_name:
            return self._expression.match(path.rpartition("/")[2]) is not None
        if self._anchored:
            return self._expression.match(path) is not None
        parts = path.split("/")
        return any(self._expression.match("/".join(parts[index:])) for index in range(len(parts)))


def _expression(pattern: str) -> str:
    out = []
    index = 0
    wild = any(sign in pattern for sign in "*?[")
    while index < len(pattern):
        char = pattern[index]
        if pattern.startswith("**", index):
            out.append(".*")
            index += 2
            continue
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif char == "[" and (end := pattern.find("]", index + 2)) > 0:
            body = pattern[index + 1 : end].replace("\\", "\\\\").replace("[", "\\[")
            out.append(f"[{body}]")  # only ^ negates, and classes such as [:digit:] are not known, as in JuiceFS
            index = end
        elif char == "\\" and wild and index + 1 < len(pattern):
            index += 1
            out.append(re.escape(pattern[index]))
        else:
            out.append(re.escape(char))
        index += 1
    return "".join(out)
