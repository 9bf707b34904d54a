"""Parameters of workflows, templates and steps: what of them cannot be carried out, by the name of the field. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from paddlecloud.local.workflow.validation.pods import path_problems
from paddlecloud.local.workflow.validation.problems import Problem, forbidden, invalid, invalid_value

_SOURCES = ("path", "parameter", "expression", "default", "configMapKeyRef", "supplied", "jsonPath", "jqFilter")
_UNSERVED = ("event", "raw")


def parameter_problems(parameters: Any, path: str) -> Iterator[Problem]:
    if parameters is None:
        return
    if not isinstance(parameters, list) or not all(isinstance(each, dict) for each in parameters):
        yield invalid(path, "'…': must be a list of parameters with names")
        return
    names = [each.get("name") for each in parameters]
    wrong = [(index, name) for index, name in enumerate(names) if not name or not isinstance(name, str)]
    for index, name in wrong:
        quotes = (
            "; kubectl reads n, y, no, on and their kin so, unless they are in quotes" if name in (True, False) else ""
        )
        yield invalid_value(f"{path}[{index}].name", name, f"must be the name of the parameter{quotes}")
    if wrong:
        return
    for index, parameter in enumerate(parameters):
        source, here = parameter.get("valueFrom"), f"{path}[{index}].valueFrom"
        if source is not None and not isinstance(source, dict):
            yield invalid_value(here, source, "must be a map")
        elif source:
            yield from _source_problems(source, here)
            yield from path_problems(source, here)


def _source_problems(source: Mapping[str, Any], path: str) -> Iterator[Problem]:
    """A field that Argo does not have either is a mistake of the author, and no field that is missing here."""
    for name in source:
        here = f"{path}.{str(name)[:60]}"
        if name in _UNSERVED:
            yield forbidden(here)
        elif name not in _SOURCES:
            known = ", ".join(sorted(_SOURCES))
            yield invalid(here, f"{str(name)[:60]!r}: no such field; choose one of: {known}")
