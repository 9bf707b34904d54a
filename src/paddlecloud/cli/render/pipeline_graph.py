"""A run of a pipeline as text: its steps in the order of the graph, indented by their groups; live on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

from paddlecloud.api.paddlejob.cause import ON_THE_WAY
from paddlecloud.cli import phrases
from paddlecloud.cli.control_characters import visible
from paddlecloud.cli.session import Session
from paddlecloud.cli.times import age
from paddlecloud.kube.resource import Object
from paddlecloud.kube.times import human_duration, parse_rfc3339
from paddlecloud.pipelines import names
from paddlecloud.pipelines.runs import states
from paddlecloud.pipelines.runs.record import Step

SIGNS = {
    "Succeeded": ("✓", "green"), "Failed": ("✗", "red"), "Error": ("✗", "red"), "Running": ("●", "cyan"),
    "Pending": ("○", "yellow"), "Skipped": ("-", "yellow"), "Omitted": ("-", "yellow"),
}  # fmt: skip
DID_NOT_RUN = ("Skipped", "Omitted")
LONGEST = 100
"""Characters of a message in the graph; `-o json` has all of it."""
SHOWN = 200
"""Steps of a graph that is drawn live."""


def page(session: Session, workflow: Object, steps: Sequence[Step], now: float, *, why: str = "") -> str:
    """What `show` prints: the run, its parameters, the graph. `why` it failed, where more than its status is known."""
    meta, status = workflow["metadata"], workflow.get("status") or {}
    annotations = meta.get("annotations") or {}
    run_name = str(annotations.get(names.RUN_NAME) or meta["name"])
    called = f" ({visible(run_name)})" if run_name != meta["name"] else ""
    rows = [
        ("pipeline-run", f"{meta['name']}{called}"),
        ("pipeline-status", f"{_status(session, workflow)}{_took(status, now)}"),
        ("pipeline-why", visible(why or states.failure(workflow))),
        ("pipeline-parameters", ", ".join(_parameters(workflow))),
    ]
    language = phrases.preferred()
    lines = [f"{phrases.say(language, key)}{text}" for key, text in rows if text]
    return "\n".join([*lines, "", *graph(session, steps, now), *_advice(session, workflow, steps)])


def _parameters(workflow: Object) -> list[str]:
    given = ((workflow.get("spec") or {}).get("arguments") or {}).get("parameters") or ()
    return [
        f"{each['name']}={_cut(visible(str(each.get('value', ''))), 60)}"
        for each in given
        if each["name"] != names.STARTER_PARAMETER
    ]


def graph(session: Session, steps: Sequence[Step], now: float) -> list[str]:
    """One line for each step. Groups that only hold one run's steps, such as the root, are left out."""
    shown = [step for step in steps if step.depth > 0 or step.is_leaf]
    return [_line(session, step, now) for step in shown]


def report(workflow: Object, steps: list[Object]) -> Object:
    meta, status = workflow["metadata"], workflow.get("status") or {}
    return {
        "name": meta["name"],
        "namespace": meta["namespace"],
        "run": (meta.get("annotations") or {}).get(names.RUN_NAME, ""),
        "runId": (meta.get("labels") or {}).get(names.RUN_ID) or meta.get("uid", ""),
        "phase": states.phase_of(workflow) or "Pending",
        "message": states.failure(workflow),
        "startedAt": status.get("startedAt"),
        "finishedAt": status.get("finishedAt"),
        "steps": steps,
    }


def cache_words(step: Step, why: str = "") -> tuple[str, str, str]:
    """Of a step: hit, miss or none; its key; why it was not answered from the cache, as far as it is known."""
    if step.cache_hit:
        return "hit", step.cache_key, ""
    if step.cache_key:
        unknown = "no earlier step had this key: an input, the program or the image is new"
        return "miss", step.cache_key, visible(why) or unknown
    if step.phase in DID_NOT_RUN:
        return "–", "", "the step did not run"
    return "–", "", "the step is not cached in this run"


class Live:
    """The graph while it changes. On a terminal it is drawn anew; elsewhere each step has a line when it changes."""

    def __init__(self, session: Session, *, quiet: bool = False) -> None:
        self._session = session
        self._terminal = sys.stderr.isatty()
        self._quiet = quiet
        self._drawn = 0
        self._said: dict[str, tuple[str, str]] = {}
        """By step: the phase and, while it is Pending, the reason that was printed last."""

    def show(self, workflow: Object, steps: Sequence[Step]) -> None:
        if self._quiet:
            return
        if self._terminal:
            self._draw([*graph(self._session, steps, time.time())[-SHOWN:], *_advice(self._session, workflow, steps)])
            return
        for step in steps:
            state = step.phase, _pending_reason(step)
            before = self._said.get(step.id, ("", ""))
            if step.is_leaf and state != before and (state[1] or state[0] != before[0]):
                self._said[step.id] = state
                self._session.note(f"{step.name}: {step.phase}{f' ({_cut(step.message)})' if step.message else ''}")
                for line in _advice(self._session, workflow, [step]):
                    self._session.note(line)

    def end(self) -> None:
        self._drawn = 0

    def _draw(self, lines: list[str]) -> None:
        import shutil

        rows = shutil.get_terminal_size().lines - 1
        lines = lines[-rows:]
        back = f"\x1b[{self._drawn}A\x1b[J" if self._drawn else ""
        sys.stderr.write(back + "".join(f"{line}\n" for line in lines))
        sys.stderr.flush()
        self._drawn = len(lines)


def _pending_reason(step: Step) -> str:
    """Why a step waits. Details such as how much is free change all the time; an image that is built takes minutes."""
    reason, _, text = step.message.partition(": ") if step.phase == "Pending" else ("", "", "")
    return text if reason in ON_THE_WAY else reason


def _advice(session: Session, workflow: Object, steps: Sequence[Step]) -> list[str]:
    """The command by which a run goes on that waits at a suspended step."""
    waits = [step.name for step in steps if step.type == "Suspend" and step.phase == "Running"]
    command = f"pdc pipeline resume {workflow['metadata']['name']}{session.namespace_flag}"
    return [f"{visible(waits[0])} is suspended; to go on: {command}"] if waits else []


def _line(session: Session, step: Step, now: float) -> str:
    sign, colour = SIGNS.get(step.phase, ("?", "yellow"))
    took = _seconds(step, now)
    words = [f"{'  ' * max(step.depth - 1, 0)}{session.paint(sign, colour)} {visible(step.name)}"]
    if took is not None and step.is_leaf:
        words.append(human_duration(took))
    if step.cache_hit:
        words.append("cached")
    if step.after:
        words.append(f"after {visible(', '.join(step.after))}")
    if step.message:
        words.append(_cut(visible(step.message)))
    return "  ".join(words)


def _seconds(step: Step, now: float) -> float | None:
    if step.seconds is not None:
        return step.seconds
    try:
        return now - parse_rfc3339(step.started) if step.phase == "Running" else None
    except ValueError:  # it has not begun
        return None


def _status(session: Session, workflow: Object) -> str:
    phase = states.phase_of(workflow) or "Pending"
    return session.paint(phase, SIGNS.get(phase, ("", "yellow"))[1])


def _took(status: Object, now: float) -> str:
    if not status.get("startedAt"):
        return ""
    end = status.get("finishedAt")
    return f" after {age(status['startedAt'], parse_rfc3339(end))}" if end else f" for {age(status['startedAt'], now)}"


def _cut(text: str, most: int = LONGEST) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"
