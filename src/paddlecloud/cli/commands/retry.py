"""`pdc retry`: run a finished job again, from the beginning: the same spec under the same name, as a new object.

The old object is deleted with everything it owns and created again, so retries, deadlines and failures are counted
anew and no controller has to know of it. Logs of the earlier run go with its pods. Should anything come between the
two, the job is kept in a file that `pdc apply` takes.
"""

from __future__ import annotations

import argparse
import os
import tempfile

from paddlecloud.cli.failures import CONFLICT, CliError, UsageError, attempting
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.placing import Place
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.parsing import Parsers
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import Object

GONE_SECONDS = 60.0
KEPT = ("name", "namespace", "labels", "annotations", "ownerReferences")
"""What of the metadata is the user's; the rest belongs to one incarnation."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("retry", description=__doc__)
    parser.add_argument("words", nargs="+", metavar="JOB", help="name of a PaddleJob, or pdj/NAME")
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
        session.print(f"{place.display} runs again")
    session.note(f"to follow it: pdc logs -f {again[0][0].name}" if len(again) == 1 else "to see them: pdc ps")
    return 0


def _finished(session: Session, word: str) -> tuple[Place, Object]:
    entry, name = targets.one(session.api, [word if "/" in word else f"pdj/{word}"], usage="pdc retry JOB")
    place = Place(entry.resource, name, session.namespace)
    if entry.resource.kind != "PaddleJob":
        raise UsageError(f"{place.display} cannot be retried", why="only a PaddleJob can", next="pdc ps")
    job = session.api.do(session.api.client.get(place.resource, name, place.namespace))
    if outcome.finished(job) is None:
        phase = (job.get("status") or {}).get("phase") or "waiting"
        raise CliError(
            f"{place.display} has not ended",
            why=f"it is {phase}",
            next=f"pdc wait {place.display} --for=finished, or pdc delete {place.display} to give it up",
            exit_code=CONFLICT,
            reason="NotFinished",
        )
    return place, job


def _again(session: Session, place: Place, job: Object) -> Object:
    fresh = fresh_copy(job)
    client = session.api.client
    deletion = client.delete(
        place.resource, place.name, namespace=place.namespace, propagation="Background", uid=job["metadata"]["uid"]
    )
    session.api.do(deletion)
    try:
        until(session.api, place, lambda obj: True if _is_gone(obj, job) else None, timeout=GONE_SECONDS)
        return _create(session, place, fresh, applier(job))
    except DeadlineError as late:
        raise _interrupted(place, fresh, f"it is still being deleted after {GONE_SECONDS:g} s") from late
    except BaseException as error:
        raise _interrupted(place, fresh, str(error) or type(error).__name__) from error


def _create(session: Session, place: Place, fresh: Object, manager: str | None) -> Object:
    client = session.api.client
    if manager is None:
        return session.api.do(client.create(place.resource, fresh))
    patch = client.patch(
        place.resource, place.name, fresh, namespace=place.namespace, kind="apply", field_manager=manager
    )
    return session.api.do(patch)


def fresh_copy(job: Object) -> Object:
    """The job as its author wrote it: nothing of the life it had."""
    meta = {key: value for key, value in job["metadata"].items() if key in KEPT}
    return {"apiVersion": job["apiVersion"], "kind": job["kind"], "metadata": meta, "spec": job.get("spec") or {}}


def applier(job: Object) -> str | None:
    """Who applied it, if anybody did: under the same owner the next `apply` of its file meets no conflict."""
    for entry in job["metadata"].get("managedFields") or ():
        if entry.get("operation") == "Apply" and not entry.get("subresource"):
            return str(entry["manager"])
    return None


def _is_gone(now: Object | None, job: Object) -> bool:
    return now is None or now["metadata"].get("uid") != job["metadata"].get("uid")


def _interrupted(place: Place, fresh: Object, why: str) -> CliError:
    from paddlecloud.kube.yamlio import dump

    handle, path = tempfile.mkstemp(prefix=f"{place.name}-", suffix=".yaml")
    with os.fdopen(handle, "w") as file:
        file.write(dump(fresh))
    return CliError(
        f"{place.display} was deleted but not created again", why=why, next=f"pdc apply -f {path}", reason="Interrupted"
    )
