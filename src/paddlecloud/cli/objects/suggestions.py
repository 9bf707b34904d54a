"""The nearest right word for what a user misspelt: a name, a field, a value. Added to a failure before it is reported.

A name that is right and stands where another kind is expected is answered with KIND/NAME.

It asks the server for names and schemas, so it runs only after something was not found or not accepted. What it cannot
find out leaves the failure as it is.
"""

from __future__ import annotations

import re

from paddlecloud.cli.failures import INVALID, CliError
from paddlecloud.cli.session import Session
from paddlecloud.kube.discovery import UnknownKind
from paddlecloud.kube.errors import ApiError, Forbidden
from paddlecloud.kube.nearest import nearest, question
from paddlecloud.kube.resource import NAMESPACES, Object
from paddlecloud.pipelines.names import RUN_NAME

UNKNOWN_FIELD = re.compile(r'unknown field "([^"]+)"|(\.[\w.\[\]"=:-]+): field not declared in schema')
"""As the API server refuses it: by decoding strictly, or by server-side apply."""


BARE = ("pdj", "pds", "sampleset", "model", "wf")
"""Kinds whose objects people call by their names alone."""
ONE_OBJECT = ("delete", "describe", "explain", "get", "trace")
"""Commands that need nothing but KIND/NAME."""


def add(session: Session, error: Exception) -> None:
    if not isinstance(error, CliError):
        return
    try:
        if error.missing is not None:
            _add_name(session, error, *error.missing)
        elif error.exit_code == INVALID:
            _add_value(error)
        elif isinstance(error.__cause__, UnknownKind) and (word := (error.__cause__.details or {}).get("kind")):
            _add_kind(session, error, str(word))
    except (ApiError, CliError):
        return  # the failure itself is what matters


def _add_name(session: Session, error: CliError, name: str, kinds: tuple[str, ...]) -> None:
    names: set[str] = set()
    generated: dict[str, Object] = {}
    for kind in kinds:
        resource = session.api.entry(kind).resource
        listing = session.api.client.list(resource, session.namespace if resource.namespaced else None, limit=500)
        for obj in session.api.do(listing).items:
            meta: Object = obj["metadata"]
            names.add(str(meta["name"]))
            if stem := _stem(meta):
                generated[stem] = max((generated.get(stem, meta), meta), key=_creation)
    if name in names:
        return  # the name is right: something else of it is missing
    near = "" if name in generated else nearest(name, names)
    if not near and (stem := nearest(name, generated)):  # of `train-x7k2p` nobody types the end
        near = str(generated[stem]["name"])
    if near:
        append(error, f'did you mean "{near}"?')
    else:
        _add_kind(session, error, name, searched=kinds)


def _stem(meta: Object) -> str:
    """What a generated name begins with; of a run of a pipeline, what it is called."""
    called = (meta.get("annotations") or {}).get(RUN_NAME)
    return str(meta.get("generateName") or called or "").rstrip("-")


def _creation(meta: Object) -> str:
    return str(meta.get("creationTimestamp") or "")


def _add_kind(session: Session, error: CliError, name: str, *, searched: tuple[str, ...] = ()) -> None:
    """The objects of that name among other kinds than those that were searched."""
    found, known = [], {session.api.entry(kind).resource for kind in searched}
    for kind in BARE:
        try:
            resource = session.api.entry(kind).resource
            if resource not in known and session.api.do(session.api.client.find(resource, name, session.namespace)):
                found.append(f"{kind}/{name}")
        except ApiError:
            continue  # not installed, or not allowed to be looked at
    if found:
        quoted = " or ".join(f'"{one}"' for one in found)
        append(error, f"did you mean {quoted}?")
    if len(found) == 1 and session.args.command in ONE_OBJECT:
        error.next = f"pdc {session.args.command} {found[0]}"


def _add_value(error: CliError) -> None:
    """`Unsupported value: "Nevr": supported values: "Always", "Never"`, as Kubernetes writes it."""
    for given, listed in re.findall(
        r'Unsupported value: "([^"]*)": supported values: ((?:"[^"]*"(?:, )?)+)', error.why
    ):
        append(error, question(given, re.findall(r'"([^"]*)"', listed)))


def fields_at_fault(error: CliError) -> list[str]:
    """The paths of the fields that a server refuses, as it writes them, each once."""
    refusal = error.__cause__
    causes = ((refusal.details or {}).get("causes") or ()) if isinstance(refusal, ApiError) else ()
    named = [str(cause.get("field") or "") for cause in causes]
    return [path for path in dict.fromkeys((*named, *unknown_fields(error))) if path]


def unknown_fields(error: CliError) -> list[str]:
    """Those of them that the kind does not have."""
    return [one or other for one, other in UNKNOWN_FIELD.findall(error.why)]


def add_fields(session: Session, error: CliError, obj: Object) -> None:
    """For an unknown field of a file the one that was meant, and where its neighbours are documented."""
    paths = unknown_fields(error)
    try:
        for path in paths:
            _add_field(session, error, obj, re.sub(r"\[[^]]*\]", "", path).strip("."), several=len(paths) > 1)
    except ApiError:
        return  # without the schema, the server's own words stand


def _add_field(session: Session, error: CliError, obj: Object, path: str, *, several: bool) -> None:
    from paddlecloud.cli.objects import schema

    resource = session.api.resource_of(obj)
    try:
        schema.descend(schema.fetch(session.api, resource), resource, path.split("."))
    except CliError as unknown:
        error.next = unknown.next
        append(error, f"{path}: {unknown.why}" if several else unknown.why)


def check_namespace(session: Session) -> None:
    """Nothing was found where `-n` said: because there is nothing, or because there is no such namespace?"""
    name = session.args.namespace
    if not name or session.scope is None:
        return
    try:
        session.api.do(session.api.client.get(NAMESPACES, name))
    except Forbidden:
        return  # tenants often may not read namespaces


def append(error: CliError, sentence: str) -> None:
    if sentence and sentence not in error.why:
        error.why = f"{error.why}; {sentence}" if error.why else sentence
