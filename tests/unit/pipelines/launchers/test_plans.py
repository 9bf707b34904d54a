"""What launchers create and run, without a cluster."""

from __future__ import annotations

import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.api.names import PACKED_VERSION
from paddlecloud.pipelines.components import launcher_set, operator_set
from paddlecloud.pipelines.components.declaration import Component
from paddlecloud.pipelines.launchers import serving, suites, training, visualdl
from paddlecloud.pipelines.launchers.arguments import Values, parse
from paddlecloud.pipelines.launchers.failures import StepFailed
from paddlecloud.pipelines.launchers.hub_version import ModelRecord, record_of
from paddlecloud.pipelines.launchers.model_store import StoredModel
from paddlecloud.pipelines.launchers.objects import TASK_CENTER, image_parts

PRETRAINED = "https://models.example.com/dygraph/MobileNetV3_large_x0_5_pretrained.pdparams"


def values(component: Component, **given: Any) -> Values:
    options = {one.parameter: one.option for one in component.inputs}
    return parse(component, [word for name, value in given.items() for word in (options[name], str(value))])[0]


def ocr(**more: Any) -> Values:
    given = {
        "name": "det", "project": "PaddleOCR", "image": "ocr:1", "config_path": "configs/det.yml", "dataset": "icdar",
        "pvc_name": "task", "worker_replicas": 1, **more,
    }  # fmt: skip
    return values(operator_set.TRAINING, **given)


def commands(plan: list[Any]) -> list[str]:
    """The shell line of each stage."""
    found = []
    for stage in plan:
        spec = stage.body["spec"]
        pod = (spec.get("worker") or spec)["template"]["spec"]
        found.append(pod["containers"][0]["command"][-1])
    return found


@pytest.mark.parametrize(
    ("image", "parts"),
    [
        ("example.com/paddle/serving:v0.6.2", ("example.com/paddle/serving", "v0.6.2")),
        ("host:5000/serving:v1", ("host:5000/serving", "v1")),
        ("host:5000/serving", ("host:5000/serving", "latest")),
        ("serving", ("serving", "latest")),
        ("host:5000/serving@sha256:abc", ("host:5000/serving@sha256", "abc")),
    ],
)  # fmt: skip
def test_an_image_is_split_where_its_tag_begins(image: str, parts: tuple[str, str]) -> None:
    assert image_parts(image) == parts


def test_the_exported_weights_are_the_trained_ones() -> None:
    """The original exported the weights that training had begun with."""
    stages, _ = training.plan(ocr(pretrain_model=PRETRAINED, config_changes="Global.epoch_num=2"))
    trained, exported, _ = commands(stages)
    assert "Global.pretrained_model=/mnt/task-center/pretrain_model/MobileNetV3_large_x0_5_pretrained" in trained
    assert 'Global.checkpoints="$weights"' in exported
    assert "weights=/mnt/task-center/models/best_accuracy" in exported
    assert "pretrain_model/" not in exported
    assert "Global.epoch_num=2" in exported, "the network must be built as it was trained"


def test_labels_reach_the_program_with_their_quotes() -> None:
    (trained, *_), _ = training.plan(ocr(train_label="train label.txt"))
    (line,) = commands([trained])
    words = shlex.split(line)
    assert 'Train.dataset.label_file_list=["/mnt/data-center/icdar/train label.txt"]' in words


@pytest.mark.parametrize(
    ("workers", "gpus", "launched"),
    [(1, 0, False), (1, 1, False), (1, 2, True), (2, 1, True), (2, 0, False)],
)
def test_several_processes_with_gpus_are_launched_together(workers: int, gpus: int, launched: bool) -> None:
    (trained, *_), _ = training.plan(ocr(worker_replicas=workers, gpu_per_node=gpus))
    (line,) = commands([trained])
    assert ("paddle.distributed.launch" in line) is launched


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("", ()),
        ("A.b=1,C.d=2", ("A.b=1", "C.d=2")),
        ("A.b=[1,2],C.d='x,y'", ("A.b=[1,2]", "C.d='x,y'")),
    ],
)
def test_changes_are_split_outside_of_lists_and_quotes(text: str, parts: tuple[str, ...]) -> None:
    assert suites.changes(text) == parts


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"project": "PaddleClas"}, "'PaddleClas' cannot be trained by this component; it knows paddleocr"),
        ({"name": "../x"}, "name: '../x' cannot be a folder's name"),
        ({"dataset": "a/../b"}, "dataset: "),
        ({"use_visualdl": True, "worker_replicas": 2}, "set worker_replicas to 1"),
        ({"save_inference": False}, "need_convert: only an exported model can be packed"),
        ({"config_changes": "epochs"}, "config_changes: 'epochs' is not KEY=VALUE"),
        ({"pretrain_model": "https://example.com/model.tar"}, "is no .pdparams file"),
    ],
)
def test_what_cannot_work_is_refused_before_anything_starts(given: dict[str, Any], says: str) -> None:
    with pytest.raises(StepFailed, match=says.replace(".", r"\.")):
        training.plan(ocr(**given))


