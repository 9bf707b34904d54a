"""What is to be done for a Profile. Pure functions of the Profile, what was observed, and the time.

The order keeps data safe: first the finalizer, then the namespace, then what is in it. A namespace that is
there already is left alone unless its annotation `owner` names the Profile's owner: an administrator has agreed then.
When the Profile is deleted the rights of its people go first, and the namespace stays with its data
unless `deletionPolicy` says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from paddlecloud.api.fields import Condition
from paddlecloud.api.names import KEPT_ANNOTATION, OWNER_ANNOTATION, PROFILE_LABEL, PROFILE_UID, QUEUE_NAME
from paddlecloud.api.names import PROFILE_FINALIZER as MARK
from paddlecloud.api.problems import DecodeError, decode_or_empty, encode
from paddlecloud.api.profile import DELETE, Profile, ProfileSpec, ProfileStatus, Subject, decode, validate
from paddlecloud.controllers.tenant import objects
from paddlecloud.controllers.tenant.objects import CLOSED, POD_SECURITY, QUOTA, TenantSettings, covers
from paddlecloud.kube import conditions, quantity
from paddlecloud.kube.clock import rfc3339
from paddlecloud.kube.plan import Delete, Patch, Plan, PlannedEvent, set_finalizers
from paddlecloud.kube.resource import (
    NAMESPACES,
    RESOURCEQUOTAS,
    ROLEBINDINGS,
    SERVICEACCOUNTS,
    Object,
    controller_of,
    resource_of,
)

KUBEFLOWS_FINALIZER = "profile-finalizer"
READY, OWNER_MISSING, EXCEEDED = "Ready", "OwnerMissing", "QuotaExceeded"
QUEUE_TAKEN, IGNORED = "QueueTaken", "PluginsIgnored"
ACCOUNTS_GONE = 0.2
"""Seconds after which it is looked whether accounts are gone."""
Name = tuple[str, str]
"""Kind and name of an object in the namespace."""


LOOK_AGAIN = 30.0
"""Seconds until an owner that does not exist is looked for again."""


class ParsedProfile(NamedTuple):
    """A Profile, read once for each pass."""

    profile: Profile
    unreadable: str = ""
    """Why its fields could not be read; then the Profile is empty."""

    @classmethod
    def of(cls, obj: Object) -> ParsedProfile:
        try:
            return cls(decode(obj))
        except DecodeError as error:
            return cls(Profile(), str(error))

    @property
    def problems(self) -> str:
        return self.unreadable or "; ".join(str(problem) for problem in validate(self.profile))


@dataclass(frozen=True, slots=True)
class Observed:
    parsed: ParsedProfile
    namespace: Object | None = None
    children: Mapping[Name, Object] = field(default_factory=dict)
    """What is labelled as the Profile's, in its namespace."""
    accounts: Sequence[Object] = ()
    """Those of `objects.ACCOUNTS` that are there, whatever they are labelled; of a Profile that is being deleted, and
    in a namespace that is not its own (yet)."""
    queue: Object | None = None
    """Of the Profile's name; others may have made it."""
    queues: bool = False
    policies: bool = False
    """Which kinds are served: Volcano's Queues, NetworkPolicies."""
    owner_missing: bool = False
    """The owner is an account that does not exist. Of users and groups nobody knows."""
    settings: TenantSettings = field(default_factory=TenantSettings)
    refusal: str = ""
    """Why the last plan could not be carried out."""


def decide(obj: Object, observed: Observed, now: float) -> Plan:
    plan = _decided(obj, observed, now)
    if observed.owner_missing:
        plan.requeue_after(LOOK_AGAIN)
    return plan


