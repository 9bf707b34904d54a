"""Which fields a tenant could name something foreign with, and what is known of each: the rows of tenant_matrix.yaml.

A field is every place below `spec` of every kind where a free text fits: strings without an enum, or a pattern that
leaves no room for a name, maps of strings, and objects whose inside the schema leaves open. Nothing is guessed from a
field's name. The schemas of Argo's kinds leave the whole spec open: of these it is every field that their validation
accepts, which refuses all others. A mark is every annotation or label that a controller knows by its own name.

A row says one of three things of a field:

- `attack`: values that a tenant tries, and what must come of each (`Attack`);
- `kubernetes`: it goes unchanged into an object of the tenant's own namespace, which Kubernetes' own rules judge;
- `harmless`: it names nothing, or nothing that is anybody else's.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import yaml

import paddlecloud
from paddlecloud.api.catalogue import EMBEDDED_KINDS
from paddlecloud.api.crd import definition
from paddlecloud.kube.resource import Object, Resource
from paddlecloud.local.workflow.validation import admission, artifacts, locks, parameters, pods, templates

FILE = Path(__file__).with_suffix(".yaml")
CLASSES = ("attack", "kubernetes", "harmless")
VERDICTS = ("denied", "refused", "confined")
SOURCES = Path(paddlecloud.__file__).parent
READERS = (
    "api/names.py",
    "controllers",
    "kube/argo.py",
    "local/knative",
    "local/nodes",
    "local/scheduler",
    "local/volumes",
    "local/workflow",
    "local/workloads",
    "pipelines/names.py",
)
"""Whose annotations and labels are looked for."""
_MARK = re.compile(r"(\{GROUP\}|[a-z0-9-]+(\.[a-z0-9-]+)+)/[A-Za-z][A-Za-z.-]*")
_NAMES = ("victim", "victim/data", "/etc", "../victim", "http://127.0.0.1/", "victim:default")
"""What something foreign can be called; a pattern that none of them matches leaves no room for any."""


def fields() -> dict[str, list[str]]:
    """The fields of each kind, by the name of its definition."""
    found: dict[str, list[str]] = {}
    for kind in EMBEDDED_KINDS:
        schema = definition(kind)["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        known = VALIDATED.get(kind.name)
        found[kind.name] = list(_validated(known) if known else _texts(schema["properties"]["spec"], "spec"))
    return found


_TEMPLATE = "spec.templates[]"
_ARTIFACT = f"{_TEMPLATE}.inputs.artifacts[]"
VALIDATED: dict[str, dict[str, Collection[str]]] = {
    "workflows.argoproj.io": {
        "spec": admission._SPEC,
        "spec.synchronization": locks._FIELDS,
        _TEMPLATE: templates._TEMPLATE,
        f"{_TEMPLATE}.synchronization": locks._FIELDS,
        f"{_TEMPLATE}.inputs": templates._INPUTS,
        f"{_TEMPLATE}.inputs.parameters[].valueFrom": parameters._SOURCES,
        _ARTIFACT: artifacts._FIELDS,
        f"{_ARTIFACT}.s3": artifacts._S3,
        f"{_ARTIFACT}.http": artifacts._HTTP,
        f"{_TEMPLATE}.resource": pods._RESOURCE,
        f"{_TEMPLATE}.http": pods._HTTP,
        f"{_TEMPLATE}.containerSet": pods._SET,
        f"{_TEMPLATE}.dag.tasks[]": templates._TASK,
    },
    "cronworkflows.argoproj.io": {"spec": admission._CRON},
}
"""The fields that local/workflow accepts at a place. Steps, outputs and arguments have those of tasks and inputs;
WorkflowTemplates those of workflows."""
VALIDATIONS = (admission, templates, locks, parameters, artifacts, pods)


def _validated(known: Mapping[str, Collection[str]]) -> Iterator[str]:
    for path, names in known.items():
        for name in names:
            place = f"{path}.{name}"
            if not any(other.startswith((f"{place}.", f"{place}[")) or other == place for other in known):
                yield place


def _texts(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    if schema.get("properties"):
        for name, inner in schema["properties"].items():
            yield from _texts(inner, f"{path}.{name}")
        if schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"{path}.*"
    elif "items" in schema:
        yield from _texts(schema["items"], f"{path}[]")
    elif isinstance(schema.get("additionalProperties"), dict):
        yield from _texts(schema["additionalProperties"], f"{path}{{}}")
    elif _is_open(schema):
        yield path


def _is_open(schema: Mapping[str, Any]) -> bool:
    if "enum" in schema or "format" in schema:
        return False
    if "pattern" in schema and not any(re.search(schema["pattern"], name) for name in _NAMES):
        return False
    return schema.get("type") not in ("integer", "number", "boolean")


def marks() -> set[str]:
    """Annotations and labels in the words of the sources; `{GROUP}` is Knative's, or PaddleService's (`{SERVING}`)."""
    found: set[str] = set()
    for reader in READERS:
        place = SOURCES / reader
        for file in place.rglob("*.py") if place.is_dir() else (place,):
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
                text = _text_of(node).replace("{SERVING}", "{GROUP}")
                if text and _MARK.fullmatch(text):
                    found.add(text)
    return found


def _text_of(node: ast.AST) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.FormattedValue):
        return f"{{{ast.unparse(node.value)}}}"
    if isinstance(node, ast.JoinedStr):
        return "".join(_text_of(part) for part in node.values)
    return ""


class Attack(NamedTuple):
    """An object that a tenant creates, or a change that it tries (`verb`), and what must come of it.

    `denied`: the API refuses it with a text like this. `refused`: the object's status or events have such a text.
    `confined`: it is accepted, and the text says why nothing foreign is reached; the canaries show it.
    """

    about: str
    resource: Resource
    body: Object
    verdict: str
    text: str
    verb: str = "create"
    namespace: str = ""
    """Where it is tried: the tenant's own unless it says otherwise; `-` for kinds without one."""


