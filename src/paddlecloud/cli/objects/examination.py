"""Reads what a verdict on an object rests on, its pods and events, and finds the verdict (`why`)."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

from paddlecloud.cli.objects import events, pod_fields, served_model
from paddlecloud.cli.objects.members import Member, members_of
from paddlecloud.cli.objects.outcome import finished
from paddlecloud.cli.objects.why import DELETING, OK, Verdict, why
from paddlecloud.cli.phrases import say
from paddlecloud.cli.session import Session
from paddlecloud.kube.argo import WORKFLOWS
from paddlecloud.kube.errors import Forbidden, NotFound
from paddlecloud.kube.resource import PADDLESERVICES, SAMPLESETS, Object

NO_CLAIM = re.compile(r'persistentvolumeclaim "([^"]+)" not found')
"""As schedulers and kubelets write it."""
UNKNOWN_FIELD = "UnknownField"
MOST_FIELDS = 5
"""Fields that one sentence names."""


def examine(session: Session, obj: Object, *, language: str = "en") -> tuple[list[Member], list[Object], Verdict]:
    """Everything a verdict rests on. Who may not list pods or events still gets what the object itself says."""
    try:
        members = members_of(session, obj)
    except Forbidden:
        members = []
    try:
        happened = events.about(session, obj)
        if obj.get("kind") != "Pod":
            unwell = [one.pod for one in members if why(one.pod, now=time.time()).state != "ok"]
            for pod in unwell[:3]:  # three show as much as three hundred
                happened += events.about(session, pod)
            happened.sort(key=events.order)
    except Forbidden:
        happened = []
    pods = [one.pod for one in members]
    verdict = why(obj, pods=pods, events=happened, now=time.time(), language=language)
    if verdict.reason == "Ready" and (said := served_model.remark(session, obj, pods)):
        text = say(language, "detail", what=verdict.text, detail=said)
        verdict = Verdict(verdict.state, text, "ModelWarning")
    verdict = verdict._replace(details=(*verdict.details, *_served_models(obj, language=language)))
    verdict = _with_output_of_step(session, obj, verdict, language=language)
    verdict = _with_cause_of_claim(session, obj, verdict, language=language)
    return members, happened, _with_ignored_fields(session, obj, verdict, language=language)


def _served_models(obj: Object, *, language: str) -> Iterator[str]:
    """Which version of a model a service answers with, where it is known."""
    if obj.get("kind") != PADDLESERVICES.kind:
        return
    for entry in (obj.get("status") or {}).get("models") or ():
        model = f"{entry.get('name')}:{entry.get('version')}"
        if digest := entry.get("digest"):
            model += f" ({digest[:19]}…)"
        key = "model-served" if entry.get("percent") else "model-starts"
        values = {"percent": entry.get("percent"), "since": entry.get("since")}
        yield say(language, key, endpoint=entry.get("endpoint"), model=model, **values)


def _with_ignored_fields(session: Session, obj: Object, verdict: Verdict, *, language: str) -> Verdict:
    """Misspelt fields of a pod template are stored and have no effect: a job that lacks its command succeeds.

    The event of the controller says so for an hour, and of jobs alone; the spec says so always."""
    found = [field for field in pod_fields.unknown_fields(session.api, obj) if field.path not in verdict.text]
    if not found or verdict.state == DELETING:
        return verdict
    listed = "; ".join(f"{field.path}{f': {field.meant}' if field.meant else ''}" for field in found[:MOST_FIELDS])
    more = f" (+ {len(found) - MOST_FIELDS})" if len(found) > MOST_FIELDS else ""
    text = say(language, "ignored-fields", text=verdict.text, fields=listed + more)
    return verdict._replace(text=text, reason=UNKNOWN_FIELD if verdict.state == OK else verdict.reason)


def _with_output_of_step(session: Session, obj: Object, verdict: Verdict, *, language: str) -> Verdict:
    """Argo reports the exit code of a step alone; what its program said is in its log, if that is kept."""
    if obj.get("kind") != WORKFLOWS.kind or (ended := finished(obj)) is None or ended.state != "failed":
        return verdict
    from paddlecloud.sdk.failed_steps import failure_of

    found = session.api.do(failure_of(session.api.client, obj))
    if not found.output or verdict.state == DELETING:
        return verdict
    text = say(language, "detail", what=say(language, "failed"), detail=" ".join(found.why.split()))
    return verdict._replace(text=text, details=found.output)


def _with_cause_of_claim(session: Session, obj: Object, verdict: Verdict, *, language: str) -> Verdict:
    """The claim of a SampleSet is missing as long as something is wrong with the set: then that is the reason."""
    missing = NO_CLAIM.search(verdict.text)
    if missing is None:
        return verdict
    try:
        found = session.api.do(session.api.client.get(SAMPLESETS, missing[1], obj["metadata"].get("namespace")))
    except (NotFound, Forbidden):
        return verdict  # another claim, or a set that may not be read
    cause = why(found, now=time.time(), language=language)
    return verdict._replace(text=f"{verdict.text}; sampleset/{missing[1]}: {cause.text}")
