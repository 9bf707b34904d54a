"""What is wrong with a Model or a ModelVersion that can be seen without a server. Rules of the CRD say most of it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from paddlecloud.api.model import aliases, reference
from paddlecloud.api.model.spec import Model, ModelSpec, ModelVersion
from paddlecloud.api.problems import Problem, declared_problems, invalid, required


def validate(obj: Model | ModelVersion) -> list[Problem]:
    if obj.spec is None:
        return [required("spec", "say which version it is, or which aliases there are")]
    return [*declared_problems(obj.spec, "spec"), *(_of_model(obj) if isinstance(obj, Model) else _of_version(obj))]


def _of_model(model: Model) -> Iterator[Problem]:
    spec = model.spec or ModelSpec()
    yield from _named("metadata.name", model.name, reference.model_name)
    for alias, version in (spec.aliases or {}).items():
        yield from _named(f"spec.aliases[{alias}]", alias, reference.alias_name)
        yield from _named(f"spec.aliases[{alias}]", version, reference.version_name)
    for alias in aliases.unrecorded(spec):
        to = aliases.history(spec, alias)[0].to
        last = f"its last move was to {to}" if to else "its last move removed it"
        yield invalid(f"spec.aliases[{alias}]", (spec.aliases or {})[alias], last)
    if spec.retention is not None and spec.retention.count is None and spec.retention.age is None:
        yield invalid("spec.retention", {}, "say how many versions are kept (count), for how long (age), or both")


def _of_version(version: ModelVersion) -> Iterator[Problem]:
    spec = version.spec
    assert spec is not None
    if spec.version:
        yield from _named("spec.version", spec.version, reference.version_name)
    if spec.model and spec.version and version.name != reference.object_name(spec.model, spec.version):
        yield invalid("metadata.name", version.name, f"must be {reference.object_name(spec.model, spec.version)}")


def _named(field: str, text: str, check: Callable[[str], str]) -> Iterator[Problem]:
    try:
        check(text)
    except reference.BadReference as error:
        yield invalid(field, text, str(error))
