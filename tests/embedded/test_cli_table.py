"""Every command that names objects, in every way to name them: bare, with the kind, missing, ended; in every format.

What is misspelt is in test_cli_misspelt.py, what `--help` says in the unit tests of the command line.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
import yaml

from harness import Target, pdc
from paddlecloud.cli.command_table import COMMANDS
from paddlecloud.cli.failures import CONFLICT, INVALID, NOT_FOUND, OK, USAGE
from paddlecloud.cli.main import main

Run = Callable[..., tuple[int, str, str]]
FORMATS = ("json", "yaml", "name", "wide", "jsonpath={.kind}", "go-template={{.kind}}", "custom-columns=K:.kind")


class Row(NamedTuple):
    """How a command is called for a `{}`; its exit codes for what lives and what has ended. None: not applicable."""

    line: str
    live: int | None = OK
    ended: int | None = OK
    kind: str = "pdj"
    name: str = "live"
    bare: bool = True
    slash: bool = True
    missing: int = NOT_FOUND


ROWS = {
    "get": Row("get {}", bare=False),
    "ps": Row("ps {}"),
    "describe": Row("describe {}", bare=False),
    "explain": Row("explain {}", bare=False),
    "trace": Row("trace {}"),
    "logs": Row("logs {} --tail 1"),
    "events": Row("events --for {}", bare=False),
    "wait": Row("wait {} --for=jsonpath={{.metadata.name}}", bare=False),
    "top": Row("top pdj {}", slash=False),
    "delete": Row("delete {} -y --dry-run=server", bare=False),
    "scale": Row("scale {} --replicas 1", ended=CONFLICT),
    "suspend": Row("suspend {}", name="held", ended=CONFLICT),
    "resume": Row("resume {}", name="held", ended=CONFLICT),
    "retry": Row("retry {}", live=CONFLICT, ended=None),
    "exec": Row("exec {} -- true", ended=CONFLICT),
    "cp": Row("cp {}:/etc/hostname copy", ended=CONFLICT, slash=False),  # NAMESPACE/POD:PATH, as kubectl has it
    "visualdl": Row("visualdl {} --detach", live=INVALID, ended=INVALID),  # they have no volume with records
    "metrics": Row("metrics {} --logdir /nowhere", live=NOT_FOUND, ended=INVALID),  # only a running pod has its disk
    "port-forward": Row("port-forward {} 80", live=None, ended=CONFLICT),
    "promote": Row("promote {}", kind="pds", name="digits", live=CONFLICT, ended=None),
    "rollback": Row("rollback {}", kind="pds", name="digits", live=CONFLICT, ended=None),
    "samplejob": Row("samplejob warmup {} --no-wait", kind="sampleset", name="words", ended=None),
    "sampleset": Row(
        "sampleset advise {} --link 1Mbit --samples-per-second 1 --samples 9 --size 1Mi",
        kind="sampleset",
        name="words",
        ended=None,
    ),
    "model": Row("model show {}", kind="model", name="ocr", ended=None, slash=False),
    "pipeline": Row("pipeline show {}", kind="workflow", name="flow", ended=None),
    "node": Row("node restore {}", kind="node", name="", ended=None),
}
NAME_NO_OBJECTS = {
    "up", "down", "status", "doctor", "kubeconfig", "image", "apply", "diff", "run", "serve", "simulate", "install",
    "uninstall", "tenant", "notebooks", "crds", "api-resources", "version", "completion", "dashboard",
    "sample-data", "suite",
}  # fmt: skip
STREAMS = {"exec", "cp", "port-forward", "logs"}
"""Their output is that of programs and files; logs as JSON are lines."""


def objects() -> list[dict[str, Any]]:
    def job(name: str, command: list[str], **spec: Any) -> dict[str, Any]:
        container = {"name": "paddle", "image": "busybox", "command": command}
        worker = {"replicas": 1, "template": {"spec": {"containers": [container]}}}
        return {
            "apiVersion": "batch.paddlepaddle.org/v1",
            "kind": "PaddleJob",
            "metadata": {"name": name},
            "spec": {"cleanPodPolicy": "Never", "worker": worker, **spec},
        }

    return [
        job("live", ["sh", "-c", "echo started; exec sleep 3600"]),
        job("held", ["sh", "-c", "exec sleep 3600"], suspend=True),
        job("done", ["echo", "done"]),
        {
            "apiVersion": "serving.paddlepaddle.org/v1",
            "kind": "PaddleService",
            "metadata": {"name": "digits"},
            "spec": {"model": "nothing:v1", "service": {"minScale": 0}},
        },
        {
            "apiVersion": "modelhub.paddlepaddle.org/v1alpha1",
            "kind": "Model",
            "metadata": {"name": "ocr"},
            "spec": {
                "aliases": {"latest": "1"},
                "latestMoves": [{"alias": "latest", "to": "1", "by": "ada", "at": "2026-11-18T12:00:00Z"}],
            },
        },
        {
            "apiVersion": "modelhub.paddlepaddle.org/v1alpha1",
            "kind": "ModelVersion",
            "metadata": {"name": "ocr.1"},
            "spec": {"model": "ocr", "version": "1", "digest": f"sha256:{'0' * 64}", "size": 1, "files": 1},
        },
        {
            "apiVersion": "argoproj.io/v1alpha1",
            "kind": "Workflow",
            "metadata": {"name": "flow"},
            "spec": {"entrypoint": "main", "suspend": True, "templates": [{"name": "main", "suspend": {}}]},
        },
        {
            "apiVersion": "batch.paddlepaddle.org/v1alpha1",
            "kind": "SampleSet",
            "metadata": {"name": "words"},
            "spec": {"partitions": 1, "source": {"uri": "s3://nowhere/x"}, "secretRef": {"name": "none"}},
        },
    ]


@pytest.fixture
def run(main_context: None, server: Target, namespace: str, capsys: pytest.CaptureFixture[str]) -> Run:
    def call(*arguments: str) -> tuple[int, str, str]:
        code = main(["-n", namespace, *arguments])
        said = capsys.readouterr()
        return code, said.out, said.err

    items = {"apiVersion": "v1", "kind": "List", "items": objects()}
    pdc("-n", namespace, "apply", "-f", "-", env=server.env, input=json.dumps(items))
    pdc("-n", namespace, "wait", "pdj/done", "--for=finished", "--timeout=80s", env=server.env)
    pdc("-n", namespace, "wait", "pdj/live", "--for=jsonpath={.status.phase}=Running", "--timeout=80s", env=server.env)
    return call


def named(row: Row, name: str) -> list[tuple[str, list[str]]]:
    """The ways to name an object to a command."""
    one_word = row.line.startswith(("explain", "events"))
    forms = [name] if row.bare else [] if one_word else [f"{row.kind} {name}"]
    forms += [f"{row.kind}/{name}"] if row.slash else []
    return [(form, row.line.format(form).split()) for form in forms]


def own_name(row: Row, run: Run) -> str:
    return row.name or run("get", row.kind, "-o", "name")[1].split()[0].partition("/")[2]


def test_objects_are_named_alike_by_every_command(run: Run) -> None:
    for command, row in ROWS.items():
        cases = [(own_name(row, run), row.live), ("done", row.ended), ("nowhere", row.missing)]
        for name, expected in cases:
            for form, line in named(row, name) if expected is not None else ():
                code, _, said = run(*line)
                assert code == expected, f"pdc {command} with {form}: exit code {code}, {said}"
                assert "Traceback" not in said


def test_every_command_has_json_and_refuses_a_format_it_does_not_have(run: Run) -> None:
    for command, row in ROWS.items():
        if command in STREAMS:
            continue
        for _, line in named(row, own_name(row, run))[-1:]:
            plain, _, said_plainly = run(*line)
            for form in FORMATS:
                code, out, said = run(*line, "-o", form)
                if code == USAGE and "is not offered here" in said:
                    assert form != "json", f"pdc {command} has no JSON"
                    continue
                assert code == plain, f"pdc {command} -o {form}: {said}; without: {said_plainly}"
                if code == OK and form in ("json", "yaml"):
                    assert {"json": json.loads, "yaml": yaml.safe_load}[form](out)["kind"]
            assert run(*line, "-o", "nonsense")[0] == USAGE, f"pdc {command} takes any format"


def test_completion_offers_the_names_that_a_command_takes(run: Run) -> None:
    for row in ROWS.values():
        name = own_name(row, run)
        before = row.line.partition("{}")[0].split()
        if row.line.startswith(("events", "cp")):
            continue  # the value of a flag; a file, or a path behind a name
        offered = [name] if row.bare else [f"{row.kind}/{name}"]
        for one in offered:
            _, out, _ = run("__complete", "--", *before, one[:-1])
            assert one in out.split(), f"pdc {' '.join(before)} {one[:-1]}<Tab>: {out}"


def test_every_command_is_in_the_table() -> None:
    assert {command.name for command in COMMANDS} == set(ROWS) | NAME_NO_OBJECTS
