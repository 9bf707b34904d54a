"""create, get, update, patch and delete of stored objects, for every kind the registry knows.

Each write is decided and enqueued without giving way to others, against the newest state (committed or on its way), so
a patch need not be retried and two writers cannot overwrite each other unseen. Only what is large is computed in a
thread (`large.py`): then guards and policies are asked, and the version is compared, when it is enqueued.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from paddlecloud.kube import errors
from paddlecloud.kube.clock import Clock, parse_rfc3339, rfc3339
from paddlecloud.kube.resource import Object
from paddlecloud.local.apiserver.objects.admission import Admission, WriteOptions, node_of
from paddlecloud.local.apiserver.objects.apply import apply, check_declared
from paddlecloud.local.apiserver.objects.large import largest_stored, runner
from paddlecloud.local.apiserver.objects.patch import json_equal
from paddlecloud.local.apiserver.registry import KindInfo
from paddlecloud.local.store.record import ObjectAddress, Record
from paddlecloud.local.store.store import Store

Mutate = Callable[[Object], Object]
"""From the newest state to the wanted one. The argument is the caller's own copy."""

VERSIONED = frozenset(
    (
        "CustomResourceDefinition", "Lease", "PodDisruptionBudget",
        "CSIDriver", "CSINode", "CSIStorageCapacity", "VolumeAttachment",
    )
)  # fmt: skip
"""Kinds that, like custom ones, cannot be replaced blindly: an update must say which version it has seen."""

CREATED_BY_UPDATE = frozenset(
    (
        "Service", "Endpoints", "LimitRange", "Event", "Lease",
        "Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding",
    )
)  # fmt: skip
"""Built-in kinds of which an update makes the object that is not there (AllowCreateOnUpdate in their strategies)."""

ATTEMPTS = 5
"""How often an update of a large object is computed while others change that object."""

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_ORPHANING = (("batch", "Job"), ("", "ReplicationController"))
PROPAGATION = ("Background", "Foreground", "Orphan")


def check_dry_run(stages: Any) -> None:
    """A dry run goes through every stage of a request: a client that asks for less must not be misread."""
    if not isinstance(stages, list):
        raise errors.BadRequest("dryRun must be a list")
    for stage in stages:
        if stage != "All":
            why = f'Unsupported value: "{stage}": supported values: "All"'
            raise errors.invalid("Options", "", [("dryRun", "FieldValueNotSupported", why)], group="meta.k8s.io")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    grace_period: int | None = None
    propagation: str | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False

    @staticmethod
    def parse(body: Any, query: dict[str, str]) -> DeleteOptions:
        """From the body (DeleteOptions) or, as Kubernetes allows, from the query."""
        if body is not None and not isinstance(body, dict):
            raise errors.BadRequest("the body of a delete must be DeleteOptions")
        given: dict[str, Any] = {**query, **(body or {})}
        grace = given.get("gracePeriodSeconds")
        if isinstance(grace, str) and re.fullmatch(r"-?[0-9]{1,18}", grace, re.ASCII):
            grace = int(grace)
        if grace is not None and (not isinstance(grace, int) or isinstance(grace, bool)):
            raise errors.BadRequest("gracePeriodSeconds must be a whole number")
        if grace is not None and grace < 0:
            grace = None  # -1 is how kubectl says: as the object has it
        propagation = given.get("propagationPolicy")
        if propagation is None and given.get("orphanDependents") is not None:
            propagation = "Orphan" if given["orphanDependents"] in (True, "true") else "Background"
        if propagation is not None and propagation not in PROPAGATION:
            raise errors.invalid(
                "DeleteOptions",
                "",
                [
                    (
                        "propagationPolicy",
                        "FieldValueInvalid",
                        f'Invalid value: "{propagation}": must be one of {", ".join(PROPAGATION)}',
                    )
                ],
                group="meta.k8s.io",
            )
        dry_run = given.get("dryRun") or []
        check_dry_run([dry_run] if isinstance(dry_run, str) else dry_run)
        preconditions = given.get("preconditions") or {}
        if not isinstance(preconditions, dict):
            raise errors.BadRequest("preconditions must be an object")
        return DeleteOptions(
            grace,
            propagation,
            str(preconditions.get("uid") or ""),
            str(preconditions.get("resourceVersion") or ""),
            bool(dry_run),
        )


