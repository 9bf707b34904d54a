"""`pdc promote` and `pdc rollback`: the canary becomes the default; or back to what served before.

Both are one patch of the spec, so they work on any cluster and the controller moves the traffic as for any change: the
new revision first becomes ready.
"""

from __future__ import annotations

import argparse
import json
import time
from typing import NamedTuple
from urllib.parse import unquote, urlsplit

from paddlecloud.api.names import (
    ELASTIC_SERVING,
    ENDPOINT,
    MODEL_FINGERPRINT,
    REVISION,
    SERVICE,
    SERVING,
    SOURCE,
)
from paddlecloud.api.paddleservice.named_model import hub_reference, is_name
from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, CliError, UsageError, attempting
from paddlecloud.cli.objects import canary as canaries
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.embedded import is_embedded
from paddlecloud.cli.objects.members import members_of
from paddlecloud.cli.objects.outcome import failed_beside, standing_in
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.pod_verdict import SELF_EXPLAINING
from paddlecloud.cli.objects.why import why
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind
from paddlecloud.kube.errors import Conflict, Forbidden, NotFound
from paddlecloud.kube.resource import KNATIVE_REVISIONS, REPLICASETS, Object
from paddlecloud.platform import fingerprint
from paddlecloud.sdk.outcome import condition

GROUPS = (SERVING, ELASTIC_SERVING)
DESCRIPTIONS = {
    "promote": "Make the canary of a PaddleService its default, once it is ready.",
    "rollback": (
        "Withdraw the canary of a PaddleService; without one, or where a new default failed, go back to what served "
        "before.\n"
        "A second rollback returns to what the first one left. (`pdc model rollback` goes further back with each call.)"
    ),
}
ATTEMPTS = 10
"""How often a patch is sent when the controller writes the status in between."""


def add_commands(parsers: Parsers) -> None:
    for name, function in (("promote", run_promote), ("rollback", run_rollback)):
        parser = parsers.add_parser(name, description=DESCRIPTIONS[name])
        parser.add_argument("word", metavar="SERVICE", help="name of a PaddleService, or KIND/NAME")
        parser.set_defaults(run=function)


def run_promote(session: Session, args: argparse.Namespace) -> int:
    where, service = _find(session, args)
    canary = (service.get("spec") or {}).get("canary")
    if not canary:
        raise CliError(
            f"{where.display} has no canary to promote",
            why="spec.canary is not set",
            next=f"pdc describe {where.display}",
            exit_code=CONFLICT,
        )
    state = _condition(service, "CanaryEndpointReady")
    if state.get("status") != "True":
        raise CliError(
            f"the canary of {where.display} is not ready",
            why=_why_not_ready(session, service, state) or "it has not answered yet",
            next=f"pdc wait --for=condition=CanaryEndpointReady {where.display}",
            exit_code=CONFLICT,
        )
    return _patch(session, args, where, service, canaries.promotion(service, canary), "promoted")


def _why_not_ready(session: Session, service: Object, state: Object) -> str:
    """The cause, from the canary's pods where its condition does not name one; empty when nothing is known."""
    said, reason = str(state.get("message") or ""), str(state.get("reason") or "")
    if said and (reason in SELF_EXPLAINING or reason.startswith("ExitCode")):
        return said
    try:
        found = [one.pod for one in members_of(session, service)]
    except Forbidden:
        found = []
    pods = [pod for pod in found if (pod["metadata"].get("labels") or {}).get(ENDPOINT) == "canary"]
    alone = {**service, "status": {"conditions": [state] if state else []}}
    verdict = why(alone, pods=pods, now=time.time())
    return said if verdict.state == "ok" or said in verdict.text else f"{said}: {verdict.text}"


