"""Sets that the original operator made are taken over as they are: volume, claim, Service and StatefulSet become ours.

Names, labels and selectors are the same, so nothing that leads to data is made again. What it made lacks the label that
informers select by, and an owner. Its cache servers use another protocol: a new template of the same StatefulSet
replaces them one by one. The volume stays as it was mounted, with the cache directories that it was given.
"""

from __future__ import annotations

from paddlecloud.controllers.sampledata import names
from paddlecloud.controllers.sampledata.sampleset import objects
from paddlecloud.controllers.sampledata.sampleset.case import SampleSetCase
from paddlecloud.controllers.sampledata.sampleset.draft import SampleSetDraft
from paddlecloud.kube.plan import Patch
from paddlecloud.kube.resource import Object, owner_reference, resource_of

IMPORTED = ("PartialReady", "Ready")
"""Phases that are only reached with the data in place."""


def report(draft: SampleSetDraft) -> None:
    """Complete a status that another controller wrote: its phase is right, but it knows no conditions."""
    case = draft.case
    if not case.phase or case.old.driver:
        return
    draft.add_event("Adopted", "taken over from another controller; its cache servers are replaced one by one")
    draft.condition("Bound", True, "Bound")
    if case.phase in IMPORTED:
        draft.condition("Synced", True, "Adopted", "imported before this controller came")


def take_over(case: SampleSetCase, found: Object) -> list[Patch]:
    """What makes an object of the set ours; nothing for one that is."""
    meta = found["metadata"]
    if (meta.get("labels") or {}).get(names.SAMPLE_SET) == case.settings.name:
        return []
    others = [ref for ref in meta.get("ownerReferences") or () if ref["uid"] != case.uid]
    owners = [*others, owner_reference(case.sample_set)]
    change: Object = {"metadata": {"labels": {names.SAMPLE_SET: case.settings.name}, "ownerReferences": owners}}
    if found["kind"] == "StatefulSet":
        template = objects.build_template(case)
        change["metadata"]["annotations"] = {names.TEMPLATE: names.digest_of(template)}
        change["spec"] = {"template": template}
    elif found["kind"] == "Service":
        change["spec"] = {"publishNotReadyAddresses": True}
    return [Patch(resource_of(found), meta["name"], meta["namespace"], change, seen=meta["resourceVersion"])]
