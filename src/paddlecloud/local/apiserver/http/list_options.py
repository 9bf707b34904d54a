"""Which moment a list or a watch asks for: resourceVersion and what may stand beside it.

The rules are those of Kubernetes. "Not older than" needs no work here: a list always shows the newest committed state,
which is as new as any version that was ever handed out.
"""

from __future__ import annotations

from collections.abc import Mapping

from paddlecloud.kube import errors
from paddlecloud.local.apiserver.schema.causes import Cause, forbidden, not_supported

EXACT, NOT_OLDER = "Exact", "NotOlderThan"


def revision_of(query: Mapping[str, str]) -> int:
    """The version asked for; 0 for none or any."""
    version = query.get("resourceVersion", "")
    if not version:
        return 0
    if not (version.isascii() and version.isdigit() and len(version) <= 20):
        raise errors.BadRequest(f'resourceVersion: Invalid value: "{version[:40]}": not a version of this server')
    return int(version)


def exact_revision(query: Mapping[str, str], *, limit: int) -> int | None:
    """The moment a list must show, or None for the newest.

    A limit with a version and no word on how to match has always meant exactly that version.
    """
    check_list_options(query, watch=False)
    revision = revision_of(query)
    if query.get("continue"):
        if revision:
            raise errors.BadRequest("specifying resource version is not allowed when using continue")
        return None
    match = query.get("resourceVersionMatch") or (EXACT if limit else NOT_OLDER)
    return revision if revision and match == EXACT else None


def check_list_options(query: Mapping[str, str], *, watch: bool) -> None:
    """Refuse combinations of options that contradict each other."""
    causes = _match_causes(query, watch=watch) + _initial_causes(query, watch=watch)
    if causes:
        raise errors.invalid("ListOptions", "", causes, group="meta.k8s.io")


def _match_causes(query: Mapping[str, str], *, watch: bool) -> list[Cause]:
    match, version, field = query.get("resourceVersionMatch"), query.get("resourceVersion"), "resourceVersionMatch"
    if not match:
        return []
    initial = "sendInitialEvents" in query
    if watch and not initial:
        return [forbidden(field, f"{field} is forbidden for watch unless sendInitialEvents is provided")]
    found = []
    if not version and not initial:
        found.append(forbidden(field, f"{field} is forbidden unless resourceVersion is provided"))
    if query.get("continue"):
        found.append(forbidden(field, f"{field} is forbidden when continue is provided"))
    if match not in (EXACT, NOT_OLDER):
        found.append(not_supported(field, match, (EXACT, NOT_OLDER)))
    if match == EXACT and version == "0":
        found.append(forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"'))
    return found


def _initial_causes(query: Mapping[str, str], *, watch: bool) -> list[Cause]:
    field = "sendInitialEvents"
    if field not in query:
        return []
    if not watch:
        return [forbidden(field, f"{field} is forbidden for list")]
    if query.get("resourceVersionMatch") != NOT_OLDER:
        return [forbidden("resourceVersionMatch", f"{field} requires setting resourceVersionMatch to {NOT_OLDER}")]
    return []
