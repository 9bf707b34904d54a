"""What can be run in the files of Argo's module, and what each run needs beside it. Pure but for reading the files.

A case is one Workflow. A WorkflowTemplate with an entrypoint and a CronWorkflow give one too, the one that `argo submit
--from` makes of them. Templates and ConfigMaps that a workflow names are found by their names, nearest file first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

Object = dict[str, Any]

GROUP = "argoproj.io/v1alpha1"
FOLDERS = ("examples", "test/e2e/smoke", "test/e2e/functional", "test/e2e/expectedfailures", "test/e2e/testdata")
"""Of the module. The other folders of its tests hold manifests, or workflows that a test changes first."""
_NEEDED = ("WorkflowTemplate", "ClusterWorkflowTemplate", "ConfigMap", "PersistentVolumeClaim", "ResourceQuota")
_PARAMETERS = "examples/configmaps/simple-parameters-configmap.yaml"
"""Argo's own run of its examples applies it before each."""


class Case(NamedTuple):
    name: str
    """The path in the module; with the object's name behind it where the file has several."""
    workflow: Object
    needs: tuple[Object, ...]
    """What is created first."""
    labelled: bool
    """Argo's own tests run it and expect success."""


class _Document(NamedTuple):
    file: str
    body: Object

    @property
    def key(self) -> tuple[str, str]:
        return str(self.body.get("kind")), str(self.body.get("metadata", {}).get("name", ""))


def cases(module: Path) -> list[Case]:
    documents = list(_documents(module))
    there = [each for each in documents if each.key[0] in _NEEDED]
    found = []
    for file in dict.fromkeys(each.file for each in documents):
        runnable = [(each, made) for each in documents if each.file == file and (made := _workflow(each.body))]
        for each, made in runnable:
            name = file if len(runnable) == 1 else f"{file}#{_title(each.body)}"
            labelled = "workflows.argoproj.io/test" in (each.body["metadata"].get("labels") or {})
            found.append(Case(name, made, tuple(_needs(each, made, there)), labelled))
    return found


def _documents(module: Path) -> Iterator[_Document]:
    for folder in FOLDERS:
        for path in sorted((module / folder).rglob("*.yaml")):
            try:
                bodies = list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
            except yaml.YAMLError:
                continue  # one of them is there to be refused by every parser
            for body in bodies:
                if isinstance(body, dict) and isinstance(body.get("metadata"), dict):
                    yield _Document(path.relative_to(module).as_posix(), body)


def _title(body: Object) -> str:
    metadata = body["metadata"]
    return str(metadata.get("name") or metadata.get("generateName", "").rstrip("-"))


def _workflow(body: Object) -> Object | None:
    spec = body.get("spec") or {}
    if body.get("kind") == "Workflow":
        return body
    made = {"apiVersion": GROUP, "kind": "Workflow", "metadata": {"generateName": f"{_title(body)}-"}}
    if body.get("kind") == "CronWorkflow":
        return {**made, "spec": spec.get("workflowSpec") or {}}
    if body.get("kind") in ("WorkflowTemplate", "ClusterWorkflowTemplate") and _complete(spec):
        named = {"name": body["metadata"].get("name"), **({"clusterScope": True} if "Cluster" in body["kind"] else {})}
        return {**made, "spec": {"workflowTemplateRef": named}}
    return None


def _complete(spec: Object) -> bool:
    """Whether a template can be run as it stands."""
    given = (spec.get("arguments") or {}).get("parameters") or ()
    return bool(spec.get("entrypoint")) and all("value" in each or "valueFrom" in each for each in given)


def _needs(document: _Document, workflow: Object, there: list[_Document]) -> Iterator[Object]:
    """What the workflow names, and what that names in turn; what its file holds beside it, and Argo's own ConfigMap."""
    wanted, seen = [*_references(workflow)], set()
    beside = [each for each in there if each.file in (document.file, _PARAMETERS) and each.body is not workflow]
    for each in beside:
        seen.add(each.key)
        wanted += _references(each.body)
        yield each.body
    while wanted:
        key = wanted.pop()
        if key in seen:
            continue
        seen.add(key)
        found = [each for each in there if each.key == key]
        if found:
            nearest = max(found, key=lambda each: (_shared(each.file, document.file), each.file))
            wanted += _references(nearest.body)
            yield nearest.body


def _shared(one: str, other: str) -> int:
    """How many folders two paths have in common."""
    pairs = zip(one.split("/")[:-1], other.split("/")[:-1], strict=False)
    return next((number for number, (left, right) in enumerate(pairs) if left != right), len(one.split("/")))


def _references(value: object) -> Iterator[tuple[str, str]]:
    if isinstance(value, list):
        for each in value:
            yield from _references(each)
    if not isinstance(value, dict):
        return
    for field, each in value.items():
        if field in ("workflowTemplateRef", "templateRef") and isinstance(each, dict):
            yield ("ClusterWorkflowTemplate" if each.get("clusterScope") else "WorkflowTemplate", str(each.get("name")))
        elif field in ("configMapKeyRef", "configMapRef", "configMap") and isinstance(each, dict):
            yield ("ConfigMap", str(each.get("name")))
        elif field == "persistentVolumeClaim" and isinstance(each, dict):
            yield ("PersistentVolumeClaim", str(each.get("claimName")))
        else:
            yield from _references(each)
