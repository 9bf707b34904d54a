"""apply, diff and delete: what is sent, in which order, and what happens to bad input."""

from __future__ import annotations

import io
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from unit.cli.conftest import Pdc
from unit.cli.stub import Stub

CONFIG = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  key: {value}\n"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(CONFIG.format(name="one", value="a"))
    return path


def applied(stub: Stub) -> list[str]:
    return [path.rpartition("/")[2] for path, _, _ in stub.asked("PATCH")]


# apply


def test_apply_says_what_it_did(stub: Stub, pdc: Pdc, config: Path) -> None:
    assert pdc("apply", "-f", str(config)).out == "configmap/one created\n"
    assert pdc("apply", "-f", str(config)).out == "configmap/one unchanged\n"
    config.write_text(CONFIG.format(name="one", value="b"))
    assert pdc("apply", "-f", str(config)).out == "configmap/one configured\n"


def test_a_status_that_moves_on_is_no_change(stub: Stub, pdc: Pdc, config: Path) -> None:
    pdc("apply", "-f", str(config))
    counter = iter(range(1000))

    def tick(method: str, path: str) -> None:
        stub.objects[("configmaps", "default", "one")]["status"] = {"count": next(counter)}

    stub.before = tick
    assert pdc("apply", "-f", str(config)).out == "configmap/one unchanged\n"
    assert pdc("diff", "-f", str(config)).code == 0


def test_apply_is_server_side_with_our_field_manager(stub: Stub, pdc: Pdc, config: Path) -> None:
    pdc("apply", "-f", str(config), "-n", "team")
    path, query, body = stub.asked("PATCH")[0]
    assert path == "/api/v1/namespaces/team/configmaps/one"
    assert query == {"fieldManager": "pdc", "fieldValidation": "Strict"}
    assert body["metadata"] == {"name": "one", "namespace": "team"}


def test_flags_reach_the_server(stub: Stub, pdc: Pdc, config: Path) -> None:
    pdc("apply", "-f", str(config), "--force-conflicts", "--field-manager=me", "--validate=warn", "--dry-run=server")
    _, query, _ = stub.asked("PATCH")[0]
    assert query == {"fieldManager": "me", "fieldValidation": "Warn", "force": "true", "dryRun": "All"}
    assert stub.objects == {}


def test_client_dry_run_asks_no_server(pdc: Pdc, config: Path) -> None:
    assert pdc("apply", "-f", str(config), "--dry-run=client").out == (
        "configmap/one would be applied (client dry run)\n"
    )
    assert yaml.safe_load(pdc("apply", "-f", str(config), "--dry-run=client", "-o", "yaml").out)["data"] == {"key": "a"}


def test_namespaces_and_definitions_go_first(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        CONFIG.format(name="last", value="x")
        + "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: second}\n"
        + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: first}\n"
    )
    pdc("apply", "-f", str(tmp_path / "a.yaml"))
    assert applied(stub) == ["first", "second", "last"]


