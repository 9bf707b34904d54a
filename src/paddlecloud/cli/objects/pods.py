"""Which job or pod a word of the command line means: for `logs` the owner of pods, for `exec`, `cp` and `port-forward`
one pod, named itself, or a rank of a job, or one of a Deployment's."""

from __future__ import annotations

from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, CliError
from paddlecloud.cli.objects import members, targets
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind
from paddlecloud.kube.errors import NotFound
from paddlecloud.kube.resource import PADDLESERVICES, Object

USAGE = "pdc logs JOB, POD, SERVICE, WORKFLOW or KIND/NAME"
BARE = ("pdj", "pods", "pds", "wf")
"""What a name without a kind may mean, the likeliest first."""


def find(session: Session, subject: str) -> tuple[ObjectRef, Object]:
    """The job, pod or other owner of pods that is meant; a bare name is looked for among the `BARE` kinds in turn."""
    api, namespace = session.api, session.namespace
    if "/" in subject:
        entry, name = targets.one(api, [subject], usage=USAGE)
        place = ObjectRef(entry.resource, name, namespace if entry.resource.namespaced else None)
        return place, api.do(api.client.get(place.resource, name, place.namespace))
    served = []
    for kind in BARE:
        try:
            place = ObjectRef(api.entry(kind).resource, subject, namespace)
            served.append(kind)
            return place, api.do(api.client.get(place.resource, subject, namespace))
        except (UnknownKind, NotFound):
            continue  # not installed, or it is of another kind
    message = f'no PaddleJob, pod, PaddleService or Workflow "{subject}" in namespace {namespace}'
    raise CliError(message, next="pdc ps", exit_code=NOT_FOUND, missing=(subject, tuple(served)))


def one_pod(session: Session, subject: str, *, rank: int | None = None) -> Member:
    """Running if any of them is; the first by rank otherwise."""
    place, owner = find(session, subject)
    found = members.members_of(session, owner)
    if rank is not None:
        found = members.choose(found, ranks=str(rank), everything=False)
        if not found:
            raise CliError(f"{place.display} has no worker of rank {rank}", next="pdc get pods", exit_code=NOT_FOUND)
    if not found and owner.get("kind") == PADDLESERVICES.kind:
        url = (owner.get("status") or {}).get("url") or "URL"
        raise CliError(
            f"{place.display} has no pods now",
            why="a service without requests sleeps, and the next request wakes it",
            next=f"curl -s {url}/v2/models, then the same command; or pdc scale {place.display} --replicas 1",
            exit_code=NOT_FOUND,
        )
    if not found:
        raise CliError(f"{place.display} has no pods", next=f"pdc describe {place.display}", exit_code=NOT_FOUND)
    chosen = next((one for one in found if _runs(one)), found[0])
    if not _runs(chosen):
        raise CliError(
            f"pod/{chosen.name} does not run",
            why=f"it is {phase(chosen)}",
            next=f"pdc describe pod/{chosen.name}, or pdc logs {chosen.name}",
            exit_code=CONFLICT,
        )
    return chosen


def phase(member: Member) -> str:
    return str((member.pod.get("status") or {}).get("phase") or "Pending")


def _runs(member: Member) -> bool:
    return phase(member) == "Running" and not member.pod["metadata"].get("deletionTimestamp")
