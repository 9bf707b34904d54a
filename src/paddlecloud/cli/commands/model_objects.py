"""`pdc model ls`, `show`, `tag` and `rm`: models and versions as objects of the API server."""

from __future__ import annotations

import argparse
import time
from typing import Any

from paddlecloud.api.model import aliases, reference
from paddlecloud.api.problems import encode
from paddlecloud.cli.failures import NOT_FOUND, OK, CliError, UsageError
from paddlecloud.cli.objects.model_store import attempting, place_of
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.kube.resource import MODELS, Object
from paddlecloud.kube.sizes import size
from paddlecloud.kube.times import human_duration, parse_rfc3339, rfc3339
from paddlecloud.sdk import models

FORMATS = ("", *output.STRUCTURED)


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
             _age(row["createdAt"]))
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
            _age(str(obj["spec"].get("createdAt") or obj["metadata"]["creationTimestamp"])),
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
    pointing = aliases.aliases_of(spec, version)
    moves = [move for move in reversed(spec.moves or ()) if version in (move.to, move.previous)]
    if fmt.name:
        listed = [encode(move) for move in moves]
        output.print_report(session, "ModelVersion", {**obj["spec"], "aliases": pointing, "moves": listed})
        return OK
    _print_version(session, obj, pointing)
    if changed := [alias for alias in aliases.unrecorded(spec) if alias in pointing]:
        session.warn(f"no move says that {' and '.join(changed)} points here: somebody changed the Model by hand")
    if moves:
        rows = [(m.at, m.alias, m.previous or "<none>", m.to, m.by, m.reason or "") for m in moves]
        session.print()
        session.print(render(("moved at", "alias", "from", "to", "by", "reason"), rows))
    return OK


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


def tag(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    text, alias = args.names
    with attempting(f"point {alias} to {text}"):
        wanted = reference.parse(text)
        reference.alias_name(alias)
        client, namespace = session.api.client, session.namespace
        version = session.api.do(models.resolve(client, namespace, wanted))
        by = session.api.do(models.user_name(client))
        moving = models.move_alias(
            client, namespace, wanted.model, alias, version, by=by, at=rfc3339(time.time()), reason=args.reason
        )
        _, before = session.api.do(moving)
    if fmt.name:
        body = {"model": wanted.model, "alias": alias, "previous": before or None, "version": version, "by": by}
        output.print_report(session, "ModelTag", {**body, "moved": before != version})
    elif before == version:
        session.print(f"{wanted.model}@{alias} is {version} already")
    else:
        session.print(f"{wanted.model}@{alias} is now {version}" + (f"; it was {before}" if before else ""))
        if before:
            session.note(f"back:  pdc model tag {wanted.model}:{before} {alias}{session.namespace_flag} --reason TEXT")
    return OK


def rm(session: Session, args: argparse.Namespace) -> int:
    from paddlecloud.sdk import model_transfer

    fmt = output.parse_format(args.output, FORMATS)
    text = args.names[0]
    model, colon, version = text.partition(":")
    if "@" in text:
        why = "an alias is a pointer"
        raise UsageError("a version is removed by its own name", why=why, next=f"pdc model show {text}")
    with attempting(f"remove {text}", next=f"pdc model ls {model}"):
        place = place_of(session)
        every = "" if colon else " with all its versions, aliases and their history"
        session.confirm(f"Remove {text}{every}?")
        removed = session.api.do(model_transfer.remove(place, text, force=args.force))
    if colon and not removed:
        raise CliError(
            f"model {model} has no version {version} in namespace {session.namespace}",
            next=f"pdc model ls {model}",
            exit_code=NOT_FOUND,
        )
    if fmt.name:
        output.print_report(session, "ModelRemoval", {"model": model, "versions": removed})
    else:
        session.print(f"{text} removed; `pdc model gc` frees the space of files that no other version has")
    return OK


def _age(at: str) -> str:
    try:
        return human_duration(time.time() - parse_rfc3339(at))
    except ValueError:
        return "<unknown>"
