"""`pdc model` on a platform: versions that never change, aliases with a history, and the way back."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

import paddlecloud as pc
from harness import Kubectl, Target
from paddlecloud.api.model.reference import BadReference
from paddlecloud.cli.commands import model_files
from paddlecloud.cli.failures import CONFLICT, ERROR, INVALID, NOT_FOUND, OK, USAGE
from paddlecloud.cli.main import main
from paddlecloud.modelhub import catalogue
from paddlecloud.modelhub.errors import UnknownVersion, VersionExists
from paddlecloud.modelhub.manifest import Facts
from paddlecloud.modelhub.push import push, read_local
from paddlecloud.sdk.model_removal import InUse
from paddlecloud.storage.stores import open_store
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(main_context: None, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    """In a folder with a model, and with a store of the test's own."""
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "net.onnx").write_bytes(b"first")

    def call(*arguments: str, store: str = f"file://{tmp_path}/store") -> tuple[int, str, str]:
        code = main(["-n", namespace, "model", *arguments, *(["--store", store] if store else [])])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def changed(content: str) -> None:
    Path("model/net.onnx").write_text(content)


def test_a_model_from_its_first_push_to_its_removal(run: Run) -> None:
    code, out, _ = run("push", "ocr", "model", "--metric", "accuracy=0.93", "--origin", "job=train")
    assert (code, out[:13]) == (OK, "ocr:1 pushed:")
    assert "is there already, with the same files" in run("push", "ocr:1", "model")[1]
    changed("second")
    code, _, said = run("push", "ocr:1", "model")
    assert code == CONFLICT
    assert "versions never change: push it as another version" in said
    assert run("push", "ocr", "model", "--alias", "production", "--reason", "better")[1].startswith("ocr:2 pushed")

    assert "latest=2, production=2" in run("ls")[1]
    listed = json.loads(run("ls", "ocr", "-o", "json")[1])["items"]
    assert [(one["version"], one["aliases"]) for one in listed] == [("2", ["production", "latest"]), ("1", [])]
    assert (
        run("tag", "ocr:1", "production", "--reason", "misreads receipts")[1] == "ocr@production is now 1; it was 2\n"
    )
    assert run("tag", "ocr:1", "production")[1] == "ocr@production is 1 already\n"
    shown = json.loads(run("show", "ocr@production", "-o", "json")[1])
    assert (shown["version"], shown["metrics"], shown["origin"]) == ("1", {"accuracy": 0.93}, {"job": "train"})
    assert [(m["alias"], m.get("previous"), m["to"], m.get("reason")) for m in shown["moves"]] == [
        ("production", "2", "1", "misreads receipts"), ("latest", "1", "2", "pushed"), ("latest", None, "1", "pushed"),
    ]  # fmt: skip
    assert "misreads receipts" in run("show", "ocr:1")[1]

    assert run("pull", "ocr@production", "copy")[0] == OK
    assert Path("copy/net.onnx").read_bytes() == b"first"
    assert run("pull", "ocr", "copy")[0] == INVALID  # another version is in that folder
    assert "2 versions verified" in run("verify")[1]

    code, _, said = run("rm", "ocr:1", "-y")
    assert code == CONFLICT
    assert "ocr:1 is in use by alias production: move or remove it first" in said
    run("tag", "ocr:2", "production")
    assert run("rm", "ocr:1", "-y")[0] == OK
    assert run("rm", "ocr:1", "-y")[0] == NOT_FOUND
    assert json.loads(run("gc", "--nobody-pushes", "-y", "-o", "json")[1])["removed"] == 1
    assert run("rm", "ocr", "-y")[0] == CONFLICT
    assert run("rm", "ocr", "-y", "--force")[0] == OK
    assert json.loads(run("ls", "-o", "json")[1])["items"] == []


