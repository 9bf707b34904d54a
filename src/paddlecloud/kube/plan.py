"""What a decision asks for, as data, and the one place where it is carried out.

A controller's `decide` is a pure function that returns a `Plan`; `carry_out` does all of it: creations, patches and
deletions concurrently (bounded), then the status, once and only if it changed, and the events. Any part may fail or be
cut short by a crash; because names are derived and decisions level-triggered, the next pass completes what is missing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from paddlecloud.kube.client import Client, PatchKind, Propagation
from paddlecloud.kube.errors import AlreadyExists, ApiError, Conflict, Invalid, NotFound, is_namespace_terminating
from paddlecloud.kube.events import EventRecorder
from paddlecloud.kube.expectations import Expectations, Ref, ref_of
from paddlecloud.kube.resource import Object, Resource, controller_of, key_of, resource_of

CONCURRENCY = 32


@dataclass(frozen=True, slots=True)
class Patch:
    """`seen` is the resourceVersion the decision was based on; with it, no new decision precedes the patch's event."""

    resource: Resource
    name: str
    namespace: str | None
    patch: Any
    kind: PatchKind = "merge"
    subresource: str | None = None
    force: bool = False
    seen: str | None = None


@dataclass(frozen=True, slots=True)
class Delete:
    """With `uid` only the object that was seen is deleted, never a successor of the same name."""

    resource: Resource
    name: str
    namespace: str | None
    uid: str | None = None
    propagation: Propagation | None = "Background"
    grace_period: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedEvent:
    """One event per batch (“created 128 pods”), not one per object; about the owner unless `about` says otherwise.

    `if_done` events claim success of the plan itself: they are skipped if any of its writes failed.
    """

    reason: str
    message: str
    type: str = "Normal"
    about: Object | None = None
    if_done: bool = False


@dataclass(slots=True)
class Plan:
    """`status` is the whole new `.status` of the owner; `after` asks for another look in so many seconds.

    `status_first` is for statuses that record an intent the rest of the plan acts on, such as a restart counter: after
    a crash in between, the next pass must find the count, not the missing pods. `status_if_done` is for the opposite, a
    status that records what was done, such as the last run of a schedule: it is not written if anything else failed.
    """

    create: list[Object] = field(default_factory=list)
    patch: list[Patch] = field(default_factory=list)
    delete: list[Delete] = field(default_factory=list)
    status: Object | None = None
    events: list[PlannedEvent] = field(default_factory=list)
    after: float | None = None
    status_first: bool = False
    status_if_done: bool = False

    def requeue_after(self, seconds: float) -> None:
        """Ask for another pass in at most so many seconds: of several requests the earliest counts."""
        self.after = seconds if self.after is None else min(self.after, seconds)


def set_finalizers(obj: Object, marks: list[str]) -> Patch:
    """Fails when somebody else wrote meanwhile: a list in a merge patch replaces the whole list."""
    meta = obj["metadata"]
    body = {"metadata": {"finalizers": marks, "resourceVersion": meta["resourceVersion"]}}
    return Patch(resource_of(obj), meta["name"], meta.get("namespace"), body, seen=meta["resourceVersion"])


@dataclass(slots=True)
class PlanResult:
    """What happened. `present` were to be created and exist already, `refused` could not be created, `skipped` were not
    tried after a refusal."""

    created: list[Object] = field(default_factory=list)
    refused: list[tuple[Object, ApiError]] = field(default_factory=list)
    present: list[Object] = field(default_factory=list)
    patched: list[Object] = field(default_factory=list)
    deleted: int = 0
    skipped: int = 0
    status: Object | None = None  # the owner as the status write returned it


