"""Waiting until the pods of a Deployment answer. Meanwhile the command shows what they wait for, such as a download."""

from __future__ import annotations

from paddlecloud.cli.commands.wait import WaitReport, settled_goal
from paddlecloud.cli.failures import OK, TIMEOUT, CliError
from paddlecloud.cli.objects.examination import examine
from paddlecloud.cli.objects.outcome import Outcome
from paddlecloud.cli.objects.placing import ObjectRef
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.session import Session

NEWS_SECONDS = 3.0
"""After which, while it waits, the command asks the pods for what they wait."""


def wait_answering(session: Session, place: ObjectRef, timeout: float) -> None:
    """A Deployment does not say what its pods wait for, such as the download of VisualDL: they are asked."""
    goal, text, left = settled_goal(), "the API server has not answered yet", timeout
    progress = WaitReport(session, place)
    while True:
        try:
            ended = until(session.api, place, goal.check, timeout=min(NEWS_SECONDS, left))
            break
        except DeadlineError as late:
            left -= NEWS_SECONDS
            text = examine(session, late.last)[2].text if late.last else text
            if left <= 0:
                ended = Outcome("timed out", TIMEOUT, f"after {timeout:g} s: {text}")
                break
            progress.report_text(text)
    progress.close()
    if ended.exit_code != OK:
        raise CliError(
            f"{place.display} does not answer",
            why=ended.message or ended.state,
            next=f"pdc describe {place.display}{session.namespace_flag}, or pdc logs {place.display}",
            exit_code=ended.exit_code,
        )