def _decided(obj: Object, observed: Observed, now: float) -> Plan:
    meta = obj["metadata"]
    marks = list(meta.get("finalizers") or [])
    if KUBEFLOWS_FINALIZER in marks and MARK not in marks:
        return Plan()  # Kubeflow's own controller carries it out
    if meta.get("deletionTimestamp"):
        return _leave(obj, observed, marks, now)
    profile, problems = observed.parsed.profile, observed.parsed.problems
    spec = profile.spec
    if not problems and spec is not None:
        problems = objects.amount_problem(spec)
    if observed.settings.hub is not None and meta["name"] == observed.settings.hub[0]:
        problems = (
            f"namespace {meta['name']} is that of JupyterHub, which starts pods for all tenants: choose another name"
        )
    if problems or spec is None:
        return _not_ready(obj, "InvalidSpec", problems, now)
    if MARK not in marks:
        return Plan(patch=[set_finalizers(obj, [*marks, MARK])])
    found = observed.namespace
    if found is None:
        made = objects.namespace(obj, spec, observed.settings, queue=_has_queue(obj, observed))
        plan = _not_ready(obj, "Creating", f"namespace {meta['name']} is being made", now)
        plan.create.append(made)
        return plan
    if found["metadata"].get("deletionTimestamp"):
        return _not_ready(obj, "NamespaceTerminating", f"namespace {meta['name']} is being deleted", now)
    if not is_of(obj, found):
        return _take_over(obj, spec, found, observed.accounts, now)
    return _fill(obj, profile, spec, observed, now)


def _take_over(obj: Object, spec: ProfileSpec, found: Object, accounts: Sequence[Object], now: float) -> Plan:
    name, who = obj["metadata"]["name"], objects.identity(spec.owner or Subject())
    holder = (found["metadata"].get("annotations") or {}).get(OWNER_ANNOTATION)
    if holder != who or controller_of(found) is not None:
        whose = f"its annotation {OWNER_ANNOTATION} says {holder!r}" if holder else "nobody is named as its owner"
        text = (
            f"namespace {name} exists and is not made for this Profile: {whose}. Give the Profile another name, or "
            f"hand the namespace over: kubectl annotate namespace {name} --overwrite {OWNER_ANNOTATION}={who}"
        )
        return _not_ready(obj, "NamespaceTaken", text, now)
    meta = found["metadata"]
    annotations = {PROFILE_UID: obj["metadata"]["uid"], KEPT_ANNOTATION: None}
    body = {"metadata": {"annotations": annotations, "resourceVersion": meta["resourceVersion"]}}
    plan = _not_ready(obj, "Creating", f"namespace {name} is being taken over", now)
    if accounts:
        _remove(plan, accounts)
    else:
        plan.patch.append(Patch(NAMESPACES, name, None, body, seen=meta["resourceVersion"]))
    return plan


def _remove(plan: Plan, accounts: Sequence[Object]) -> None:
    """Accounts that others may hold tokens of. People of the namespace may have taken off their label and their owner,
    and may have given them finalizers; so no event tells that they are gone."""
    places = [(each["metadata"]["name"], each["metadata"]["namespace"]) for each in accounts]
    plan.delete += [Delete(SERVICEACCOUNTS, name, namespace) for name, namespace in places]
    plan.patch += [Patch(SERVICEACCOUNTS, *place, {"metadata": {"finalizers": None}}) for place in places]
    plan.requeue_after(ACCOUNTS_GONE)


def _fill(obj: Object, profile: Profile, spec: ProfileSpec, observed: Observed, now: float) -> Plan:
    plan = Plan()
    settings, name = observed.settings, obj["metadata"]["name"]
    with_queue = _has_queue(obj, observed)
    _keep_marks(plan, observed, objects.namespace(obj, spec, settings, queue=with_queue))
    wanted = list(objects.in_namespace(obj, spec, settings, policies=observed.policies))
    known = dict(observed.children)
    if with_queue:
        wanted.append(objects.queue(obj, spec))
        if observed.queue is not None:
            known[observed.queue["kind"], name] = observed.queue
    current = objects.same_spec(profile)
    for each in wanted:
        there = known.pop((each["kind"], each["metadata"]["name"]), None)
        if there is None or not current or not covers(there, each):
            meta = each["metadata"]
            plan.patch.append(
                Patch(resource_of(each), meta["name"], meta.get("namespace"), each, kind="apply", force=True)
            )
    plan.delete += _superfluous(obj, known)
    if observed.refusal:
        return _not_ready(obj, "Refused", observed.refusal, now, plan)
    plan.status = _judged(plan, obj, spec, observed, with_queue=with_queue, now=now)
    plan.status_if_done = True
    return plan


