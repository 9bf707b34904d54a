"""What somebody types who does not know the commands yet: the answer is a sentence that leads on."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.api.names import MODEL_LABEL
from paddlecloud.cli.failures import CliError
from paddlecloud.cli.objects.schema import descend
from paddlecloud.kube.resource import Resource
from paddlecloud.kube.wording import cause_of
from paddlecloud.pipelines.names import RUN_NAME
from paddlecloud.sdk.manifest import ManifestError, read
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("model", "pdc model: say what to do: push, pull, ls, "),
        ("node", "pdc node: say what to do: add, rm, fail, restore"),
        ("image", "pdc image: say what to do: build, "),
        ("node remove n2", 'did you mean "rm"?'),
        ("node delete n2", 'did you mean "rm"?'),
        ("scale x --workers 3", 'unknown flag --workers: did you mean "--replicas"?'),
        ("run --no-wait -- ls", 'unknown flag --no-wait: did you mean "--detach"?'),
        ("wait x --fro=delete", 'did you mean "--for"?'),
        ("wait pdj --for=finished", "name the objects to wait for, or give -l or --all\n"),
        ("get pdj/vdl/x", '"pdj/vdl/x" is not KIND/NAME: pdc get '),
        ("get pdj/a b", '"b" is not KIND/NAME: KIND/NAME and KIND NAME cannot be mixed'),
        ("image build -f nope.yaml", "cannot read the recipe nope.yaml: no such file or directory"),
        ("apply -f nope.yaml", 'cannot read "nope.yaml": no such file or directory'),
        ("get pods -o go-template-file=nope", 'cannot read "nope": no such file or directory'),
    ],
)
def test_a_first_try_is_answered_with_the_right_words(stub: Stub, pdc: Pdc, line: str, said: str) -> None:
    result = pdc(*line.split())
    assert result.code != 0
    assert said in result.err
    assert "Errno" not in result.err


@pytest.mark.parametrize(
    "line", ["apply -f x.yaml --dry-run", "delete --dry-run -f x.yaml", "delete -f x.yaml --dry-run"]
)
def test_a_dry_run_without_a_value_is_the_clients(stub: Stub, pdc: Pdc, tmp_path: Path, line: str) -> None:
    file = tmp_path / "x.yaml"
    file.write_text("{apiVersion: v1, kind: ConfigMap, metadata: {name: x}}")
    result = pdc(*line.replace("x.yaml", str(file)).split(), "-n", "default")
    assert result.code == 0, result.err
    assert {method for method, *_ in stub.requests} <= {"GET"}


def test_a_field_in_the_wrong_place_is_answered_with_its_place() -> None:
    text = {"type": "string"}
    endpoint = {"type": "object", "properties": {"port": text, "model": text}}
    spec = {"type": "object", "properties": {"default": endpoint, "protocol": text}}
    kind = {"group": "g", "version": "v1", "kind": "Thing"}
    root = {"x-kubernetes-group-version-kind": [kind], "type": "object", "properties": {"spec": spec}}
    document = {"components": {"schemas": {"thing": root}}}
    resource = Resource("g", "v1", "things", "Thing")
    for path, why in (
        ("spec.default.protocol", "the field is spec.protocol"),
        ("spec.default.pork", 'did you mean "port"?'),
        ("spec.default.zzz", "its fields are model, port"),
    ):
        with pytest.raises(CliError) as refused:
            descend(document, resource, path.split("."))
        assert refused.value.why == why


def test_a_file_that_is_not_there_is_named_without_words_of_python() -> None:
    with pytest.raises(ManifestError, match=r"^cannot read nofile\.yaml: no such file or directory$"):
        list(read("nofile.yaml"))
    assert cause_of(ValueError("odd")) == "odd"


THING = {"group": "batch.paddlepaddle.org", "version": "v1", "kind": "PaddleJob"}


def test_a_wait_for_a_field_that_the_kind_does_not_have_is_refused_at_once(stub: Stub, pdc: Pdc) -> None:
    phase = {"type": "object", "properties": {"phase": {"type": "string"}, "restarts": {"type": "integer"}}}
    root = {"x-kubernetes-group-version-kind": [THING], "type": "object", "properties": {"status": phase}}
    stub.openapi["apis/batch.paddlepaddle.org/v1"] = {"components": {"schemas": {"job": root}}}
    make_job(stub)
    result = pdc("wait", "pdj/wide", "--for=jsonpath={.status.phsae}=Ready", "--timeout=60s")
    assert result.code == 2
    assert 'paddlejob.status has no field "phsae": did you mean "phase"?' in result.err


MODEL = ("modelhub.paddlepaddle.org", "v1alpha1", "models", "Model", True, [])
VERSION = ("modelhub.paddlepaddle.org", "v1alpha1", "modelversions", "ModelVersion", True, [])


@pytest.fixture
def models(stub: Stub) -> Stub:
    stub.kinds += [MODEL, VERSION]
    api = "modelhub.paddlepaddle.org/v1alpha1"
    meta = {"name": "line", "namespace": "default", "creationTimestamp": "2026-01-01T00:00:00Z"}
    aliases = {"production": "1", "latest": "2"}
    stub.add({"apiVersion": api, "kind": "Model", "metadata": meta, "spec": {"aliases": aliases, "moves": []}})
    for number in ("1", "2"):
        own = {**meta, "name": f"line.{number}", "labels": {MODEL_LABEL: "line"}}
        spec = {"model": "line", "version": number, "digest": "sha256:0", "size": 1, "files": 1}
        stub.add({"apiVersion": api, "kind": "ModelVersion", "metadata": own, "spec": spec})
    return stub


def test_names_of_models_and_versions_are_printed_for_other_programs(models: Stub, pdc: Pdc) -> None:
    assert pdc("model", "ls", "-o", "name").out == "line\n"
    assert sorted(pdc("model", "ls", "line", "-o", "name").out.split()) == ["line:1", "line:2"]


def test_versions_and_aliases_of_a_model_are_completed(models: Stub, pdc: Pdc) -> None:
    assert sorted(pdc("__complete", "--", "model", "show", "line:").out.split()) == ["line:1", "line:2"]
    assert pdc("__complete", "--", "model", "promote", "line@p").out.split() == ["line@production"]


def test_a_new_alias_is_said_to_be_new_with_the_one_that_was_meant(models: Stub, pdc: Pdc) -> None:
    result = pdc("model", "promote", "line:2", "--to", "prodction")
    assert result.code == 0, result.err
    assert 'line@prodction is a new alias; the others are latest, production; did you mean "production"?' in result.err
    assert "new alias" not in pdc("model", "promote", "line:2").err


def test_a_folder_that_has_the_name_of_a_model_is_served_and_said_to_be(
    models: Stub, pdc: Pdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "line"
    folder.mkdir()
    (folder / "inference.json").write_text("{}")
    (folder / "inference.pdiparams").write_text("")
    said = pdc("serve", "line", "--dry-run").err
    assert "line is a folder here, which is served, and a model too, which `pdc serve line@latest` serves" in said
    assert "a model too" not in pdc("serve", "./line", "--dry-run").err


def test_a_program_in_a_service_that_sleeps_is_answered_with_what_wakes_it(stub: Stub, pdc: Pdc) -> None:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    meta = {"name": "line", "namespace": "default"}
    status = {"url": "http://127.0.0.9:8080"}
    stub.add({"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": meta, "status": status})
    result = pdc("exec", "pds/line", "--", "true")
    assert result.code == 3
    assert "a service without requests sleeps, and the next request wakes it" in result.err
    assert "curl -s http://127.0.0.9:8080/v2/models" in result.err


@pytest.mark.parametrize("generated", [{"generateName": "train-"}, {"annotations": {RUN_NAME: "train"}}])
@pytest.mark.parametrize("typed", ["train", "trian", "tarin"])
def test_the_newest_object_of_a_generated_name_is_meant_by_its_beginning(
    stub: Stub, pdc: Pdc, typed: str, generated: dict[str, Any]
) -> None:
    for end, day in (("x7k2p", "01"), ("b4d9q", "02"), ("c5f7t", "01")):
        meta = {"name": f"train-{end}", "creationTimestamp": f"2026-01-{day}T00:00:00Z", **generated}
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": {"containers": []}})
    assert 'did you mean "train-b4d9q"?' in pdc("describe", f"pod/{typed}").err


SERVICE = ("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"])


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("get wide", 'error: cannot get wide: .*; did you mean "pdj/wide"\\?\nnext:  pdc get pdj/wide'),
        ("delete wide", 'did you mean "pdj/wide"\\?\nnext:  pdc delete pdj/wide'),
        ("describe shop", 'did you mean "pds/shop"\\?\nnext:  pdc describe pds/shop'),
        ("explain shop", 'did you mean "pds/shop"\\?\nnext:  pdc explain pds/shop'),
        ("trace shop", 'did you mean "pds/shop"\\?\nnext:  pdc trace pds/shop'),
        ("trace line", 'did you mean "model/line"\\?\nnext:  pdc trace model/line'),
        ("trace lien:1", 'there is no version lien:1 in namespace default: did you mean "line"\\?'),
        ("trace line:9", "there is no version line:9 in namespace default\nnext"),
        ("scale shop --replicas 2", 'did you mean "pds/shop"\\?'),
        ("suspend shop", 'did you mean "pds/shop"\\?'),
        ("promote wide", 'no PaddleService "wide" in namespace default: did you mean "pdj/wide"\\?'),
        (
            "model rm lnie:1 -y --store file:///nowhere",
            'model lnie has no version 1 in namespace default: did you mean "line"\\?',
        ),
    ],
)
def test_a_name_that_another_kind_has_is_answered_with_kind_and_name(
    models: Stub, pdc: Pdc, line: str, said: str
) -> None:
    models.kinds.append(SERVICE)
    meta = {"name": "shop", "namespace": "default"}
    models.add({"apiVersion": "serving.paddlepaddle.org/v1", "kind": "PaddleService", "metadata": meta, "spec": {}})
    make_job(models)
    result = pdc(*line.split())
    assert result.code in (2, 3)
    assert re.search(said, result.err), result.err