def test_a_directory_is_read_in_order_and_not_below_unless_asked(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    folder = tmp_path / "all"
    (folder / "deep").mkdir(parents=True)
    for name in ("b.yaml", "a.yml", "deep/c.json", "note.txt"):
        (folder / name).write_text(CONFIG.format(name=name[0] if "/" not in name else "c", value="x"))
    assert pdc("apply", "-f", str(folder)).code == 0
    assert applied(stub) == ["a", "b"]
    assert pdc("apply", "-R", "-f", str(folder)).code == 0
    assert applied(stub)[2:] == ["a", "b", "c"]


def test_standard_input_and_lists(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    text = "kind: List\napiVersion: v1\nitems:\n" + "".join(
        f"- {{apiVersion: v1, kind: ConfigMap, metadata: {{name: {name}}}}}\n" for name in ("x", "y")
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
    assert pdc("apply", "-f", "-").out == "configmap/x created\nconfigmap/y created\n"


def test_one_refusal_does_not_stop_the_others(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("---\n".join(CONFIG.format(name=name, value="v") for name in ("bad", "good")))
    path = "/api/v1/namespaces/default/configmaps/bad"
    stub.refuse[("PATCH", path)] = (422, {"reason": "Invalid", "message": "no", "code": 422})
    result = pdc("apply", "-f", str(tmp_path / "x.yaml"))
    assert result.code == 5
    assert result.out == "configmap/good created\n"
    assert "cannot apply ConfigMap/bad" in result.err
    assert "x.yaml:1" in result.err


def test_all_mistakes_of_all_files_are_said_at_once_each_with_its_line(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    good = CONFIG.format(name="good", value="v")
    (tmp_path / "a.yaml").write_text(
        f"{good}---\nkind: ConfigMap\n---\nspec: {{a: [1\n---\n{good}data: {{}}\nkind: X\n---\na: 1\n b: 2\n---\n{good}"
    )
    (tmp_path / "b.yaml").write_text("# nothing\n\napiVersion: v1\nkind: ConfigMap\n")
    result = pdc("apply", "-f", str(tmp_path / "a.yaml"), "-f", str(tmp_path / "b.yaml"))
    assert (result.code, applied(stub)) == (5, [])
    for said in (
        "a.yaml:7 is not a Kubernetes object: apiVersion is missing",
        "a.yaml:11 is not valid YAML",
        'a.yaml:18 is not valid YAML: key "data" already set in map',
        'a.yaml:19 is not valid YAML: key "kind" already set in map',
        "a.yaml:22 is not valid YAML: mapping values are not allowed",
        "b.yaml:3: ConfigMap has no name",
    ):
        assert f"  {tmp_path}/{said}" in result.err
    assert result.err.startswith("error: 6 mistakes; nothing was sent\n")


FILE = """\
# the second document is refused
apiVersion: v1
kind: ConfigMap
metadata: {name: good}
---
apiVersion: v1
kind: List
items:
- apiVersion: v1
  kind: ConfigMap
  metadata:
    name: bad
    labels:
      a.b/c: x
  data:
    list:
    - b: 1
    - name: c
      b: 2
"""
LINES = [
    ("data.list[0].b", 17),
    ("data.list[1].b", 19),
    ('.data.list[name="c"].b', 19),
    ("data.list[7]", 16),
    ("metadata.labels[a.b/c]", 14),
    ("data.missing", 15),
    ("data.list[0].b.deeper", 17),
]


@pytest.mark.parametrize(("field", "line"), LINES, ids=[field for field, _ in LINES])
def test_a_refused_field_is_shown_with_its_line(stub: Stub, pdc: Pdc, tmp_path: Path, field: str, line: int) -> None:
    (tmp_path / "x.yaml").write_text(FILE)
    status = {"reason": "Invalid", "message": f"{field}: no", "code": 422, "details": {"causes": [{"field": field}]}}
    stub.refuse[("PATCH", "/api/v1/namespaces/default/configmaps/bad")] = (422, status)
    said = pdc("apply", "-f", str(tmp_path / "x.yaml")).err
    assert f"cannot apply ConfigMap/bad from {tmp_path}/x.yaml:{line}: {field}: no" in said


def test_several_refused_fields_are_listed_with_their_lines(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(FILE)
    causes = [{"field": "data.list[1].b"}, {"field": "metadata.labels"}]
    status = {"reason": "Invalid", "message": "no", "code": 422, "details": {"causes": causes}}
    stub.refuse[("PATCH", "/api/v1/namespaces/default/configmaps/bad")] = (422, status)
    said = pdc("apply", "-f", str(tmp_path / "x.yaml")).err
    assert "x.yaml:13: no; data.list[1].b in line 19, metadata.labels in line 13" in said


def test_a_conflict_names_the_way_out(stub: Stub, pdc: Pdc, config: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    message = 'Apply failed with 1 conflict: conflict with "kubectl" using v1: .data.key'
    path = "/api/v1/namespaces/default/configmaps/one"
    stub.refuse[("PATCH", path)] = (409, {"reason": "Conflict", "message": message, "code": 409})
    result = pdc("apply", "-f", str(config))
    assert result.code == 4
    assert message in result.err
    assert f"next:  pdc apply --force-conflicts -f {config}" in result.err
    spaced = config.rename(config.with_name("my config.yaml"))
    assert f"next:  pdc apply --force-conflicts -f '{spaced}'" in pdc("apply", "-f", str(spaced)).err
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(spaced.read_bytes())))
    assert "next:  pdc apply --force-conflicts -f -  " in pdc("apply", "-f", "-").err


def test_output_formats_of_apply(stub: Stub, pdc: Pdc, config: Path) -> None:
    assert pdc("apply", "-f", str(config), "-o", "name").out == "configmap/one\n"
    assert pdc("apply", "-f", str(config), "-o", "json").json()["data"] == {"key": "a"}


def test_a_kind_whose_definition_is_in_the_same_file_is_waited_for(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text(
        "apiVersion: new.example/v1\nkind: Gadget\nmetadata: {name: g}\n---\n"
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: gadgets.new.example}\n"
        "spec: {names: {kind: Gadget}}\n"
    )
    add = stub.add

    def define(obj: dict[str, Any], namespace: str = "default") -> dict[str, Any]:
        if obj["kind"] == "CustomResourceDefinition":
            stub.kinds.append(("new.example", "v1", "gadgets", "Gadget", True, []))
        return add(obj, namespace)

    stub.add = define  # type: ignore[method-assign]
    pdc("get", "pods")  # discovery is remembered from before the definition
    result = pdc("apply", "-f", str(tmp_path / "x.yaml"))
    assert result.code == 0
    assert "gadget.new.example/g created" in result.out


BAD_INPUT = [
    # file content, exit code, what the message says
    ("kind: [", 5, "is not valid YAML"),
    ("a: 1\na: 2", 5, "already set in map"),
    ("- a\n- b", 5, "not an object"),
    ("just text", 5, "not an object"),
    ("kind: Pod\nmetadata: {name: x}", 5, "apiVersion is missing"),
    ("apiVersion: v1\nkind: Pod", 5, "has no name"),
    ("apiVersion: v1\nkind: Pod\nmetadata: {name: 123}", 5, "quote it"),
    ("apiVersion: v1\nkind: Pod\nmetadata: {generateName: x-}", 5, "generateName"),
    ("apiVersion: v1\nkind: Nope\nmetadata: {name: x}", 3, 'no matches for kind "Nope"'),
    ("# nothing", 5, "no objects"),
    ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: other}", 5, "belongs to namespace"),
]


@pytest.mark.parametrize(("text", "code", "says"), BAD_INPUT, ids=lambda value: str(value)[:24])
@pytest.mark.parametrize("command", ["apply", "diff"])
def test_bad_files_change_nothing(
    stub: Stub, pdc: Pdc, tmp_path: Path, command: str, text: str, code: int, says: str
) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    result = pdc(command, "-f", str(path), "-n", "mine")
    assert result.code == code
    assert says in result.err
    assert stub.asked("PATCH") == []


def test_a_mistake_in_the_last_file_changes_nothing(stub: Stub, pdc: Pdc, config: Path, tmp_path: Path) -> None:
    (tmp_path / "z.yaml").write_text("kind: [")
    result = pdc("apply", "-f", str(config), "-f", str(tmp_path / "z.yaml"))
    assert result.code == 5
    assert "z.yaml:2" in result.err
    assert stub.objects == {}


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("missing.yaml", "no such file"),
        ("https://example.org/x.yaml", "curl"),
        (".", "none of its files ends in"),
    ],
)
def test_what_f_cannot_name(
    stub: Stub, pdc: Pdc, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, says: str
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    monkeypatch.chdir(empty)
    result = pdc("apply", "-f", name)
    assert result.code == 2
    assert says in result.err


def test_a_file_that_is_not_text(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_bytes(b"\xff\xfe\x00")
    assert pdc("apply", "-f", str(path)).code == 5


# apply --wait


def job(phase: str) -> dict[str, Any]:
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": "train", "namespace": "default"},
        "status": {"phase": phase, "message": "because"},
    }


@pytest.mark.parametrize(("phase", "code"), [("Completed", 0), ("Failed", 100)])
def test_apply_wait_ends_as_the_job_does(stub: Stub, pdc: Pdc, tmp_path: Path, phase: str, code: int) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: train}\n")
    stub.watch_events = [
        {"type": "MODIFIED", "object": job("Running")},
        {"type": "MODIFIED", "object": job(phase)},
    ]
    result = pdc("apply", "-f", str(path), "--wait", "--timeout", "60s")
    assert result.code == code
    assert "paddlejob.batch.paddlepaddle.org/train" in result.err


def test_apply_wait_warns_of_what_a_ready_service_does_not_do(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    stub.kinds.append(("serving.paddlepaddle.org", "v1", "paddleservices", "PaddleService", True, ["pds"]))
    text = "apiVersion: serving.paddlepaddle.org/v1\nkind: PaddleService\nmetadata: {name: s, namespace: default}\n"
    (tmp_path / "s.yaml").write_text(text)
    status = {"conditions": [{"type": "Ready", "status": "True"}], "message": "HTTP/2 is not routed: pip install it"}
    stub.watch_events = [{"type": "MODIFIED", "object": {**yaml.safe_load(text), "status": status}}]
    result = pdc("apply", "-f", str(tmp_path / "s.yaml"), "--wait", "--timeout", "60s")
    assert result.code == 0
    assert "/s ready\n" in result.err
    assert "Warning: paddleservice.serving.paddlepaddle.org/s: HTTP/2 is not routed: pip install it" in result.err


def test_apply_wait_gives_up(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    path = tmp_path / "job.yaml"
    path.write_text("apiVersion: batch.paddlepaddle.org/v1\nkind: PaddleJob\nmetadata: {name: train}\n")
    assert pdc("apply", "-f", str(path), "--wait", "--timeout", "100ms").code == 124


TRAIN = """apiVersion: batch.paddlepaddle.org/v1
kind: PaddleJob
metadata: {{name: train}}
spec:
  worker:
    replicas: {replicas}
    template: {{spec: {{containers: [{{name: a, image: {image}}}]}}}}
"""
FINISHED = "the job has finished; the change is used by the next run: pdc retry train"
RUNNING = "the running pods keep the old template until: pdc suspend train && pdc resume train"


def stored(image: str, **status: Any) -> dict[str, Any]:
    return {**yaml.safe_load(TRAIN.format(replicas=1, image=image)), "status": status}


MADE = [{"type": "Created", "status": "True"}]


@pytest.mark.parametrize(
    ("status", "replicas", "said"),
    [
        ({"phase": "Completed"}, 1, FINISHED),
        ({"phase": "Failed", "reason": "Program"}, 1, FINISHED),
        ({"phase": "Running", "conditions": MADE}, 1, RUNNING),
    ],
)
@pytest.mark.parametrize("flags", [["--wait", "--timeout", "5s"], ["--logs"]])
def test_given_a_job_that_does_not_run_the_change_when_applied_then_its_old_run_is_no_success(
    stub: Stub, pdc: Pdc, tmp_path: Path, status: dict[str, Any], replicas: int, said: str, flags: list[str]
) -> None:
    stub.add(stored("old", **status))
    (tmp_path / "job.yaml").write_text(TRAIN.format(replicas=replicas, image="new"))
    result = pdc("apply", "-f", str(tmp_path / "job.yaml"), *flags)
    assert said in result.err
    assert result.code == 4
    assert pdc("apply", "-f", str(tmp_path / "job.yaml")).code == 0, "nobody waits"


@pytest.mark.parametrize(
    ("status", "replicas", "image"),
    [
        ({"phase": "Completed"}, 1, "old"),
        ({"phase": "Failed", "reason": "InvalidSpec"}, 1, "new"),
        ({"phase": "Pending"}, 1, "new"),
        ({"phase": "Suspended", "conditions": [{"type": "Created", "status": "False"}]}, 1, "new"),
    ],
)
def test_given_a_job_that_runs_as_applied_when_applied_then_nothing_is_noted(
    stub: Stub, pdc: Pdc, tmp_path: Path, status: dict[str, Any], replicas: int, image: str
) -> None:
    stub.add(stored("old", **status))
    (tmp_path / "job.yaml").write_text(TRAIN.format(replicas=replicas, image=image))
    result = pdc("apply", "-f", str(tmp_path / "job.yaml"))
    assert (result.code, result.err) == (0, "")


def test_given_a_changed_finished_job_when_the_same_file_is_applied_again_then_it_is_still_no_success(
    stub: Stub, pdc: Pdc, tmp_path: Path
) -> None:
    stub.add(stored("new", phase="Completed", observedGeneration=1))["metadata"]["generation"] = 2
    (tmp_path / "job.yaml").write_text(TRAIN.format(replicas=1, image="new"))
    result = pdc("apply", "-f", str(tmp_path / "job.yaml"), "--wait")
    assert FINISHED in result.err
    assert result.code == 4


@pytest.mark.parametrize(
    ("field", "said"),
    [
        ("cleanPodPolicy: Allways", 'cleanPodPolicy "Allways" is unknown and read as Never; did you mean "Always"?'),
        ("intranet: Hst", 'intranet "Hst" is unknown and read as PodIP; did you mean "Host"?'),
        ("cleanPodPolicy: onFailed", ""),
    ],
)
def test_a_word_that_the_controller_does_not_understand_is_warned_of(
    stub: Stub, pdc: Pdc, tmp_path: Path, field: str, said: str
) -> None:
    (tmp_path / "job.yaml").write_text(TRAIN.format(replicas=1, image="x") + f"  {field}\n")
    result = pdc("apply", "-f", str(tmp_path / "job.yaml"))
    assert (result.code, result.err) == (0, f"Warning: {said}\n" if said else "")


# diff


def test_diff_shows_what_would_change(stub: Stub, pdc: Pdc, config: Path) -> None:
    result = pdc("diff", "-f", str(config))
    assert result.code == 1
    assert "+  key: a" in result.out
    pdc("apply", "-f", str(config))
    assert pdc("diff", "-f", str(config)) == (0, "", "")
    config.write_text(CONFIG.format(name="one", value="b"))
    lines = pdc("diff", "-f", str(config)).out.splitlines()
    assert "-  key: a" in lines
    assert "+  key: b" in lines
    assert stub.objects[("configmaps", "default", "one")]["data"] == {"key": "a"}, "diff writes nothing"


def test_diff_for_programs(stub: Stub, pdc: Pdc, config: Path) -> None:
    result = pdc("diff", "-f", str(config), "-o", "json")
    assert result.code == 1
    assert result.json()["items"][0]["different"] is True


def test_diff_keeps_secrets(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    stub.kinds.append(("", "v1", "secrets", "Secret", True, []))
    path = tmp_path / "s.yaml"
    path.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: c2FtZQ==, b: b25l}\n")
    pdc("apply", "-f", str(path))
    path.write_text("apiVersion: v1\nkind: Secret\nmetadata: {name: s}\ndata: {a: c2FtZQ==, b: dHdv}\n")
    out = pdc("diff", "-f", str(path)).out
    assert "b25l" not in out
    assert "dHdv" not in out
    assert "-  b: '*** (before)'" in out
    assert "+  b: '*** (after)'" in out


def test_an_unspecific_error_of_diff_is_not_1(stub: Stub, pdc: Pdc, config: Path) -> None:
    path = "/api/v1/namespaces/default/configmaps/one"
    stub.refuse[("PATCH", path)] = (500, {"reason": "InternalError", "message": "oops", "code": 500})
    assert pdc("diff", "-f", str(config)).code == 2


# delete


@pytest.fixture
def pods(stub: Stub) -> Stub:
    for name, app in (("a", "web"), ("b", "web"), ("c", "db")):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "labels": {"app": app}}})
    return stub


def left(stub: Stub) -> str:
    return "".join(sorted(name for _, _, name in stub.objects))


@pytest.mark.parametrize(
    ("arguments", "remains"),
    [
        (["pod", "a"], "bc"),
        (["pod", "a", "b"], "c"),
        (["pod/a", "po/c"], "b"),
        (["pods", "-l", "app=web"], "c"),
        (["pods", "--all"], ""),
        (["pods", "--field-selector", "metadata.name=c"], "ab"),
    ],
)
def test_delete_takes_what_was_named(pods: Stub, pdc: Pdc, arguments: list[str], remains: str) -> None:
    result = pdc("delete", *arguments, "-y")
    assert result.code == 0
    assert left(pods) == remains
    assert "deleted" in result.out


def test_delete_without_a_terminal_needs_yes(pods: Stub, pdc: Pdc) -> None:
    result = pdc("delete", "pod", "a")
    assert result.code == 2
    assert "no terminal" in result.err
    assert "-y" in result.err
    assert left(pods) == "abc"


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("answer", "code", "remains"), [("y\n", 0, "bc"), ("yes\n", 0, "bc"), ("n\n", 103, "abc"), ("", 103, "abc")]
)
def test_delete_asks_on_a_terminal(
    pods: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, answer: str, code: int, remains: str
) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stdin", Terminal(answer))
    monkeypatch.setattr(sys, "stderr", screen)
    assert pdc("delete", "pod", "a").code == code
    assert "Delete pod/a in default? [y/N]" in screen.getvalue()
    assert left(pods) == remains


