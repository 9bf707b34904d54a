"""Whether a folder lies where it may: below an allowed root, in no closed folder, in no hidden one below the root.

The rule of hidden folders keeps `~/.ssh` and its like from being named, or reached by a link. Inside of a folder that
may be read, hidden names are part of its data (`.DS_Store`, `.annotations/`), except right below a root or a home.

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
        return "hidden" if all(any(_is_hidden(part) for part in below) for below in inner) else None

    def refusal_inside(self, folder: str, path: str, homes: tuple[str, ...] = ()) -> Refusal | None:
        """The same for what was found inside of a folder that is allowed; for what is not inside of it, `refusal`."""
        found, refusal = parts(path), self.refusal(path)
        if refusal != "hidden" or _below(found, folder) is None:
            return refusal
        guarded = [parts(one) for one in (*self._outermost_roots(), *homes)]
        inside = range(len(parts(folder)), len(found))
        return "hidden" if any(_is_hidden(found[at]) and found[:at] in guarded for at in inside) else None

    def _outermost_roots(self) -> list[str]:
        roots = self.roots or ()
        return [root for root in roots if not any(_below(parts(root), other) for other in roots)]


ANYWHERE = FolderRule()


def parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _is_hidden(part: str) -> bool:
    return part.startswith(".")


def _below(found: list[str], root: str) -> list[str] | None:
    """The parts after the root; None for what does not lie below it."""
    base = parts(root)
    return found[len(base) :] if found[: len(base)] == base else None
