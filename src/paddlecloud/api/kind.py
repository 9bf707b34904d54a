"""How a kind is declared: once, here, as data.

A `KindDeclaration` names a kind, points at the msgspec struct that holds its fields, and lists what the API server must
know besides the fields: printer columns, subresources, short names. The CRD (`crd`), the reference page (docs/kinds)
and the decoder (`problems.decode_as`) are all made from it, so they cannot disagree. Nothing here talks to a server.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import msgspec

Scope = Literal["Namespaced", "Cluster"]


@dataclass(frozen=True, slots=True)
class Column:
    """A column of `kubectl get`. `priority` above zero shows only with `-o wide`."""

    name: str
    type: Literal["string", "integer", "number", "boolean", "date"]
    json_path: str
    priority: int = 0
    description: str = ""


AGE = Column("Age", "date", ".metadata.creationTimestamp")


@dataclass(frozen=True, slots=True)
class Scale:
    """Where the scale subresource finds its numbers; paths begin with a dot, as in a CRD."""

    spec_replicas: str
    status_replicas: str
    selector: str = ""


@dataclass(frozen=True, slots=True)
class KindDeclaration:
    """Everything a CRD says about a kind.

    `versions` share one schema; the first is the one stored. `foreign` marks kinds that belong to another project: the
    embedded platform serves them, but a cluster gets them from their owner and we never install them there.
    """

    group: str
    versions: tuple[str, ...]
    kind: str
    plural: str
    singular: str
    type: type[msgspec.Struct]
    doc: str
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    scope: Scope = "Namespaced"
    columns: tuple[Column, ...] = ()
    status: bool = True
    scale: Scale | None = None
    foreign: bool = False
    conditions: tuple[str, ...] = ()
    """Types of the conditions that our controllers write; empty where others write them."""
    phases: tuple[str, ...] = ()
    """All that `status.phase` may say; empty where there is none or others write it."""

    @property
    def name(self) -> str:
        """The name of the CRD object."""
        return f"{self.plural}.{self.group}"

    @property
    def api_version(self) -> str:
        """The stored group and version, as written in `apiVersion`."""
        return f"{self.group}/{self.versions[0]}"

    @property
    def list_kind(self) -> str:
        return f"{self.kind}List"
