"""Server-side apply that does not conflict with itself.

`scale`, `suspend`, `promote` and the other verbs change single fields under the same manager name as `apply`, and
Kubernetes counts an Update and an Apply of one name as two owners. `serve` applies under a name of its own, so that it
keeps the fields of a file that it does not write. What pdc changed itself is no other tool's: the next apply of a file
sets those fields. A conflict with any other manager stands.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from paddlecloud.kube.errors import Conflict
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.object_ref import ObjectRef

if TYPE_CHECKING:
    from paddlecloud.kube.client import Client, FieldValidation

FIELD_MANAGER = "pdc"
"""Of the command line and of the SDK: what one of the two applied, the other may change."""
SERVE_MANAGER = "pdc-serve"
OWN_MANAGERS = frozenset((FIELD_MANAGER, SERVE_MANAGER))


async def apply(
    client: Client,
    place: ObjectRef,
    body: Object,
    *,
    field_manager: str,
    force: bool = False,
    dry_run: bool = False,
    field_validation: FieldValidation = "Strict",
) -> Object:
    async def send(*, force: bool) -> Object:
        return await client.patch(
            place.resource,
            place.name,
            body,
            namespace=place.namespace,
            kind="apply",
            force=force,
            field_manager=field_manager,
            dry_run=dry_run,
            field_validation=field_validation,
        )

    try:
        return await send(force=force)
    except Conflict as conflict:
        own = OWN_MANAGERS if field_manager in OWN_MANAGERS else {field_manager}
        found = owners(conflict)
        if not found or not found <= own:
            raise
        return await send(force=True)


def owners(conflict: Conflict) -> set[str]:
    """The managers that a refused apply names; empty for a conflict of another sort."""
    causes = (conflict.details or {}).get("causes") or ()
    messages = [str(cause.get("message")) for cause in causes if cause.get("reason") == "FieldManagerConflict"]
    found = [re.match(r'conflict with "([^"]*)"', message) for message in messages]
    return {match[1] if match else "" for match in found}