def test_pretrained_names_may_have_dots() -> None:
    """The original took names with exactly one dot."""
    assert suites.pretrained_stem("https://x/a.v1.5.pdparams?sign=1") == "/mnt/task-center/pretrain_model/a.v1.5"


def test_visualdl_listens_for_its_service_with_flags_that_it_has() -> None:
    given = values(
        launcher_set.VISUALDL, name="vdl", pvc_name="task", mount_path="/mnt", logdir="/mnt/a,/mnt/b c", model="/mnt/m",
        cache_timeout=5, language="zh", public_path="/curves", api_only="true", port=9000,
    )  # fmt: skip
    service, board = visualdl.board("vdl", "kubeflow", claim="task", mount_path="/mnt", flags=visualdl.flags(given))
    (container,) = board.body["spec"]["template"]["spec"]["containers"]
    assert container["args"] == [
        *("--logdir", "/mnt/a", "/mnt/b c", "--host", "0.0.0.0", "--port", "9000", "--model", "/mnt/m"),
        *("--language", "zh", "--public-path", "/curves", "--cache-timeout", "5", "--api-only"),
    ]
    assert service.body["spec"]["ports"] == [{"name": "http", "port": 9000, "targetPort": 9000}]


def test_visualdl_has_its_own_defaults_and_the_pods_address() -> None:
    given = visualdl.flags(values(launcher_set.VISUALDL, name="v", pvc_name="t", mount_path="/m", logdir="/l"))
    assert given.arguments() == ["--logdir", "/l", "--host", "0.0.0.0", "--port", "8040"]


def test_flags_that_visualdl_would_ignore_fail_the_step() -> None:
    with pytest.raises(StepFailed, match="--language: VisualDL has en and zh, not 'fr'"):
        visualdl.flags(
            values(launcher_set.VISUALDL, name="v", pvc_name="t", mount_path="/m", logdir="/l", language="fr")
        )


def served(**more: Any) -> Values:
    return values(operator_set.SERVING, name="det", image="host:5000/serving:v1", model_name="det", **more)


def test_the_service_listens_on_the_port_that_was_given() -> None:
    """The original always served on 9292."""
    endpoint = serving.service(served(port=9393), StoredModel("d", ""), secret="").body["spec"]["default"]
    assert (endpoint["containerImage"], endpoint["tag"], endpoint["port"]) == ("host:5000/serving", "v1", 9393)
    assert "--model det/server --port 9393" in endpoint["arg"]


def test_a_changed_model_of_the_same_version_changes_the_service() -> None:
    found = [StoredModel(digest, "") for digest in ("a", "a", "b")]
    first, same, second = (serving.service(served(), one, secret="").body for one in found)
    assert first == same != second


def test_a_service_names_the_version_of_the_model_hub_with_the_same_files() -> None:
    marks = [
        serving.service(served(), StoredModel("d1", version), secret="").body["metadata"].get("annotations")
        for version in ("kubeflow/det:3", "team-a/det:3", "")
    ]
    assert marks == [{PACKED_VERSION: "det:3 d1"}, None, None], "one of another namespace is not the service's"


def test_what_is_known_of_the_training_lies_beside_the_packed_model(tmp_path: Path) -> None:
    """As the container that packs it does; a value that looks like the shell's stays one."""
    record = ModelRecord({"job": "det", "command": "a 'b' $(c) \"d\" %s"}, {"acc": 0.5})
    line = suites.pack("det").rpartition(" && ")[2].replace(TASK_CENTER, str(tmp_path))
    subprocess.run(["bash", "-c", line], env={"PADDLECLOUD_MODEL_ORIGIN": record.encoded()}, check=True)
    step = {"run": "r-1", "run-name": "demo", "step": "modelhub"}
    found = record_of(tmp_path / "det.tar.gz", step)
    assert (found.origin, found.metrics) == ({**step, **record.origin}, {"acc": 0.5})
    for nonsense in ("", "[]", '{"origin": 1}', '{"origin": {}, "metrics": {"a": "x"}}', "[" * 100_000):
        (tmp_path / "det.origin.json").write_text(nonsense)
        assert record_of(tmp_path / "det.tar.gz", step) == (step, {}), nonsense[:9]


def test_keys_are_named_and_never_written() -> None:
    env = serving.service(served(), StoredModel("d", ""), secret="model-center").body["spec"]["env"]
    assert {one["name"] for one in env if "value" in one} == {"MODEL_DIGEST"}
    assert [one["valueFrom"]["secretKeyRef"]["name"] for one in env if "valueFrom" in one] == ["model-center"] * 2


def test_the_shell_line_of_the_pods_is_valid() -> None:
    line = serving.arg("http://store:9000/model-center/det/latest/det.tar.gz", "det", 9292)
    done = subprocess.run(["bash", "-n", "-c", line], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    assert "$(" not in line, "Kubernetes replaces it in arguments"
