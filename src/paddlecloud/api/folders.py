"""Whether a folder lies where it may: below an allowed root, in no closed folder, in no hidden one below the root.

Controllers apply this to the names that objects contain, cache servers to the files that they opened. Paths are
compared part by part; nothing is looked up here, so a caller that follows links resolves them first.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

Refusal = Literal["closed", "hidden", "outside"]


class FolderRule(NamedTuple):
    roots: tuple[str, ...] | None = None
    """None allows every folder, hidden ones too; () allows none."""
    closed: tuple[str, ...] = ()
    """Folders that are refused wherever they lie."""

    def refusal(self, path: str) -> Refusal | None:
        """Which part of the rule refuses an absolute path; None where it is allowed."""
        found = parts(path)
        if any(_below(found, closed) is not None for closed in self.closed):
            return "closed"
        if self.roots is None:
            return None
        inner = [below for root in self.roots if (below := _below(found, root)) is not None]
        if not inner:
            return "outside"
        return "hidden" if all(any(part.startswith(".") for part in below) for below in inner) else None


ANYWHERE = FolderRule()


def parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _below(found: list[str], root: str) -> list[str] | None:
    """The parts after the root; None for what does not lie below it."""
    base = parts(root)
    return found[len(base) :] if found[: len(base)] == base else None
