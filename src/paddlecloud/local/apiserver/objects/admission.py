"""What every write passes on its way to the store: system metadata, defaults, pruning, validation, policy.

Kubernetes spreads this over strategies, admission plug-ins and the CRD handler; here it is one ordered path per verb,
pure but for the clock, the random source and look-ups of committed state that policies need. It decides and rewrites;
it never writes. The costly steps, which need no look-ups, are run by `large.Runner`: for a large object in a thread.
Guards are asked again afterwards, and `policies` come last of all, when nothing more is waited for before the write.
"""

from __future__ import annotations

import copy
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.auth.authentication import SERVER, User
from paddlecloud.local.apiserver.builtin.decode import decode
from paddlecloud.local.apiserver.builtin.defaults import complete_builtin
from paddlecloud.local.apiserver.builtin.validation.entrance import validate_builtin
from paddlecloud.local.apiserver.builtin.validation.ephemeral import ephemeral_unchanged, ephemeral_update
from paddlecloud.local.apiserver.objects.large import LARGE, Runner, at_once, largest_stored, runner
from paddlecloud.local.apiserver.objects.managed_fields import record_update
from paddlecloud.local.apiserver.objects.metadata import (
    finalizer_warnings,
    generate_name,
    name_rule_of,
    validate_metadata,
    validate_metadata_update,
)
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.apiserver.schema import structural as schemas
from paddlecloud.local.apiserver.schema.causes import MAX_CAUSES, Cause
from paddlecloud.local.apiserver.schema.ratchet import forgive
from paddlecloud.local.store.record import check_size, encode

GENERATIONS = frozenset(
    (
        "Pod", "ReplicationController", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob",
        "PodDisruptionBudget", "EndpointSlice", "PriorityClass", "CustomResourceDefinition", "PodTemplate",
        "Ingress", "IngressClass",
    )
)  # fmt: skip
"""Built-in kinds whose objects count generations; custom kinds always do."""

_NO_PODS = {"currentHealthy": 0, "desiredHealthy": 0, "disruptionsAllowed": 0, "expectedPods": 0}
_NO_NODES = {"currentNumberScheduled": 0, "desiredNumberScheduled": 0, "numberMisscheduled": 0, "numberReady": 0}
FIRST_STATUS: Mapping[str, Object] = {
    "ReplicaSet": {"replicas": 0},
    "ReplicationController": {"replicas": 0},
    "StatefulSet": {"replicas": 0, "availableReplicas": 0},
    "DaemonSet": _NO_NODES,
    "PodDisruptionBudget": _NO_PODS,
    "Ingress": {"loadBalancer": {}},
    "VolumeAttachment": {"attached": False},
}
"""The status of built-in kinds before anybody reported one: typed clients count on the fields that are required."""

Mutator = Callable[[KindInfo, Object, "Object | None"], None]
"""Fills in what a particular kind needs: (kind, new, old or None). May refuse by raising ApiError."""

Policy = Callable[[KindInfo, Object, "Object | None", "WriteOptions"], None]
"""A look at a finished object before it is stored: (kind, new, old or None, options). Refuses by raising ApiError."""


class Validator(NamedTuple):
    """A rule of a kind that is neither in its schema nor about the moment of the write: it is asked with the schema, in
    a thread where the object is large. It reads stored objects at most."""

    check: Policy
    named: Callable[[KindInfo, str, Object], int]
    """Bytes of the stored objects that an object of a namespace names and is judged with."""


Removal = Callable[[KindInfo, Object], None]
"""A look at an object that is about to be deleted. Refuses by raising ApiError."""

CARRIED = (
    "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generateName",
)  # fmt: skip
"""Metadata that only the server sets: whatever a client sends for it is ignored."""


EPHEMERAL = "ephemeralcontainers"
"""The subresource of pods that adds containers to one that runs."""

ALL_KEPT_BY_STATUS = frozenset(("CustomResourceDefinition", "VolumeAttachment"))
"""Built-in kinds of which a write to `status` leaves all metadata as they are, as for custom ones."""

KEPT_BY_STATUS = {"Deployment": ("labels",), "Pod": ("ownerReferences",)}
"""Metadata of built-in kinds that a write to `status` leaves as they are."""