class Verbs:
    def __init__(self, store: Store, admission: Admission, clock: Clock) -> None:
        self._store = store
        self._admission = admission
        self.clock = clock

    # Reading -------------------------------------------------------------------------------------------------------

    def get(self, info: KindInfo, namespace: str, name: str) -> Record:
        record = self._store.get(address_of(info, namespace, name))
        if record is None:
            raise errors.not_found(info.resource.plural, name, group=info.resource.group)
        return record

    def created_by_update(self, info: KindInfo, namespace: str, name: str) -> bool:
        """Whether an update of the object would create it."""
        kind_allows = info.kind in CREATED_BY_UPDATE and not info.custom
        return kind_allows and self._store.latest(address_of(info, namespace, name)) is None

    def _latest(self, info: KindInfo, namespace: str, name: str) -> Record:
        record = self._store.latest(address_of(info, namespace, name))
        if record is None:
            raise errors.not_found(info.resource.plural, name, group=info.resource.group)
        return record

    # Writing -------------------------------------------------------------------------------------------------------

    async def create(self, info: KindInfo, obj: Object, *, namespace: str, options: WriteOptions) -> Object:
        run = self._admission.runner(info, namespace, obj, options.sent)
        ready = await self._admission.prepare_create(info, obj, namespace, options, run)
        address = address_of(info, namespace, ready["metadata"]["name"])
        self._admission.check(info, ready, None, options, run)
        if options.dry_run:
            if self._store.latest(address) is not None:
                raise errors.already_exists(info.resource.plural, address.name, group=info.resource.group)
            return ready
        await self._store.put(address, info.stored(ready), expect=0, largest=largest_stored(info))
        return ready

    async def update(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        mutate: Mutate,
        *,
        options: WriteOptions,
        subresource: str = "",
        applied: bool = False,
    ) -> Object:
        """A large object may change while the update is computed: then it is computed anew.

        As kube-apiserver does: GuaranteedUpdate of apiserver/pkg/storage/etcd3/store.go.
        """
        for _ in range(ATTEMPTS):
            record = self._latest(info, namespace, name)
            run = runner(options.sent + len(record.value))
            old = await run(_shown, info, record)
            current = await run(_shown, info, record)
            # What a request asks for depends on the object alone; the server itself may look at more than that.
            wanted = await run(mutate, current) if options.sent else mutate(current)
            run = self._admission.runner(info, namespace, wanted, options.sent + len(record.value))
            meta = wanted.get("metadata")
            if isinstance(meta, dict):
                self._check_versions(info, name, meta, old["metadata"])
            new = await self._admission.prepare_update(
                info, old, wanted, options, run, subresource=subresource, applied=applied
            )
            new["metadata"]["resourceVersion"] = old["metadata"]["resourceVersion"]
            unchanged = await run(_is_same, new, old)
            if self._store.latest(record.address) is record:
                self._admission.check(info, new, old, options, run)
                return await self._replace(info, record, new, keep=options.dry_run or unchanged)
        raise errors.conflict(info.resource.plural, name, group=info.resource.group)

    async def apply(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        applied: Object,
        *,
        options: WriteOptions,
        force: bool,
        authorise_create: Callable[[], None],
        subresource: str = "",
    ) -> tuple[Object, bool]:
        """Server-side apply, and whether the object was created by it: only if `authorise_create` does not raise."""
        record = self._store.latest(address_of(info, namespace, name))
        if record is None and subresource:
            raise errors.not_found(info.resource.plural, name, group=info.resource.group)
        if record is None:
            authorise_create()
        if not applied.get("apiVersion") or not applied.get("kind"):
            raise errors.BadRequest("an applied object must say its apiVersion and kind")
        meta = applied.setdefault("metadata", {})
        if meta.get("name", name) != name:
            raise errors.BadRequest(f"the name of the object ({meta['name']}) does not match the URL ({name})")
        meta["name"] = name
        if info.resource.namespaced and (meta.get("namespace") or namespace) != namespace:
            raise errors.BadRequest(
                f"the namespace of the provided object ({meta['namespace']}) does not match the namespace sent on the "
                f"request ({namespace})"
            )
        if info.resource.namespaced:
            meta["namespace"] = namespace
        if meta.pop("managedFields", None):
            raise errors.BadRequest("metadata.managedFields must be nil")
        if info.has_status and not subresource:
            applied.pop("status", None)  # written and owned through its subresource only

        def merged(live: Object | None) -> Object:
            if info.schema is not None:
                check_declared(applied, info.schema, info.definitions)
            return apply(
                live,
                applied,
                manager=options.manager,
                force=force,
                now=self.clock.now(),
                node=node_of(info),
                api_version=info.resource.api_version,
                subresource=subresource,
            )

        if record is None:
            try:
                return await self._apply_first(info, namespace, name, merged, options), True
            except errors.AlreadyExists:
                pass  # made by another request while this large one was computed: applied to that
        obj = await self.update(info, namespace, name, merged, options=options, subresource=subresource, applied=True)
        return obj, False

    async def _apply_first(
        self,
        info: KindInfo,
        namespace: str,
        name: str,
        merged: Callable[[Object | None], Object],
        options: WriteOptions,
    ) -> Object:
        run = runner(options.sent)
        created = await run(merged, None)
        run = self._admission.runner(info, namespace, created, options.sent)
        managed = created["metadata"].get("managedFields")
        ready = await self._admission.prepare_create(info, created, namespace, options, run)
        if managed:
            ready["metadata"]["managedFields"] = managed
        else:
            ready["metadata"].pop("managedFields", None)
        self._admission.check(info, ready, None, options, run)
        if not options.dry_run:
            address = address_of(info, namespace, name)
            await self._store.put(address, info.stored(ready), expect=0, largest=largest_stored(info))
        return ready

    def _check_versions(self, info: KindInfo, name: str, meta: Object, old_meta: Object) -> None:
        check_name(meta, name)
        if meta.get("uid") and meta["uid"] != old_meta["uid"]:
            why = _unmet("UID", meta["uid"], old_meta["uid"])
            raise errors.conflict(info.resource.plural, name, why, group=info.resource.group)
        version = meta.get("resourceVersion")
        if not version and (info.custom or info.kind in VERSIONED):
            why = "Invalid value: 0: must be specified for an update"
            causes = [("metadata.resourceVersion", "FieldValueInvalid", why)]
            raise errors.invalid(info.resource.plural, name, causes, group=info.resource.group)
        if version and version != old_meta["resourceVersion"]:
            raise errors.conflict(info.resource.plural, name, group=info.resource.group)

    def _replace(self, info: KindInfo, record: Record, new: Object, *, keep: bool) -> Awaitable[Object]:
        """Enqueue the replacement (or the removal that it completes), unless all is to be kept as it is."""
        meta = new["metadata"]
        if keep:
            return _value(new)
        if meta.get("deletionTimestamp") and not meta.get("finalizers") and self._removable(info, new):
            return _then(self._store.delete(record.address, info.stored(new), expect=record.rev), new)
        limit = largest_stored(info)
        return _then(self._store.put(record.address, info.stored(new), expect=record.rev, largest=limit), new)

    def _removable(self, info: KindInfo, obj: Object) -> bool:
        if info.resource.plural == "namespaces" and info.resource.group == "":
            return not obj.get("spec", {}).get("finalizers")
        # A pod that is still within its grace period is removed by its kubelet, not by losing its last finalizer.
        return int(obj["metadata"].get("deletionGracePeriodSeconds") or 0) == 0

    # Deleting ------------------------------------------------------------------------------------------------------

    async def delete(self, info: KindInfo, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """The object's last known state, and whether it is gone already (or only on its way)."""
        record = self._latest(info, namespace, name)
        obj = info.completed(record.object, record.rev)
        self._admission.check_delete(info, obj)
        meta = obj["metadata"]
        for what, wanted, found in (
            ("UID", options.uid, meta["uid"]),
            ("ResourceVersion", options.resource_version, meta["resourceVersion"]),
        ):
            if wanted and wanted != found:
                raise errors.conflict(info.kind, name, _unmet(what, wanted, found), group=info.resource.group)
        grace = _grace(info, obj, options.grace_period)
        finalizers = _finalizers_for(options.propagation or _policy_of(info), meta.get("finalizers", []))
        changed = finalizers != meta.get("finalizers", [])
        if finalizers:
            meta["finalizers"] = finalizers
        else:
            meta.pop("finalizers", None)
        if not meta.get("deletionTimestamp"):
            meta["deletionTimestamp"] = rfc3339(self.clock.now() + grace)
            meta["deletionGracePeriodSeconds"] = grace
            if "generation" in meta:
                meta["generation"] += 1
            changed = True
        elif grace < int(meta.get("deletionGracePeriodSeconds") or 0):
            started = parse_rfc3339(meta["deletionTimestamp"]) - int(meta["deletionGracePeriodSeconds"])
            meta["deletionTimestamp"] = rfc3339(max(started, self.clock.now()) + grace)
            meta["deletionGracePeriodSeconds"] = grace
            changed = True
        if info.resource.plural == "namespaces" and info.resource.group == "":
            obj.setdefault("status", {})["phase"] = "Terminating"
        gone = not finalizers and self._removable(info, obj)
        if gone and not options.dry_run:
            await self._store.delete(record.address, obj, expect=record.rev)
        elif changed and not options.dry_run:
            await self._store.put(record.address, obj, expect=record.rev)
        return info.shown(obj, record.rev), gone


def check_name(meta: Object, name: str) -> None:
    """Refuse an object that has another name than the URL it was sent to."""
    if meta.get("name", name) != name:
        raise errors.BadRequest(f"the name of the object ({meta['name']}) does not match the name on the URL ({name})")


def _shown(info: KindInfo, record: Record) -> Object:
    return info.shown(record.object, record.rev)


def _is_same(new: Object, old: Object) -> bool:
    return new == old and json_equal(new, old)  # to Python True equals 1, to JSON it does not


def _unmet(what: str, wanted: str, found: str) -> str:
    return f"Precondition failed: {what} in precondition: {wanted}, {what} in object meta: {found}"


def address_of(info: KindInfo, namespace: str, name: str) -> ObjectAddress:
    return ObjectAddress(info.collection, namespace if info.resource.namespaced else "", name)


def _grace(info: KindInfo, obj: Object, asked: int | None) -> int:
    """Only pods leave gracefully, and only those that a kubelet has to stop."""
    if info.resource.plural != "pods" or info.resource.group:
        return 0
    spec, phase = obj.get("spec", {}), obj.get("status", {}).get("phase")
    if not spec.get("nodeName") or phase in ("Succeeded", "Failed"):
        return 0
    return int(spec.get("terminationGracePeriodSeconds", 30)) if asked is None else asked


def _policy_of(info: KindInfo) -> str | None:
    """What happens to dependents when the client does not say. Kinds older than the garbage collector leave their pods
    behind, as they did before it (DefaultGarbageCollectionPolicy in kubernetes/pkg/registry)."""
    return "Orphan" if (info.resource.group, info.kind) in _ORPHANING else None


def _finalizers_for(propagation: str | None, current: list[str]) -> list[str]:
    if propagation is None:
        return current
    kept = [name for name in current if name not in (FOREGROUND, ORPHAN)]
    return kept + {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(propagation, [])


async def _value(obj: Object) -> Object:
    return obj


async def _then(done: Awaitable[Record], obj: Object) -> Object:
    await done
    return obj
