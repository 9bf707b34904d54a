"""The step starter as a program: started as in a pod, with a program that reads the executor's input."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.pipelines.ir import step_starter
from paddlecloud.pipelines.ir.steps import starter_text

WRITE = "import json,sys; given = json.loads(sys.argv[1]); "


def b64(value: Any) -> str:
    return base64.b64encode((value if isinstance(value, str) else json.dumps(value)).encode()).decode()


def orders(program: str, **more: Any) -> dict[str, Any]:
    usual: dict[str, Any] = {
        "command": [sys.executable, "-c", program], "args": ["{{$}}"], "task": "step", "inputs": {}, "lists": [],
        "paths": {}, "outputs": {}, "makes": {}, "values": {}, "references": {}, "keys": {}, "store": "s3://bucket/",
        "run": {"pipeline_job_name": "the-run"},
    }  # fmt: skip
    return {**usual, **more}


def start(folder: Path, given: dict[str, Any]) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PIPELINE_STEP": json.dumps(given), "PIPELINE_OUTPUTS": str(folder)}
    return subprocess.run(
        [sys.executable, "-c", starter_text()], env=env, capture_output=True, text=True, timeout=60
    )  # fmt: skip


def test_values_have_their_types_and_outputs_become_files(tmp_path: Path) -> None:
    program = WRITE + (
        "v = given['inputs']['parameterValues'];"
        "json.dump({'parameterValues': {'text': repr(v), 'n': v['n'] + 1, 'yes': True, 'some': [1, 'ü']}},"
        " open(given['outputs']['outputFile'], 'w'))"
    )
    values = {"n": "3", "ratio": "0.5", "text": 'a {{x}} $(HOME) "q"', "table": '{"a":[1]}', "flag": "true"}
    kinds = {"n": "NUMBER_INTEGER", "ratio": "NUMBER_DOUBLE", "text": "STRING", "table": "STRUCT", "flag": "BOOLEAN"}
    given = orders(
        program, inputs=kinds, values={name: b64(value) for name, value in values.items()},
        outputs={"text": "STRING", "n": "NUMBER_INTEGER", "yes": "BOOLEAN", "some": "LIST"},
    )  # fmt: skip
    done = start(tmp_path, given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "n").read_text() == "4"
    assert (tmp_path / "yes").read_text() == "true"
    assert json.loads((tmp_path / "some").read_text()) == [1, "ü"]
    expected = {"n": 3, "ratio": 0.5, "text": 'a {{x}} $(HOME) "q"', "table": {"a": [1]}, "flag": True}
    assert (tmp_path / "text").read_text() == repr(expected)


def test_an_artifact_is_recorded_with_its_digest_and_metadata(tmp_path: Path) -> None:
    program = WRITE + (
        "made = given['outputs']['artifacts']['model']['artifacts'][0];"
        "open(made['uri'], 'w').write('weights'); made['metadata']['rows'] = 7;"
        "json.dump({'artifacts': {'model': {'artifacts': [made]}}}, open(given['outputs']['outputFile'], 'w'))"
    )
    kind = {"schemaTitle": "system.Model"}
    given = orders(program, makes={"model": {"type": kind, "metadata": {"a": 1}}}, keys={"model": "k/model"})
    done = start(tmp_path, given)
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "artifact-model").read_text()) == {
        "name": "model", "type": kind, "uri": "s3://bucket/k/model", "key": "k/model", "metadata": {"a": 1, "rows": 7},
        "digest": "sha256:" + hashlib.sha256(b"weights").hexdigest(),
    }  # fmt: skip


def test_a_list_of_artifacts_is_found_in_the_folder_of_its_loop(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    references = []
    for name in ("pod-2", "pod-1"):
        (folder / name).write_text(name)
        references.append(
            {"name": "data", "key": f"k/{name}", "uri": f"s3://b/k/{name}", "metadata": {}, "digest": "x"}
        )
    program = WRITE + (
        "files = given['inputs']['artifacts']['files']['artifacts'];"
        "json.dump({'parameterValues': {'out': ','.join(open(f['uri']).read() for f in files)}},"
        " open(given['outputs']['outputFile'], 'w'))"
    )
    given = orders(
        program, references={"files": b64([[references[0]], [references[1]]])}, lists=["files"],
        paths={"files": str(folder)}, outputs={"out": "STRING"},
    )  # fmt: skip
    done = start(tmp_path, given)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out").read_text() == "pod-2,pod-1"


MISTAKES: dict[str, tuple[str, dict[str, Any], str]] = {
    "no output": ("", {"outputs": {"x": "STRING"}}, "output x (STRING) was not given"),
    "an output of another type": (
        WRITE + "json.dump({'parameterValues': {'x': 1}}, open(given['outputs']['outputFile'], 'w'))",
        {"outputs": {"x": "STRING"}}, "output x is a STRING, and the program gave 1",
    ),
    "an output file that is no JSON": (
        WRITE + "open(given['outputs']['outputFile'], 'w').write('{')", {"outputs": {"x": "STRING"}}, "is no JSON",
    ),
    "an input of another type": (
        "", {"inputs": {"n": "NUMBER_INTEGER"}, "values": {"n": b64("three")}}, "input n must be a NUMBER_INTEGER",
    ),
    "content that was not delivered": (
        "", {"references": {"d": b64({"uri": "s3://b/k", "digest": "x"})}, "paths": {"d": "/nowhere/at/all"}},
        "the content of s3://b/k was not delivered",
    ),
    "an unknown placeholder": ("", {"args": ["{{$.colour}}"]}, "placeholder $.colour is not known"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_a_sentence_in_the_log(tmp_path: Path, mistake: str) -> None:
    program, more, sentence = MISTAKES[mistake]
    done = start(tmp_path, orders(program or "pass", **more))
    assert done.returncode == step_starter.BROKEN
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize(
    ("command", "code"), [(["/nowhere/at/all"], 127), (["/"], 126), ([sys.executable, "-c", "exit(3)"], 3)]
)
def test_the_exit_code_is_the_programs(tmp_path: Path, command: list[str], code: int) -> None:
    assert start(tmp_path, orders("", command=command)).returncode == code


def test_signals_reach_the_program(tmp_path: Path) -> None:
    program = "import signal,sys; signal.signal(15, lambda *_: sys.exit(9)); print('ready', flush=True); signal.pause()"
    env = {**os.environ, "PIPELINE_STEP": json.dumps(orders(program)), "PIPELINE_OUTPUTS": str(tmp_path)}
    child = subprocess.Popen([sys.executable, "-c", starter_text()], env=env, stdout=subprocess.PIPE, text=True)
    assert child.stdout is not None
    with child.stdout:
        assert child.stdout.readline() == "ready\n"
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 9


PREFIX = """
if ! [ -x "$(command -v pip)" ]; then
    python3 -m ensurepip || python3 -m ensurepip --user || apt-get install python3-pip
