"""A misspelt name, kind, field, flag or value: one sentence with the nearest right word, and the documented exit code.

Every command of `pdc` has its rows here; a command without one fails `test_every_command_is_tried`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness import Kubectl
from paddlecloud.cli.command_table import COMMANDS
from paddlecloud.cli.failures import INVALID, NOT_FOUND, TIMEOUT, USAGE
from paddlecloud.cli.main import main

Refused = Callable[..., tuple[int, str]]


@pytest.fixture
def refused(main_context: None, namespace: str, capsys: pytest.CaptureFixture[str]) -> Refused:
    """Exit code and stderr of a command in the test's namespace."""

    def call(*arguments: str) -> tuple[int, str]:
        code = main([*arguments] if "-n" in arguments else ["-n", namespace, *arguments])
        return code, capsys.readouterr().err

    return call


def job(**spec: Any) -> dict[str, Any]:
    container = {"name": "paddle", "image": "python:3.11", "command": ["true"]}
    worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "slow"},
        "spec": {"suspend": True, "worker": worker, **spec},
    }


MODEL: dict[str, Any] = {
    "apiVersion": "serving.paddlepaddle.org/v1",
    "kind": "PaddleService",
    "metadata": {"name": "digits"},
    "spec": {"model": "nothing:v1", "service": {"minScale": 0}},
}
SET: dict[str, Any] = {
    "apiVersion": "batch.paddlepaddle.org/v1alpha1",
    "kind": "SampleSet",
    "metadata": {"name": "words"},
    "spec": {"partitions": 1, "source": {"uri": "s3://nowhere/x"}, "secretRef": {"name": "none"}},
}
NIGHTLY: dict[str, Any] = {
    "apiVersion": "batch.paddlepaddle.org/v1alpha1",
    "kind": "SampleJob",
    "metadata": {"name": "nightly"},
    "spec": {"type": "clear", "sampleSetRef": {"name": "words"}},
}


@pytest.fixture
def objects(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "objects.json").write_text(
        json.dumps({"kind": "List", "apiVersion": "v1", "items": [job(), MODEL, SET]})
    )
    assert refused("apply", "-f", "objects.json")[0] == 0