def _superfluous(obj: Object, known: Mapping[Name, Object]) -> list[Delete]:
    """What the spec no longer asks for; people of the namespace may make objects with our label, which stay."""
    mine = [
        each
        for (kind, name), each in known.items()
        if _owns(obj, each) or (kind, name) == (RESOURCEQUOTAS.kind, CLOSED)
    ]
    metas = [(resource_of(each), each["metadata"]) for each in mine]
    return [Delete(kind, meta["name"], meta.get("namespace"), uid=meta["uid"]) for kind, meta in metas]


def _keep_marks(plan: Plan, observed: Observed, wanted: Object) -> None:
    """Labels and annotations that others took off. A level of PodSecurity that is there is an administrator's."""
    found = (observed.namespace or {})["metadata"]
    labels = dict(wanted["metadata"]["labels"])
    if POD_SECURITY in (found.get("labels") or {}):
        labels.pop(POD_SECURITY, None)
    annotations = wanted["metadata"]["annotations"]
    if covers(found.get("labels") or {}, labels) and covers(found.get("annotations") or {}, annotations):
        return
    body = {"metadata": {"labels": labels, "annotations": annotations}}
    plan.patch.append(Patch(NAMESPACES, found["name"], None, body, seen=found["resourceVersion"]))


def _judged(plan: Plan, obj: Object, spec: ProfileSpec, observed: Observed, *, with_queue: bool, now: float) -> Object:
    old, name = decode_or_empty(ProfileStatus, obj.get("status") or {}), obj["metadata"]["name"]
    owner = spec.owner or Subject()
    taken = observed.queues and not with_queue
    ignored = ", ".join(dict.fromkeys(str(plugin.kind) for plugin in spec.plugins or ()))
    over = _exceeded(observed.children.get((RESOURCEQUOTAS.kind, QUOTA)))
    texts = {
        OWNER_MISSING: observed.owner_missing and f"{objects.identity(owner)} does not exist (yet)",
        EXCEEDED: over and f"more is in use than the quota allows ({over}): nothing is stopped, nothing new starts",
        QUEUE_TAKEN: taken and f"Queue {name} is not made for this Profile; gangs wait in the queue that they name",
        IGNORED: ignored and f"plugins are not carried out here: {ignored}",
    }
    said = old.conditions
    for kind, text in texts.items():
        if text or conditions.find(said, kind) is not None:
            status = "True" if text else "False"
            if text and not conditions.holds(said, kind):
                plan.events.append(PlannedEvent(kind, text, type="Warning"))
            said = conditions.put(said, Condition(type=kind, status=status, reason=kind, message=text or None), now)
    if not conditions.holds(said, READY):
        text = f"namespace {name} is ready for {objects.identity(owner)}"
        plan.events.append(PlannedEvent("TenantReady", text, if_done=True))
    said = conditions.put(said, Condition(type=READY, status="True", reason="Done"), now)
    message = "; ".join(text for text in texts.values() if text) or None
    return encode(ProfileStatus(obj["metadata"].get("generation"), message, said))


def _exceeded(quota: Object | None) -> str:
    """Each resource of which more is used than there may be."""
    hard = ((quota or {}).get("spec") or {}).get("hard") or {}
    used = ((quota or {}).get("status") or {}).get("used") or {}
    over = [name for name in sorted(hard) if quantity.parse(used.get(name, 0)) > quantity.parse(hard[name])]
    return ", ".join(f"{name} {used[name]} of {hard[name]}" for name in over)