class PlanFailed(Exception):
    """Some of a plan could not be done. `errors` pairs what was tried with why it failed; `outcome` is the rest."""

    def __init__(self, errors: Sequence[tuple[str, ApiError]], outcome: PlanResult) -> None:
        self.errors = list(errors)
        self.outcome = outcome
        self.retry_after = max((e.retry_after or 0 for _, e in errors), default=0) or None
        self.only_conflicts = all(isinstance(error, Conflict) for _, error in errors)
        shown = "; ".join(f"{what}: {error.message}" for what, error in self.errors[:3])
        more = f" (and {len(self.errors) - 3} more)" if len(self.errors) > 3 else ""
        skipped = f"; {outcome.skipped} more were not tried" if outcome.skipped else ""
        super().__init__(f"{shown}{more}{skipped}")


class NameTaken(ApiError):
    """An object of the name we derive exists and belongs to somebody else."""

    code, reason = 409, "NameTaken"


async def carry_out(
    plan: Plan,
    client: Client,
    *,
    owner: Object,
    recorder: EventRecorder | None = None,
    expectations: Expectations | None = None,
    concurrency: int = CONCURRENCY,
) -> PlanResult:
    """Do all of it, for `owner` as it was when the decision was taken.

    Raises `PlanFailed` when anything failed that another pass would not find done anyway.
    """
    work = _Work(client, owner, expectations)
    steps: list[Callable[[], Awaitable[None]]] = [
        lambda: work.children(plan, concurrency),
        lambda: work.status(plan.status),
    ]
    if plan.status_first:
        steps.reverse()
    for step in steps:
        await step()
        if (plan.status_first or plan.status_if_done) and work.errors:
            break  # the intent is not recorded, so acting on it is not safe; or what would be recorded was not done
    if recorder is not None:
        await asyncio.gather(
            *(
                recorder.record(event.about or owner, event.reason, event.message, type=event.type)
                for event in plan.events
                if not (event.if_done and work.errors)
            )
        )
    if work.errors:
        raise PlanFailed(work.errors, work.outcome)
    return work.outcome