JOB, SERVICE, SAMPLES = 'did you mean "slow"?', 'did you mean "digits"?', 'did you mean "words"?'
MISSPELT = [
    # names
    ("get pdj slwo", NOT_FOUND, JOB),
    ("ps slwo", NOT_FOUND, JOB),
    ("describe pdj/slwo", NOT_FOUND, JOB),
    ("explain pdj/slwo", NOT_FOUND, JOB),
    ("logs slwo", NOT_FOUND, JOB),
    ("wait pdj/slwo --for=finished", NOT_FOUND, JOB),
    ("wait pdj/slwo --for=condition=Ready", NOT_FOUND, JOB),
    ("events --for pdj/slwo", NOT_FOUND, JOB),
    ("top pdj slwo", NOT_FOUND, JOB),
    ("delete pdj/slwo -y", NOT_FOUND, JOB),
    ("scale slwo --replicas 2", NOT_FOUND, JOB),
    ("scale pdj/slwo --replicas 2", NOT_FOUND, JOB),
    ("suspend slwo", NOT_FOUND, JOB),
    ("resume slwo", NOT_FOUND, JOB),
    ("retry slwo", NOT_FOUND, JOB),
    ("exec slwo -- true", NOT_FOUND, JOB),
    ("cp slwo:/etc/hosts hosts", NOT_FOUND, JOB),
    ("port-forward slwo 80", NOT_FOUND, JOB),
    ("promote digts", NOT_FOUND, SERVICE),
    ("rollback pds/digts", NOT_FOUND, SERVICE),
    ("samplejob warmup wrods", NOT_FOUND, SAMPLES),
    ("samplejob sync wrods --source s3://x/y", NOT_FOUND, SAMPLES),
    ("samplejob rmr wrods a -y", NOT_FOUND, SAMPLES),
    ("sampleset advise wrods --link 1Mbit --samples-per-second 1", NOT_FOUND, SAMPLES),
    ("image dockerfile padlecloud/paddle:3.3", NOT_FOUND, 'did you mean "paddlecloud/paddle:3.3"?'),
    ("image rm padlecloud/paddle:3.3 -y", NOT_FOUND, 'did you mean "paddlecloud/paddle:3.3"?'),
    ("image ls padlecloud/paddle:3.3", NOT_FOUND, 'did you mean "paddlecloud/paddle:3.3"?'),
    ("image build padlecloud/paddle:3.3", NOT_FOUND, 'did you mean "paddlecloud/paddle:3.3"?'),
    ("image export padlecloud/paddle:3.3 --to x.tar", NOT_FOUND, 'did you mean "paddlecloud/paddle:3.3"?'),
    ("node fail nowhere", NOT_FOUND, 'nodes "nowhere" not found'),
    ("kubeconfig --context paddlecloud-locl", USAGE, 'did you mean "paddlecloud-local"?'),
    ("get pdj -n defualt", NOT_FOUND, 'did you mean "default"?'),
    ("events -n defualt", NOT_FOUND, 'did you mean "default"?'),
    # names that another kind has
    ("get slow", NOT_FOUND, 'did you mean "pdj/slow"?\nnext:  pdc get pdj/slow'),
    ("delete slow -y", USAGE, 'did you mean "pdj/slow"?\nnext:  pdc delete pdj/slow'),
    ("describe digits", NOT_FOUND, 'did you mean "pds/digits"?\nnext:  pdc describe pds/digits'),
    ("explain digits", NOT_FOUND, 'did you mean "pds/digits"?\nnext:  pdc explain pds/digits'),
    ("scale digits --replicas 2", NOT_FOUND, 'did you mean "pds/digits"?'),
    ("suspend words", NOT_FOUND, 'did you mean "sampleset/words"?'),
    ("promote slow", NOT_FOUND, 'did you mean "pdj/slow"?'),
    # kinds and fields
    ("get padlejobs", NOT_FOUND, 'did you mean "paddlejobs"?'),
    ("get pdjs", NOT_FOUND, 'did you mean "pdj"?'),
    ("delete padlejob slow -y", NOT_FOUND, 'did you mean "paddlejob"?'),
    ("suspend padlejob/slow", NOT_FOUND, 'did you mean "paddlejob"?'),
    ("explain pdj.spec.wroker", NOT_FOUND, 'did you mean "worker"?'),
    ("api-resources --api-group batch.padlepaddle.org", NOT_FOUND, 'did you mean "batch.paddlepaddle.org"?'),
    # values and flags
    ("get pdj -o jsn", USAGE, 'did you mean "json"?'),
    ("get pdj --sort-yb x", USAGE, 'did you mean "--sort-by"?'),
    ("run --wrokers 2 -- python train.py", USAGE, 'did you mean "--workers"?'),
    ("run --workers two -- python train.py", USAGE, "'two' is not a whole number"),
    ("serve ./nowhere --nmae x", USAGE, 'did you mean "--name"?'),
    ("serve ./nowhere", INVALID, "nowhere is no folder"),
    ("wait pdj/slow --for=conditon=Ready", USAGE, 'did you mean "condition"?'),
    (
        "wait crd/paddlejobs.batch.paddlepaddle.org --for=condition=Etsablished --timeout=1s",
        TIMEOUT,
        'mean "Established"?',
    ),
    ("wait pdj/slow --for=Completed", USAGE, "next:  pdc wait KIND/NAME --for=finished"),
    ("wait pds/digits --for=Ready", USAGE, "next:  pdc wait KIND/NAME --for=condition=Ready"),
    (
        "wait pdj/slow --for=condition=Complete",
        USAGE,
        'error: a PaddleJob never has the condition "Complete": its conditions are Created, ',
    ),
    (
        "wait pdj/slow --for=condition=Complete",
        USAGE,
        "pdc wait paddlejob.batch.paddlepaddle.org/slow --for=finished",
    ),
    ("wait pdj/slow --for=condition=PodReady", USAGE, 'did you mean "PodsReady"?'),
    ("wait pdj/slow --for=jsonpath={.status.phase}=Runing", USAGE, 'did you mean "Running"?'),
    ("wait sampleset/words --for=condition=Readdy", USAGE, 'did you mean "Ready"?'),
    ("wait pds/digits --for=condition=Available", USAGE, "--for=condition=Ready\n"),
    ("samplejob warmpu words", USAGE, 'did you mean "warmup"?'),
    ("pipeline shwo flow", USAGE, 'did you mean "show"?'),
    ("pipeline run nowhere.yaml", INVALID, "there is no file nowhere.yaml"),
    ("sampleset advice words --link 1Mbit", USAGE, 'did you mean "advise"?'),
    ("sampleset advise words --link 50Mbot", USAGE, "'50Mbot' is not a rate"),
    ("node fial x", USAGE, 'did you mean "fail"?'),
    ("image bulid x", USAGE, 'did you mean "build"?'),
    ("image exprot x", USAGE, 'did you mean "export"?'),
    ("image ci paddleocrr --push r/x", NOT_FOUND, 'did you mean "paddleocr"?'),
    ("image import nowhere.tar", USAGE, "no such file: nowhere.tar"),
    ("top ndoes", USAGE, 'did you mean "nodes"?'),
    ("model psuh ocr net.onnx", USAGE, 'did you mean "push"?'),
    ("model dfif ocr:1 ocr:2", USAGE, 'did you mean "diff"?'),
    ("model convrt ocr:1 --to onnx", USAGE, 'did you mean "convert"?'),
    ("model convert ocr:1 --to onxx", USAGE, "say which form"),
    ("trace modle/ocr:1", NOT_FOUND, 'did you mean "model"?'),
    ("trace pdj/slwo", NOT_FOUND, JOB),
    ("trace words", NOT_FOUND, 'did you mean "sampleset/words"?'),
    ("model rolback ocr@production", USAGE, 'did you mean "rollback"?'),
    ("metrics slwo", NOT_FOUND, JOB),
    ("visualdl pdj/slwo", NOT_FOUND, JOB),
    ("visualdl slow slwo", NOT_FOUND, JOB),
    ("completion bsh", USAGE, 'did you mean "bash"?'),
    ("apply -f x --valdiate=warn", USAGE, 'did you mean "--validate"?'),
    ("apply -f nowhere.yaml", USAGE, "no such file"),
    ("diff -f nowhere.yaml", USAGE, "no such file"),
    ("up --ndoes 2", USAGE, 'did you mean "--nodes"?'),
    ("down --dta x", USAGE, 'did you mean "--data"?'),
    ("status --dta x", USAGE, 'did you mean "--data"?'),
    ("doctor --dta x", USAGE, 'did you mean "--data"?'),
    ("simulate --ndoes 2", USAGE, "unknown flag --ndoes"),
    ("sample-data cooc here", USAGE, 'did you mean "coco"?'),
    ("suite innit clas here", USAGE, 'did you mean "init"?'),
    ("suite init ocr-dte here", INVALID, 'did you mean "ocr-det"?'),
    ("suite run nowhere", INVALID, "there is no pipeline.py in nowhere"),
    ("suite init ocr-det here --name A_B", INVALID, "'A_B' cannot be the name of a model here"),
    ("suite ls --sweep", USAGE, "suite ls takes no --sweep"),
    ("install --wiat", USAGE, "unknown flag --wiat"),
    ("uninstall --with-dta", USAGE, 'did you mean "--with-data"?'),
    ("tenant creat vision", USAGE, 'did you mean "create"?'),
    ("tenant create vision --owner ann --quota cpus=8", INVALID, 'did you mean "cpu"?'),
    ("tenant create vision --owner ann --quota gpu=8", INVALID, "nothing that a quota limits"),
    ("tenant create vision --owner ann --quota cpu=lots", INVALID, "'lots' is not a quantity"),
    ("tenant drop vision bob --role view", USAGE, "it is for tenant add"),
    ("notebooks upp", USAGE, 'did you mean "up"?'),
    ("notebooks status --rm", USAGE, "it is for notebooks user"),
    ("notebooks user Ada", USAGE, "is no name of a user"),
    ("dashboard --prot 3", USAGE, 'did you mean "--port"?'),
    ("crds --ouptut json", USAGE, 'did you mean "--output"?'),
    ("version --clinet", USAGE, 'did you mean "--client"?'),
    ("aplly -f x", USAGE, 'did you mean "apply"?'),
]


