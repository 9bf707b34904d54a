"""Who uses a version: aliases that name it, and services that serve it or name it. Pure.

Everything that removes versions (the controller, `pdc model rm`, retention) asks here, so they agree and say it in the
same words. A service uses a version if its spec names it, or if its status says that it is served now: between two
versions of a service both are in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from paddlecloud.api.model import aliases
from paddlecloud.api.model.reference import LATEST, BadReference, Reference, parse
from paddlecloud.api.model.spec import ModelSpec
from paddlecloud.api.names import EARLIER_PADDLESERVICE

LONGEST_NAME = 128


class VersionUser(NamedTuple):
    kind: str
    """alias or PaddleService."""
    name: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def users_of(
    model: str, version: str, spec: ModelSpec | None, services: Iterable[Mapping[str, Any]]
) -> list[VersionUser]:
    """`spec` is that of the Model, None if there is none. Aliases first."""
    return users_by_version(model, spec, services).get(version, [])


def users_by_version(
    model: str, spec: ModelSpec | None, services: Iterable[Mapping[str, Any]]
) -> dict[str, list[VersionUser]]:
    """Of the versions of a model that have any."""
    known = spec or ModelSpec()
    found = {
        version: [VersionUser("alias", name) for name in aliases.aliases_of(known, version)]
        for version in set((known.aliases or {}).values())
    }
    for service in services:
        for version in versions_used(service, model, known):
            found.setdefault(version, []).append(_user(service))
    return found


def users_of_model(model: str, spec: ModelSpec | None, services: Iterable[Mapping[str, Any]]) -> list[VersionUser]:
    """What keeps a whole model: every alias but latest, which nobody chose, and services with any version of it."""
    pointing = [VersionUser("alias", name) for name in sorted((spec.aliases if spec else None) or {}) if name != LATEST]
    return [*pointing, *(_user(s) for s in services if any(each.model == model for each in references(s)))]


def versions_used(service: Mapping[str, Any], model: str, spec: ModelSpec) -> set[str]:
    """The versions of a model that a service serves or names. An alias is the version that it names now."""
    known = spec.aliases or {}
    named = (each for each in references(service) if each.model == model)
    return {found for each in named if (found := each.version or known.get(each.alias, ""))}


def references(service: Mapping[str, Any]) -> Iterator[Reference]:
    """`NAME:VERSION`, `NAME@ALIAS` and `NAME` of a service: of its spec, and of what its status says is served."""
    spec = service.get("spec") or {}
    for part in (spec, spec.get("default"), spec.get("canary")):
        if isinstance(part, Mapping):
            yield from _reference(part.get("model"))
    yield from _served(service.get("status"))


def slim(service: Mapping[str, Any]) -> dict[str, Any]:
    """What is looked at of a service, for caches that hold many."""
    meta, spec, status = service["metadata"], service.get("spec") or {}, service.get("status") or {}
    parts = {name: spec.get(name) for name in ("default", "canary")}
    kept = {name: {"model": part.get("model")} for name, part in parts.items() if isinstance(part, Mapping)}
    return {
        "apiVersion": service.get("apiVersion"),
        "kind": service.get("kind"),
        "metadata": {name: meta.get(name) for name in ("name", "namespace", "uid", "resourceVersion")},
        "spec": {"model": spec.get("model"), **kept},
        "status": {name: status[name] for name in ("default", "canary", "models") if name in status},
    }


def _served(status: Any) -> Iterator[Reference]:
    """As the controller of services writes it: also versions that are served until the next one is ready."""
    if not isinstance(status, Mapping):
        return
    for part in (status.get("default"), status.get("canary")):
        if isinstance(part, Mapping):
            yield from (found for found in _reference(part.get("model")) if found.version)
    listed = status.get("models")
    for entry in listed if isinstance(listed, list) else ():
        if isinstance(entry, Mapping) and entry.get("name") and entry.get("version"):
            yield from _reference(f"{entry['name']}:{entry['version']}")


def _reference(text: Any) -> Iterator[Reference]:
    if isinstance(text, str) and text and "://" not in text:
        try:
            yield parse(text)
        except BadReference:
            return  # it names no version of any model


def named(users: Iterable[VersionUser]) -> str:
    """`alias production, PaddleService ocr`, with at most ten of them. API servers take aliases of any length."""
    names = [str(user)[:LONGEST_NAME] for user in users]
    return ", ".join(names[:10]) + (f" and {len(names) - 10} more" if len(names) > 10 else "")


def _user(service: Mapping[str, Any]) -> VersionUser:
    earlier = str(service.get("apiVersion") or "").startswith(EARLIER_PADDLESERVICE.group)
    name = str(service["metadata"]["name"])
    return VersionUser("PaddleService", f"{name}.{EARLIER_PADDLESERVICE.group}" if earlier else name)
