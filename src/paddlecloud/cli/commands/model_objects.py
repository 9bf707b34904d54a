"""`pdc model ls` and `show`: models and versions as objects of the API server."""

from __future__ import annotations

import argparse
import time
from typing import Any

from paddlecloud.api.model import aliases, reference
from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.api.problems import encode
from paddlecloud.cli.failures import OK
from paddlecloud.cli.objects.model_store import attempting
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.cli.times import age
from paddlecloud.kube.client import Client
from paddlecloud.kube.resource import MODELS, Object
from paddlecloud.kube.sizes import size
from paddlecloud.kube.times import human_duration, rfc3339
from paddlecloud.modelhub import retention
from paddlecloud.modelhub.retention import RetentionVerdict
from paddlecloud.sdk import models
from paddlecloud.sdk.model_removal import services

FORMATS = ("", *output.STRUCTURED)
SHOWN = 5
"""Versions that retention removes next, as `show` lists them."""


def ls(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting("list models"):
        if args.names:
            return _versions(session, reference.model_name(args.names[0]), fmt)
        found = session.api.do(session.api.client.list(MODELS, session.scope, limit=500)).items
        versions = session.api.do(models.versions(session.api.client, session.scope))
    sizes: dict[tuple[str, str], list[int]] = {}
    for obj in versions:
        key = obj["metadata"]["namespace"], str(obj["spec"]["model"])
        sizes.setdefault(key, []).append(int(obj["spec"].get("size") or 0))
    rows = []
    for obj in sorted(found, key=lambda obj: (obj["metadata"]["namespace"], obj["metadata"]["name"])):
        meta, known = obj["metadata"], models.spec_of(obj).aliases or {}
        each = sizes.get((meta["namespace"], meta["name"]), [])
        rows.append({"namespace": meta["namespace"], "name": meta["name"], "versions": len(each), "bytes": sum(each),
                     "aliases": known, "createdAt": meta["creationTimestamp"]})  # fmt: skip
    if fmt.name:
        output.print_report(session, "ModelList", {"items": rows})
    elif not rows:
        session.note("No models found")
    else:
        head = ("namespace",) if session.scope is None else ()
        columns = (*head, "name", "versions", "size", "aliases", "age")
        session.print(render(columns, [
            (*([row["namespace"]] if head else []), row["name"], row["versions"], size(row["bytes"]),
             ", ".join(f"{name}={to}" for name, to in sorted(row["aliases"].items())) or "<none>",
             age(row["createdAt"], time.time()))
            for row in rows]))  # fmt: skip
    return OK


def _versions(session: Session, model: str, fmt: output.Format) -> int:
    namespace = session.namespace
    spec = models.spec_of(session.api.do(models.find_model(session.api.client, namespace, model)))
    found = session.api.do(models.versions(session.api.client, namespace, model))
    if fmt.name:
        items = [{**obj["spec"], "aliases": aliases.aliases_of(spec, str(obj["spec"]["version"]))} for obj in found]
        output.print_report(session, "ModelVersionList", {"model": model, "items": items})
        return OK
    rows = [
        (
            obj["spec"]["version"],
            ", ".join(aliases.aliases_of(spec, str(obj["spec"]["version"]))) or "<none>",
            obj["spec"].get("framework") or "<none>",
            obj["spec"]["files"],
            size(int(obj["spec"]["size"])),
            obj["spec"].get("createdBy") or "<unknown>",
            age(str(obj["spec"].get("createdAt") or obj["metadata"]["creationTimestamp"]), time.time()),
        )
        for obj in found
    ]
    session.print(render(("version", "aliases", "framework", "files", "size", "by", "age"), rows))
    return OK


def show(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting(f"show {args.names[0]}"):
        wanted = reference.parse(args.names[0])
        client, namespace = session.api.client, session.namespace
        version = session.api.do(models.resolve(client, namespace, wanted))
        obj = session.api.do(models.get_version(client, namespace, wanted.model, version))
        spec = models.spec_of(session.api.do(models.find_model(client, namespace, wanted.model)))
        kept = session.api.do(retained(client, namespace, wanted.model, spec)) if spec.retention else []
    pointing = aliases.aliases_of(spec, version)
    moves = [move for move in reversed(spec.moves or ()) if version in (move.to, move.previous)]
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
    found = await models.versions(client, namespace, model)
    staying = [each for each in found if not each["metadata"].get("deletionTimestamp")]
    return retention.verdicts(model, spec, staying, await services(client, namespace))


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
    lines: list[tuple[str, Any]] = [
        ("Model", spec["model"]),
        ("Version", spec["version"]),
        ("Aliases", ", ".join(pointing)),
        ("Digest", spec["digest"]),
        ("Files", f"{spec['files']}, {size(int(spec['size']))}"),
        ("Framework", spec.get("framework")),
        ("Store", spec.get("store")),
        ("Description", spec.get("description")),
        ("Metrics", ", ".join(f"{name} {value:g}" for name, value in (spec.get("metrics") or {}).items())),
        ("Origin", ", ".join(f"{name} {value}" for name, value in (spec.get("origin") or {}).items())),
        ("Pushed", f"{spec.get('createdAt') or '<unknown>'} by {spec.get('createdBy') or '<unknown>'}"),
    ]
    for name, value in lines:
        if value:
            session.print(f"{name + ':':<13}{value}")