def test_dry_runs_delete_nothing_and_ask_nothing(pods: Stub, pdc: Pdc) -> None:
    for mode in ("client", "server"):
        result = pdc("delete", "pods", "--all", f"--dry-run={mode}")
        assert result.code == 0
        assert f"({mode} dry run)" in result.out
    assert left(pods) == "abc"


def test_what_is_gone_already(pods: Stub, pdc: Pdc) -> None:
    result = pdc("delete", "pod", "a", "zzz", "-y")
    assert result.code == 3
    assert "pod/a deleted" in result.out
    assert "pod/zzz in default does not exist" in result.err
    assert pdc("delete", "pod", "zzz", "-y", "--ignore-not-found") == (0, "", "")


@pytest.mark.parametrize(
    ("flags", "options"),
    [
        ([], {"propagationPolicy": "Background"}),
        (["--force"], {"propagationPolicy": "Background", "gracePeriodSeconds": 0}),
        (["--grace-period", "5"], {"propagationPolicy": "Background", "gracePeriodSeconds": 5}),
        (["--cascade=orphan"], {"propagationPolicy": "Orphan"}),
        (["--cascade", "foreground"], {"propagationPolicy": "Foreground"}),
    ],
)
def test_delete_options_reach_the_server(pods: Stub, pdc: Pdc, flags: list[str], options: dict[str, Any]) -> None:
    pdc("delete", "pod", "a", "-y", *flags)
    _, _, body = pods.asked("DELETE")[0]
    assert {key: value for key, value in body.items() if key not in ("kind", "apiVersion")} == options


