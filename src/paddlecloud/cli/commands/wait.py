"""`pdc wait`: until a condition holds, a value is reached, an object is gone or a job is finished.

Exit codes: 0 it happened; 124 time ran out; 8 time ran out and the scheduler says why; 100 it cannot happen any more,
because the job or pod has ended otherwise, the spec of the set is refused, or the newest revision of the service
failed; for `--for=finished` 103 it was deleted meanwhile, and with `--timeout=0` 101 it is not finished.
"""

from __future__ import annotations

import argparse
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from paddlecloud.cli.failures import (
    NOT_FINISHED,
    NOT_FOUND,
    OK,
    TIMEOUT,
    UNSCHEDULABLE,
    CliError,
    UsageError,
    attempting,
)
from paddlecloud.cli.objects import outcome, targets
from paddlecloud.cli.objects.outcome import GONE, Outcome
from paddlecloud.cli.objects.placing import ObjectRef, of_object
from paddlecloud.cli.objects.waiting import DeadlineError, until
from paddlecloud.cli.objects.why import why
from paddlecloud.cli.parsing import Parsers, add_selectors, duration
from paddlecloud.cli.render import output
from paddlecloud.cli.session import Session
from paddlecloud.kube.errors import ApiError
from paddlecloud.kube.nearest import question
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.vocabulary import unknown_word

FIRST_NEWS, NEXT_NEWS, SAME_NEWS = 1.0, 3.0, 30.0
"""Seconds before the first report, between two, and between two that differ in their numbers alone."""
ENDED = frozenset(("complete", "completed", "succeed", "succeeded", "finish", "finished", "done", "ended"))
"""Words for the end of a job, in lower case."""
NUMBER = re.compile(r"\d+(\.\d+)?")
USAGE = "pdc wait KIND/NAME… --for=condition=Ready"
Check = Callable[[Object | None], Outcome | None]

_STATUS = re.compile(r"""\{?\$?\.?\[?['"]?status\b""")
"""How a JSONPath begins that leads into the status."""


_PHASE = re.compile(r"""\{?\$?\.?status\.phase\}?=["']?([^"']+)["']?""")


_PLAIN_PATH = re.compile(r"""\{?\$?\.?(\w+(?:\.\w+)*)\}?(?:=|$)""")


class Goal(NamedTuple):
    text: str
    check: Check
    absent_ok: bool = False
    """Whether an object that does not exist is worth waiting for (or is the goal)."""
    of_status: bool = False
    """Whether only the status decides: waiting has no use once that is final."""
    condition: str = ""
    """The type of the condition that is waited for."""
    true: bool = False
    """Whether it is to become true."""
    phase: str = ""
    """What `status.phase` is to be."""
    path: tuple[str, ...] = ()
    """The fields that a plain JSONPath goes through."""


def add_commands(parsers: Parsers) -> None:
    parser = parsers.add_parser("wait", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="KIND/NAME|JOB")
    parser.add_argument(
        "--for",
        dest="goal",
        required=True,
        metavar="GOAL",
        help="condition=TYPE[=VALUE], jsonpath=PATH[=VALUE], delete, create or finished",
    )
    parser.add_argument("--timeout", type=duration, default=30.0, metavar="TIME", help="30s, 5m, 0 (default 30s)")
    parser.add_argument("--all", action="store_true", help="every object of the kind in the namespace")
    add_selectors(parser)
    parser.set_defaults(run=run)


def run(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, ("", *output.STRUCTURED))
    goal = parse_goal(args.goal)
    results = []
    code = OK
    with attempting(f"wait for {' '.join(args.words)}"):
        for place in _places(session, args):
            _refuse_unknown_field(session, place, goal)
            result = wait_for(session, place, goal, timeout=args.timeout)
            results.append((place, result))
            code = code or result.exit_code
            if not fmt.name:
                session.print(f"{place.display} {goal.text if result.exit_code == OK else result.state}")
                if result.exit_code != OK and result.message:
                    session.note(f"{place.display}: {result.message}")
    if fmt.name:
        items = [
            {"object": place.display, "namespace": place.namespace, **result._asdict()} for place, result in results
        ]
        output.print_report(session, "WaitReport", {"goal": args.goal, "items": items})
    return code


