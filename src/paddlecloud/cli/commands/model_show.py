"""`pdc model show`: a version with its origin, the moves of its aliases, and what retention does with it."""

from __future__ import annotations

import argparse
import time
from typing import Any

from paddlecloud.api.model import aliases, reference
from paddlecloud.api.model.signature import Signature
from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.api.problems import encode
from paddlecloud.cli.failures import OK
from paddlecloud.cli.objects.model_store import attempting
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import Object
from paddlecloud.kube.sizes import size
from paddlecloud.kube.times import human_duration, rfc3339
from paddlecloud.modelhub import retention, signature
from paddlecloud.modelhub.retention import RetentionVerdict
from paddlecloud.sdk import model_objects

FORMATS = ("", *output.STRUCTURED)
SHOWN = 5
"""Versions that retention removes next, as `show` lists them."""


def show(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"show {args.names[0]}"):
        wanted = reference.parse(args.names[0])
        client, namespace = session.api.client, session.namespace
        version = session.api.do(model_objects.resolve(client, namespace, wanted))
        obj = session.api.do(model_objects.get_version(client, namespace, wanted.model, version))
        spec = model_objects.spec_of(session.api.do(model_objects.find_model(client, namespace, wanted.model)))
        kept = session.api.do(retained(client, namespace, wanted.model, spec)) if spec.retention else []
    pointing = aliases.aliases_of(spec, version)
    moves = aliases.moves_about(spec, version)
    if fmt.name:
        listed = [encode(move) for move in moves]
        report = {**obj["spec"], "aliases": pointing, "moves": listed}
        if kept and spec.retention:
            report["retention"] = {**encode(spec.retention), "versions": [_verdict(each) for each in kept]}
        output.print_report(session, "ModelVersion", report)
        return OK
    _print_version(session, obj, pointing)
    if changed := [alias for alias in aliases.unrecorded(spec) if alias in pointing]:
        session.warn(f"no move says that {' and '.join(changed)} points here: somebody changed the Model by hand")
    if kept and spec.retention:
        _print_retention(session, spec.retention, kept, version)
    if moves:
        rows = [(m.at, m.alias, m.previous or "<none>", m.to or "<none>", m.by, m.reason or "") for m in moves]
        session.print()
        session.print(render(("moved at", "alias", "from", "to", "by", "reason"), rows))
    return OK


async def retained(client: Client, namespace: str, model: str, spec: ModelSpec) -> list[RetentionVerdict]:
    """What retention does with each version, newest first."""
    found = await model_objects.versions(client, namespace, model)
    staying = [each for each in found if not each["metadata"].get("deletionTimestamp")]
    return retention.verdicts(model, spec, staying, await model_objects.services(client, namespace))


def _verdict(found: RetentionVerdict) -> dict[str, Any]:
    if found.removed_at is None:
        return {"version": found.version, "kept": found.kept}
    return {"version": found.version, "removedAt": rfc3339(max(found.removed_at, time.time())), "reason": found.reason}


def _print_retention(session: Session, rule: Retention, found: list[RetentionVerdict], version: str) -> None:
    words = [f"the newest {rule.count}"] if rule.count else []
    words += [f"those of the last {rule.age}"] if rule.age else []
    session.print(f"{'Retention:':<13}keeps {' and '.join(words)}")
    for each in found:
        if each.version == version and each.kept:
            session.print(f"{'':<13}keeps {version}: {each.kept}")
    coming = sorted((each for each in found if each.removed_at is not None), key=lambda each: each.removed_at or 0.0)
    for each in coming[:SHOWN]:
        left = (each.removed_at or 0.0) - time.time()
        when = f"in {human_duration(left)}" if left > 0 else "now"
        session.print(f"{'':<13}removes {each.version} {when}: {each.reason}")
    if len(coming) > SHOWN:
        session.print(f"{'':<13}and {len(coming) - SHOWN} more later")


def _print_version(session: Session, obj: Object, pointing: list[str]) -> None:
    spec = obj["spec"]
    known = signature.of_version(obj) or Signature()
    lines: list[tuple[str, Any]] = [
        ("Model", spec["model"]),
        ("Version", spec["version"]),
        ("Aliases", ", ".join(pointing)),
        ("Digest", spec["digest"]),
        ("Files", f"{spec['files']}, {size(int(spec['size']))}"),
        ("Framework", spec.get("framework")),
        ("Inputs", signature.shown(known.inputs)),
        ("Outputs", signature.shown(known.outputs)),
        ("Store", spec.get("store")),
        ("Description", spec.get("description")),
        ("Metrics", ", ".join(f"{name} {value:g}" for name, value in (spec.get("metrics") or {}).items())),
        ("Origin", ", ".join(f"{name} {value}" for name, value in (spec.get("origin") or {}).items())),
        ("Pushed", f"{spec.get('createdAt') or '<unknown>'} by {spec.get('createdBy') or '<unknown>'}"),
    ]
    for name, value in lines:
        if value:
            session.print(f"{name + ':':<13}{value}")
