"""Flags of launchers: those of the originals, with the values that both kfp write."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.pipelines.components import launcher_set, operator_set
from paddlecloud.pipelines.components.declaration import Component
from paddlecloud.pipelines.launchers.arguments import parse, resolved

TRAINING = [
    *("--name", "det", "--project", "PaddleOCR", "--image", "ocr", "--config_path", "c.yml", "--dataset", "d"),
    *("--pvc_name", "claim", "--worker_replicas", "1"),
]


def flags(component: Component) -> list[str]:
    return [one.option for one in (*component.inputs, *component.outputs)]


@pytest.mark.parametrize(
    ("component", "known"),
    [
        (operator_set.DATASET, "--name --namespace --action --partitions --source_uri --source_secret"),
        (operator_set.MODELHUB, "--name --namespace --action --endpoint --model_name --model_version --pvc_name"),
        (operator_set.SERVING, "--image --model_name --model_version --endpoint --port"),
        (operator_set.TRAINING, "--project --config_path --config_changes --pretrain_model --dataset --train_label "
            "--test_label --pvc_name --worker_replicas --ps_replicas --gpu_per_node --use_visualdl --save_inference "
            "--need_convert"),
        (launcher_set.SAMPLESET, "--version --partitions --noSync --timeoutMinutes --source --secretRef --csi --cache "
            "--nodeAffinity"),
        (launcher_set.SAMPLEJOB, "--type --sampleSetRef --deleteAfterDone --secretRef --terminate --jobOptions"),
        (launcher_set.PADDLEJOB, "--worker --ps --heter --cleanPodPolicy --schedulingPolicy --intranet --withGloo "
            "--sampleSetRef --elastic"),
        (launcher_set.SERVING, "--runtimeVersion --default --canary --canaryTrafficPercent --service --workingDir "
            "--volumeMounts --volumes --resources --outputPath"),
        (launcher_set.VISUALDL, "--pvc_name --mount_path --logdir --model --host --port --cache_timeout --language "
            "--public_path --api_only --timeoutMinutes"),
    ],
)  # fmt: skip
def test_the_flags_are_those_of_the_originals(component: Component, known: str) -> None:
    assert set(known.split()) <= set(flags(component))


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ([], "use_visualdl", False),
        (["--use_visualdl", "True"], "use_visualdl", True),
        (["--use_visualdl", "true"], "use_visualdl", True),
        (["--save_inference", "False"], "save_inference", False),
        ([], "save_inference", True),
        (["--gpu_per_node", "1.0"], "gpu_per_node", 1),
        ([], "namespace", "kubeflow"),
        ([], "pretrain_model", None),
    ],
)
def test_values_are_read_by_their_declared_type(given: list[str], name: str, value: Any) -> None:
    values, _ = parse(operator_set.TRAINING, [*TRAINING, *given])
    assert values.json(name) == value


@pytest.mark.parametrize(
    ("component", "given", "says"),
    [
        (operator_set.TRAINING, [*TRAINING, "--use_visualdl", "perhaps"], "'perhaps' is not true or false"),
        (operator_set.TRAINING, [*TRAINING, "--gpu_per_node", "a few"], "'a few' is not a whole number"),
        (operator_set.TRAINING, TRAINING[2:], "--name"),
        (operator_set.TRAINING, [*TRAINING, "--gpu", "1"], "unrecognized arguments: --gpu 1"),
        (launcher_set.SERVING, ["--name", "a", "--default", "{"], "--default: it is not JSON"),
        (launcher_set.SERVING, ["--name", "a", "--default", "[]"], "--default: it is JSON, but not an object"),
        (launcher_set.SERVING, ["--name", "a", "--default", "{}", "--volumes", "{}"], "but not a list"),
    ],
)
def test_bad_flags_are_refused_by_name(
    component: Component, given: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(component, given)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


@pytest.mark.parametrize(
    ("value", "flags"),
    [
        ("5", ["--timeoutMinutes", "5"]),
        ("{{$.inputs.parameters['timeout_minutes']}}", []),
        ('{"a": ["b"]}', ["--timeoutMinutes", '{"a": ["b"]}']),
        ('two "lines"\nof text', ["--timeoutMinutes", 'two "lines"\nof text']),
        ("", ["--timeoutMinutes", ""]),
    ],
    ids=["given", "not given", "JSON", "text that is no JSON", "empty"],
)
def test_an_optional_flag_that_kubeflow_pipelines_did_not_resolve_is_what_it_stands_for(
    value: str, flags: list[str]
) -> None:
    """As a container of its backend gets it (2.14.3): kfp's text, in which inputs that are given have been replaced."""
    text = '{"IfPresent": {"InputName": "timeout_minutes", "Then": ["--timeoutMinutes", "' + value + '"]}}'
    assert list(resolved(["--name", "a", text, '{"IfPresent": 1}'])) == ["--name", "a", *flags, '{"IfPresent": 1}']
