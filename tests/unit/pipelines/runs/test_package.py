"""Compiled pipelines in every form that people have them, and files that are none."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import zipfile

import pytest

from paddlecloud.pipelines.runs.package import MAX_BYTES, PackageError, Parameter, read

WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata:
  generateName: two-steps-
  annotations: {pipelines.kubeflow.org/pipeline_spec: '{"name": "two steps", "description": "d"}'}
spec:
  entrypoint: main
  arguments: {parameters: [{name: msg, value: hello}, {name: count}]}
  templates: [{name: main, container: {image: busybox}}]
"""
IR = """
pipelineInfo: {name: add, description: adds}
root:
  dag: {tasks: {}}
  inputDefinitions: {parameters: {a: {parameterType: NUMBER_INTEGER, defaultValue: 1}, b: {parameterType: STRING}}}
schemaVersion: 2.1.0
---
platforms: {kubernetes: {deploymentSpec: {}}}
"""


def zipped(**files: str) -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name.replace("_", "."), text)
    return held.getvalue()


def tarred(name: str, text: bytes) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        member = tarfile.TarInfo(name)
        member.size = len(text)
        archive.addfile(member, io.BytesIO(text))
    return held.getvalue()


@pytest.mark.parametrize(
    "data",
    [
        WORKFLOW.encode(),
        zipped(pipeline_yaml=WORKFLOW),
        zipped(pipeline_yaml=WORKFLOW, other_yaml="x: 1"),
        tarred("pipeline.yaml", WORKFLOW.encode()),
    ],
    ids=["yaml", "zip", "zip of two", "tar.gz"],
)
def test_a_workflow_of_kfp_1_is_read_from_text_and_archives(data: bytes) -> None:
    found = read(data)
    assert (found.format, found.name, found.description) == ("workflow", "two steps", "d")
    assert found.parameters == (Parameter("msg", "hello"), Parameter("count"))


def test_the_ir_of_kfp_2_is_read_with_its_platform_spec() -> None:
    found = read(IR.encode())
    assert (found.format, found.name, found.description) == ("ir", "add", "adds")
    assert found.parameters == (Parameter("a", 1), Parameter("b"))
    assert found.platforms == {"platforms": {"kubernetes": {"deploymentSpec": {}}}}
    both = json.dumps({"pipeline_spec": {"pipelineInfo": {"name": "x"}}, "platform_spec": {"platforms": {}}})
    assert (read(both.encode()).name, read(both.encode()).platforms) == ("x", {"platforms": {}})


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (b"", "empty or not a mapping"),
        (b"- a", "empty or not a mapping"),
        (b"a: [", "not valid YAML"),
        (b"\xff\xfe\x00", "neither text"),
        (b"kind: Pod", "the kind is Pod"),
        (b"a: 1", "neither an Argo Workflow"),
        (b'{"pipelineSpec": {}}', "kfp 1.8's v2 compiler"),
        (b"kind: Workflow\nspec: 1", "spec must be a mapping"),
        (b"kind: Workflow\nspec: {arguments: {parameters: [1]}}", "spec.arguments.parameters"),
        (b"PK\x03\x04broken", "cannot be read"),
        (b"\x1f\x8bbroken", "cannot be read"),
        (zipped(readme_md="x"), "must hold one YAML file"),
        (zipped(a_yaml="x: 1", b_yaml="x: 1"), "must hold one YAML file"),
        (tarred("a.txt", b"x"), "must hold one YAML file"),
        (b"x" * (MAX_BYTES + 1), "at most"),
        (zipped(pipeline_yaml=" " * (MAX_BYTES + 1)), "more than"),
        (gzip.compress(b" " * (MAX_BYTES + 1)), "more than"),
        (b"a: &a [x,x,x,x,x,x,x,x,x]\n" + b"".join(
            b"%c: &%c [*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c,*%c]\n" % (i, i, *[i - 1] * 9) for i in range(98, 110)
        ), "not valid YAML"),
        (WORKFLOW.encode() + b"---\nkind: WorkflowTemplate\n", "the file has 2 documents"),
        (IR.encode() + b"---\na: 1\n", "the file has 3 documents"),
        (b"---\n" * 200_000, "more than 18 documents"),
        (b"{" * 100_000, "not valid YAML"),
        (b"[" * 100_000, "not valid YAML"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_what_is_no_pipeline_is_refused_with_the_reason(data: bytes, sentence: str) -> None:
    with pytest.raises(PackageError, match=sentence):
        read(data)
