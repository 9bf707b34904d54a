"""Data → job → version of a model → service, and back: what objects of a namespace say, and what versions recorded.

`gather` reads, the rest is pure. A job or a data set that was deleted is shown as the versions that came from it
recorded it (`gone`); one of the same name that was made later is another one (`replaced`). Where no uid was recorded,
because the author of a version wrote its origin by hand, the name alone decides.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

from paddlecloud.api.model import aliases, reference
from paddlecloud.api.model.reference import BadReference
from paddlecloud.api.names import PACKED_VERSION
from paddlecloud.kube.client import Client
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.resource import (
    EARLIER_PADDLESERVICES,
    MODELS,
    MODELVERSIONS,
    PADDLEJOBS,
    PADDLESERVICES,
    SAMPLESETS,
    Object,
)
from paddlecloud.modelhub import origin as origins
from paddlecloud.sdk import model_objects

DATA, JOB, VERSION, SERVICE = "sampleset", "pdj", "model", "pds"
"""Kinds as they are written on the command line."""
EXISTS, GONE, REPLACED, CHANGED = "exists", "gone", "replaced", "changed"
MOST_NODES = 1000
"""Of one trace. Authors of versions write the origins, and a data set is above every version that names it."""
DEEPEST = 50
"""Versions, each made of the one before."""


@dataclass
class LineageNode:
    kind: str
    name: str
    state: str = EXISTS
    uid: str = ""
    facts: dict[str, Any] = field(default_factory=dict)
    children: list[LineageNode] = field(default_factory=list)

    @property
    def key(self) -> tuple[str, str, str]:
        return self.kind, self.name, self.uid if self.kind in (DATA, JOB) else ""

    def report(self, below: str) -> dict[str, Any]:
        own = {"kind": self.kind, "name": self.name, "state": self.state, "uid": self.uid or None, "facts": self.facts}
        return {**own, below: [child.report(below) for child in self.children]}


class Lineage(NamedTuple):
    node: LineageNode
    origin: list[LineageNode]
    """Where it came from, each with what that came from."""
    use: list[LineageNode]
    """What was made of it."""


class NotRecorded(LookupError):
    """Neither does the object exist, nor did any version record it."""


@dataclass
class TracedObjects:
    """A namespace, as far as the caller may read it."""

    jobs: dict[str, Object]
    sets: dict[str, Object]
    services: list[Object]
    models: dict[str, Object]
    versions: dict[str, Object]
    """By `NAME:VERSION`."""
    unread: list[str] = field(default_factory=list)
    left: int = MOST_NODES
    """Nodes that the trace may still have."""
    is_cut: bool = False
    """Whether the trace leaves something out."""

    @cached_property
    def derived(self) -> dict[str, list[str]]:
        """Version → those that were made from it."""
        return self._by("source")

    @cached_property
    def made(self) -> dict[str, list[str]]:
        """Job → the versions that it made, oldest first."""
        return self._by("job")

    def _by(self, entry: str) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for key in sorted(self.versions, key=lambda key: (_created(self.versions[key]), key)):
            if value := _recorded(self.versions[key]).get(entry):
                found.setdefault(value, []).append(key)
        return found

    @cached_property
    def served(self) -> dict[str, list[Object]]:
        """Version → the services that serve it."""
        found: dict[str, list[Object]] = {}
        for service in self.services:
            for version in _served(self, service):
                found.setdefault(version, []).append(service)
        return found

    @cached_property
    def now(self) -> dict[str, dict[str, str]]:
        """Data sets as they are."""
        return {name: origins.data_facts(origins.of_data([obj]), name) for name, obj in self.sets.items()}

    def room(self) -> bool:
        """Whether there is room for one more node, which takes it."""
        self.left -= 1
        self.is_cut = self.is_cut or self.left < 0
        return self.left >= 0

    @classmethod
    def of(cls, found: Mapping[str, Iterable[Object]], unread: Iterable[str] = ()) -> TracedObjects:
        def by_name(plural: str) -> dict[str, Object]:
            return {str(obj["metadata"]["name"]): obj for obj in found.get(plural) or ()}

        versions = {version_name(obj): obj for obj in found.get("modelversions") or ()}
        services = list(found.get("paddleservices") or ())
        return cls(by_name("paddlejobs"), by_name("samplesets"), services, by_name("models"), versions, list(unread))


async def gather(client: Client, namespace: str) -> TracedObjects:
    found: dict[str, list[Object]] = {}
    unread: list[str] = []
    for resource in (MODELVERSIONS, MODELS, PADDLEJOBS, SAMPLESETS, PADDLESERVICES, EARLIER_PADDLESERVICES):
        try:
            items = (await client.list(resource, namespace, limit=500)).items
        except ApiError as error:
            if resource is not EARLIER_PADDLESERVICES:  # few clusters serve it
                unread.append(f"{resource.plural}: {error.message}")
            continue
        found.setdefault(resource.plural, []).extend(items)
    return TracedObjects.of(found, unread)


def trace(world: TracedObjects, kind: str, name: str) -> Lineage:
    """`name` of a version is a reference. Raises `NotRecorded`, and `BadReference` for what is none."""
    world.left, world.is_cut = MOST_NODES, False
    if kind == VERSION:
        version = _resolved(world, name)
        return Lineage(_version(world, version), _origin_of_version(world, version), _use_of_version(world, version))
    if kind == SERVICE:
        services = [obj for obj in world.services if obj["metadata"]["name"] == name]
        if not services:
            raise NotRecorded(f"there is no PaddleService {name}")
        return Lineage(_service(services[0]), _origin_of_service(world, services[0]), [])
    if kind == JOB:
        job = world.jobs.get(name)
        made = _versions_of(world, name, _uid(job))
        if job is None and not made:
            raise NotRecorded(f"there is no PaddleJob {name}, and no version of a model recorded one")
        node = _job(world, _recorded(made[-1], world) if made else {"job": name, "job-uid": _uid(job)}, live=job)
        return Lineage(node, _data_of_job(world, job, made), _versions_with_use(world, made))
    if kind != DATA:
        raise NotRecorded("versions of models, PaddleJobs, SampleSets and PaddleServices have an origin or a use")
    if name not in world.sets and not any(
        name in origins.data_names(_recorded(one)) for one in world.versions.values()
    ):
        raise NotRecorded(f"there is no SampleSet {name}, and no version of a model recorded one")
    return Lineage(_set(world, name, {}), [], _use_of_set(world, name))


def serving(world: TracedObjects) -> dict[str, list[LineageNode]]:
    """Version → the services that serve it."""
    return {version: [_service(obj, version) for obj in found] for version, found in world.served.items()}


# Each node, and what is above and below it


def version_name(obj: Object) -> str:
    return f"{obj['spec']['model']}:{obj['spec']['version']}"


def _resolved(world: TracedObjects, text: str) -> str:
    wanted = reference.parse(text)
    version = wanted.version
    if wanted.alias:
        known = model_objects.spec_of(world.models[wanted.model]).aliases or {} if wanted.model in world.models else {}
        version = known.get(wanted.alias, "")
    if f"{wanted.model}:{version}" not in world.versions:
        raise NotRecorded(f"there is no version {wanted}")
    return f"{wanted.model}:{version}"


def _recorded(version: Object | str, world: TracedObjects | None = None) -> dict[str, str]:
    obj = world.versions[version] if world is not None and isinstance(version, str) else version
    found: dict[str, str] = (obj["spec"].get("origin") or {}) if isinstance(obj, dict) else {}
    return found


def _version(world: TracedObjects, name: str) -> LineageNode:
    obj = world.versions.get(name)
    if obj is None:
        return LineageNode(VERSION, name, GONE)
    spec = obj["spec"]
    model = world.models.get(str(spec["model"]))
    pointing = aliases.aliases_of(model_objects.spec_of(model), str(spec["version"])) if model else []
    facts = {
        "aliases": pointing,
        "framework": spec.get("framework"),
        "size": spec.get("size"),
        "digest": spec.get("digest"),
        "metrics": spec.get("metrics"),
        "createdAt": spec.get("createdAt"),
        "createdBy": spec.get("createdBy"),
    }
    return LineageNode(VERSION, name, uid=str(obj["metadata"].get("uid") or ""), facts=_given(facts))


def _origin_of_version(world: TracedObjects, name: str, seen: tuple[str, ...] = ()) -> list[LineageNode]:
    if name not in world.versions or name in seen or _too_deep(world, seen):
        return []
    recorded = _recorded(name, world)
    found = []
    if (source := recorded.get("source")) and world.room():
        found.append(_with(_version(world, source), _origin_of_version(world, source, (*seen, name))))
    names = [one for one in origins.data_names(recorded) if world.room()]
    data = [_set(world, one, origins.data_facts(recorded, one)) for one in names]
    if "job" in recorded and world.room():
        return [*found, _with(_job(world, recorded), data)]
    return [*found, *data]


def _use_of_version(world: TracedObjects, name: str, seen: tuple[str, ...] = ()) -> list[LineageNode]:
    if _too_deep(world, seen):
        return []
    derived = sorted(key for key in world.derived.get(name, ()) if key not in seen)
    return [
        *_versions_with_use(world, derived, (*seen, name)),
        *(_service(obj, name) for obj in world.served.get(name, ()) if world.room()),
    ]


def _versions_with_use(world: TracedObjects, keys: Iterable[str], seen: tuple[str, ...] = ()) -> list[LineageNode]:
    return [_with(_version(world, key), _use_of_version(world, key, seen)) for key in keys if world.room()]


def _too_deep(world: TracedObjects, seen: tuple[str, ...]) -> bool:
    world.is_cut = world.is_cut or len(seen) >= DEEPEST
    return len(seen) >= DEEPEST


def _job(world: TracedObjects, recorded: Mapping[str, str], live: Object | None = None) -> LineageNode:
    """As a version recorded it, and whether it still exists."""
    name, uid = recorded.get("job", ""), recorded.get("job-uid", "")
    live = live or world.jobs.get(name)
    state = GONE if live is None else REPLACED if uid and _uid(live) != uid else EXISTS
    facts: dict[str, Any] = {
        key: recorded[key] for key in ("image", "image-id", "command", "commit", "run-name", "step") if key in recorded
    }
    facts |= {key: value for key, value in recorded.items() if key.startswith("env.")}
    if state == EXISTS and live is not None:
        facts = {**origins.of_job(live), **facts, "phase": (live.get("status") or {}).get("phase")}
        uid = _uid(live)
    hidden = ("job", "job-uid", "run")
    return LineageNode(JOB, name, state, uid, _given({key: value for key, value in facts.items() if key not in hidden}))


def _data_of_job(world: TracedObjects, job: Object | None, made: list[str]) -> list[LineageNode]:
    recorded = _recorded(made[-1], world) if made else {}
    names = origins.data_names(recorded)
    live = [name for name in origins.claims_of(job) if name in world.sets] if job else []
    seen = origins.of_data([world.sets[name] for name in live], job)
    return [
        _set(world, name, origins.data_facts(recorded if name in names else seen, name))
        for name in dict.fromkeys([*names, *live])
    ]


def _set(world: TracedObjects, name: str, recorded: Mapping[str, str]) -> LineageNode:
    obj = world.sets.get(name)
    facts: dict[str, Any] = dict(recorded)
    uid = str(facts.pop("uid", ""))
    if obj is None:
        return LineageNode(DATA, name, GONE, uid, facts)
    now = dict(world.now[name])
    if uid and uid != now.get("uid"):
        return LineageNode(DATA, name, REPLACED, uid, facts)
    compared = [key for key in ("generation", "revision", "imported") if recorded.get(key)]
    changed = {key: now[key] for key in compared if now.get(key) not in (None, recorded[key])}
    now.pop("uid", None)
    if recorded.get("revision") != now.get("revision") and recorded:
        now = {key: now[key] for key in ("generation", "source") if key in now}  # not how much there is now
    facts = {**now, **facts, **({"now": changed} if changed else {})}
    return LineageNode(DATA, name, CHANGED if changed else EXISTS, _uid(obj), facts)


def _use_of_set(world: TracedObjects, name: str) -> list[LineageNode]:
    """Jobs that read it, those that versions recorded included; and versions that recorded it without a job."""
    found: dict[tuple[str, str], LineageNode] = {}
    loose = []
    for key in sorted(world.versions, key=lambda key: _created(world.versions[key])):
        recorded = _recorded(key, world)
        if name not in origins.data_names(recorded) or not world.room():
            continue
        version = _with(_version(world, key), _use_of_version(world, key))
        if "job" not in recorded:
            loose.append(version)
            continue
        node = _job(world, recorded)
        found.setdefault((node.name, node.uid), node).children.append(version)
    for job_name, job in world.jobs.items():
        if name in origins.claims_of(job) and (job_name, _uid(job)) not in found and world.room():
            node = _job(world, {"job": job_name, "job-uid": _uid(job)}, live=job)
            made = _versions_of(world, job_name, _uid(job))
            found[job_name, _uid(job)] = _with(node, _versions_with_use(world, made))
    return [*found.values(), *loose]


def _versions_of(world: TracedObjects, job: str, uid: str) -> list[str]:
    """Versions that a job made, oldest first; of jobs that are gone all of that name."""
    known = world.made.get(job, ())
    return [key for key in known if not uid or _recorded(key, world).get("job-uid", uid) == uid]


def _created(version: Object) -> str:
    return str(version["spec"].get("createdAt") or "")


def _service(obj: Object, version: str = "") -> LineageNode:
    status = obj.get("status") or {}
    ready = [one.get("status") for one in status.get("conditions") or () if one.get("type") == "Ready"]
    entries = [one for one in status.get("models") or () if not version or _entry_name(one) == version]
    shares = [int(one["percent"]) for one in entries if one.get("percent") is not None]
    names = [str(one["reference"]) for one in entries if one.get("reference")]
    spec = obj.get("spec") or {}
    written = spec.get("model") or (spec.get("default") or {}).get("model")
    facts = {
        "ready": ready[0] == "True" if ready else None,
        "model": ", ".join(dict.fromkeys(names)) or written,
        "percent": sum(shares) if shares else None,
        "url": status.get("url"),
    }
    return LineageNode(SERVICE, str(obj["metadata"]["name"]), uid=_uid(obj), facts=_given(facts))


def _origin_of_service(world: TracedObjects, service: Object) -> list[LineageNode]:
    return [_with(_version(world, key), _origin_of_version(world, key)) for key in _served(world, service)]


def _served(world: TracedObjects, service: Object) -> list[str]:
    """Versions that a service serves: as its status says, else as its spec does."""
    entries = [_entry_name(one) for one in (service.get("status") or {}).get("models") or ()]
    if entries:
        return list(dict.fromkeys(entries))
    spec = service.get("spec") or {}
    written = [spec.get("model"), *((spec.get(one) or {}).get("model") for one in ("default", "canary"))]
    found = []
    for text in written:
        try:
            found.append(_resolved(world, str(text or "")))
        except (BadReference, NotRecorded):
            continue  # an address, or a model of another store
    return list(dict.fromkeys(found)) or _packed(world, service)


def _packed(world: TracedObjects, service: Object) -> list[str]:
    """Of a service of a pipeline, whose pods fetch an archive: as its step marked it, while it has the same archive."""
    marks = service["metadata"].get("annotations") or {}
    version, _, digest = str(marks.get(PACKED_VERSION) or "").partition(" ")
    given = [
        one.get("value") for one in (service.get("spec") or {}).get("env") or () if one.get("name") == "MODEL_DIGEST"
    ]
    return [version] if digest and given == [digest] and version in world.versions else []


def _entry_name(entry: Mapping[str, Any]) -> str:
    return f"{entry.get('name')}:{entry.get('version')}"


def _with(node: LineageNode, children: list[LineageNode]) -> LineageNode:
    node.children = children
    return node


def _uid(obj: Object | None) -> str:
    return str((obj or {}).get("metadata", {}).get("uid") or "")


def _given(facts: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in facts.items() if value not in (None, "", [], {})}
