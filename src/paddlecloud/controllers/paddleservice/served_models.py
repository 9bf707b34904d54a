"""Which version of a model gets which share of the traffic, and since when: the field `models` of a status. Pure.

It is also where the version that a reference meant is remembered (`resolution.kept_versions`).
"""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.controllers.paddleservice.observe import RevisionView
from paddlecloud.controllers.paddleservice.resolution import Resolution, Version
from paddlecloud.controllers.paddleservice.template import DesiredRevision
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.resource import Object


def entries(
    old: Object,
    wanted: Mapping[str, DesiredRevision],
    views: Mapping[str, RevisionView],
    shares: Mapping[str, int],
    references: Mapping[str, str],
    now: float,
) -> list[Object]:
    """One for each revision that has a share or is wanted; `references` are those of the spec, by endpoint."""
    named = {revision.name: endpoint for endpoint, revision in wanted.items()}
    found = []
    for name in dict.fromkeys((*shares, *named)):  # what serves comes first
        model = wanted[named[name]].model if name in named else views[name].model if name in views else None
        if model is None:
            continue
        endpoint = named.get(name) or views[name].endpoint
        share = shares.get(name, 0)
        found.append(
            {
                "endpoint": endpoint,
                "name": model.name,
                "version": model.version,
                **({"digest": model.digest} if model.digest else {}),
                "revision": name,
                "percent": share,
                **({"since": _since(old, endpoint, model, now)} if share else {}),
                **({"reference": references[endpoint]} if name in named else {}),
            }
        )
    return sorted(found, key=lambda entry: entry["endpoint"] == "canary")


def refused(old: Object, resolutions: Mapping[str, Resolution]) -> list[Object]:
    """Of a service that is refused: what serves goes on. A reference that could not be followed is looked up anew once
    something changes, so that what it meant before is not kept."""
    lost = {endpoint for endpoint, resolution in resolutions.items() if resolution.version is None}
    return [
        {field: value for field, value in entry.items() if field != "reference" or entry["endpoint"] not in lost}
        for entry in old.get("models") or ()
    ]


def _since(old: Object, endpoint: str, model: Version, now: float) -> str:
    """A version that goes on in another revision, of another size for example, has its share since the first one."""
    for entry in old.get("models") or ():
        same = (entry.get("endpoint"), entry.get("name"), entry.get("version"), entry.get("digest") or "")
        if same == (endpoint, *model) and entry.get("percent") and entry.get("since"):
            return str(entry["since"])
    return rfc3339(now)
