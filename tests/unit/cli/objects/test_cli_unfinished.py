"""What `pdc down` says of jobs and workflows that have not ended."""

from __future__ import annotations

from paddlecloud.cli.objects.unfinished import NAMED, Running, Unfinished, lines


def test_workflows_are_named_apart_with_what_happens_to_their_steps() -> None:
    found = Unfinished([Running("pdj/train", "default", "Running")], [Running("wf/daily", "team", "Running")])
    assert lines(found) == [
        "1 job has not ended and will go on after `pdc up`:",
        "  pdj/train (Running)",
        "1 workflow has not ended and will go on after `pdc up`; a step whose program runs now runs it again from the "
        "beginning (beside a daemon it fails):",
        "  wf/daily -n team (Running)",
    ]


def test_given_more_than_are_shown_then_the_others_are_counted() -> None:
    found = Unfinished([], [Running(f"wf/run-{number}", "default", "Running") for number in range(NAMED + 2)])
    assert lines(found)[0].startswith(f"{NAMED + 2} workflows have not ended")
    assert lines(found)[-1] == "  and 2 more"
