"""Every YAML of the manual is accepted by a strict server, as it stands."""

from __future__ import annotations

import hashlib

import pytest

from unit.api.examples import ROOT, documents

from .conftest import Kubectl

MANUAL = ROOT / "manual"
OBJECTS = sorted(path.name for path in MANUAL.glob("*.yaml") if documents(path))
UPSTREAM = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("paddlejob", "paddleservice", "sampleset", "kubeflow")
    for path in (ROOT / folder).glob("*.yaml")
)

DIGEST = "7153edf9714e7e7f86ac740977c2bbbffe579cee2ada828873fb934a7c25b077"
CONFIGURATION = {
    "ocr-config/train-before.yaml": "SimpleDataSet ./train_data/icdar2015/text_localization/",
    "ocr-config/train-after.yaml": "SimpleDataSet /mnt/",
    "ocr-config/eval-before.yaml": "SimpleDataSet ./train_data/icdar2015/text_localization/",
    "ocr-config/eval-after.yaml": "SimpleDataSet /mnt/",
}


@pytest.mark.parametrize("name", OBJECTS)
def test_yaml_passes_a_strict_server_side_dry_run(shell: Kubectl, name: str) -> None:
    shell("apply", "--dry-run=server", "--validate=strict", "-n", namespace_of(name), "-f", str(MANUAL / name))


@pytest.mark.parametrize("name", OBJECTS)
def test_yaml_passes_a_strict_server_side_apply(shell: Kubectl, name: str) -> None:
    flags = ("--server-side", "--dry-run=server", "--validate=strict")
    shell("apply", *flags, "-n", namespace_of(name), "-f", str(MANUAL / name))


@pytest.mark.parametrize("name", UPSTREAM)
def test_other_examples_pass_a_strict_server_side_dry_run(shell: Kubectl, name: str) -> None:
    namespaces = {document["metadata"].get("namespace", "paddle-system") for document in documents(ROOT / name)}
    flags = ("--dry-run=server", "--validate=strict")
    shell("apply", *flags, "-n", namespaces.pop(), "-f", str(ROOT / name))


@pytest.mark.parametrize("field", ["cleanPodPolice", "worker.replica"])
def test_a_strict_server_does_refuse_what_it_does_not_know(shell: Kubectl, field: str) -> None:
    (job,) = documents(MANUAL / "wide-and-deep.yaml")
    *path, last = field.split(".")
    target = job["spec"]
    for name in path:
        target = target[name]
    target[last] = "Never"
    with pytest.raises(AssertionError, match=f'unknown field "spec.{field}"'):
        shell("create", "--dry-run=server", "--validate=strict", "-n", "paddle-system", "-f", "-", input=job)


@pytest.mark.parametrize(("name", "words"), CONFIGURATION.items())
def test_configuration_of_the_suites_is_kept_as_printed(name: str, words: str) -> None:
    (document,) = documents(MANUAL / name)
    (section,) = document.values()
    assert f"{section['dataset']['name']} {section['dataset']['data_dir']}" == words
    assert documents(MANUAL / "jupyterhub-config.yaml") == []


def test_the_yaml_has_not_been_touched() -> None:
    """The manual's text is what was promised: a change here is a change of the promise."""
    digest = hashlib.sha256()
    for path in sorted(MANUAL.rglob("*.yaml")):
        digest.update(path.relative_to(MANUAL).as_posix().encode() + b"\0" + path.read_bytes())
    assert digest.hexdigest() == DIGEST


def namespace_of(name: str) -> str:
    """The namespace the manual works in: that of the object, or paddle-system."""
    return next(
        (d["metadata"]["namespace"] for d in documents(MANUAL / name) if "namespace" in d["metadata"]),
        "paddle-system",
    )