class Matrix:
    def __init__(self) -> None:
        read = yaml.safe_load(FILE.read_text(encoding="utf-8"))
        self.bases: dict[str, Object] = read["bases"]
        self.marks: dict[str, Any] = read["marks"]
        self.objects: list[Object] = read["objects"]
        self.rows: dict[str, dict[str, Any]] = read["fields"]
        for kind, rows in self.rows.items():
            if "like" in rows:
                self.rows[kind] = self.rows[rows["like"]]

    def attacks(self, *, embedded: bool, names: Mapping[str, str]) -> list[Attack]:
        """What is tried on a platform. `names` stand for words in braces."""
        platform = "embedded" if embedded else "cluster"
        kinds = {kind.name: kind for kind in EMBEDDED_KINDS}
        found: list[Attack] = []
        for name, rows in self.rows.items():
            kind = kinds[name]
            if kind.foreign and not embedded:
                continue  # on a cluster they are judged by those whose kinds they are
            resource = Resource(kind.group, kind.versions[0], kind.plural, kind.kind)
            for field, row in rows.items():
                for number, tried in enumerate(row.get("attack", ())):
                    tried = {**tried, **tried.get(platform, {})}
                    base = copy.deepcopy({**self.bases[name], **tried.get("with", {})})
                    spec = _placed({"spec": base}, field, tried["value"])["spec"]
                    title = f"x{len(found)}-{number}"
                    body = {
                        "apiVersion": kind.api_version,
                        "kind": kind.kind,
                        "metadata": {"name": title},
                        "spec": spec,
                    }
                    about = f"{name} {field} = {tried['value']}"
                    found.append(_attack(about, resource, body, tried, names))
        for tried in self.objects:
            tried = {**tried, **tried.get(platform, {})}
            if tried.get("only", platform) != platform:
                continue
            body = copy.deepcopy(tried["object"])
            group, _, version = body["apiVersion"].rpartition("/")
            resource = Resource(group, version, tried["resource"], body["kind"])
            found.append(_attack(tried["about"], resource, body, tried, names))
        return found


def _attack(about: str, resource: Resource, body: Object, tried: Object, names: Mapping[str, str]) -> Attack:
    verdict = next(word for word in VERDICTS if word in tried)
    return Attack(
        _filled(about, names),
        resource,
        _filled(body, names),
        verdict,
        _filled(tried[verdict], names),
        tried.get("verb", "create"),
        _filled(tried.get("namespace", "{own}"), names),
    )


def _placed(obj: Any, path: str, value: Any) -> Any:
    """The object with a value at a path: `[]` is a list's only, or first, member; `{}` a map, which the value is."""
    name, _, rest = path.partition(".")
    if name.endswith("[]"):
        name = name[:-2]
        first = (obj.get(name) or [{}])[0]
        obj[name] = [_placed(first, rest, value) if rest else value]
    elif not rest:
        obj[name.removesuffix("{}")] = value
    else:
        obj[name] = _placed(obj.get(name) or {}, rest, value)
    return obj


def _filled(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, dict):
        return {key: _filled(inner, names) for key, inner in value.items()}
    if isinstance(value, list):
        return [_filled(inner, names) for inner in value]
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace(f"{{{name}}}", text)
    return value
