"""Output formats: what `-o` accepts and how objects and reports are written in each of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from paddlecloud.cli.control_characters import in_json
from paddlecloud.cli.failures import UsageError
from paddlecloud.cli.session import Session
from paddlecloud.kube.nearest import nearest
from paddlecloud.kube.resource import Object
from paddlecloud.kube.wording import cause_of

STRUCTURED = ("json", "yaml", "jsonpath", "go-template", "go-template-file")
"""What every command can print, because it needs no knowledge of the kind."""
OBJECTS = (*STRUCTURED, "name", "custom-columns")
TABLES = ("", "wide", *OBJECTS)
EXPRESSIONS = {
    "jsonpath": "jsonpath='{.metadata.name}'",
    "custom-columns": "custom-columns=NAME:.metadata.name",
    "go-template": "go-template='{{.metadata.name}}'",
    "go-template-file": "go-template-file=FILE",
}
"""Formats that take an expression, each with an example."""


class Format(NamedTuple):
    name: str
    argument: str = ""

    @property
    def is_table(self) -> bool:
        return self.name in ("", "wide")


def parse_format(text: str, allowed: Sequence[str]) -> Format:
    name, equals, argument = text.partition("=")
    if name not in allowed:
        shown = ", ".join(f"{one}=…" if one in EXPRESSIONS else one for one in allowed if one)
        meant = nearest(name, [one for one in allowed if one])
        why = f"this command prints {shown}" + (f'; did you mean "{meant}"?' if meant else "")
        raise UsageError(f'-o "{text}" is not offered here', why=why, next=f"-o {meant or 'json'}")
    if name in EXPRESSIONS and not argument:
        raise UsageError(f"-o {name} needs an expression", next=f"-o {EXPRESSIONS[name]}")
    if equals and name not in EXPRESSIONS:
        raise UsageError(f"-o {name} takes no expression", next=f"-o {name}")
    return Format("go-template", _read(argument)) if name == "go-template-file" else Format(name, argument)


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f'cannot read "{path}"', why=cause_of(error), next=f"ls -l {path}") from error


def check(fmt: Format) -> None:
    """Refuse a faulty expression before anything is sent."""
    if fmt.name == "jsonpath":
        _template(fmt.argument, {})
    elif fmt.name == "custom-columns":
        _columns(fmt.argument)
    elif fmt.name == "go-template":
        _go_template(fmt.argument)


def path(expression: str) -> Callable[[Any], list[Any]]:
    """A compiled JSONPath; a mistake in it is a usage error."""
    from paddlecloud.kube.templates import jsonpath

    try:
        return jsonpath.compile(expression)
    except jsonpath.JsonPathError as error:
        raise UsageError(
            f"{expression!r} is not a JSONPath", why=str(error), next="-o jsonpath='{.metadata.name}'"
        ) from error


def print_objects(session: Session, objects: Sequence[Object], fmt: Format, *, single: bool) -> None:
    """`single` says that one object was asked for by name, so that it is printed bare and not in a List."""
    if fmt.name == "name":
        for obj in objects:
            session.print(name_of(obj))
    elif fmt.name == "custom-columns":
        _print_columns(session, objects, fmt.argument)
    elif single and len(objects) == 1:
        print_value(session, objects[0], fmt)
    else:
        items = {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": list(objects)}
        print_value(session, items, fmt)


def print_report(session: Session, kind: str, body: dict[str, Any]) -> None:
    """An answer of pdc's own, under its versioned schema."""
    print_value(session, session.report(kind, body), parse_format(session.args.output, STRUCTURED))


def print_value(session: Session, value: Any, fmt: Format) -> None:
    if fmt.name == "json":
        session.print_data(to_json(value))
    elif fmt.name == "yaml":
        from paddlecloud.kube.yamlio import dump

        session.print_data(dump(value))
    elif fmt.name == "go-template":
        sys.stdout.write(_go_template(fmt.argument, value))  # the template says where lines end, as with kubectl
    else:
        session.print_data(_template(fmt.argument, value))


def to_json(value: Any) -> str:
    import json

    return in_json(json.dumps(value, indent=4, ensure_ascii=False))


def to_json_line(value: Any) -> str:
    import json

    return in_json(json.dumps(value, ensure_ascii=False, separators=(",", ":")))


def name_of(obj: Object) -> str:
    """`pod/x`, `paddlejob.batch.paddlepaddle.org/x`."""
    group, slash, _ = str(obj.get("apiVersion", "")).partition("/")
    suffix = f".{group}" if slash else ""
    return f"{str(obj.get('kind', '')).lower()}{suffix}/{obj['metadata']['name']}"


def without_managed_fields(obj: Object) -> Object:
    if "managedFields" not in (obj.get("metadata") or {}):
        return obj
    meta = {key: value for key, value in obj["metadata"].items() if key != "managedFields"}
    return {**obj, "metadata": meta}


def sort_key(expression: str) -> Callable[[Object], tuple[int, Any]]:
    """Orders objects by a value in them: numbers by size, text by alphabet, objects without it first."""
    find = path(expression)

    def key(obj: Object) -> tuple[int, Any]:
        found = find(obj)
        value = found[0] if found else None
        if value is None:
            return 0, 0
        if isinstance(value, (int, float)):
            return 1, value
        return 2, str(value)

    return key


def _template(text: str, value: Any) -> str:
    from paddlecloud.kube.templates import jsonpath

    try:
        # A bare path is accepted for a template, as kubectl does.
        return jsonpath.Template(text if "{" in text else f"{{{text}}}").render(value)
    except jsonpath.JsonPathError as error:
        raise UsageError(
            f"{text!r} is not a JSONPath", why=str(error), next="-o jsonpath='{.metadata.name}'"
        ) from error


def _go_template(text: str, *values: Any) -> str:
    """The text for a value; without one the template is only read."""
    from paddlecloud.kube.templates import gotemplate

    try:
        template = gotemplate.GoTemplate(text)
        return "".join(template.render(value) for value in values)
    except gotemplate.GoTemplateError as error:
        what = "cannot be carried out on this" if values else "is not a Go template"
        raise UsageError(f"{text!r} {what}", why=str(error), next="-o go-template='{{.metadata.name}}'") from error


def _print_columns(session: Session, objects: Sequence[Object], spec: str) -> None:
    from paddlecloud.cli.render.table import render
    from paddlecloud.kube.templates import jsonpath

    columns = _columns(spec)
    rows = [[",".join(map(jsonpath.to_text, find(obj))) or None for _, find in columns] for obj in objects]
    headers = not getattr(session.args, "no_headers", False)
    if rows or headers:
        session.print(render([header for header, _ in columns], rows, headers=headers))


def _columns(spec: str) -> list[tuple[str, Callable[[Any], list[Any]]]]:
    columns = []
    for part in spec.split(","):
        header, colon, expression = part.partition(":")
        if not (header and colon and expression):
            raise UsageError(f'"{part}" is not HEADER:PATH', next="-o custom-columns=NAME:.metadata.name")
        columns.append((header, path(expression)))
    return columns
