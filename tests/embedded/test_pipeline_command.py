"""`pdc pipeline` and `pc.pipelines` on a platform: run, look, compare, stop, retry, schedule, log in."""

from __future__ import annotations

import base64
import hashlib
import json
import stat
import subprocess
import sys
import tarfile
from collections.abc import Callable
from datetime import datetime, timezone
from pathlib import Path

import pytest

import paddlecloud as pc
from harness import Kubectl, Target, until
from paddlecloud.cli.failures import CONFLICT, INVALID, JOB_FAILED, NOT_FOUND, OK, TIMEOUT, USAGE
from paddlecloud.cli.main import main
from tools import kfp
from unit.local.workloads.real import read

Run = Callable[..., tuple[int, str, str]]
WORKFLOW = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: greet-}
spec:
  entrypoint: main
  arguments: {parameters: [{name: text, value: hello}]}
  templates:
  - name: main
    steps:
    - - {name: first, template: say, arguments: {parameters: [{name: text, value: begin}]}}
    - - {name: second, template: say, arguments: {parameters: [{name: text, value: "{{workflow.parameters.text}}"}]}}
  - name: say
    inputs: {parameters: [{name: text}]}
    container:
      image: busybox
      command: [sh, -c, 'echo "said $0"; test "$0" != fail', "{{inputs.parameters.text}}"]
"""
LONG = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {name: long}
spec: {entrypoint: main, templates: [{name: main, container: {image: busybox, command: [sleep, "600"]}}]}
"""
BROKEN = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: broken-}
spec: {entrypoint: main, templates: [{name: main,
  inputs: {artifacts: [{name: a, path: /tmp/a, s3: {key: nothing}}]},
  container: {image: busybox, command: [echo, hi]}}]}
"""
PIPELINE = """
from kfp import dsl
@dsl.container_component
def say(text: str):
    return dsl.ContainerSpec(image="busybox", command=["echo", "said"], args=[text])
@dsl.pipeline(name="greet")
def greet(text: str = "hello", times: int = 1):
    say(text=text)
if __name__ == "__main__":
    raise SystemExit("only imported")
"""


@pytest.fixture
def run(main_context: None, namespace: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["-n", namespace, "pipeline", *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def names_of(run: Run) -> list[str]:
    return [line.split()[0] for line in run("ls")[1].splitlines()[1:]]


def test_runs_are_started_listed_shown_and_compared(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    code, out, err = run("run", str(file))
    assert (code, "second: Succeeded" in err) == (OK, True)
    assert out.startswith("workflow/greet-")
    code, _, err = run("run", str(file), "-p", "text=fail", "--name", "a bad one")
    assert code == JOB_FAILED
    assert "failed: second: main: Error (exit code 1): said fail\n" in err
    assert "last lines of second:\n  said fail\n" in err
    bad, good = names_of(run) if "a bad one" in run("ls")[1].splitlines()[1] else reversed(names_of(run))
    code, out, _ = run("show", bad)
    assert (code, "✓ first" in out, "✗ second" in out, "parameters:  text=fail" in out) == (OK, True, True, True)
    assert "why:         second: main: Error (exit code 1): said fail\n" in out
    shown = json.loads(run("show", f"wf/{good}", "-o", "json")[1])
    by_name = {step["name"]: step for step in shown["steps"]}
    assert by_name["second"]["inputs"] == {"text": "hello"}
    assert by_name["second"]["image"] == "busybox"
    assert by_name["second"]["timing"]["running"] is not None
    assert run("logs", bad)[1].splitlines() == ["first  | said begin", "second | said fail"]
    assert run("logs", bad, "second")[1] == "said fail\n"
    assert run("logs", bad, "third")[0] == NOT_FOUND
    out = run("diff", good, bad)[1]
    assert ["parameters.text", "hello", "fail"] in [line.split() for line in out.splitlines()]
    assert run("diff", good, good)[1] == "no difference\n"
    assert run("cache", good)[1].splitlines()[1].split()[:2] == ["first", "–"]
    assert run("retry", good)[0] == CONFLICT
    code, out, err = run("retry", bad)
    assert (code, out) == (JOB_FAILED, "")
    assert f"workflow/{bad} retried\n" in err
    assert f"workflow/{bad} failed: second: main: Error (exit code 1): said fail\n" in err
    code, out, err = run("retry", bad, "--no-wait")
    assert (code, out) == (OK, f"workflow/{bad} retried\n")
    code, out, _ = run(*err.splitlines()[-1].removeprefix("to follow it: pdc pipeline ").split())
    assert (code, "✗ second" in out) == (OK, True)
    report = json.loads(run("retry", bad, "-o", "json")[1])
    assert (report["kind"], report["result"], report["phase"]) == ("PipelineAction", "retried", "Failed")
    for words in (("ls", "-o", "name"), ("ls", "-o", "jsonpath={.items[*].metadata.name}")):
        listed = [name.removeprefix("workflow.argoproj.io/") for name in run(*words)[1].split()]
        assert listed == names_of(run), "newest first in every format"


def test_a_step_that_did_not_run_is_not_called_one_without_caching(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW.replace("{name: second, template: say,", "{name: second, template: say, when: 'a == b',"))
    assert run("run", str(file))[0] == OK
    rows = [line.split(maxsplit=2) for line in run("cache")[1].splitlines()[1:]]
    assert rows == [["first", "–", "the step is not cached in this run"], ["second", "–", "the step did not run"]]


MAKER = """
apiVersion: argoproj.io/v1alpha1
kind: Workflow
metadata: {generateName: maker-}
spec:
  entrypoint: main
  templates:
  - name: main
    steps:
    - - {name: train, template: make, withItems: [a/b, c]}
    - - {name: silent, template: silent}
  - name: silent
    container: {image: busybox, command: [echo]}
  - name: make
    container:
      image: busybox
      command: [sh, -c]
      args: ["cd /tmp; mkdir -p model/deep; printf 12 > model/deep/w; printf x > model/n; printf r > rows"]
    outputs:
      artifacts:
      - {name: model, path: /tmp/model, archive: {none: {}}}
      - {name: rows, path: /tmp/rows, archive: {none: {}}}
      - {name: packed, path: /tmp/rows}
