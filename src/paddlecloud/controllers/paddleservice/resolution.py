"""Which version of a model a service serves, where its spec names one: `NAME@ALIAS`, `NAME:VERSION` or `NAME`. Pure.

`NAME@ALIAS` is the ModelHub's. Of `NAME:VERSION` and `NAME`, the ModelHub's is meant where the namespace has a Model of
that name, and otherwise that of the model store whose URL is configured.

What was found once is kept in the status (its field `models`): a later move of the alias changes nothing unless the
service follows it, nor does a Model that gets the name of one in the model store. It is looked up anew when the spec
names something else, or when another attempt is requested (`pdc retry`). A version that is gone, or has other files by
now, is reported, and what serves goes on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from paddlecloud.api.model.reference import LATEST, Reference, object_name
from paddlecloud.api.paddleservice import ServiceSettings
from paddlecloud.api.paddleservice.named_model import hub_reference, is_name, stored_name
from paddlecloud.controllers.paddleservice.names import CANARY, DEFAULT
from paddlecloud.kube import nearest
from paddlecloud.kube.conditions import ConditionState
from paddlecloud.kube.resource import Object

MODEL_ENDPOINT = "PADDLECLOUD_MODEL_ENDPOINT"
"""Environment of the controller, and of an inference server that is to find a model by its name."""
FOUND = ConditionState("True", "Resolved")
ALIAS_MOVED = "AliasMoved"
NOT_FOLLOWING = "NotFollowing"
_MARK = re.compile(r"(?P<name>[^:@]+):(?P<version>[^:@]+)(@(?P<digest>sha256:[0-9a-f]{64}))?")


class Version(NamedTuple):
    """A version of a model. Those of a model store have no digest: its archives may change."""

    name: str
    version: str
    digest: str = ""

    @property
    def shown(self) -> str:
        return f"{self.name}:{self.version}"

    @property
    def mark(self) -> str:
        """As the annotation of a revision has it."""
        return f"{self.shown}@{self.digest}" if self.digest else self.shown

    @property
    def in_hub(self) -> bool:
        return bool(self.digest)


def read_mark(text: str) -> Version | None:
    """None for what no controller wrote."""
    found = _MARK.fullmatch(text)
    return Version(found["name"], found["version"], found["digest"] or "") if found else None


class Hub(NamedTuple):
    """Models and versions of the service's namespace, by the names of their objects."""

    models: Mapping[str, Object] = {}
    versions: Mapping[str, Object] = {}
    names: Sequence[str] = ()
    """Of all models there, where one that is named does not exist."""

    def missing(self, model: str, namespace: str) -> str:
        """That there is no such model, and which was meant."""
        meant = f" ({hint})" if (hint := nearest.question(model, self.names)) else ""
        return f"there is no Model {model} in namespace {namespace}{meant}"

    def digest(self, model: str, version: str) -> str:
        """Empty where there is no such version."""
        found = self.versions.get(object_name(model, version)) or {}
        return str((found.get("spec") or {}).get("digest") or "")


class Resolution(NamedTuple):
    """`version` is None where the service cannot be made before something changes; `state` says why."""

    version: Version | None
    state: ConditionState


class Question(NamedTuple):
    service: str
    namespace: str
    reference: str
    kept: Version | None
    """What the reference meant when it was last found."""
    follow: bool
    has_store: bool
    """Whether the URL of a model store is configured, for the controller or for the service."""


def named_models(settings: ServiceSettings) -> dict[str, str]:
    """The models that are named, by endpoint."""
    endpoints = {DEFAULT: settings.default, CANARY: settings.canary}
    return {name: found.model for name, found in endpoints.items() if found is not None and is_name(found.model)}


def hub_models(settings: ServiceSettings) -> set[str]:
    """Names of the Models that the service may mean."""
    found = (hub_reference(text) for text in named_models(settings).values())
    return {reference.model for reference in found if reference is not None}


def resolve(
    settings: ServiceSettings, hub: Hub, kept: Mapping[str, Version], *, endpoint: str
) -> dict[str, Resolution]:
    """By endpoint. `kept` is by endpoint too, and `endpoint` the URL of the controller's model store."""
    return {
        name: _resolve(
            Question(
                settings.name, settings.namespace, text, kept.get(name), settings.follow, _has_store(settings, endpoint)
            ),
            hub,
            tells=name == DEFAULT,
        )
        for name, text in named_models(settings).items()
    }


def kept_versions(status: Object, wanted: Mapping[str, str]) -> dict[str, Version]:
    """What the references of a spec meant so far, by endpoint. A canary that was promoted keeps its version."""
    entries = [entry for entry in status.get("models") or () if entry.get("reference")]
    found: dict[str, Version] = {}
    for endpoint, text in wanted.items():
        same = [entry for entry in entries if entry["reference"] == text]
        for entry in sorted(same, key=lambda entry: entry.get("endpoint") != endpoint)[:1]:
            found[endpoint] = Version(entry["name"], entry["version"], entry.get("digest") or "")
    return found


def version_meant(meant: Reference, model: Object | None) -> str:
    """Of a version its own name, of an alias where it points; empty where it points nowhere."""
    return meant.version or str(_aliases(model or {}).get(meant.alias) or "")


def _aliases(model: Object) -> Mapping[str, str]:
    return (model.get("spec") or {}).get("aliases") or {}


def worst(resolutions: Iterable[Resolution]) -> ConditionState | None:
    """What the condition ModelReady says of all of them; None where no model is named."""
    states = [resolution.state for resolution in resolutions]
    ranked = sorted(states, key=lambda state: (state.status == "True", not state.message))
    return ranked[0] if ranked else None


