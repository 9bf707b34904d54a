"""The reasons of events about the objects a SampleSet owns. They are those of the original operator."""

from __future__ import annotations

from collections.abc import Iterable

from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.plan import NameTaken, PlanFailed, PlannedEvent
from paddlecloud.kube.resource import PERSISTENTVOLUMECLAIMS, PERSISTENTVOLUMES, SAMPLEJOBS, Object

NAMES = {PERSISTENTVOLUMES.kind: "PV", PERSISTENTVOLUMECLAIMS.kind: "PVC", SAMPLEJOBS.kind: "WarmupJob"}
"""Kinds as reasons name them; others have their own name."""


def created(objects: Iterable[Object]) -> list[PlannedEvent]:
    """`CreatePVSuccessfully` and the like, one for each object, once all of them are made."""
    return [
        PlannedEvent(
            f"Create{_name(str(obj['kind']))}Successfully",
            f"{obj['kind']} {obj['metadata']['name']} created",
            if_done=True,
        )
        for obj in objects
    ]


def refused(failed: PlanFailed) -> list[PlannedEvent]:
    """`ErrorCreatePV` for `create PersistentVolume imagenet` and the like, one for each object."""
    return [PlannedEvent(_reason(what, error), f"{what}: {error.message}", "Warning") for what, error in failed.errors]


def _reason(what: str, error: ApiError) -> str:
    verb, _, rest = what.partition(" ")
    kind = _name(rest.split(" ")[0])
    if isinstance(error, NameTaken):
        return f"Error{kind}AlreadyExist"
    return f"Error{verb.capitalize()}{kind}" if verb in ("create", "delete") else "ErrorUpdate"


def _name(kind: str) -> str:
    return NAMES.get(kind, kind)