def wait_for(session: Session, place: ObjectRef, goal: Goal, *, timeout: float | None) -> Outcome:
    """How the wait for one object ended; also used by `apply --wait`. Raises only when nothing can be known."""

    progress = WaitReport(session, place)
    seen = False

    def check(obj: Object | None) -> Outcome | None:
        nonlocal seen
        if obj is None and not goal.absent_ok:
            raise missing(place)
        answer = goal.check(obj)
        if answer is GONE and not seen:
            raise missing(place)
        seen = seen or obj is not None
        if answer is None and obj is not None:
            _refuse_impossible(place, obj, goal)
        if answer is None and obj is not None and goal.of_status:
            answer = outcome.ended_otherwise(obj, goal.condition if goal.true else "")
        if answer is None and obj is not None:
            progress.report(obj)
        return answer

    try:
        return until(session.api, place, check, timeout=timeout)
    except DeadlineError as late:
        return _too_late(session, late.last, goal, timeout=timeout or 0.0)
    finally:
        progress.close()


def _too_late(session: Session, last: Object | None, goal: Goal, *, timeout: float) -> Outcome:
    """How a wait ends that did not get what it waited for: with the reason, where one can be found."""
    from paddlecloud.cli.objects.examination import examine

    if timeout == 0 and goal.text == "finished":
        return Outcome("not finished", NOT_FINISHED, "")
    if last is None:
        return Outcome("timed out", TIMEOUT, f"it does not exist after {timeout:g} s")
    _, _, verdict = examine(session, last)
    if verdict.reason == "Unschedulable":
        return Outcome("unschedulable", UNSCHEDULABLE, verdict.text)
    return Outcome("timed out", TIMEOUT, f"after {timeout:g} s: {_unknown_condition(last, goal) or verdict.text}")


def _unknown_condition(obj: Object, goal: Goal) -> str:
    """A condition that the object does not have and that resembles one it has is misspelt."""
    known = [str(one.get("type")) for one in (obj.get("status") or {}).get("conditions") or ()]
    meant = question(goal.condition, known) if goal.condition and outcome.condition(obj, goal.condition) is None else ""
    return f'it has no condition "{goal.condition}"; {meant}' if meant else ""


def _refuse_impossible(place: ObjectRef, obj: Object, goal: Goal) -> None:
    """A condition or phase that our controllers never write is a mistake, and waiting for it would never end."""
    unknown = unknown_word(obj, condition=goal.condition, phase=goal.phase)
    if unknown is None:
        return
    if unknown.word.lower() in ENDED and unknown.kind in outcome.FINISHING:
        right = "finished"
    else:
        word = unknown.meant or ("Ready" if "Ready" in unknown.known else unknown.known[0])
        right = f"condition={word}" if goal.condition else f"jsonpath='{{.status.phase}}'={word}"
    raise UsageError(unknown.refusal, why=unknown.why, next=f"pdc wait {place.display} --for={right}")


def _refuse_unknown_field(session: Session, place: ObjectRef, goal: Goal) -> None:
    """A field that the kind does not have never gets a value."""
    from paddlecloud.cli.objects import schema

    if goal.path[:1] not in (("spec",), ("status",)):
        return
    try:
        schema.descend(schema.fetch(session.api, place.resource), place.resource, list(goal.path))
    except CliError as unknown:
        if not unknown.why.startswith(schema.NOT_DOCUMENTED) and "has no field" in unknown.message:
            raise UsageError(unknown.message, why=unknown.why, next=unknown.next) from None
    except ApiError:
        return  # a server that documents nothing


class WaitReport:
    """Says on stderr what is being waited for whenever that changes, at most every few seconds.

    A refusal is said at once: it is the last change until the user does something about it. What comes too early is
    said when it is time, unless something else has come meanwhile: the last change may be followed by none. A download
    that counts its bytes is no other news every few seconds.
    """

    def __init__(self, session: Session, place: ObjectRef) -> None:
        self._session = session
        self._place = place
        self._said = ""
        self._said_at, self._pause = time.monotonic(), FIRST_NEWS
        self._later: threading.Timer | None = None

    def report(self, obj: Object) -> None:
        self.report_text(why(obj, now=time.time()).text, at_once=outcome.is_refused(obj))

    def report_text(self, text: str, *, at_once: bool = False) -> None:
        self.close()
        if text == self._said or self._session.args.output:
            return
        same = NUMBER.sub("", text) == NUMBER.sub("", self._said)
        wait = 0.0 if at_once else self._said_at + (SAME_NEWS if same else self._pause) - time.monotonic()
        if wait <= 0:
            self._say(text)
            return
        self._later = threading.Timer(wait, self._say, (text,))  # this thread waits for the server
        self._later.daemon = True
        self._later.start()

    def _say(self, text: str) -> None:
        self._session.note(f"{self._place.display}: {text}")
        self._said, self._said_at, self._pause = text, time.monotonic(), NEXT_NEWS

    def close(self) -> None:
        """What was to be said later is no longer true, or of interest."""
        if self._later is not None:
            self._later.cancel()
            self._later.join()
            self._later = None