def _has_store(settings: ServiceSettings, endpoint: str) -> bool:
    written = settings.spec.env or []
    named = any(entry.get("name") == MODEL_ENDPOINT for entry in written)
    return bool(endpoint or named or settings.spec.env_from)  # what envFrom brings is known to the pod alone


def _resolve(question: Question, hub: Hub, *, tells: bool) -> Resolution:
    """`tells`: whether it is said of this endpoint that nothing is followed: a canary mostly is a version."""
    kept, text = question.kept, question.reference
    if kept is not None and not kept.in_hub:
        return Resolution(kept, FOUND)
    meant = hub_reference(text)
    in_hub = meant is not None and ("@" in text or kept is not None or meant.model in hub.models)
    if meant is None or not in_hub:
        return _of_store(question, hub)
    if question.follow and meant.version and tells:
        return _pinned(question, meant, hub)
    if kept is None:
        return _found(question, meant, hub)
    if question.follow and meant.alias:
        found = _found(question, meant, hub)
        return Resolution(kept, _lost(question, kept, hub) or FOUND) if _same(found.version, kept) else found
    return Resolution(kept, _lost(question, kept, hub) or _moved(question, meant, kept, hub))


def _pinned(question: Question, meant: Reference, hub: Hub) -> Resolution:
    """A version where an alias was to be followed, as after a rollback: it is served, and nothing is followed."""
    kept = question.kept
    found = Resolution(kept, _lost(question, kept, hub) or FOUND) if kept else _found(question, meant, hub)
    if found.state != FOUND:
        return found
    named = sorted(_aliases(hub.models.get(meant.model) or {}), key=lambda alias: (alias == LATEST, alias))
    again = f"{meant.model}@{'production' if 'production' in named else (named or ['ALIAS'])[0]}"
    text = (
        f"{meant} is a version: this service follows no alias, although spec.follow is set; to follow one again: "
        f"`pdc serve {again} --name {question.service} --follow`"
    )
    return found._replace(state=ConditionState("True", NOT_FOLLOWING, text))


def _same(found: Version | None, kept: Version) -> bool:
    """Whether it is the version that is kept, whatever its files are now."""
    return found is not None and found is not kept and found[:2] == kept[:2]


def _of_store(question: Question, hub: Hub) -> Resolution:
    if question.has_store:
        return Resolution(Version(*stored_name(question.reference)), FOUND)
    name = stored_name(question.reference)[0]
    return Resolution(
        None,
        _problem(
            "ModelNotFound",
            f"{hub.missing(name, question.namespace)}, where `pdc model ls` lists what there is and "
            f"`pdc model push {name} FOLDER` adds one; and no model store is configured, which {MODEL_ENDPOINT} of the "
            "controller, or in the service's env, would do",
        ),
    )


def _found(question: Question, meant: Reference, hub: Hub) -> Resolution:
    """What the reference means now; what it meant before where that is nothing."""
    version, problem = _version_of(question, meant, hub)
    if problem is not None:
        return Resolution(question.kept, problem)
    digest = hub.digest(meant.model, version)
    if not digest:
        pointing = f"{meant} points to version {version}, which" if meant.alias else f"version {meant}"
        gone = _problem(
            "VersionNotFound",
            f"{pointing} does not exist in namespace {question.namespace}: `pdc model ls {meant.model}` lists those "
            "that do",
        )
        return Resolution(question.kept, gone)
    return Resolution(Version(meant.model, version, digest), FOUND)


def _version_of(question: Question, meant: Reference, hub: Hub) -> tuple[str, ConditionState | None]:
    model = hub.models.get(meant.model)
    if version := version_meant(meant, model):
        return version, None
    if model is None:
        text = f"{hub.missing(meant.model, question.namespace)}: `pdc model ls` lists what there is"
        return "", _problem("ModelNotFound", text)
    aliases = _aliases(model)
    there = f"it has {', '.join(sorted(aliases))}" if aliases else "it has none"
    there += f" ({hint})" if (hint := nearest.question(meant.alias, aliases)) else ""
    return "", _problem(
        "AliasNotFound",
        f"model {meant.model} has no alias {meant.alias}; {there}: `pdc model tag {meant.model}:VERSION {meant.alias}` "
        "makes it",
    )


def _lost(question: Question, kept: Version, hub: Hub) -> ConditionState | None:
    """Why pods of the version that is served cannot be started on further nodes; None where they can."""
    digest = hub.digest(kept.name, kept.version)
    if digest == kept.digest:
        return None
    again = f"`pdc retry pds/{question.service}`"
    if not digest:
        return _problem(
            "VersionNotFound",
            f"version {kept.shown} was removed from namespace {question.namespace}; pods that run go on, further nodes "
            f"cannot fetch it: push it again, or serve another version, then {again}",
        )
    return _problem(
        "DigestMismatch",
        f"{kept.shown} has other files ({digest[:19]}…) than the service was made with ({kept.digest[:19]}…): it was "
        f"removed and pushed again; {again} serves the new files",
    )


def _moved(question: Question, meant: Reference, kept: Version, hub: Hub) -> ConditionState:
    """Of an alias that is not followed: whether it points elsewhere now."""
    if meant.version:
        return FOUND
    version, problem = _version_of(question, meant, hub)
    if problem is None and version == kept.version:
        return FOUND
    where = f"points to version {version} now" if problem is None else "is gone"
    text = (
        f"{meant} {where}; this service keeps {kept.version}, since spec.follow is not set: "
        f"`pdc retry pds/{question.service}` takes up what the alias points to"
    )
    return ConditionState("True", ALIAS_MOVED, text)


def _problem(reason: str, message: str) -> ConditionState:
    return ConditionState("False", reason, message)