def test_a_version_has_the_inputs_and_outputs_of_its_files(run: Run, tmp_path: Path) -> None:
    def exported(channels: int) -> None:
        shape = [None, channels, 28, 28]
        tensors = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name in ("x", "y")]
        graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "net", tensors[:1], tensors[1:])
        onnx.save(helper.make_model(graph), "model/net.onnx")

    exported(3)
    wanted = tmp_path / "signature.json"
    wanted.write_text(json.dumps({"inputs": [{"name": "x", "datatype": "FP32", "shape": [1, 1, 28, 28]}]}))
    code, _, said = run("push", "ocr", "model", "--signature", str(wanted))
    assert (code, "input x FP32[N, 3, 28, 28] declared is x FP32[1, 1, 28, 28]" in said) == (INVALID, True), said
    assert run("ls", "ocr")[0] == NOT_FOUND, "nothing was stored"
    run("push", "ocr", "model", "--alias", "production")
    assert "Inputs:      x FP32[N, 3, 28, 28]\n" in run("show", "ocr:1")[1]
    exported(1)
    run("push", "ocr", "model", "--description", "grey")
    assert "x FP32[N, 3, 28, 28]" in run("diff", "ocr:1", "ocr:2")[1]
    code, out, said = run("promote", "ocr:2")
    assert (code, out) == (OK, "ocr@production is now 2; it was 1\n")
    assert "clients of ocr@production may have to change: input x FP32[N, 1, 28, 28] was x FP32[N, 3, 28, 28]" in said


@pytest.mark.parametrize(
    ("line", "code", "text"),
    [
        ("push OCR model", INVALID, "did you mean 'ocr'?"),
        ("push ocr:latest model", INVALID, "'latest' is an alias"),
        ("push ocr:v1_2 model", INVALID, "did you mean 'v1-2'?"),
        ("push ocr nowhere", INVALID, "nowhere does not exist"),
        ("push ocr model --metric accuracy=good", USAGE, "a number is expected after accuracy="),
        ("push ocr model --metric accuracy=nan", INVALID, "finite"),
        ("push ocr model --metric loss", USAGE, "--metric takes NAME=VALUE, as --metric accuracy=0.93"),
        ("push ocr model --origin job", USAGE, "--origin takes NAME=TEXT, as --origin job=train"),
        ("push ocr model --alias 7", INVALID, "beginning with a letter"),
        ("push ocr model --signature nowhere.json", USAGE, "nowhere.json cannot be read"),
        ("push ocr model --signature model/net.onnx", INVALID, "the signature cannot be read"),
        ("push ocr", USAGE, "takes NAME[:VERSION] and a folder or a file"),
        ("pull ocr:9", NOT_FOUND, "no version 9 in namespace"),
        ("pull ocr:9", NOT_FOUND, "its newest is 1"),
        ("pull nothing", NOT_FOUND, "no model nothing"),
        ("show orc", NOT_FOUND, 'did you mean "ocr"?'),
        ("show orc:1", NOT_FOUND, "there is no model orc in namespace"),
        ("show orc:1", NOT_FOUND, 'did you mean "ocr"?'),
        ("ls orc", NOT_FOUND, 'did you mean "ocr"?'),
        ("show ocr@staging", NOT_FOUND, "no alias staging; it has latest"),
        ("show ocr@lattest", NOT_FOUND, 'did you mean "latest"?'),
        ("tag ocr:9 production", NOT_FOUND, "no version 9"),
        ("tag ocr:1 Production", INVALID, "did you mean 'production'?"),
        ("rm ocr@latest -y", USAGE, "an alias is a pointer"),
        ("rm ocr:1", USAGE, "needs a confirmation"),
        ("ls --force", USAGE, "it is for model rm"),
        ("gc --grace 1m", INVALID, "an hour at least"),
        ("ls ../x", INVALID, "cannot be the name of a model"),
    ],
)
def test_what_is_refused_changes_nothing_and_says_why(run: Run, line: str, code: int, text: str) -> None:
    run("push", "ocr:1", "model")
    before = run("ls", "ocr", "-o", "json")[1]
    found, _, said = run(*line.split())
    assert (found, text in said) == (code, True), said
    assert "Traceback" not in said
    assert run("ls", "ocr", "-o", "json")[1] == before


