"""The executor starts a program, keeps its log, and says why it could not be started."""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.workflow.executor import data, logs, main, programs, saving
from paddlecloud.local.workflow.executor.keys import names_of, record_name
from paddlecloud.local.workflow.executor.orders import ORDERS


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder of the outputs volume and of the termination message. The executor passes signals on: no longer."""
    handlers = {number: signal.getsignal(number) for number in programs.PASSED_ON}
    monkeypatch.setattr(logs, "OUTPUTS", str(tmp_path))
    for module in (main, saving):
        monkeypatch.setattr(module, "MESSAGE", str(tmp_path / "message"))
    yield tmp_path
    for number, handler in handlers.items():
        signal.signal(number, handler)


def execute(monkeypatch: pytest.MonkeyPatch, orders: dict[str, Any], *arguments: str) -> int:
    monkeypatch.setenv(ORDERS, json.dumps(orders))
    return main.main(list(arguments))


def test_a_log_has_both_streams_and_the_result_one(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program = "import sys; print('out', flush=True); print('err', file=sys.stderr, flush=True); sys.exit(3)"
    code = execute(monkeypatch, {"log": {"number": 0}, "result": True}, "run", sys.executable, "-c", program)
    assert code == 3
    assert sorted((place / "0").read_text().split()) == ["err", "out"]
    assert json.loads((place / "message").read_text()) == {"result": "out"}
    assert json.loads((place / "0.json").read_text())["size"] == len("out\nerr\n")


@pytest.mark.parametrize(
    ("command", "why"),
    [
        ("no-such-program", "executable file not found in $PATH"),
        ("/no/such/program", "no such file or directory"),
        ("/etc/passwd", "permission denied"),
    ],
)
@pytest.mark.parametrize("orders", [{"result": True}, {"beside": True}])
def test_a_program_that_cannot_be_started_has_argos_exit_code(
    place: Path, monkeypatch: pytest.MonkeyPatch, orders: dict[str, Any], command: str, why: str
) -> None:
    assert execute(monkeypatch, orders, "run", command) == 64
    said = main.failure_in((place / "message").read_text())
    assert said == f'failed to find name in PATH: exec: "{command}": {why}'


@pytest.mark.parametrize(
    ("order", "paths"),
    [
        ({"key": ""}, ["a/one.py", "a/two.txt", "b/deep/three.py"]),
        ({"key": "a"}, ["a/one.py", "a/two.txt"]),
        ({"key": "", "transformation": ['filter(data, {# endsWith ".py"})']}, ["a/one.py", "b/deep/three.py"]),
        ({"key": "", "transformation": ["map(data, {len(#)})", "data[0]"]}, 8),
    ],
)
def test_a_data_template_lists_the_repository_of_the_namespace(
    place: Path, monkeypatch: pytest.MonkeyPatch, order: dict[str, Any], paths: Any
) -> None:
    monkeypatch.setattr(data, "ARTIFACTS", str(place))
    os.mkdir(place / "records")
    for key in ("a/one.py", "a/two.txt", "b"):
        (place / "records" / record_name(key)).write_text(json.dumps({"key": key}))
    for path in ("a/one.py", "a/two.txt", "b/deep/three.py"):
        file = Path(place, "files", *names_of(path))
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("x")
    assert execute(monkeypatch, {"data": order}, "data") == 0
    assert json.loads(json.loads((place / "message").read_text())["result"]) == paths


def test_an_expression_of_a_data_template_that_fails_says_which(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(data, "ARTIFACTS", str(place))
    os.mkdir(place / "records")
    assert execute(monkeypatch, {"data": {"key": "", "transformation": ["data", "nothing"]}}, "data") == 64
    assert "error processing data step 1" in (place / "message").read_text()