@pytest.mark.parametrize(("line", "code", "words"), MISSPELT, ids=[line for line, _, _ in MISSPELT])
def test_a_misspelt_word_is_answered_with_the_right_one(
    refused: Refused, objects: None, line: str, code: int, words: str
) -> None:
    answer, said = refused(*line.split())
    assert words in said
    assert answer == code
    assert not re.search(r"\bKIND\b(?!/NAME)", said.partition("next:")[2]), "the next command is one to run"


def test_every_command_is_tried() -> None:
    assert {command.name for command in COMMANDS} <= {line.split()[0] for line, _, _ in MISSPELT}


FILES = [
    (job(wroker={"replicas": 1}), INVALID, 'did you mean "worker"?', "pdc explain paddlejob.spec"),
    (job(worker={"replicas": "two"}), INVALID, "spec.worker.replicas", "pdc explain paddlejob.spec.worker.replicas"),
    ({**job(), "kind": "PadleJob"}, NOT_FOUND, 'did you mean "PaddleJob"?', "pdc api-resources"),
    (
        {**job(), "apiVersion": "batch.paddlepaddle.org/v2"},
        NOT_FOUND,
        'did you mean apiVersion "batch.paddlepaddle.org/v1"?',
        "pdc api-resources",
    ),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
         "spec": {"restartPolicy": "Nevr", "containers": [{"name": "a", "image": "b"}]}},
        INVALID,
        'did you mean "Never"?',
        "pdc explain pod.spec.restartPolicy",
    ),
    (
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"},
         "spec": {"containers": [{"name": "a", "image": "b", "comand": ["true"]}]}},
        INVALID,
        'did you mean "command"?',
        "pdc explain pod.spec.containers",
    ),
    (
        job(worker={"template": {"spec": {"containers": [{"name": "a", "image": "b", "comand": ["true"]}]}}}),
        INVALID,
        'unknown field "spec.worker.template.spec.containers[0].comand"; did you mean "command"?',
        "pdc explain pod.spec.containers",
    ),
    (
        job(ps={"replicas": 1, "template": {"specc": {}}}),
        INVALID,
        'unknown field "spec.ps.template.specc"; did you mean "spec"?',
        "pdc explain pod",
    ),
    (
        {**MODEL, "spec": {**MODEL["spec"], "env": [{"name": "A", "vaule": "b"}]}},
        INVALID,
        'unknown field "spec.env[0].vaule"; did you mean "value"?',
        "pdc explain pod.spec.containers.env",
    ),
    (
        {**SET, "spec": {**SET["spec"], "tolerations": [{"kye": "a"}]}},
        INVALID,
        'unknown field "spec.tolerations[0].kye"; did you mean "key"?',
        "pdc explain pod.spec.tolerations",
    ),
    *(
        (
            {**SET, "spec": {**SET["spec"], "source": {"uri": uri}}},
            INVALID,
            words,
            "pdc explain sampleset.spec.source.uri",
        )
        for uri, words in (
            ("numbers", "must be SCHEME://BUCKET[.ENDPOINT][/PREFIX]"),
            ("/data/x", "must be SCHEME://BUCKET[.ENDPOINT][/PREFIX]"),
            ("file://tmp/x", "the address of a folder must have three slashes, as in file:///data/x"),
        )
    ),
    (
        {**NIGHTLY, "spec": {**NIGHTLY["spec"], "schedule": "30 2 * *"}},
        INVALID,
        'spec.schedule: Invalid value: "30 2 * *"',
        "pdc explain samplejob.spec.schedule",
    ),
    (
        {**MODEL, "spec": {"model": "file://models/digits"}},
        INVALID,
        "the address of a folder must have three slashes",
        "pdc explain paddleservice.spec.model",
    ),
]  # fmt: skip


