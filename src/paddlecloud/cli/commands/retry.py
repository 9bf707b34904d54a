"""`pdc retry`: run a finished PaddleJob, or a failed SampleJob, again, with the spec it has now; try again at once the
failed import of a SampleSet, and a PaddleService whose newest revision failed or whose roll-out went back. A service
that keeps a version of a model takes up the one that its alias points to now.

It writes the annotation `paddlepaddle.org/retry-at`, as `kubectl annotate` can, and waits until the controller has
taken it up (`status.retriedAt`). Retries and deadlines are counted anew; a training program that wrote a checkpoint
goes on from it. Logs of the earlier run go with its pods. A service gets a new revision of the same content: what
serves goes on until that one is ready, and a back-off of failing pods is not waited for.
"""

from __future__ import annotations

import argparse
import time

from paddlecloud.api.names import RETRY_AT
from paddlecloud.cli.failures import CONFLICT, INVALID, TIMEOUT, CliError, UsageError, attempting
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PADDLEJOBS, PADDLESERVICES, SAMPLEJOBS, SAMPLESETS, Object
from paddlecloud.sdk.outcome import SPEC_REFUSALS, is_behind, retry_patch

TAKEN_UP_SECONDS = 30.0
KINDS = {PADDLEJOBS.full_name: ("succeeded", "failed"), SAMPLEJOBS.full_name: ("failed",)}
"""The endings after which another run can be requested."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("retry", description=__doc__)
    parser.add_argument(
        "words",
        nargs="+",
        metavar="JOB",
        help="name of a PaddleJob, pdj/NAME, samplejob/NAME, sampleset/NAME or pds/NAME",
    )
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.OBJECTS))
    with attempting(f"retry {' '.join(args.words)}"):
        finished = [_finished(session, word) for word in args.words]
        again = [(place, _again(session, place, job)) for place, job in finished]
    if fmt.name:
        objects = [output.without_managed_fields(obj) for _, obj in again]
        output.print_objects(session, objects, fmt, single=len(objects) == 1)
        return 0
    for place, _ in again:
        session.print(f"{place.display} {'is tried again' if place.resource.kind in LASTING else 'runs again'}")
    session.note(f"to follow it: {_follow(again[0][0])}" if len(again) == 1 else "to see them: pdc ps")
    return 0


def _follow(place: ObjectRef) -> str:
    if place.resource.full_name == PADDLEJOBS.full_name:
        return f"pdc logs -f {place.name}"
    if place.resource.kind in LASTING:
        return f"pdc wait {place.display} --for=condition=Ready"
    return f"pdc wait {place.display} --for=finished"


def _finished(session: Session, word: str) -> tuple[ObjectRef, Object]:
    entry, name = targets.one(session.api, [word if "/" in word else f"pdj/{word}"], usage="pdc retry JOB")
    place = ObjectRef(entry.resource, name, session.namespace)
    if place.resource.kind in LASTING:
        return place, LASTING[place.resource.kind](session, place)
    allowed = KINDS.get(entry.resource.full_name)
    if allowed is None:
        why = "only a PaddleJob, a SampleJob, a SampleSet or a PaddleService can"
        instead = (
            f"pdc pipeline retry {name}{session.namespace_flag}" if entry.resource.kind == "Workflow" else "pdc ps"
        )
        raise UsageError(f"{place.display} cannot be retried", why=why, next=instead)
    job = session.api.do(session.api.client.get(place.resource, name, place.namespace))
    ended = outcome.finished(job)
    if ended is None:
        phase = (job.get("status") or {}).get("phase") or "waiting"
        raise CliError(
            f"{place.display} has not ended",
            why=f"it is {phase}",
            next=f"pdc wait {place.display} --for=finished, or pdc delete {place.display} to give it up",
            exit_code=CONFLICT,
            reason="NotFinished",
        )
    if _is_invalid(job):
        raise CliError(
            f"{place.display} cannot run",
            why=ended.message,
            next="correct its spec: pdc apply -f FILE; it starts by itself then",
            exit_code=INVALID,
        )
    if ended.state not in allowed:
        raise CliError(
            f"{place.display} has {ended.state}",
            why="only a failed SampleJob runs again",
            next="a SampleJob of another name: pdc samplejob --help",
            exit_code=CONFLICT,
            reason="NotFailed",
        )
    return place, job


def _failing(session: Session, place: ObjectRef) -> Object:
    """A service that another attempt may help: something of it does not serve."""
    service = session.api.do(session.api.client.get(place.resource, place.name, place.namespace))
    ready = outcome.condition(service, "Ready") or {}
    if ready.get("reason") in SPEC_REFUSALS:
        raise CliError(
            f"{place.display} cannot be tried again",
            why=str(ready.get("message") or ready["reason"]),
            next="correct its spec: pdc apply -f FILE; it is tried by itself then",
            exit_code=INVALID,
        )
    unready = [c for c in (service.get("status") or {}).get("conditions") or () if c.get("status") != "True"]
    went_back = outcome.rollout_of(service).get("phase") == "WentBack"
    if ready and not unready and not went_back and not is_behind(service):
        raise CliError(
            f"{place.display} has nothing to try again",
            why="its newest revision is ready",
            next=f"pdc explain {place.display}",
            exit_code=CONFLICT,
            reason="NotFailed",
        )
    return service


def _failed_import(session: Session, place: ObjectRef) -> Object:
    found = session.api.do(session.api.client.get(place.resource, place.name, place.namespace))
    phase = (found.get("status") or {}).get("phase")
    if phase != "SyncFailed":
        raise CliError(
            f"{place.display} has nothing to try again",
            why=f"only a failed import is, and the set is {phase or 'new'}",
            next=f"pdc explain {place.display}; to copy its source again: pdc samplejob sync {place.name}",
            exit_code=CONFLICT,
            reason="NotFailed",
        )
    return found


LASTING = {PADDLESERVICES.kind: _failing, SAMPLESETS.kind: _failed_import}
"""Kinds that do not end: what of them can be tried again."""


def _is_invalid(job: Object) -> bool:
    """Its spec was refused before anything began: the controller looks at it again when the spec changes."""
    failed = outcome.condition(job, "Failed") or {}
    return "InvalidSpec" in ((job.get("status") or {}).get("reason"), failed.get("reason"))


def _again(session: Session, place: ObjectRef, job: Object) -> Object:
    patch = retry_patch(job, time.time())
    uid, asked = job["metadata"]["uid"], patch["metadata"]["annotations"][RETRY_AT]
    client = session.api.client
    session.api.do(client.patch(place.resource, place.name, patch, namespace=place.namespace, kind="merge"))

    def taken_up(now: Object | None) -> Object | None:
        if now is None or now["metadata"].get("uid") != uid:
            raise CliError(f"{place.display} was deleted before it ran again", exit_code=CONFLICT, reason="Deleted")
        return now if (now.get("status") or {}).get("retriedAt") == asked else None

    try:
        return until(session.api, place, taken_up, timeout=TAKEN_UP_SECONDS)
    except DeadlineError as late:
        raise CliError(
            f"{place.display} does not run again yet",
            why=f"its controller has not taken the request up in {TAKEN_UP_SECONDS:g} s; the request is kept",
            next=f"pdc explain {place.display}, pdc doctor",
            exit_code=TIMEOUT,
            reason="NotTakenUp",
        ) from late
