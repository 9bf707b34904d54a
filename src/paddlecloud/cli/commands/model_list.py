"""`pdc model ls`: models, or the versions of one.

A model may have 10,000 versions and a script may ask often, so this reads of each object what it prints and nothing
else, and imports no more than that needs. `make bench` measures it.
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Mapping
from typing import Any

import msgspec

from paddlecloud.api.model.reference import LATEST, model_name
from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.cli.failures import OK
from paddlecloud.cli.objects.model_store import attempting
from paddlecloud.cli.render import output
from paddlecloud.cli.render.table import render
from paddlecloud.cli.session import Session
from paddlecloud.cli.times import age
from paddlecloud.kube.errors import BadRequest
from paddlecloud.kube.resource import MODELS, MODELVERSIONS, Object
from paddlecloud.kube.sizes import size

FORMATS = ("", "name", *output.STRUCTURED)


class _Meta(msgspec.Struct, rename="camel", gc=False):
    name: str
    namespace: str
    creation_timestamp: str


class _Spec(msgspec.Struct, rename="camel", gc=False):
    """What a table shows of a version."""

    model: str
    version: str
    size: int = 0
    files: int = 0
    framework: str | None = None
    created_by: str | None = None
    created_at: str | None = None


class _Listed(msgspec.Struct, gc=False):
    metadata: _Meta
    spec: _Spec


class _Page(msgspec.Struct):
    items: list[_Listed] = []


class _Whole(msgspec.Struct):
    spec: dict[str, Any]


class _WholePage(msgspec.Struct):
    items: list[_Whole] = []


def ls(session: Session, args: argparse.Namespace) -> int:
    fmt = output.parse_format(args.output, FORMATS)
    with attempting("list models"):
        return _versions(session, args.names[0], fmt) if args.names else _models(session, fmt)


def _models(session: Session, fmt: output.Format) -> int:
    found = session.api.do(session.api.client.list(MODELS, session.scope, limit=500)).items
    sizes: dict[tuple[str, str], list[int]] = {}
    for one in msgspec.json.decode(_read(session, session.scope), type=_Page).items:
        sizes.setdefault((one.metadata.namespace, one.spec.model), []).append(one.spec.size)
    rows = []
    for obj in sorted(found, key=lambda obj: (obj["metadata"]["namespace"], obj["metadata"]["name"])):
        meta = obj["metadata"]
        each = sizes.get((meta["namespace"], meta["name"]), [])
        rows.append({"namespace": meta["namespace"], "name": meta["name"], "versions": len(each), "bytes": sum(each),
                     "aliases": _aliases(obj), "createdAt": meta["creationTimestamp"]})  # fmt: skip
    if fmt.name == "name":
        for row in rows:
            session.print(row["name"])
    elif fmt.name:
        output.print_report(session, "ModelList", {"items": rows})
    elif not rows:
        session.note("No models found")
    else:
        head = ("namespace",) if session.scope is None else ()
        now = time.time()
        session.print(render((*head, "name", "versions", "size", "aliases", "age"), [
            (*([row["namespace"]] if head else []), row["name"], row["versions"], size(row["bytes"]),
             ", ".join(f"{name}={to}" for name, to in sorted(row["aliases"].items())) or "<none>",
             age(row["createdAt"], now))
            for row in rows]))  # fmt: skip
    return OK


def _versions(session: Session, model: str, fmt: output.Format) -> int:
    pointing = _pointing(_aliases(_model(session, model)))
    answer = _read(session, session.namespace, model)
    found = sorted(msgspec.json.decode(answer, type=_Page).items, key=_age_and_name, reverse=True)
    if fmt.name == "name":
        for one in found:
            session.print(f"{model}:{one.spec.version}")
        return OK
    if fmt.name:
        specs = {str(one.spec["version"]): one.spec for one in msgspec.json.decode(answer, type=_WholePage).items}
        order = [one.spec.version for one in found]
        items = [{**specs[version], "aliases": pointing.get(version, [])} for version in order]
        output.print_report(session, "ModelVersionList", {"model": model, "items": items})
        return OK
    now = time.time()
    rows = [
        (
            one.spec.version,
            ", ".join(pointing.get(one.spec.version, ())) or "<none>",
            one.spec.framework or "<none>",
            one.spec.files,
            size(one.spec.size),
            one.spec.created_by or "<unknown>",
            age(one.spec.created_at or one.metadata.creation_timestamp, now),
        )
        for one in found
    ]
    session.print(render(("version", "aliases", "framework", "files", "size", "by", "age"), rows))
    return OK


def _model(session: Session, name: str) -> Object:
    with contextlib.suppress(BadRequest):  # a name that no object can have
        if (found := session.api.do(session.api.client.find(MODELS, name, session.namespace))) is not None:
            return found
    from paddlecloud.sdk import model_objects  # says which name may have been meant

    return session.api.do(model_objects.find_model(session.api.client, session.namespace, model_name(name)))


def _read(session: Session, namespace: str | None, model: str = "") -> bytes:
    query = {"labelSelector": f"{MODEL_LABEL}={model}"} if model else None
    answer = session.api.do(session.api.client.raw("GET", MODELVERSIONS.path(namespace), query=query))
    return answer.body


def _aliases(model: Object) -> dict[str, str]:
    found = (model.get("spec") or {}).get("aliases") or {}
    return {str(alias): str(to) for alias, to in found.items()}


def _pointing(aliases: Mapping[str, str]) -> dict[str, list[str]]:
    """Of each version its aliases; `latest` comes last, since it moves by itself."""
    found: dict[str, list[str]] = {}
    for alias, to in sorted(aliases.items(), key=lambda entry: (entry[0] == LATEST, entry[0])):
        found.setdefault(to, []).append(alias)
    return found


def _age_and_name(one: _Listed) -> tuple[str, str]:
    return one.spec.created_at or "", one.metadata.name