"""


def test_artifacts_of_a_run_are_listed_and_copied(run: Run, kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "maker.yaml"
    file.write_text(MAKER)
    code, _, err = run("run", str(file))
    assert code == OK, err
    code, out, _ = run("artifacts")
    rows = [line.split() for line in out.splitlines()]
    assert (code, rows[0]) == (OK, ["STEP", "NAME", "SIZE", "CONTENT"])
    assert [row[:2] for row in rows[1:]] == [
        [step, name] for step in ("train(0:a/b)", "train(1:c)") for name in ("model", "rows", "packed")
    ]
    assert ["train(1:c)", "rows", "1", "B", "sha256:" + hashlib.sha256(b"r").hexdigest()] in rows
    [name] = names_of(run)
    to = tmp_path / "copies"
    code, out, _ = run("artifacts", name, "--to", str(to))
    first = to / "train(0:a_b)"
    assert (code, out.splitlines()[:3]) == (OK, [str(first / each) for each in ("model", "rows", "packed.tgz")])
    assert ((first / "model/deep/w").read_text(), (first / "model/n").read_text()) == ("12", "x")
    assert (to / "train(1:c)" / "rows").read_text() == "r"
    with tarfile.open(to / "train(1:c)" / "packed.tgz") as packed:
        assert [each.name for each in packed] == ["rows"]
    code, _, err = run("artifacts", name, "train(1:c)", "rows", "--to", str(to))
    assert (code, f"{to}/train(1:c)/rows exists already" in err) == (CONFLICT, True)
    one = json.loads(run("artifacts", name, "train(1:c)", "rows", "--to", str(tmp_path / "one"), "-o", "json")[1])
    [report] = one["artifacts"]
    assert (report["stored"], Path(report["file"]).read_text()) == (True, "r")
    code, _, err = run("artifacts", name, "trian(1:c)")
    assert (code, 'did you mean "train(1:c)"?' in err) == (NOT_FOUND, True), err
    assert run("artifacts", name, "silent")[0] == NOT_FOUND
    place = read(kubectl, f"workflow/{name}")["metadata"]["namespace"]
    path = f"/apis/argoproj.io/v1alpha1/namespaces/{place}/workflows/{name}/artifacts?node=x&name=rows&files=true"
    assert "has no artifact 'rows'" in kubectl("get", "--raw", path, check=False).stderr


def test_a_run_without_artifacts_says_so(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    assert run("run", str(file))[0] == OK
    for words in ((), ("--to", str(tmp_path / "copies"))):
        code, out, err = run("artifacts", *words)
        assert (code, out, "has no artifacts" in err) == (OK, "", True)


def test_other_commands_find_a_run_or_name_the_one_that_does(
    run: Run, namespace: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    assert run("run", str(file), "-p", "text=fail")[0] == JOB_FAILED
    [name] = names_of(run)
    assert main(["-n", namespace, "logs", name]) == OK
    assert "second | said fail\n" in capsys.readouterr().out
    assert main(["-n", namespace, "retry", f"wf/{name}"]) == USAGE
    assert capsys.readouterr().err.splitlines()[-1] == f"next:  pdc pipeline retry {name} -n {namespace}"


def test_the_log_of_a_step_that_failed_is_advised_with_its_namespace(run: Run, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    code, _, err = run("run", str(file), "-p", "text=fail")
    advised = err.splitlines()[-1].removeprefix("next:  pdc ")
    [name] = names_of(run)
    assert (code, advised) == (JOB_FAILED, f"pipeline logs {name} second -n {namespace}")
    assert main(advised.split()) == OK


@pytest.mark.parametrize("kept", ["pods", "logs"])
def test_a_step_whose_program_never_began_has_its_reason_as_its_log(
    run: Run, kubectl: Kubectl, tmp_path: Path, kept: str
) -> None:
    file = tmp_path / "broken.yaml"
    strategy = "" if kept == "pods" else "podGC: {strategy: OnPodCompletion}, "
    file.write_text(BROKEN.replace("spec: {", f"spec: {{{strategy}"))
    code, _, err = run("run", str(file))
    reason = "init: Error (exit code 64): failed to load artifact 'a': there is nothing in the artifact repository"
    assert (code, f"failed: {reason}" in err, "last lines" in err) == (JOB_FAILED, True, False)
    if kept == "logs":
        until(lambda: read(kubectl, "pods")["items"], [])
    code, out, err = run("logs")
    assert (code, out) == (OK, "")
    assert f"no output: the step ended before its program began: {reason}" in err


def test_a_run_with_an_image_that_nobody_has_is_refused_before_its_first_step(run: Run, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    second = "- {name: train, container: {image: example.com/trainer:3}}"
    file.write_text(f"{WORKFLOW}  {second}\n")
    code, _, err = run("run", str(file))
    assert code == INVALID
    assert "spec.templates[2].container.image: Invalid value: step 'train': no recipe answers for image \"exam" in err
    assert err.splitlines()[-1] == "next:  pdc image build -f image.yaml -t example.com/trainer:3"
    assert names_of(run) == []


def test_a_step_that_missed_the_cache_says_what_was_different(
    run: Run, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "greet.py"

    def cache_of_a_run(source: str, text: str, *flags: str) -> dict[str, str]:
        file.write_text(source)
        assert run("run", str(file), "--python", str(kfp.python(2)), "-p", f"text={text}", *flags)[0] == OK
        [step] = json.loads(run("cache", "-o", "json")[1])["steps"]
        return {"cache": step["cache"], "why": step["why"]}

    assert "has not run before" in cache_of_a_run(PIPELINE, "hi")["why"]
    [first] = names_of(run)
    assert cache_of_a_run(PIPELINE, "hi") == {"cache": "hit", "why": ""}
    second = next(name for name in names_of(run) if name != first)
    for words in ((second,), (second, "say")):
        code, _, err = run("logs", *words)
        assert (code, f"has no log of say: answered from the cache, by the run {first}\n" in err) == (NOT_FOUND, True)
        assert main(err.splitlines()[-1].removeprefix("next:  pdc ").split()) == OK
    assert run("diff", first, second)[1].splitlines()[-1] == "no difference"
    assert cache_of_a_run(PIPELINE, "hi", "--no-cache") == {"cache": "–", "why": "the step is not cached in this run"}
    caches = read(kubectl, "configmaps", "-l", "workflows.argoproj.io/configmap-type=Cache")["items"]
    assert [each["metadata"]["name"] for each in caches] == [f"pipeline-cache-{namespace}.greet-say"]
    assert cache_of_a_run(PIPELINE, "ho") == {"cache": "miss", "why": "text was 'hi', now 'ho'"}
    changed = cache_of_a_run(PIPELINE.replace('"said"', '"says"'), "ho")
    assert changed == {"cache": "miss", "why": "the component was changed: command was 'said', now 'says'"}


def test_where_there_are_no_runs_those_of_other_namespaces_are_mentioned(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    assert run("run", str(file), "--no-wait")[0] == OK
    for action, code in (("ls", OK), ("show", NOT_FOUND)):
        assert main(["-n", "kube-public", "pipeline", action]) == code
        assert "pdc pipeline ls -A\n" in capsys.readouterr().err


def test_a_run_is_resubmitted_with_other_values(run: Run, kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "greet.py"
    file.write_text(PIPELINE)
    assert run("run", str(file), "--python", str(kfp.python(2)), "-p", "text=hi", "--name", "the first")[0] == OK
    [first] = names_of(run)
    code, out, _ = run("resubmit", first, "-p", "text=ho", "-p", "times=2")
    assert code == OK
    second = out.split()[0].removeprefix("workflow/")
    assert second != first
    assert run("logs", second)[1] == "said ho\n"
    rows = [line.split() for line in run("diff", first, second)[1].splitlines()]
    assert ["parameters.text", "hi", "ho"] in rows
    assert ["parameters.times", "1", "2"] in rows
    assert run("resubmit", f"wf/{second}", "--no-wait", "--no-cache")[0] == OK
    labels = {each["metadata"]["name"]: each["metadata"]["labels"] for each in read(kubectl, "workflows")["items"]}
    origins = [each.get("workflows.argoproj.io/resubmitted-from-workflow", "") for each in labels.values()]
    assert sorted(origins) == sorted(["", first, second])
    for words, expected, sentence in (
        (("-p", "times=two"), INVALID, "parameters.times: must be a whole number"),
        (("-p", "txet=x"), INVALID, 'did you mean "text"?'),
        (("--cron", "x"), USAGE, "takes no --cron"),
    ):
        code, _, err = run("resubmit", first, *words)
        assert (code, sentence in err) == (expected, True), err
    assert run("resubmit", "nobody")[0] == NOT_FOUND


def test_logs_and_images_of_a_run_outlive_its_pods(run: Run, kubectl: Kubectl, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW.replace("entrypoint: main", "entrypoint: main\n  podGC: {strategy: OnPodCompletion}"))
    assert run("run", str(file))[0] == OK
    [name] = names_of(run)
    until(lambda: read(kubectl, "pods")["items"], [])
    assert "said begin" in run("logs", name)[1]
    shown = json.loads(run("show", name, "-o", "json")[1])
    assert {step["image"] for step in shown["steps"] if step["type"] == "Pod"} == {"busybox"}


def test_a_run_that_waits_says_why_and_what_it_waits_for(run: Run, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "waits.yaml"
    limits = "resources: {limits: {nvidia.com/gpu: 999}}"
    for wait, sentence in (
        (
            f"container: {{image: busybox, command: [echo], {limits}}}",
            "Pending (Unschedulable: 0/1 nodes are available",
        ),
        ("suspend: {}", f"is suspended; to go on: pdc pipeline resume NAME -n {namespace}\n"),
    ):
        file.write_text(LONG.replace("name: long", "generateName: waits-").replace(
            'container: {image: busybox, command: [sleep, "600"]}', wait))  # fmt: skip
        code, _, err = run("run", str(file), "--timeout", "2")
        name = err.split()[0].removeprefix("workflow/")
        assert (code, err.count(sentence.replace("NAME", name))) == (TIMEOUT, 1), err


def test_a_run_is_stopped_and_what_waits_is_resumed(run: Run, kubectl: Kubectl, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "long.yaml"
    file.write_text(LONG)
    assert run("run", str(file), "--no-wait")[0] == OK
    [name] = names_of(run)
    assert run("resume", name)[0] == CONFLICT
    assert run("stop", name)[0] == OK
    until(lambda: read(kubectl, f"workflow/{name}").get("status", {}).get("phase"), "Failed")
    assert run("stop", name)[0] == CONFLICT
    kubectl("create", "-f", "-", input=LONG.replace("name: long", "name: held").replace(
        "container: {image: busybox, command: [sleep, \"600\"]}", "suspend: {}"))  # fmt: skip
    until(lambda: read(kubectl, "workflow/held").get("status", {}).get("phase"), "Running")
    advised = f"held is suspended; to go on: pdc pipeline resume held -n {namespace}\n"
    assert advised in run("show", "held")[1]
    assert run("resume", "held")[0] == OK
    until(lambda: read(kubectl, "workflow/held")["status"]["phase"], "Succeeded")


def test_a_file_is_compiled_by_the_kfp_of_the_user_and_scheduled(
    run: Run, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    file, python = tmp_path / "greet.py", str(kfp.python(2))
    file.write_text(PIPELINE)
    assert run("run", str(file), "--python", python, "-p", "text=hi", "-p", "times=2")[0] == OK
    [name] = names_of(run)
    assert run("logs", name)[1] == "said hi\n"
    code, _, err = run("run", str(file), "--python", python, "-p", "txet=hi")
    assert (code, 'did you mean "text"?' in err) == (INVALID, True)
    code, _, err = run("run", str(file), "--python", python, "--function", "gret")
    assert (code, '(it has: greet); did you mean "greet"?\n' in err, "next:" in err) == (INVALID, True, False)
    assert run("schedule", str(file), "--python", python, "--every", "1h", "--name", "hourly")[0] == OK
    assert "@every 3600s" in run("schedule")[1]
    assert run("schedule")[1].splitlines()[1].split() == ["hourly", "greet", "@every", "3600s", "false", "never"]
    assert run("schedule")[1].split()[0] == "NAME"
    header, *rows = (line.split() for line in run("schedule", "-A")[1].splitlines())
    assert header[:2] == ["NAMESPACE", "NAME"]
    assert namespace in [row[0] for row in rows]
    assert read(kubectl, "cronworkflows")["items"][0]["spec"]["schedules"] == ["@every 3600s"]


@pytest.mark.parametrize(
    ("source", "sentence", "advised"),
    [
        (f"{PIPELINE}def broken(:", "greet.py, line 11: SyntaxError: invalid syntax", False),
        (f"{PIPELINE}gret()", "greet.py, line 11: NameError: name 'gret' is not defined", False),
        (f"{PIPELINE}import helper", "helper.py, line 2: ZeroDivisionError: division by zero", False),
        (PIPELINE.replace("say(text=text)", "say(text=1)"), "greet.py, line 8: kfp.", False),
        (None, "kfp cannot be imported by", True),
    ],
)
def test_a_file_that_is_not_compiled_is_refused_with_its_line(
    run: Run, tmp_path: Path, source: str | None, sentence: str, advised: bool
) -> None:
    file = tmp_path / "greet.py"
    file.write_text(source or PIPELINE)
    (tmp_path / "helper.py").write_text("\n1 / 0\n")
    empty = tmp_path / "bin" / "python"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(tmp_path)], check=True, timeout=60)
    code, _, err = run("run", str(file), "--python", str(kfp.python(2) if source else empty))
    assert (code, sentence in err, "next:  --python PATH" in err) == (INVALID, True, advised), err
    assert ("or pip install kfp\n" in err) is advised


def test_a_schedule_has_the_name_it_was_given_once_and_may_end_without_its_runs(
    run: Run, kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    code, out, err = run("schedule", str(file), "--every", "1s", "--name", "nightly")
    assert (code, out) == (OK, "cronworkflow/nightly created: @every 1s\n")
    advised = next(line for line in err.splitlines() if "keep its runs" in line).partition("pdc ")[2]
    assert advised == f"delete cronworkflow/nightly -n {namespace} --cascade=orphan"
    code, _, err = run("schedule", str(file), "--every", "1h", "--name", "nightly")
    assert (code, "already exists" in err, "another --name" in err) == (CONFLICT, True, True)
    for bad in ("every night", "n" * 53):
        assert run("schedule", str(file), "--every", "1h", "--name", bad)[0] == INVALID
    assert [each["metadata"]["name"] for each in read(kubectl, "cronworkflows")["items"]] == ["nightly"]
    until(lambda: bool(names_of(run)), True)
    assert main([*advised.split(), "-y"]) == OK
    assert read(kubectl, "cronworkflows")["items"] == []
    until(lambda: {"ownerReferences" in each["metadata"] for each in read(kubectl, "workflows")["items"]}, {False})


def test_what_is_wrong_on_the_command_line_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "pod.yaml").write_text("kind: Pod")
    (tmp_path / "greet.yaml").write_text(WORKFLOW)
    for words, code, sentence in (
        (("run",), USAGE, "takes FILE"),
        (("run", "pod.yaml"), INVALID, "the kind is Pod"),
        (("run", "greet.yaml", "-p", "text"), USAGE, "is not NAME=VALUE"),
        (("run", "greet.yaml", "-p", "txt=1"), INVALID, 'did you mean "text"?'),
        (("ls", "--cron", "x"), USAGE, "takes no --cron"),
        (("schedule", "greet.yaml"), USAGE, "one of the two"),
        (("schedule", "--name", "x"), USAGE, "there is no FILE"),
        (("schedule", "--function", "x"), USAGE, "there is no FILE"),
        (("schedule", "--python", "x"), USAGE, "there is no FILE"),
        (("schedule", "--service-account", "x"), USAGE, "there is no FILE"),
        (("schedule", "--no-cache"), USAGE, "there is no FILE"),
        (("schedule", "greet.yaml", "--cron", "0 */0 * * *"), USAGE, "is no cron schedule"),
        (("show", "nobody"), NOT_FOUND, "nobody"),
    ):
        found, _, err = run(*words)
        assert (found, sentence in err) == (code, True), (words, err)


def test_login_gives_kfp_the_token_and_logout_takes_it_away(
    run: Run,
    platform_data: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    admin = (platform_data / "pki" / "admin.token").read_text().strip()
    assert main(["pipeline", "login"]) == OK
    path = tmp_path / ".config" / "kfp" / "context.json"
    held = json.loads(path.read_text())
    token = held["client_authentication_header_value"].removeprefix("Bearer ")
    claims = json.loads(base64.urlsafe_b64decode(token.split(".")[1] + "=="))
    assert claims["sub"] == "system:serviceaccount:kubeflow:pipeline-user"
    assert claims["exp"] - claims["iat"] == 24 * 3600
    assert admin not in path.read_text()
    ends = datetime.fromtimestamp(claims["exp"], timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert f"a token for namespace kubeflow, which ends at {ends}" in capsys.readouterr().out
    assert run("login")[0] == OK  # for another namespace
    assert admin in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert run("logout")[0] == OK
    assert "Bearer" not in path.read_text()


def test_the_sdk_runs_a_file_and_waits_for_it(server: Target, namespace: str, tmp_path: Path) -> None:
    file = tmp_path / "greet.yaml"
    file.write_text(WORKFLOW)
    with pc.connect(kubeconfig=str(server.kubeconfig), namespace=namespace) as client:
        run = pc.pipelines.run(file, {"text": "hi"}, client=client)
        assert run.wait(timeout=60, check=True) == "Succeeded"
        assert [step.outputs["exitCode"] for step in run.steps() if step.type == "Pod"] == ["0", "0"]
        failing = pc.pipelines.run(file, {"text": "fail"}, client=client)
        with pytest.raises(pc.JobFailed, match=r"second: main: Error .exit code 1.: said fail"):
            failing.wait(timeout=60, check=True)
        again = failing.resubmit({"text": "good"}, name="once more")
        assert again.name != failing.name
        assert again.wait(timeout=60, check=True) == "Succeeded"


FUNCTION = """
import sys
import paddlecloud as pc
sys.path.append(sys.argv[3])  # kfp, in an environment with both
from greet import greet
with pc.connect(kubeconfig=sys.argv[1], namespace=sys.argv[2]) as client:
    run = pc.pipelines.run(greet, {"text": "from a function"}, name="by hand", client=client)
    print(run.name, run.wait(timeout=60, check=True))
"""


def test_the_sdk_runs_a_function_of_the_installed_kfp(run: Run, server: Target, namespace: str, tmp_path: Path) -> None:
    (tmp_path / "greet.py").write_text(PIPELINE)
    (tmp_path / "program.py").write_text(FUNCTION)
    packages = subprocess.run(
        [str(kfp.python(2)), "-c", "import sysconfig; print(sysconfig.get_path('purelib'))"],
        capture_output=True, text=True, check=True, timeout=60,
    ).stdout.strip()  # fmt: skip
    done = subprocess.run(
        [sys.executable, str(tmp_path / "program.py"), str(server.kubeconfig), namespace, packages],
        env=server.env, cwd=tmp_path, capture_output=True, text=True, timeout=110,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    name, phase = done.stdout.split()
    assert phase == "Succeeded"
    assert run("logs", name)[1] == "said from a function\n"
    assert "by hand" in run("ls")[1]
