"""What somebody types who does not know the commands yet: the answer is a sentence that leads on."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.cli.failures import CliError
from paddlecloud.cli.objects.schema import descend
from paddlecloud.kube.resource import Resource
from paddlecloud.kube.wording import cause_of
from paddlecloud.sdk.manifest import ManifestError, read
from unit.cli.conftest import Pdc
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
