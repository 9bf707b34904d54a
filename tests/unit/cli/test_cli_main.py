"""The frame around all commands: finding them, help, exit codes, error texts, streams."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from paddlecloud.cli import command_table, failures
from paddlecloud.cli.main import main, split_command
from paddlecloud.cli.parsing import Parsers
from paddlecloud.kube import errors
from unit.cli.conftest import Pdc, write_kubeconfig
from unit.cli.stub import Stub


@pytest.mark.parametrize("command", command_table.COMMANDS, ids=lambda command: command.name)
def test_every_command_has_help_and_the_global_flags(command: command_table.Command, pdc: Pdc) -> None:
    result = pdc(command.name, "--help")
    assert result.code == 0
    assert f"pdc {command.name}" in result.out
    for flag in ("--namespace", "--context", "--kubeconfig", "--output", "--yes", "--debug"):
        assert flag in result.out
    assert pdc("help", command.name).out == result.out


def test_help_has_each_group_of_commands_once(pdc: Pdc) -> None:
    lines = pdc("--help").out.splitlines()
    for section in {command.section for command in command_table.COMMANDS}:
        assert lines.count(section) == 1


def test_help_lists_every_command(pdc: Pdc) -> None:
    text = pdc("--help").out
    for command in command_table.COMMANDS:
        assert f"  {command.name} " in text
    assert pdc().out == text
    assert pdc("help").out == text


@pytest.mark.parametrize(
    ("line", "name", "rest"),
    [
        ("get pods -n x", "get", "pods -n x"),
        ("-n x get pods", "get", "-n x pods"),
        ("--context=c get pods", "get", "--context=c pods"),
        ("--context c -y delete", "delete", "--context c -y"),
        ("-o json get", "get", "-o json"),
        ("--debug", None, "--debug"),
        ("", None, ""),
    ],
)
def test_the_command_is_found_between_global_flags(line: str, name: str | None, rest: str) -> None:
    assert split_command(line.split()) == (name, rest.split())


def test_a_misspelt_command_is_guessed(pdc: Pdc) -> None:
    result = pdc("gte", "pods")
    assert result.code == 2
    assert 'did you mean "get"?' in result.err
    assert "next:  pdc get --help" in result.err


@pytest.mark.parametrize(
    ("reason", "code", "exit_code"),
    [
        ("NotFound", 404, 3),
        ("Conflict", 409, 4),
        ("AlreadyExists", 409, 4),
        ("Invalid", 422, 5),
        ("BadRequest", 400, 5),
        ("Forbidden", 403, 6),
        ("Unauthorized", 401, 6),
        ("ServiceUnavailable", 503, 7),
        ("Timeout", 504, 124),
        ("InternalError", 500, 1),
        ("TooManyRequests", 429, 1),
        ("SomethingNew", 418, 1),
    ],
)
def test_a_refusal_becomes_an_exit_code_and_three_facts(
    stub: Stub, pdc: Pdc, reason: str, code: int, exit_code: int
) -> None:
    path = "/api/v1/namespaces/default/pods"
    stub.refuse[("GET", path)] = (code, {"reason": reason, "message": "the server says no", "code": code})
    result = pdc("get", "pods")
    assert result.code == exit_code
    assert result.err.startswith("error: cannot get pods: the server says no\nnext:  ")
    assert result.out == ""
    assert "Traceback" not in result.err


def test_every_reason_of_the_api_has_a_next_step() -> None:
    for cls in errors.ApiError.__subclasses__():
        failure = failures.from_api(cls("no", details={"kind": "pods", "name": "x"}), doing="cannot do it")
        assert failure.next
        assert failure.exit_code in failures.MEANINGS


def test_errors_are_json_for_programs(stub: Stub, pdc: Pdc) -> None:
    result = pdc("get", "pod", "gone", "-o", "json")
    report = json.loads(result.err)
    assert report["apiVersion"] == "cli.paddlecloud.org/v1"
    assert (report["kind"], report["reason"], report["exitCode"]) == ("Error", "NotFound", 3)
    assert report["why"] == 'pods "gone" not found'
    assert result.out == ""


def test_an_unreachable_server_is_exit_7(home: Path, pdc: Pdc) -> None:
    write_kubeconfig(home, "http://127.0.0.1:1")
    result = pdc("get", "pods")
    assert result.code == 7
    assert "127.0.0.1:1" in result.err
    assert "pdc doctor" in result.err


def test_no_kubeconfig_is_exit_7_and_says_where_it_looked(home: Path, pdc: Pdc) -> None:
    result = pdc("get", "pods")
    assert result.code == 7
    assert str(home / ".kube" / "config") in result.err
    assert "pdc up" in result.err


def test_an_unknown_context_is_exit_2_and_names_those_there_are(stub: Stub, pdc: Pdc) -> None:
    result = pdc("get", "pods", "--context", "prod")
    assert result.code == 2
    assert "prod" in result.err
    assert "stub" in result.err


def test_an_unknown_kind_is_exit_3(stub: Stub, pdc: Pdc) -> None:
    result = pdc("get", "podz")
    assert result.code == 3
    assert "did you mean" in result.err
    assert "next:  pdc api-resources" in result.err


def test_a_fault_of_ours_has_no_traceback_unless_asked(stub: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object) -> int:
        raise KeyError("inside")

    def add_broken(parsers: Parsers) -> None:
        parsers.add_parser("version").set_defaults(run=broken)

    monkeypatch.setattr("paddlecloud.cli.commands.version.add_commands", add_broken)
    result = pdc("version")
    assert result.code == 1
    assert "Traceback" not in result.err
    assert "--debug" in result.err
    assert "Traceback" in pdc("version", "--debug").err


def test_the_token_is_in_no_error(stub: Stub, pdc: Pdc) -> None:
    stub.refuse[("GET", "/api/v1/namespaces/default/pods")] = (401, {"reason": "Unauthorized", "message": "who?"})
    result = pdc("get", "pods", "--debug")
    assert result.code == 6
    assert "secret-token" not in result.err


def test_interrupt_is_130(pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(*_: object) -> int:
        raise KeyboardInterrupt

    monkeypatch.setattr("paddlecloud.cli.main._dispatch", interrupted)
    assert pdc("get", "pods").code == 130


def test_a_reader_that_leaves_early_is_no_error(stub: Stub) -> None:
    for number in range(3000):
        stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"pod-with-a-long-name-{number}"}})
    child = subprocess.Popen(
        [sys.executable, "-m", "paddlecloud.cli.main", "get", "pods"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert child.stdout is not None
    assert child.stderr is not None
    child.stdout.readline()
    child.stdout.close()
    assert child.stderr.read() == b""
    child.stderr.close()
    assert child.wait(30) == 0


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("environment", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_colour_only_on_terminals_that_want_it(
    stub: Stub, monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], coloured: bool
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Running"}})
    assert main(["describe", "pod", "p"]) == 0
    assert ("\x1b[" in terminal.getvalue()) is coloured


def test_no_colour_in_a_pipe(stub: Stub, pdc: Pdc) -> None:
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "status": {"phase": "Failed"}})
    assert "\x1b" not in pdc("describe", "pod", "p").out


@pytest.mark.parametrize(
    ("flag", "fine"),
    [("--wait=false", True), ("--wait=true", True), ("--wait=maybe", False), ("--force=false", True)],
)
def test_kubectls_boolean_flags_are_understood(stub: Stub, pdc: Pdc, flag: str, fine: bool) -> None:
    stub.add({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}})
    result = pdc("delete", "pod", "p", "-y", flag)
    assert result.code == (0 if fine else 2)