def test_files_are_deleted_in_reverse(stub: Stub, pdc: Pdc, tmp_path: Path) -> None:
    path = tmp_path / "x.yaml"
    path.write_text(
        "apiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n---\n" + CONFIG.format(name="one", value="a")
    )
    pdc("apply", "-f", str(path))
    assert pdc("delete", "-f", str(path), "-y").out == "configmap/one deleted\nnamespace/n deleted\n"


def test_delete_of_a_set_without_a_finalizer_ends_well(stub: Stub, pdc: Pdc) -> None:
    bare = {"kind": "SampleSet", "metadata": {"name": "misspelt"}, "status": {"message": "spec.source.uri: …"}}
    stub.add(bare)
    result = pdc("delete", "sampleset", "misspelt", "-y")
    assert result == (0, "sampleset.batch.paddlepaddle.org/misspelt deleted\n", "")


def test_delete_that_does_not_end_says_who_holds_it(pods: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    held = pods.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "h", "finalizers": ["x.org/hold"]}})
    path = "/api/v1/namespaces/default/pods/h"
    pods.refuse[("DELETE", path)] = (200, held)
    result = pdc("delete", "pod", "h", "-y", "--timeout", "1s")
    assert result.code == 124
    assert "finalizers x.org/hold" in result.err
    assert pdc("delete", "pod", "h", "-y", "--wait=false").code == 0


