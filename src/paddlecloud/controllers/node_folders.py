"""Which folders of nodes objects of tenants may name: those below roots that the operator allows.

A SampleSet names cache folders, a PaddleService a model, and on one machine a set may name its source. The controller
turns such a name into a hostPath volume, so without a rule the right to make a set would be the right to every file of
every node. Names are judged by their words here: no `..`, no hidden folders below a root, nothing outside of the roots
(`api.folders`).

A cache is never kept in the folder that is named but in `FOLDER/paddlecloud-cache/NAMESPACE/NAME` below it. No such
folder lies in another's, because a name that contains `paddlecloud-cache` is refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.api.folders import FolderRule, parts

OWN = "paddlecloud-cache"
CACHE_ROOTS, READ_ROOTS = "PADDLECLOUD_CACHE_ROOTS", "PADDLECLOUD_READ_ROOTS"
"""Settings of the controllers: folders, joined by colons. A list that begins with + is added to the default."""
DEFAULT_CACHE_ROOTS = ("/dev/shm", "/data", "/mnt", "/var/cache", "/var/lib/paddlecloud")  # noqa: S108 - of nodes
DEFAULT_READ_ROOTS = ("/models",)


def _listed(text: str | None, default: tuple[str, ...]) -> tuple[str, ...]:
    if text is None:
        return default
    adds, plain = text.lstrip().startswith("+"), text.lstrip().removeprefix("+")
    given = tuple(part.strip() for part in plain.split(":") if part.strip())
    return (*default, *given) if adds else given


class NodeFolders(NamedTuple):
    """The rule for one purpose; `setting` and `value` name the setting and the value of the chart, for messages."""

    roots: tuple[str, ...]
    setting: str
    value: str
    closed: tuple[str, ...] = ()
    """Folders that are refused although they lie below a root."""
    given: str | None = None
    """The setting as it stands."""

    @classmethod
    def for_caches(cls, environment: Mapping[str, str], *more: str, closed: tuple[str, ...] = ()) -> NodeFolders:
        """As the environment says, where "" allows none and +… adds; else the default and `more`."""
        roots = _listed(environment.get(CACHE_ROOTS), (*DEFAULT_CACHE_ROOTS, *more))
        return cls(roots, CACHE_ROOTS, "nodeFolders.cache", closed, environment.get(CACHE_ROOTS))

    @classmethod
    def for_reading(cls, environment: Mapping[str, str], *more: str, closed: tuple[str, ...] = ()) -> NodeFolders:
        roots = _listed(environment.get(READ_ROOTS), (*DEFAULT_READ_ROOTS, *more))
        return cls(roots, READ_ROOTS, "nodeFolders.models", closed, environment.get(READ_ROOTS))

    def problem(self, path: str) -> str | None:
        """Why a folder may not be named, and what to ask for; None where it may."""
        found = parts(path)
        if not path.startswith("/") or not path.isprintable() or "," in path:
            return f"folder {path!r} must be an absolute path of printable characters, without commas"
        if ".." in found:
            return f"folder {path} must not contain '..'"
        if OWN in found:
            return f"folder {path} must not contain {OWN}: caches of sets are kept there"
        refusal = FolderRule(self.roots, self.closed).refusal(path)
        if refusal is None:
            return None
        if refusal == "closed":
            own = " or ".join(self.closed)
            return f"folder {path} is the platform's own: use a folder outside of {own}, and move there what is needed"
        if refusal == "hidden":
            hidden = [part for part in found if part.startswith(".")]
            return (
                f"folder {path} must not contain hidden folders such as {hidden[-1]}, which often hold keys: use "
                f"another folder, or ask the operator to allow this one by its full name ({self._allowing(path)})"
            )
        allowed = ", ".join(self.roots) or "none"
        return (
            f"folder {path} is not below one that the operator allows ({allowed}): choose one of these, or ask the "
            f"operator to add it ({self._allowing(path)})"
        )

    def _allowing(self, path: str) -> str:
        """How the operator allows a folder besides those that are allowed now."""
        listed = f"+{path}" if self.given is None else f"{self.given.rstrip(':')}:{path}".lstrip(":")
        return f"{self.value} of the chart; on one machine: pdc down, then {self.setting}={listed} pdc up"

    def is_root(self, path: str) -> bool:
        return parts(path) in [parts(root) for root in self.roots]


DEFAULT_CACHES = NodeFolders.for_caches({})


def local_cache(root: str, namespace: str, name: str) -> str:
    """The cache of a set that names no folder, below the root of the engine `local`."""
    return f"{root}/{namespace}/{name}/cache"


def own_folder(path: str, namespace: str, name: str) -> str:
    """The folder of one set below a folder that it names."""
    return f"{path.rstrip('/')}/{OWN}/{namespace}/{name}"


def named_by(folder: str, namespace: str, name: str) -> str | None:
    """What a set named to get this folder; None where it is not the set's own."""
    suffix = own_folder("", namespace, name)
    return (folder.removesuffix(suffix) or "/") if folder.endswith(suffix) else None