def _leave(obj: Object, observed: Observed, marks: list[str], now: float) -> Plan:
    if MARK not in marks:
        return Plan()
    found = observed.namespace
    if found is None or not is_of(obj, found):
        return Plan(patch=[set_finalizers(obj, [mark for mark in marks if mark != MARK])])
    meta = found["metadata"]
    if meta.get("deletionTimestamp"):
        return _not_ready(obj, "Terminating", f"waits until namespace {meta['name']} is empty and gone", now)
    if _deletes(observed.parsed):
        return Plan(delete=[Delete(NAMESPACES, meta["name"], None, uid=meta["uid"])])
    if plan := _close(obj, observed):
        return plan
    annotations = {KEPT_ANNOTATION: rfc3339(now), PROFILE_UID: None, QUEUE_NAME: None}
    body = {
        "metadata": {
            "labels": {PROFILE_LABEL: None},
            "annotations": annotations,
            "resourceVersion": meta["resourceVersion"],
        }
    }
    text = f"namespace {meta['name']} is kept with its data; its people have no rights there any more"
    event = PlannedEvent("NamespaceKept", text, if_done=True)
    return Plan(patch=[Patch(NAMESPACES, meta["name"], None, body, seen=meta["resourceVersion"])], events=[event])


def _close(obj: Object, observed: Observed) -> Plan | None:
    """What takes the rights of people away; None once all of it is done. A token of an account that stays would have
    the rights that the next tenant of this name gives it."""
    name, closed = obj["metadata"]["name"], objects.closed(obj)
    others = {
        key: each
        for key, each in observed.children.items()
        if key[0] != SERVICEACCOUNTS.kind and key[1] != CLOSED and not _only_lingers(each)
    }
    rights, accounts = _superfluous(obj, others), observed.accounts
    if not rights and not accounts and (closed["kind"], CLOSED) in observed.children:
        return None
    plan = Plan(delete=rights, patch=[Patch(RESOURCEQUOTAS, CLOSED, name, closed, kind="apply", force=True)])
    if accounts:
        _remove(plan, accounts)
    return plan


def _only_lingers(found: Object) -> bool:
    """It is deleted, and people of the namespace gave it a finalizer; they cannot give one to a RoleBinding."""
    return bool(found["metadata"].get("deletionTimestamp")) and found["kind"] != ROLEBINDINGS.kind


def _deletes(parsed: ParsedProfile) -> bool:
    """Data is deleted only if the word is there: of a spec that cannot be read it is kept."""
    spec = parsed.profile.spec
    return spec is not None and spec.deletion_policy == DELETE


def _not_ready(obj: Object, reason: str, text: str, now: float, plan: Plan | None = None) -> Plan:
    old = decode_or_empty(ProfileStatus, obj.get("status") or {})
    said = conditions.find(old.conditions, READY)
    plan = plan or Plan()
    if said is None or (said.reason, said.message) != (reason, text):
        warns = reason in ("InvalidSpec", "NamespaceTaken")
        plan.events.append(PlannedEvent(reason, text, type="Warning" if warns else "Normal"))
    known = conditions.put(old.conditions, Condition(type=READY, status="False", reason=reason, message=text), now)
    plan.status = encode(ProfileStatus(old.observed_generation, text, known))
    return plan


def _owns(obj: Object, found: Object) -> bool:
    owner = controller_of(found)
    return owner is not None and owner["uid"] == obj["metadata"]["uid"]


def is_of(obj: Object, namespace: Object) -> bool:
    """By an annotation that only those who may change namespaces can write: no tenant."""
    return (namespace["metadata"].get("annotations") or {}).get(PROFILE_UID) == str(obj["metadata"]["uid"])


def _has_queue(obj: Object, observed: Observed) -> bool:
    """A Queue of the same name that others made stays theirs."""
    return observed.queues and (observed.queue is None or _owns(obj, observed.queue))