def test_delete_says_what_the_object_waits_for(pods: Stub, pdc: Pdc) -> None:
    text = "deletion waits for Pod train-worker-0 to end"
    meta = {"name": "d", "finalizers": ["x.org/hold"], "deletionTimestamp": "2027-01-15T07:55:00Z"}
    status = {"phase": "Ready", "conditions": [{"type": "InUse", "status": "True", "message": text}]}
    held = pods.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status})
    pods.refuse[("DELETE", "/api/v1/namespaces/default/pods/d")] = (200, held)
    result = pdc("delete", "pod", "d", "-y", "--timeout", "1s")
    assert result.code == 124
    assert f"pod/d in default: {text}\n" in result.err
    assert f"is still there after 1 s: {text}" in result.err


def test_ctrl_c_while_delete_waits_says_that_the_deletion_goes_on(pods: Stub) -> None:
    text = "deletion waits for Pod train-worker-0 to end"
    meta = {"name": "d", "finalizers": ["x.org/hold"], "deletionTimestamp": "2027-01-15T07:55:00Z"}
    status = {"phase": "Ready", "conditions": [{"type": "InUse", "status": "True", "message": text}]}
    held = pods.add({"apiVersion": "v1", "kind": "Pod", "metadata": meta, "status": status})
    pods.refuse[("DELETE", "/api/v1/namespaces/default/pods/d")] = (200, held)
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "delete", "pod", "d", "-y"], stderr=subprocess.PIPE, text=True
    )
    assert child.stderr is not None
    assert text in child.stderr.readline(), "it waits by now"
    child.send_signal(signal.SIGINT)
    _, err = child.communicate(timeout=60)
    assert child.returncode == 130
    assert err == "no longer waiting; the deletion goes on. To wait again: pdc wait pod/d --for=delete\n"


def test_delete_for_programs(pods: Stub, pdc: Pdc) -> None:
    report = pdc("delete", "pods", "-l", "app=web", "-y", "-o", "json").json()
    assert report["kind"] == "DeleteReport"
    assert [item["object"] for item in report["items"]] == ["pod/a", "pod/b"]


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["pods"],
        ["pod", "a", "--all"],
        ["pod", "a", "-l", "x=y"],
        ["pod", "a", "-A"],
        ["pod", "a", "-f", "x.yaml"],
        ["pod", "a", "--force", "--grace-period", "9"],
        ["pod", "a", "--grace-period", "-1"],
    ],
)
def test_ambiguous_deletions_are_refused(pods: Stub, pdc: Pdc, arguments: list[str]) -> None:
    assert pdc("delete", *arguments, "-y").code == 2
    assert left(pods) == "abc"
