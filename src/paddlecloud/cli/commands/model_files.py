"""`pdc model push`, `pull`, `diff`, `verify` and `gc`: what moves or reads the files of models."""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from paddlecloud.api.model.signature import Signature
from paddlecloud.cli.control_characters import visible
from paddlecloud.cli.failures import ERROR, OK, UsageError
from paddlecloud.cli.objects import targets
from paddlecloud.cli.objects.model_store import attempting, place_of
from paddlecloud.cli.render import output
from paddlecloud.cli.render.progress import Meter
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import PADDLEJOBS
from paddlecloud.kube.sizes import size
from paddlecloud.kube.times import human_duration, rfc3339
from paddlecloud.kube.wording import number_of
from paddlecloud.modelhub import catalogue, garbage, job_origin, manifest, signature, verification
from paddlecloud.modelhub.comparison import Comparison, compare
from paddlecloud.modelhub.job_origin import Recorded
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import Pushed
from paddlecloud.sdk import model_objects, model_transfer

FORMATS = ("", *output.STRUCTURED)
METRIC = "--metric accuracy=0.93"
PUSH_HELP = "pdc model --help"


def push(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    name, path = args.names
    quiet = bool(fmt.name)
    with attempting(f"push {name}"):
        place = place_of(session)
        known = _of_job(session, args.from_job) if args.from_job else Recorded({}, {})
        measured = {key: _number(key, text) for key, text in _pairs(args.metric, "--metric", METRIC).items()}
        facts = Facts(
            session.api.do(model_objects.user_name(place.client)),
            rfc3339(time.time()),
            args.framework,
            {**known.metrics, **measured},
            {**known.origin, **_pairs(args.origin, "--origin", "--origin job=train")},
            args.description,
            _declared(args.signature) if args.signature else None,
        )
        done = session.api.do(model_transfer.push(
            place, name, Path(path), facts, alias=args.alias, reason=args.reason,
            reading=Meter("reading", quiet=quiet).add,
            progress=lambda total: Meter("pushing", total=total, quiet=quiet).add,
        ))  # fmt: skip
    if fmt.name:
        report = {**manifest.shown(done.manifest), "created": done.created, "uploadedBytes": done.uploaded}
        output.print_report(session, "ModelPush", report)
    else:
        session.print(_pushed(done))
    return OK


def _declared(file: Path) -> Signature:
    try:
        return signature.declared(file.read_bytes())
    except OSError as error:
        raise UsageError(f"--signature {file} cannot be read", why=str(error.strerror), next=PUSH_HELP) from error


def _of_job(session: Session, text: str) -> Recorded:
    """What there is to record of a job, with the user's rights."""
    client = session.api.client
    job = session.api.do(client.get(PADDLEJOBS, targets.name_in(session.api, text, PADDLEJOBS), session.namespace))
    found = session.api.do(job_origin.of_job(client, job, namespace=session.namespace))
    for what in found.missing:
        session.warn(f"not recorded: {what}")
    return found


def _pushed(done: Pushed) -> str:
    stored = done.manifest
    shown = f"{stored.model}:{stored.version}"
    if not done.created:
        return f"{shown} is there already, with the same files ({stored.digest[:19]}…)"
    what = f"{number_of(len(stored.files), 'file')}, {size(stored.size)}, {size(done.uploaded)} uploaded"
    return f"{shown} pushed: {what} ({stored.digest[:19]}…)"


def pull(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"pull {args.names[0]}"):
        place = place_of(session)
        stored = session.api.do(model_transfer.find(place, args.names[0]))
        target = Path(args.names[1] if len(args.names) > 1 else stored.model)
        meter = Meter("pulling", total=stored.size, quiet=bool(fmt.name))
        done = session.api.do(model_transfer.pull(place, stored, target, meter.add))
    if fmt.name:
        report = {**manifest.shown(stored), "folder": str(done.folder.absolute()), "fetchedBytes": done.fetched}
        output.print_report(session, "ModelPull", report)
    else:
        shown = f"{stored.model}:{stored.version}"
        session.print(f"{shown} is in {done.folder}: {size(done.fetched)} fetched, every file verified")
    return OK


def diff(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"compare {' and '.join(args.names)}"):
        place = place_of(session)
        before, after = (session.api.do(model_transfer.find(place, name)) for name in args.names)
    found = compare(before, after)
    shown = [f"{one.model}:{one.version}" for one in (before, after)]
    if fmt.name:
        digests = {"beforeDigest": before.digest, "afterDigest": after.digest}
        output.print_report(session, "ModelDiff", {"before": shown[0], "after": shown[1], **digests, **found.report()})
    else:
        _print_comparison(session, shown, found)
    return OK


def _print_comparison(session: Session, shown: list[str], found: Comparison) -> None:
    session.print(" → ".join(shown))
    if found.files:
        rows = [(one.change, one.path, _bytes(one.before), _bytes(one.after)) for one in found.files]
        session.print(render(("change", "file", "before", "after"), rows))
    session.print(f"{number_of(found.unchanged, 'file')} unchanged")
    if found.metrics:
        metrics = [
            (one.name, _figure(one.before), _figure(one.after), _figure(one.difference, "+g")) for one in found.metrics
        ]
        session.print()
        session.print(render(("metric", "before", "after", "difference"), metrics))
    if found.facts:
        facts = [(one.name, visible(one.before or "<none>"), visible(one.after or "<none>")) for one in found.facts]
        session.print()
        session.print(render(("origin", "before", "after"), facts))


def _bytes(count: int | None) -> str:
    return "<none>" if count is None else size(count)


def _figure(value: float | None, form: str = "g") -> str:
    return "<none>" if value is None else format(value, form)


def verify(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting("verify models"):
        place = place_of(session)
        if args.names:
            wanted = [session.api.do(model_transfer.find(place, args.names[0]))]
        else:
            keys = sorted(catalogue.versions(place.files(), place.namespace))
            wanted = [catalogue.get(place.files(), which) for which in keys]
        meter = Meter("verifying", total=sum(one.size for one in wanted), quiet=bool(fmt.name))
        faults = [(one, fault) for one in wanted for fault in verification.verify(place.files(), one, meter.add)]
    if fmt.name:
        items = [{"model": one.model, "version": one.version, "path": f.path, "what": f.what} for one, f in faults]
        output.print_report(session, "ModelVerification", {"versions": len(wanted), "faults": items})
    elif faults:
        rows = [(f"{one.model}:{one.version}", fault.path, fault.what) for one, fault in faults]
        session.print(render(("version", "file", "fault"), rows))
        session.note("next:  pdc model push NAME:VERSION PATH with the same files restores what is missing")
    else:
        session.print(f"{number_of(len(wanted), 'version')} verified: every file is as its digest says")
    return ERROR if faults else OK


def gc(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting("collect garbage", next="pdc model verify"):
        place = place_of(session)
        if args.nobody_pushes and not args.dry_run:
            session.confirm("Remove all files that no version names, on your word that nobody pushes now?")
        grace = args.grace
        done = garbage.collect(place.files(), grace=grace, nobody_pushes=args.nobody_pushes, dry_run=args.dry_run)
    if fmt.name:
        body: dict[str, Any] = {key: value for key, value in vars(done).items() if not key.endswith("_bytes")}
        body |= {"keptBytes": done.kept_bytes, "markedBytes": done.marked_bytes, "removedBytes": done.removed_bytes}
        output.print_report(session, "ModelGarbageCollection", {**body, "dryRun": args.dry_run})
        return OK
    would = "would be " if args.dry_run else ""
    session.print(
        f"{number_of(done.versions, 'version')} with {number_of(done.kept, 'file')} ({size(done.kept_bytes)})"
    )
    session.print(f"{_files(done.removed, done.removed_bytes)} {would}removed")
    if done.marked:
        marked = f"{_files(done.marked, done.marked_bytes)} {would}marked"
        session.print(f"{marked}: a run after {human_duration(args.grace)} removes what is marked")
    if done.young:
        session.print(f"{number_of(done.young, 'file')} too young to judge: a push may be running")
    return OK


def _files(count: int, total: int) -> str:
    return f"{number_of(count, 'file')} ({size(total)})"


def _pairs(given: list[str], flag: str, example: str) -> dict[str, str]:
    found = {}
    for text in given:
        key, equals, value = text.partition("=")
        if not (key and equals and value):
            form = "NAME=VALUE" if flag == "--metric" else "NAME=TEXT"
            raise UsageError(f"{flag} takes {form}, as {example}", why=f"{text!r} has another form", next=PUSH_HELP)
        found[key] = value
    return found


def _number(key: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        why = f"a number is expected after {key}=, not {text!r}"
        raise UsageError(f"--metric takes NAME=VALUE, as {METRIC}", why=why, next=PUSH_HELP) from None