def test_kubectl_shows_models_and_changes_neither_versions_nor_histories(
    run: Run, kubectl: Kubectl, namespace: str
) -> None:
    run("push", "ocr:v1.2", "model", "--alias", "production")
    assert kubectl("-n", namespace, "get", "models").stdout.split()[:4] == ["NAME", "VERSIONS", "LATEST", "PRODUCTION"]
    for what, patch, text in (
        ("modelversion/ocr.v1.2", {"spec": {"size": 1}}, "a version never changes"),
        ("model/ocr", {"spec": {"aliases": {"production": "9"}}}, "use `pdc model tag`"),
        ("model/ocr", {"spec": {"moves": []}}, "spec.moves is a history"),
    ):
        refused = kubectl("-n", namespace, "patch", what, "--type=merge", "-p", json.dumps(patch), check=False)
        assert (refused.returncode, text in refused.stderr) == (1, True), refused.stderr


def test_what_others_wrote_by_hand_is_shown_and_warned_of(run: Run, kubectl: Kubectl, namespace: str) -> None:
    run("push", "ocr:1", "model", "--alias", "production")
    run("tag", "ocr:1", "staging")
    found = json.loads(kubectl("-n", namespace, "get", "model/ocr", "-o", "json").stdout)
    del found["metadata"]["resourceVersion"]  # the controller writes too
    spec = found["spec"]
    spec["aliases"] |= {"production": "2", "latest": "2"}
    spec["latestMoves"].append({**spec["latestMoves"][-1], "to": "2"})
    metadata = {"name": "ocr.2", "namespace": namespace}
    version = {"model": "ocr", "version": "2", "digest": f"sha256:{64 * '0'}", "size": 1, "files": 1}
    second = {"apiVersion": found["apiVersion"], "kind": "ModelVersion", "metadata": metadata, "spec": version}
    kubectl("create", "-f", "-", input=json.dumps(second))
    kubectl("replace", "-f", "-", input=json.dumps(found))
    code, _, said = run("show", "ocr:2")
    assert code == OK, said
    assert "no move says that production points here" in said