def run_rollback(session: Session, args: argparse.Namespace) -> int:
    where, service = _find(session, args)
    if (service.get("spec") or {}).get("canary") and not failed_beside(service):
        return _patch(session, args, where, service, canaries.WITHDRAWAL, "canary withdrawn")
    before = _previous(session, where, service)
    if before is None:
        raise CliError(
            f"{where.display} has no earlier revision to go back to",
            why="this is the first, or the earlier ones are gone",
            next=f"pdc get revisions -l {SERVICE}={where.name}",
            exit_code=CONFLICT,
        )
    endpoint = dict(json.loads(before.source))
    current = _current(service)
    origin = f" from {current}" if current != before.name else ""  # no revision was made of a spec that is refused
    done = f"rolled back{origin} to {before.name} ({_content(endpoint)})"
    if note := _of_folder(session, before, str(endpoint.get("model") or "")):
        session.note(f"{where.display}: {note}")
    return _patch(session, args, where, service, canaries.as_default(service, endpoint), done)


def _of_folder(session: Session, before: _Earlier, model: str) -> str:
    """A folder is served as it is now. Whether it is as it was then can be seen on its own machine."""
    place = urlsplit(model)
    if place.scheme != "file":
        return ""
    folder = unquote(place.path)
    present = fingerprint.of_folder(folder) if before.fingerprint and is_embedded(session) else ""
    if not present:
        return f"revision {before.name} serves what is in {folder} now, which may have changed since it was made"
    if present != before.fingerprint:
        return f"the folder {folder} has changed since revision {before.name} was made: it serves the new files"
    return ""


def _content(endpoint: Object) -> str:
    """What an endpoint serves: its model, or its image."""
    return str(endpoint.get("model") or f"{endpoint.get('containerImage')}:{endpoint.get('tag')}")


def _find(session: Session, args: argparse.Namespace) -> tuple[ObjectRef, Object]:
    """A plain name is looked for in the group of today, then in the earlier one."""
    output.check(output.parse_format(args.output, ("", *output.OBJECTS)))  # before anything is sent
    words = [args.word] if "/" in args.word else [f"paddleservices.{group}/{args.word}" for group in GROUPS]
    searched: list[str] = []
    with attempting(f"{args.command} {args.word}"):
        for word in words:
            try:
                entry, name = targets.one(session.api, [word], usage=f"pdc {args.command} SERVICE")
            except UnknownKind:
                if word is words[0]:
                    raise
                continue  # few clusters serve the earlier group
            searched.append(entry.resource.full_name)
            where = ObjectRef(entry.resource, name, session.namespace)
            if where.resource.kind != "PaddleService":
                raise UsageError(f"{where.display} has no canary", why="only a PaddleService has", next="pdc get pds")
            try:
                return where, session.api.do(session.api.client.get(where.resource, where.name, where.namespace))
            except NotFound:
                if "/" in args.word:
                    raise
    raise CliError(
        f'no PaddleService "{args.word}" in namespace {session.namespace}',
        next="pdc get pds",
        exit_code=NOT_FOUND,
        missing=(args.word, tuple(searched)),
    )


def _previous(session: Session, where: ObjectRef, service: Object) -> _Earlier | None:
    """The endpoint of the default before the present one, from what was made of it: revisions, or ReplicaSets.

    The one that serves, where that is not of the present spec."""
    selector = f"{SERVICE}={where.name},{ENDPOINT}=default"
    current, serving = _current(service), standing_in(service)
    if not current:
        return None  # its first revision is being made, and could be taken for an earlier one
    with attempting(f"read the revisions of {where.display}"):
        for resource, read in ((KNATIVE_REVISIONS, _of_revision), (REPLICASETS, _of_replicaset)):
            call = session.api.client.list(resource, namespace=where.namespace, label_selector=selector)
            try:
                made = [read(found) for found in session.api.do(call).items]
            except NotFound:
                continue  # no Knative here, and so no revisions
            if current == serving and (found := [one for one in made if one.name == serving]):
                return found[0]  # the present spec was refused
            tried = {found.source for found in made if found.name == current}  # also by attempts before a retry
            for earlier in sorted(made, key=lambda earlier: (earlier.name == serving, earlier.age), reverse=True):
                if earlier.name not in ("", current) and earlier.source and earlier.source not in tried:
                    return earlier
    return None