Parts = tuple[str, ...]

FIELD_VALIDATION = ("Ignore", "Warn", "Strict")


@dataclass(slots=True)
class WriteOptions:
    """Options of one write, from the query and the user agent, and who asked for it: the server itself by default."""

    manager: str
    user: User = SERVER
    dry_run: bool = False
    by_name: bool = False
    """The URL names the object, also where the write creates it."""
    field_validation: str = "Warn"
    doubled: Sequence[str] = ()
    """Fields that the body gives twice; looked for where validation is Strict."""
    sent: int = 0
    """Bytes of the request; 0 for what the server itself writes."""
    warnings: list[str] = field(default_factory=list)


@dataclass(slots=True)
class Admission:
    clock: Clock
    rng: random.Random
    mutators: list[Mutator] = field(default_factory=list)
    guards: list[Policy] = field(default_factory=list)
    """Policies that come before validation: a write by the wrong user or to the wrong place is refused as that,
    whatever else is wrong with the object."""
    validators: list[Validator] = field(default_factory=list)
    policies: list[Policy] = field(default_factory=list)
    removals: list[Removal] = field(default_factory=list)

    def runner(self, info: KindInfo, namespace: str, obj: Object, size: int) -> Runner:
        """How to decide about an object when `size` bytes are read for it: what it names may be larger than itself."""
        if size <= LARGE:
            size += sum(validator.named(info, namespace, obj) for validator in self.validators)
        return runner(size)

    async def prepare_create(
        self, info: KindInfo, obj: Object, namespace: str, options: WriteOptions, run: Runner = at_once
    ) -> Object:
        """The object as it will be stored, all but its resourceVersion. `check` comes next."""
        self._check_type(info, obj)
        meta = self._metadata(obj)
        if meta.get("resourceVersion"):
            raise errors.BadRequest("resourceVersion should not be set on objects to be created")
        if info.resource.namespaced:
            if meta.setdefault("namespace", namespace) != namespace:
                raise errors.BadRequest(
                    f"the namespace of the provided object ({meta['namespace']}) does not match the namespace "
                    f"sent on the request ({namespace})"
                )
        else:
            meta.pop("namespace", None)
        if not meta.get("name") and meta.get("generateName"):
            meta["name"] = generate_name(str(meta["generateName"]), self.rng)
        if info.has_status:
            obj.pop("status", None)
        for field_ in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"):
            meta.pop(field_, None)
        await run(self._shape, info, obj, options)
        # Recorded before the server adds its own: an address or a token volume belongs to no manager.
        obj = await run(self._record, info, None, obj, options)
        meta = obj["metadata"]
        if info.has_status and not info.custom:
            obj.setdefault("status", copy.deepcopy(FIRST_STATUS.get(info.kind, {})))
        meta["uid"] = str(uuid.UUID(int=self.rng.getrandbits(128), version=4))
        meta["creationTimestamp"] = rfc3339(self.clock.now())
        await self._judge(info, obj, None, options, run)
        if info.custom:
            options.warnings.extend(finalizer_warnings(meta))
        if info.custom or info.kind in GENERATIONS:
            meta["generation"] = 1
        return obj

    async def prepare_update(
        self,
        info: KindInfo,
        old: Object,
        new: Object,
        options: WriteOptions,
        run: Runner = at_once,
        *,
        subresource: str = "",
        applied: bool = False,
    ) -> Object:
        """The object as it will replace `old`. Main and status writes see only their own half. `check` comes next.

        `applied` says that server-side apply has already recorded who owns what.
        """
        self._check_type(info, new)
        meta, old_meta = self._metadata(new), old["metadata"]
        for field_ in ("uid", "namespace", "name"):
            if not meta.get(field_) and field_ in old_meta:
                meta[field_] = old_meta[field_]
        if subresource:
            new = _only_subresource(info, subresource, old, new)
            meta = new["metadata"]
        else:
            if info.has_status:
                _carry(old, new, "status")
            of_namespace = info.kind == "Namespace" and not info.custom
            if of_namespace and isinstance(spec := new.setdefault("spec", {}), dict):
                _carry(old.get("spec") or {}, spec, "finalizers")  # written through `finalize` only
        # What only the server may set stays as it is.
        for field_ in CARRIED:
            _carry(old_meta, meta, field_)
        parts = _changeable(subresource, old, new)
        await run(self._shape, info, new, options, parts)
        if info.kind == "Pod" and not info.custom and not parts:
            _check_ephemeral_containers(new, old, subresource)
        await self._judge(info, new, old, options, run, parts=parts)
        if "generation" in old_meta and subresource in ("", EPHEMERAL) and _spec_changed(old, new):
            meta["generation"] = old_meta["generation"] + 1
        return new if applied else await run(self._record, info, old, new, options, subresource)

    def check(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, run: Runner = at_once
    ) -> None:
        """Ask the policies about a prepared object; the write must follow at once."""
        if run is not at_once:  # others wrote meanwhile: the namespace may be gone
            for check in self.guards:
                check(info, obj, old, options)
        for check in self.policies:
            check(info, obj, old, options)

    def check_delete(self, info: KindInfo, obj: Object) -> None:
        for check in self.removals:
            check(info, obj)

    def _check_type(self, info: KindInfo, obj: Object) -> None:
        resource = info.resource
        if not info.custom:  # protobuf and some typed clients leave it to the URL
            obj.setdefault("apiVersion", resource.api_version)
            obj.setdefault("kind", resource.kind)
        given = obj.get("apiVersion"), obj.get("kind")
        if given == (resource.api_version, resource.kind):
            return
        raise errors.BadRequest(
            f"the object provided is a {given[1] or 'nameless kind'} of {given[0] or 'no apiVersion'}, "
            f"but the URL is for {resource.kind} of {resource.api_version}"
        )

    def _metadata(self, obj: Object) -> Object:
        meta = obj.get("metadata")
        if meta is None:
            meta = obj["metadata"] = {}
        if not isinstance(meta, dict):
            raise errors.BadRequest("metadata must be an object")
        for name in ("name", "namespace", "generateName"):
            if meta.get(name) is not None and not isinstance(meta[name], str):
                raise errors.BadRequest(f"metadata.{name} must be a string")
        for name, empty in (("labels", {}), ("annotations", {}), ("finalizers", []), ("ownerReferences", [])):
            if name in meta and (meta[name] is None or meta[name] == empty):
                del meta[name]
        return meta

    def _shape(self, info: KindInfo, whole: Object, options: WriteOptions, parts: Parts = ()) -> None:
        """Unknown fields are reported and dropped; then defaults.

        `parts` are all that the write changes (empty: everything): the rest was shaped when it was written.
        """
        obj = {part: whole[part] for part in parts} if parts else whole
        if options.field_validation != "Ignore":
            unknown = schemas.unknown_fields(obj, info.schema, info.definitions) if info.schema is not None else []
            del unknown[MAX_CAUSES:]
            wrong = [f'unknown field "{path}"' for path in unknown]
            doubled = [f'duplicate field "{path}"' for path in options.doubled]
            if (wrong or doubled) and options.field_validation == "Strict":
                # kube-apiserver finds those of custom kinds one after the other, and of built-in kinds in one pass
                listed = ", ".join(doubled + wrong if info.custom else wrong + doubled)
                raise errors.BadRequest(
                    f'{info.kind} in version "{info.resource.version}" cannot be handled as a '
                    f"{info.kind}: strict decoding error: {listed}"
                )
            options.warnings.extend(wrong)
        if info.schema is None:
            return
        if info.custom:
            schemas.prune(obj, info.schema, info.definitions)
            schemas.apply_defaults(obj, info.schema, info.definitions)
        else:
            decode(obj, info)
        for part in parts:
            _carry(obj, whole, part)
        if not info.custom:
            complete_builtin(whole, info)

    async def _judge(
        self, info: KindInfo, obj: Object, old: Object | None, options: WriteOptions, run: Runner, *, parts: Parts = ()
    ) -> None:
        if run is not at_once:
            await run(_check_size, info, obj)
        for check in self.guards:
            check(info, obj, old, options)
        for mutate in self.mutators:
            mutate(info, obj, old)
        await run(self._validate, info, obj, old, parts)
        for validator in self.validators:
            await run(validator.check, info, obj, old, options)

    def _validate(self, info: KindInfo, obj: Object, old: Object | None, parts: Parts) -> None:
        """`parts` as in `_shape`: what a write does not change was judged when it was written."""
        meta = obj["metadata"]
        resource = info.resource
        causes: list[Cause] = []
        if not parts or "metadata" in parts:
            causes += validate_metadata(
                meta, namespaced=resource.namespaced, name_rule=name_rule_of(resource),
                short_finalizers=info.custom or resource.group == "apiextensions.k8s.io",
            )  # fmt: skip
            if old is not None:
                causes += validate_metadata_update(meta, old["metadata"])
        if info.schema is not None:
            schema, definitions = info.schema, info.definitions
            found = (
                [cause for part in parts for cause in schemas.validate_field(obj, part, schema, definitions, old=old)]
                if parts
                else schemas.validate(obj, schema, definitions, old=old)
            )
            causes += forgive(found, obj, old) if found and old is not None and info.custom else found
        if not info.custom and not causes:
            causes += validate_builtin(obj, old, info)
        if causes:
            shown = causes[:MAX_CAUSES]
            raise errors.invalid(info.kind, str(meta.get("name", "")), shown, group=info.resource.group)

    def _record(
        self, info: KindInfo, old: Object | None, new: Object, options: WriteOptions, subresource: str = ""
    ) -> Object:
        return record_update(
            old,
            new,
            manager=options.manager,
            now=self.clock.now(),
            node=node_of(info),
            api_version=info.resource.api_version,
            subresource=subresource,
        )


