"""A PaddleService as one Knative Service. Pure.

A Knative Service makes one revision per change of its template, so two that are wanted are asked for one after the
other. Its traffic names revisions, so nothing moves by itself.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT
from paddlecloud.controllers.paddleservice.observe import RevisionView
from paddlecloud.controllers.paddleservice.template import DesiredRevision
from paddlecloud.controllers.paddleservice.traffic import Shares
from paddlecloud.kube.plan import Delete, Patch, Plan
from paddlecloud.kube.resource import KNATIVE_REVISIONS, KNATIVE_SERVICES, Object

HISTORY = 2
"""Earlier default revisions that are kept asleep, to go back to."""


def shares_of(kservice: Object | None) -> Shares:
    """What was asked for last."""
    traffic = ((kservice or {}).get("spec") or {}).get("traffic") or ()
    return {t["revisionName"]: int(t.get("percent") or 0) for t in traffic if t.get("revisionName")}


def template_name(kservice: Object) -> str:
    template = (kservice.get("spec") or {}).get("template") or {}
    return str((template.get("metadata") or {}).get("name") or "")


def apply_to_plan(
    plan: Plan,
    owner: Object,
    reference: Object,
    kservice: Object | None,
    wanted: Mapping[str, DesiredRevision],
    revisions: Mapping[str, RevisionView],
    shares: Shares,
) -> None:
    """Create or change the Knative Service."""
    meta = owner["metadata"]
    if kservice is None:
        plan.create.append(
            {
                "apiVersion": KNATIVE_SERVICES.api_version,
                "kind": KNATIVE_SERVICES.kind,
                "metadata": {
                    "name": meta["name"],
                    "namespace": meta["namespace"],
                    "labels": dict(meta.get("labels") or {}),
                    "ownerReferences": [reference],
                },
                "spec": {"template": _template(wanted[DEFAULT]), "traffic": _traffic(shares)},
            }
        )
        return
    change: Object = {}
    following = _next_template(kservice, wanted, revisions)
    if following is not None:
        change["template"] = _template(following)
    if shares_of(kservice) != shares:
        change["traffic"] = _traffic(shares)
    if change:
        seen = kservice["metadata"].get("resourceVersion")
        operations = [{"op": "add", "path": f"/spec/{name}", "value": value} for name, value in change.items()]
        plan.patch.append(Patch(KNATIVE_SERVICES, meta["name"], meta["namespace"], operations, kind="json", seen=seen))


def _next_template(
    kservice: Object, wanted: Mapping[str, DesiredRevision], revisions: Mapping[str, RevisionView]
) -> DesiredRevision | None:
    """The template of a revision that is missing; else the default's, where nobody wants the present one any more.

    Knative makes a revision again that its template names, so one that is to go must not be named there. It takes a
    name back only with the very spec of the revision that has it; with any other, down to fields that it fills in
    itself, it moves no traffic from then on.
    """
    current = template_name(kservice)
    for endpoint in (DEFAULT, CANARY):
        found = wanted.get(endpoint)
        if found is not None and found.name not in revisions:
            return found if current != found.name else None
    if current in {found.name for found in wanted.values()}:
        return None
    default = wanted[DEFAULT]
    return default._replace(spec=dict(revisions[default.name].spec))


def _template(wanted: DesiredRevision) -> Object:
    return {
        "metadata": {"name": wanted.name, "labels": wanted.labels, "annotations": wanted.annotations},
        "spec": wanted.spec,
    }


def _traffic(shares: Shares) -> list[Object]:
    return [
        {"revisionName": name, "latestRevision": False, "percent": percent} for name, percent in sorted(shares.items())
    ]


def forget(
    plan: Plan, namespace: str, kservice: Object, revisions: Mapping[str, RevisionView], needed: Collection[str]
) -> None:
    """Old revisions go once nothing leads to them; the last defaults stay, asleep.

    So does the one that the template names: Knative would make it again.
    """
    routed = {
        t.get("revisionName") for part in ("spec", "status") for t in ((kservice.get(part) or {}).get("traffic") or ())
    }
    idle = [
        view
        for view in revisions.values()
        if view.name not in needed and view.name not in routed and view.name != template_name(kservice)
    ]
    defaults = sorted((v for v in idle if v.endpoint == DEFAULT and v.ready), key=lambda v: -v.created)
    kept = {view.name for view in defaults[:HISTORY]}
    plan.delete += [
        Delete(KNATIVE_REVISIONS, view.name, namespace, uid=view.uid) for view in idle if view.name not in kept
    ]