def test_a_wrong_clock_of_a_client_keeps_latest_from_nobody(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    for content, at in (
        ("first", "2099-01-01T00:00:00Z"),
        ("second", "2026-11-18T12:00:00Z"),
        ("third", "2001-01-01T00:00:00Z"),
    ):
        monkeypatch.setattr(model_files, "rfc3339", lambda _, at=at: at)
        changed(content)
        assert run("push", "ocr", "model", *(["--alias", "production"] if content == "first" else []))[0] == OK
    assert "latest=3, production=1" in run("ls")[1]
    assert run("push", "ocr:1", "model")[0] == CONFLICT
    changed("first")
    assert "is there already" in run("push", "ocr:1", "model")[1]
    assert "latest=3, production=1" in run("ls")[1], "what was pushed before does not become the latest by being there"


def test_pushes_at_the_same_time_get_versions_of_their_own(run: Run, server: Target, namespace: str) -> None:
    def start(number: int) -> subprocess.Popen[bytes]:
        Path(f"m{number}").mkdir()
        Path(f"m{number}/net.onnx").write_text(str(number))
        words = ["-n", namespace, "model", "push", "ocr", f"m{number}", "--store", f"file://{Path.cwd()}/store"]
        return subprocess.Popen([sys.executable, "-m", "paddlecloud.cli.main", *words], env=server.env)

    assert [process.wait(80) for process in [start(number) for number in range(4)]] == [OK] * 4
    listed = json.loads(run("ls", "ocr", "-o", "json")[1])["items"]
    assert sorted(one["version"] for one in listed) == ["1", "2", "3", "4"]
    assert len({one["digest"] for one in listed}) == 4
    assert run("verify")[0] == OK


def test_a_push_that_was_killed_before_it_was_registered_is_finished_by_the_next(
    run: Run, namespace: str, tmp_path: Path
) -> None:
    store = open_store(f"file://{tmp_path}/store")
    which = catalogue.version_key(namespace, "ocr", "1")
    push(store, which, read_local(tmp_path / "model"), Facts("ada", "2026-11-18T12:00:00Z"))
    assert run("ls", "ocr")[0] == NOT_FOUND
    assert run("push", "ocr", "model")[0] == OK
    assert [one["version"] for one in json.loads(run("ls", "ocr", "-o", "json")[1])["items"]] == ["1"]
    changed("other")
    push(store, which._replace(version="2"), read_local(tmp_path / "model"), Facts("ada", "2026-11-18T12:00:00Z"))
    assert run("rm", "ocr:2", "-y")[0] == OK  # it was never registered
    assert not list(catalogue.versions(store, namespace, "ocr"))[1:]


def test_files_that_were_lost_are_found_and_restored(run: Run, tmp_path: Path) -> None:
    run("push", "ocr:1", "model")
    for path in (tmp_path / "store" / "blobs").rglob("*"):
        if path.is_file():
            path.unlink()
    code, out, said = run("verify", "ocr:1")
    assert (code, "is missing" in out, "restores what is missing" in said) == (ERROR, True, True)
    assert run("pull", "ocr:1", "copy")[0] == ERROR
    assert run("push", "ocr:1", "model")[0] == OK
    assert run("verify")[0] == OK


def test_a_version_is_in_the_store_where_it_was_pushed(
    run: Run, s3_server: S3Server, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    s3_server.store("hub").put("other", b"")
    monkeypatch.setenv("PADDLECLOUD_ENDPOINTS", f"s3://hub={s3_server.endpoint}/hub")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", ACCESS_KEY)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    bucket = f"s3://hub/{namespace}"
    assert run("push", "ocr", "model", store=bucket)[0] == OK
    assert run("pull", "ocr", "copy", store=bucket)[0] == OK
    assert Path("copy/net.onnx").read_bytes() == b"first"
    code, _, said = run("pull", "ocr", "other")
    assert (code, f"ocr:1 is in {bucket}, not in file://" in said) == (CONFLICT, True), said
    assert run("rm", "ocr", "-y")[0] == CONFLICT
    assert run("rm", "ocr", "-y", store=bucket)[0] == OK


def test_without_another_store_files_are_in_the_data_directory_of_the_platform(run: Run) -> None:
    assert run("push", "ocr", "model", store="")[0] == OK
    assert run("pull", "ocr", store="")[0] == OK
    assert Path("ocr/net.onnx").read_bytes() == b"first"
    assert run("rm", "ocr", "-y", store="")[0] == OK


def test_the_sdk_does_the_same(main_context: None, server: Target, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "net.onnx").write_bytes(b"first")
    with pc.connect(kubeconfig=server.kubeconfig, namespace=namespace) as client:
        pushed = client.models.push("ocr", "model", metrics={"accuracy": 0.9}, origin={"job": "train"}, alias="staging")
        assert pushed.body["spec"]["version"] == "1"
        (tmp_path / "model" / "net.onnx").write_bytes(b"second")
        with pytest.raises(VersionExists):
            client.models.push("ocr:1", "model")
        client.models.push("ocr:1.1", "model")
        moved = client.models.tag("ocr:1", "production", reason="first release")
        assert moved.body["spec"]["moves"][-1]["reason"] == "first release"
        assert [one.name for one in client.models.list()] == ["ocr"]
        assert [one.name for one in client.models.list("ocr")] == ["ocr.1.1", "ocr.1"]
        with pytest.raises(UnknownVersion, match='no model orc in namespace .*; did you mean "ocr"'):
            client.models.list("orc")
        with pytest.raises(UnknownVersion, match='no version 1.2 in namespace .*; did you mean "1.1"'):
            client.models.get("ocr:1.2")
        assert client.models.get("ocr").name == "ocr.1.1"
        assert (client.models.pull("ocr@production", tmp_path / "copy") / "net.onnx").read_bytes() == b"first"
        with pytest.raises(InUse, match="alias production, alias staging"):
            client.models.remove("ocr:1")
        with pytest.raises(BadReference, match="did you mean 'ocr'"):
            client.models.get("OCR")
        with pytest.raises(pc.ArgumentError, match="path"):
            client.models.push("ocr", 7)  # type: ignore[arg-type]
        assert client.models.remove("ocr", force=True) == ["1", "1.1"]