def _check_size(info: KindInfo, obj: Object) -> None:
    """Early for large objects: what has grown beyond the limit by its defaults need not be judged."""
    check_size(encode(obj), largest_stored(info))


def node_of(info: KindInfo) -> schemas.Node:
    return schemas.Node(info.schema or {}, info.definitions)


def _carry(source: Object, target: Object, name: str) -> None:
    if name in source:
        target[name] = source[name]
    else:
        target.pop(name, None)


def _only_subresource(info: KindInfo, subresource: str, old: Object, new: Object) -> Object:
    """A write to `status` changes status (one to `finalize` the spec of a namespace), and of built-in kinds labels,
    annotations and the like as well (the strategies in kubernetes/pkg/registry); a binding was built by the server
    itself and may touch all."""
    if subresource == "binding":
        return new
    merged = dict(old)
    if subresource == EPHEMERAL:
        merged["spec"], given = dict(old["spec"]), new.get("spec")
        _carry(given if isinstance(given, dict) else {}, merged["spec"], "ephemeralContainers")
        merged["metadata"] = dict(old["metadata"])
        return merged
    _carry(new, merged, "spec" if subresource == "finalize" else subresource)
    if info.custom or info.kind in ALL_KEPT_BY_STATUS:
        merged["metadata"] = dict(old["metadata"])
        if "managedFields" in new["metadata"]:
            merged["metadata"]["managedFields"] = new["metadata"]["managedFields"]
        return merged
    merged["metadata"] = dict(new["metadata"])
    for field_ in KEPT_BY_STATUS.get(info.kind, ()):
        _carry(old["metadata"], merged["metadata"], field_)
    return merged


def _check_ephemeral_containers(new: Object, old: Object, subresource: str) -> None:
    specs = new.get("spec") or {}, old.get("spec") or {}
    if causes := ephemeral_update(*specs) if subresource == EPHEMERAL else ephemeral_unchanged(*specs):
        raise errors.invalid("Pod", old["metadata"]["name"], causes)


def _changeable(subresource: str, old: Object, new: Object) -> Parts:
    """The parts that a write to `status` changes; none for a write to the whole object, which may change all."""
    if subresource != "status" or "status" not in new:
        return ()
    unmanaged = ({**obj["metadata"], "managedFields": None} for obj in (old, new))
    return ("status",) if next(unmanaged) == next(unmanaged) else ("status", "metadata")


def _spec_changed(old: Object, new: Object) -> bool:
    """Anything outside metadata and status counts as the spec, as for custom kinds in Kubernetes."""
    ignored = ("metadata", "status", "apiVersion", "kind")
    keys = (old.keys() | new.keys()) - set(ignored)
    return any(old.get(key) != new.get(key) for key in keys)