class _Work:
    def __init__(self, client: Client, owner: Object, expectations: Expectations | None) -> None:
        self.outcome = PlanResult()
        self.errors: list[tuple[str, ApiError]] = []
        self._client = client
        self._owner = owner
        self._key = key_of(owner)
        self._expectations = expectations

    async def children(self, plan: Plan, concurrency: int) -> None:
        """Deletions and patches come first: they make room for what is created."""
        tasks: list[tuple[str, Callable[[], Awaitable[None]]]] = [
            *((f"delete {_name(d)}", _bind(self._delete, d)) for d in plan.delete),
            *((f"patch {_name(p)}", _bind(self._patch, p)) for p in plan.patch),
            *((f"create {_of(o)}", _bind(self._create, o)) for o in plan.create),
        ]
        queue = iter(tasks)
        refused = False

        async def worker() -> None:
            nonlocal refused
            for what, task in queue:
                if refused:
                    self.outcome.skipped += 1
                    continue
                try:
                    await task()
                except ApiError as error:
                    self.errors.append((what, error))
                    # What refuses one (quota, permissions, a server that is away) will refuse its siblings too; only
                    # an object that is itself at fault says nothing about the others.
                    refused = refused or not isinstance(error, (Invalid, NameTaken, Conflict, NotFound))

        await asyncio.gather(*(worker() for _ in range(min(concurrency, len(tasks)))))

    async def status(self, status: Object | None) -> None:
        if status is None:
            return
        changes = merge_diff(self._owner.get("status") or {}, status)
        if not changes:
            return
        ref = ref_of(self._owner)
        self._expect(ref, self._owner["metadata"].get("resourceVersion"))
        try:
            written = await self._client.patch(
                resource_of(self._owner),
                self._key.name,
                {"status": changes},
                namespace=self._key.namespace or None,
                subresource="status",
            )
        except NotFound:
            self._drop(ref)  # the owner was deleted meanwhile; no object is left to report it on
            return
        except ApiError as error:
            self._drop(ref)
            self.errors.append((f"status of {_of(self._owner)}", error))
            return
        self.outcome.status = written
        self._answered(written)

    async def _create(self, obj: Object) -> None:
        ref = ref_of(obj)
        self._expect(ref)
        try:
            created = await self._client.create(resource_of(obj), obj)
        except AlreadyExists:
            self._drop(ref)
            await self._settle_existing(obj)
            return
        except ApiError as error:
            self._drop(ref)
            if not is_namespace_terminating(error):
                self.outcome.refused.append((obj, error))
                raise
            return
        self.outcome.created.append(created)
        self._answered(created)

    async def _settle_existing(self, obj: Object) -> None:
        """Harmless when it is ours: an earlier pass made it and the cache is late. Its deletion requeues the owner."""
        key = key_of(obj)
        existing = await self._client.find(resource_of(obj), key.name, key.namespace or None)
        if existing is None:
            return
        wanted, found = controller_of(obj), controller_of(existing)
        if (wanted or {}).get("uid") != (found or {}).get("uid"):
            holder = f"{found['kind']} {found['name']}" if found else "nobody"
            raise NameTaken(
                f"{_of(obj)} exists and is controlled by {holder}; rename this object or delete the other one"
            )
        self.outcome.present.append(existing)

    async def _patch(self, patch: Patch) -> None:
        ref = _ref(patch)
        if patch.seen is not None:
            self._expect(ref, patch.seen)
        try:
            written = await self._client.patch(
                patch.resource,
                patch.name,
                patch.patch,
                namespace=patch.namespace,
                kind=patch.kind,
                subresource=patch.subresource,
                force=patch.force,
            )
        except NotFound:
            self._drop(ref)  # gone: its deletion event brings the next pass
            return
        except ApiError:
            self._drop(ref)
            raise
        self.outcome.patched.append(written)
        self._answered(written)

    async def _delete(self, delete: Delete) -> None:
        ref = _ref(delete)
        if self._expectations is not None and delete.uid is not None:
            self._expectations.expect_deleted(self._key, ref, delete.uid)
        try:
            await self._client.delete(
                delete.resource,
                delete.name,
                namespace=delete.namespace,
                propagation=delete.propagation,
                grace_period=delete.grace_period,
                uid=delete.uid,
            )
        except NotFound:
            self._drop(ref)
        except ApiError as error:
            self._drop(ref)
            if not (isinstance(error, Conflict) and delete.uid is not None):
                raise  # a conflict on the uid means that incarnation is gone, as we wanted
        else:
            self.outcome.deleted += 1

    def _expect(self, ref: Ref, seen: str | None = None) -> None:
        if self._expectations is not None:
            self._expectations.expect(self._key, ref, seen=seen)

    def _answered(self, written: Object) -> None:
        if self._expectations is not None:
            self._expectations.answered(self._key, written)

    def _drop(self, ref: Ref) -> None:
        if self._expectations is not None:
            self._expectations.drop(self._key, ref)


def merge_diff(old: Any, new: Any) -> dict[str, Any]:
    """The JSON merge patch (RFC 7386) from one mapping to another; empty when they are equal.

    >>> merge_diff({"a": 1, "b": {"c": 2, "d": 3}}, {"a": 1, "b": {"c": 4}})
    {'b': {'c': 4, 'd': None}}
    """
    changes: dict[str, Any] = {name: None for name in old if name not in new}
    for name, value in new.items():
        if name not in old:
            if value is not None:
                changes[name] = value
        elif isinstance(value, dict) and isinstance(old[name], dict):
            if inner := merge_diff(old[name], value):
                changes[name] = inner
        elif value != old[name]:
            changes[name] = value
    return changes


def _bind(method: Callable[[Any], Awaitable[None]], item: Any) -> Callable[[], Awaitable[None]]:
    return lambda: method(item)


def _name(action: Patch | Delete) -> str:
    return f"{action.resource.kind} {action.name}"


def _ref(action: Patch | Delete) -> Ref:
    resource = action.resource
    return Ref(resource.api_version, resource.kind, action.namespace or "", action.name)


def _of(obj: Object) -> str:
    return f"{obj['kind']} {obj['metadata']['name']}"
