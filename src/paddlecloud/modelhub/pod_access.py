"""What a pod is given to fetch one version of a model: which one, from where, and what opens it. Pure.

A controller writes it into the environment of a pod (`environment`), the program there reads it (`from_environment`).
The digest is the controller's: what the hub sends is judged by it, and so is what lies on the node already.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.modelhub import names

VARIABLES = (
    names.VARIABLE,
    "PADDLECLOUD_MODEL_NAMESPACE",
    "PADDLECLOUD_MODEL_VERSION",
    "PADDLECLOUD_MODEL_DIGEST",
    names.TOKEN_VARIABLE,
)


class PodAccess(NamedTuple):
    hub: str
    """URL of the hub's server."""
    namespace: str
    shown: str
    """NAME:VERSION."""
    digest: str
    grant: str
    """What `read_grant.sign` gave: it opens this version and nothing else."""

    @property
    def model(self) -> str:
        return self.shown.partition(":")[0]

    @property
    def version(self) -> str:
        return self.shown.partition(":")[2]


def environment(access: PodAccess) -> list[dict[str, str]]:
    """As variables of a container."""
    return [{"name": name, "value": value} for name, value in zip(VARIABLES, access, strict=True)]


def from_environment(values: Mapping[str, str]) -> PodAccess | None:
    """None where no version of the hub was given."""
    found = [values.get(name, "") for name in VARIABLES]
    return PodAccess(*found) if all(found) else None