fi

PIP_DISABLE_PIP_VERSION_CHECK=1 """
KFP = "python3 -m pip install --quiet --no-warn-script-location 'kfp==2.17.0' '--no-deps' 'typing-extensions<5'"
OTHER = "python3 -m pip install --quiet --no-warn-script-location 'six'"
REST = ["sh", "-ec", "program", "source"]


@pytest.mark.parametrize(
    ("installs", "expected"),
    [
        (f'{KFP} && "$0" "$@"\n', REST),
        (f'{OTHER}  &&  {KFP} && "$0" "$@"\n', ["sh", "-c", f'{PREFIX}{OTHER}  &&  true && "$0" "$@"\n', *REST]),
        (f'{OTHER} && "$0" "$@"\n', ["sh", "-c", f'{PREFIX}{OTHER} && "$0" "$@"\n', *REST]),
    ],
)
def test_kfp_is_installed_only_where_it_is_missing(
    installs: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["sh", "-c", PREFIX + installs, *REST]
    monkeypatch.setattr(step_starter.importlib.util, "find_spec", lambda name: None)
    assert step_starter.without_needless_install(command) == command
    monkeypatch.setattr(step_starter.importlib.util, "find_spec", lambda name: object())
    assert step_starter.without_needless_install(command) == expected


@pytest.mark.parametrize(
    ("installs", "has_pip", "expected"),
    [
        (KFP, False, "this image has no pip to install kfp==2.17.0, typing-extensions<5: "),
        (
            f"{OTHER}  &&  {KFP}",
            False,
            '"base: IMAGE" and "pip: [six, kfp==2.17.0, typing-extensions<5]" into image.yaml',
        ),
        (KFP, True, ""),
        ("true", False, ""),
    ],
)
def test_a_step_that_failed_in_an_image_without_pip_says_what_to_do(
    installs: str, has_pip: bool, expected: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(step_starter, "PACKAGES", str(tmp_path))
    monkeypatch.setattr(step_starter.importlib.util, "find_spec", lambda name: object() if has_pip else None)
    said = step_starter.missing_pip(["sh", "-c", f'{PREFIX}{installs} && "$0" "$@"\n', *REST])
    assert expected in said
    assert bool(said) == bool(expected)
    (tmp_path / "pip").mkdir()  # kfp's own command found ensurepip
    assert step_starter.missing_pip(["sh", "-c", f"{PREFIX}{installs}", *REST]) == ""


def test_pip_installs_into_a_folder_of_the_pod() -> None:
    made = step_starter.environment({"PATH": "/bin", "PYTHONPATH": "/mine"})
    assert made["PIP_TARGET"] == step_starter.PACKAGES
    assert made["PYTHONPATH"].split(":") == [step_starter.PACKAGES, "/mine"]
    assert made["PATH"].split(":") == [f"{step_starter.PACKAGES}/bin", "/bin"]
    assert step_starter.environment({"PIP_TARGET": "/else"}) == {"PIP_TARGET": "/else"}


def test_the_digest_of_a_folder_is_of_names_and_contents(tmp_path: Path) -> None:
    for place, name in (("a", "x"), ("b", "x"), ("c", "y")):
        (tmp_path / place / "sub").mkdir(parents=True)
        (tmp_path / place / "sub" / name).write_text("text")
    a, b, c = (step_starter.digest(str(tmp_path / place)) for place in "abc")
    assert a == b != c


def test_argo_finds_no_tag_in_the_step_starter() -> None:
    assert "{{" not in starter_text()
    assert "}}" not in starter_text()