@pytest.mark.parametrize(("body", "code", "words", "following"), FILES, ids=[words for _, _, words, _ in FILES])
def test_a_file_with_a_misspelt_word_is_answered_with_the_right_one(
    refused: Refused, tmp_path: Path, body: dict[str, Any], code: int, words: str, following: str
) -> None:
    (tmp_path / "x.json").write_text(json.dumps(body))
    answer, said = refused("apply", "-f", "x.json")
    assert words in said
    assert said.endswith(f"next:  {following}\n")
    assert answer == code


def test_everything_that_is_wrong_with_a_file_is_said_at_once(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: x}\nspec:\n"
        "  wroker: {}\n  cleanPodPolcy: Always\n  backoffLimit: -1\n  worker:\n    replicas: two\n"
    )
    answer, said = refused("apply", "-f", "x.yaml")
    assert answer == INVALID
    assert "from x.yaml:5:" in said
    for words in (
        'did you mean "worker"?',
        'did you mean "cleanPodPolicy"?',
        "spec.worker.replicas in line 9",
        "spec.backoffLimit in line 7",
        "spec.cleanPodPolcy in line 6",
    ):
        assert words in said


MISSPELT_TEMPLATE = """apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {name: x}
spec:
  suspend: true
  worker:
    replicas: 1
    template:
      spec:
        containers:
          - name: a
            image: b
            comand: [python, train.py]
"""


