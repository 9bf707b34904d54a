"""Every example, the manual's own YAML among them, is accepted as it stands."""

from __future__ import annotations

import jsonschema
import pytest

from paddlecloud.api import catalogue, kubeflow, paddlejob
from paddlecloud.api.problems import encode
from paddlecloud.api.schema import root_schema

from . import structural
from .examples import OURS, ROOT, Example, all_examples

each_example = pytest.mark.parametrize("example", OURS, ids=str)


@each_example
def test_example_satisfies_the_schema_of_its_crd(example: Example) -> None:
    kind = catalogue.find(example.object["apiVersion"], example.object["kind"])
    assert kind is not None
    jsonschema.validate(example.object, structural.as_json_schema(root_schema(kind)))


@each_example
def test_example_has_no_field_that_a_strict_server_would_refuse(example: Example) -> None:
    kind = catalogue.find(example.object["apiVersion"], example.object["kind"])
    assert kind is not None
    assert list(structural.unknown_fields(example.object, root_schema(kind))) == []


@each_example
def test_example_is_read_and_written_back_without_loss(example: Example) -> None:
    assert example.module is not None
    assert encode(example.module.decode(example.object)) == example.object


@each_example
def test_example_can_run(example: Example) -> None:
    module = example.module
    assert module is not None
    read = module.decode(example.object)
    if module is kubeflow:
        module, read = paddlejob, kubeflow.convert(read)
    if hasattr(module, "validate"):
        assert module.validate(read) == []
        assert module.normalise(read).settings.name == example.object["metadata"]["name"]


WARNED = {
    "manual/data-storage.yaml": "cleanPolicy",
    "paddlejob/deepfm.yaml": "OnFailed",
    "paddlejob/wide-and-deep-podip.yaml": "Nerver",
    "paddlejob/wide-and-deep-service.yaml": "Nerver",
    "paddlejob/pipeline.yaml": "withGloo",
}


def test_only_the_examples_with_odd_spellings_are_warned_about() -> None:
    found = {}
    for example in OURS:
        module = example.module
        if module is not None and hasattr(module, "normalise"):
            warnings = module.normalise(module.decode(example.object)).warnings
            if warnings:
                found[example.path] = " ".join(warnings)
    assert found.keys() == WARNED.keys()
    assert all(word in found[path] for path, word in WARNED.items())


def test_every_file_says_what_it_is() -> None:
    for path in ROOT.rglob("*.yaml"):
        first = path.read_text(encoding="utf-8").splitlines()[0]
        assert first.startswith("# "), path
        if "manual" in path.parts:
            assert first.startswith("# The manual, verbatim: "), path


def test_there_are_examples_of_every_kind() -> None:
    kinds = {(example.object["apiVersion"], example.object["kind"]) for example in all_examples()}
    for declared in catalogue.KINDS:
        assert (declared.api_version, declared.kind) in kinds