def parse_goal(text: str) -> Goal:
    kind, _, rest = text.partition("=")
    if kind == "condition" and rest:
        name, _, wanted = rest.partition("=")
        wanted = wanted or "True"
        true = wanted.lower() == "true"
        return Goal("condition met", _condition(name, wanted), of_status=True, condition=name, true=true)
    if kind == "jsonpath" and rest:
        phase = _PHASE.fullmatch(rest)
        wanted = phase[1] if phase else ""
        plain_path = _PLAIN_PATH.match(rest)
        path = tuple(plain_path[1].split(".")) if plain_path else ()
        return Goal(
            "condition met", _jsonpath(rest), of_status=_STATUS.match(rest) is not None, phase=wanted, path=path
        )
    plain = {
        "delete": Goal("deleted", lambda obj: None if obj else Outcome("deleted", OK), absent_ok=True),
        "create": Goal("created", lambda obj: Outcome("created", OK) if obj else None, absent_ok=True),
        "finished": finished_goal(),
    }
    if text in plain:
        return plain[text]
    why = "it is condition=TYPE[=VALUE], jsonpath=PATH[=VALUE], delete, create or finished"
    if text.lower() in ENDED:
        raise UsageError(f"--for={text} is not understood", why=why, next="pdc wait KIND/NAME --for=finished")
    meant = question(kind, ("condition", "jsonpath", *plain))
    following = USAGE if meant or not text.isalpha() else f"pdc wait KIND/NAME --for=condition={text}"
    raise UsageError(f"--for={text} is not understood", why=f"{why}; {meant}" if meant else why, next=following)


def finished_goal() -> Goal:
    return _goal_of("finished", outcome.finished)


def settled_goal(*, changed: bool = True) -> Goal:
    """What `apply --wait` waits for (`outcome.settled`)."""
    return _goal_of("ready", partial(outcome.settled, changed=changed))


def _goal_of(text: str, judge: Callable[[Object], Outcome | None]) -> Goal:
    """An object that is deleted meanwhile ends the wait; one that never was is an error (`wait_for`)."""
    return Goal(text, lambda obj: GONE if obj is None else judge(obj), absent_ok=True)


def missing(place: ObjectRef) -> CliError:
    return CliError(
        f"{place} does not exist",
        next=f"pdc get {place.resource.plural}",
        exit_code=NOT_FOUND,
        missing=(place.name, (place.resource.full_name,)),
    )


def _condition(name: str, wanted: str) -> Check:
    def check(obj: Object | None) -> Outcome | None:
        entry = outcome.condition(obj or {}, name)
        if entry is None or str(entry.get("status", "")).lower() != wanted.lower():
            return None
        seen = entry.get("observedGeneration")
        current = ((obj or {}).get("metadata") or {}).get("generation")
        stale = seen is not None and current is not None and int(seen) < int(current)
        return None if stale else Outcome("met", OK, str(entry.get("message") or ""))

    return check


def _jsonpath(text: str) -> Check:
    expression, wanted = text, None
    closing = text.rfind("}")
    head, equals, tail = (text[: closing + 1], *text[closing + 1 :].partition("=")[1:])
    if closing < 0:
        head, equals, tail = text.rpartition("=") if "=" in text else (text, "", "")
    if equals:
        expression, wanted = head, tail.strip("'\"")
    find = output.path(expression)

    def check(obj: Object | None) -> Outcome | None:
        from paddlecloud.kube.templates.jsonpath import to_text

        found = find(obj or {})
        met = bool(found) if wanted is None else any(to_text(value) == wanted for value in found)
        return Outcome("met", OK, "") if met else None

    return check


def _places(session: Session, args: argparse.Namespace) -> list[ObjectRef]:
    api = session.api
    places = []
    for target in targets.resolve(api, targets.with_jobs(api, args.words, session.namespace), usage=USAGE):
        namespace = session.namespace if target.resource.namespaced else None
        if target.names:
            places += [ObjectRef(target.resource, name, namespace) for name in target.names]
        elif args.all or args.selector or args.field_selector:
            listing = api.client.list(
                target.resource, namespace, label_selector=args.selector, field_selector=args.field_selector
            )
            places += [of_object(target.resource, obj) for obj in api.do(listing).items]
        else:
            raise UsageError("name the objects to wait for, or give -l or --all", next=USAGE)
    if not places:
        raise CliError("no objects match", next="pdc get " + " ".join(args.words), exit_code=NOT_FOUND)
    return places