@pytest.mark.parametrize("command", ["apply", "diff"])
def test_a_misspelt_field_of_a_pod_template_is_refused_with_its_line(
    refused: Refused, tmp_path: Path, command: str
) -> None:
    (tmp_path / "x.yaml").write_text(MISSPELT_TEMPLATE)
    for _ in range(2):  # the second time with the remembered schemas
        code, said = refused(command, "-f", "x.yaml")
        assert code == INVALID
        assert "error: cannot apply PaddleJob/x from x.yaml:13: strict decoding error: unknown field" in said
        assert 'did you mean "command"?' in said
    assert refused("get", "pdj", "x")[0] == NOT_FOUND


def test_a_misspelt_template_is_refused_together_with_the_rest_of_the_object(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(MISSPELT_TEMPLATE + "  wroker: {}\n  backoffLimit: -1\n")
    code, said = refused("apply", "-f", "x.yaml")
    assert code == INVALID
    for words in ("comand in line 13", "spec.wroker in line 14", "spec.backoffLimit in line 15", 'mean "worker"?'):
        assert words in said


@pytest.mark.parametrize(("validate", "warns"), [("warn", True), ("ignore", False)])
def test_validate_decides_what_a_misspelt_template_is_worth(
    refused: Refused, tmp_path: Path, validate: str, warns: bool
) -> None:
    (tmp_path / "x.yaml").write_text(MISSPELT_TEMPLATE)
    code, said = refused("apply", "-f", "x.yaml", f"--validate={validate}")
    assert code == 0
    assert ("containers[0].comand" in said) is warns


ELASTIC = {"elastic": 1, "schedulingPolicy": {"minAvailable": 2}}


@pytest.mark.parametrize(
    ("replicas", "words"),
    [
        ("9", "spec.worker.replicas: Invalid value: 9: must lie between requests (1) and limits (3)"),
        ("1", "spec.schedulingPolicy.minAvailable: Invalid value: 2: the job has only 1 pods"),
    ],
)
def test_a_refused_scale_names_the_numbers(refused: Refused, tmp_path: Path, replicas: str, words: str) -> None:
    body = job(**ELASTIC)
    body["spec"]["worker"] |= {"replicas": 2, "requests": 1, "limits": 3}
    (tmp_path / "x.json").write_text(json.dumps(body))
    assert refused("apply", "-f", "x.json")[0] == 0
    code, said = refused("scale", "slow", "--replicas", replicas)
    assert code == INVALID
    assert words in said
    assert f"to {replicas}:" in said
    assert said.count("Invalid value") == 1, "the same refusal is not given twice"


def test_a_misspelt_field_of_a_template_is_named_also_when_the_job_has_succeeded(
    refused: Refused, kubectl: Kubectl, namespace: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """kubectl stores it without a word, and a program without its command has nothing to fail at."""
    typo = job(suspend=False)
    typo["spec"]["worker"]["template"]["spec"]["containers"][0]["comand"] = ["false"]
    service = {**MODEL, "spec": {**MODEL["spec"], "volumeMounts": [{"name": "v", "mountPth": "/v"}]}}
    kubectl("apply", "-f", "-", input=json.dumps({"kind": "List", "apiVersion": "v1", "items": [typo, service]}))
    assert refused("wait", "pdj/slow", "--for=jsonpath={.status.phase}=Completed", "--timeout=60s")[0] == 0
    kubectl("delete", "events", "--all")
    capsys.readouterr()
    assert main(["-n", namespace, "explain", "pdj/slow"]) == 0
    found = capsys.readouterr().out
    assert found.startswith("pdj/slow: ok (UnknownField)\n")
    assert 'ignores them: spec.worker.template.spec.containers[0].comand: did you mean "command"?' in found
    for command in ("explain", "describe"):
        assert main(["-n", namespace, command, "pds/digits"]) == 0
        assert 'spec.volumeMounts[0].mountPth: did you mean "mountPath"?' in capsys.readouterr().out
