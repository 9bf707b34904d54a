"""The one pod that `exec`, `cp` and `port-forward` mean: named itself, or a rank of a job, or one of a Deployment's."""

from __future__ import annotations

from paddlecloud.cli.commands.logs import find
from paddlecloud.cli.failures import CONFLICT, NOT_FOUND, CliError
from paddlecloud.cli.objects import members
from paddlecloud.cli.objects.members import Member
from paddlecloud.cli.session import Session


def one_pod(session: Session, subject: str, *, rank: int | None = None) -> Member:
    """Running if any of them is; the first by rank otherwise."""
    place, owner = find(session, subject)
    found = members.members_of(session, owner)
    if rank is not None:
        found = members.choose(found, ranks=str(rank), everything=False)
        if not found:
            raise CliError(f"{place.display} has no worker of rank {rank}", next="pdc get pods", exit_code=NOT_FOUND)
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