def _current(service: Object) -> str:
    """The revision of the present spec, which another one may stand in for."""
    default = (service.get("status") or {}).get("default") or {}
    return str(default.get("latest") or default.get("name") or "")


class _Earlier(NamedTuple):
    name: str
    age: tuple[str, int]
    """Of two from one second, the one of the later generation is the newer."""
    source: str
    fingerprint: str
    """Of the folder of its model; empty where there is none, or where it was not seen."""


def _of_revision(revision: Object) -> _Earlier:
    meta = revision["metadata"]
    generation = (meta.get("labels") or {}).get("serving.knative.dev/configurationGeneration", "0")
    return _Earlier(meta["name"], (str(meta.get("creationTimestamp")), int(generation)), *_remarks(meta))


def _of_replicaset(replicaset: Object) -> _Earlier:
    """A ReplicaSet that is used again keeps its time of creation, not its number."""
    number = (replicaset["metadata"].get("annotations") or {}).get("deployment.kubernetes.io/revision", "0")
    pod = replicaset["spec"]["template"]["metadata"]  # Knative's own have no label of ours, and so no name
    return _Earlier((pod.get("labels") or {}).get(REVISION, ""), ("", int(number)), *_remarks(pod))


def _remarks(meta: Object) -> tuple[str, str]:
    found = meta.get("annotations") or {}
    return str(found.get(SOURCE) or ""), str(found.get(MODEL_FINGERPRINT) or "")


def _condition(service: Object, kind: str) -> Object:
    return condition(service, kind) or {}


def _followed(service: Object) -> str:
    """The alias whose moves are rolled out; empty where none is followed."""
    spec = service.get("spec") or {}
    model = str((spec.get("default") or spec).get("model") or "")
    meant = hub_reference(model) if spec.get("follow") and is_name(model) else None
    return str(meant) if meant is not None and meant.alias else ""


def _patch_spec(session: Session, where: ObjectRef, service: Object, spec: Object) -> Object:
    client, generation = session.api.client, service["metadata"].get("generation")
    for attempt in range(ATTEMPTS):
        patch = {"metadata": {"resourceVersion": service["metadata"]["resourceVersion"]}, "spec": spec}
        try:
            return session.api.do(client.patch(where.resource, where.name, patch, namespace=where.namespace))
        except Conflict:
            service = session.api.do(client.get(where.resource, where.name, where.namespace))
            if attempt == ATTEMPTS - 1 or service["metadata"].get("generation") != generation:
                raise
    raise AssertionError("the last attempt returns or raises")


def _patch(
    session: Session, args: argparse.Namespace, where: ObjectRef, service: Object, change: Object, done: str
) -> int:
    """With the version that was read: what somebody changed meanwhile is not written over.

    A status that the controller wrote meanwhile changes nothing about what was asked for: the patch is sent again.
    """
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    present = service.get("spec") or {}
    replaced = dict(change)
    if isinstance(present.get("default"), dict) and isinstance(change.get("default"), dict):
        gone = dict.fromkeys(name for name in present["default"] if name not in change["default"])
        replaced["default"] = {**gone, **change["default"]}
    with attempting(f"{args.command} {where.display}"):
        answer = _patch_spec(session, where, service, replaced)
    if fmt.name:
        output.print_objects(session, [output.without_managed_fields(answer)], fmt, single=True)
    else:
        session.print(f"{where.display} {done}")
        if (followed := _followed(service)) and not _followed(answer):
            again = f"pdc serve {followed} --name {where.name} --follow{session.namespace_flag}"
            session.note(f"{where.display} no longer follows {followed}; to follow it again: {again}")
        if args.command == "rollback" and "canary" not in change:
            session.note("the same command again returns to what was left now")
        session.note(f"next: pdc wait --for=condition=Ready {where.display}")
    return 0
