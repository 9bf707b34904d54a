"""How the process of a controller ends when it cannot go on: in a sentence, with a code that has it started anew."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.controllers import __main__ as program
from paddlecloud.kube.errors import Forbidden
from paddlecloud.kube.lease import LeadershipLost

KUBECONFIG = """
clusters: [{name: a, cluster: {server: "https://127.0.0.1:9"}}]
users: [{name: a, user: {token: x}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
current-context: a
"""


@pytest.mark.parametrize("error", [LeadershipLost("pod-1 lost it"), Forbidden("roles are not known yet")])
def test_what_ended_it_is_said_in_a_line(
    error: Exception, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    async def run(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(program, "run", run)
    for setting in ("garbage.collect_seldom", "logging.basicConfig"):  # of its own process, which this is not
        monkeypatch.setattr(f"{program.__name__}.{setting}", lambda **_: None)
    (tmp_path / "config").write_text(KUBECONFIG)
    assert program.main(["paddlejob", "--kubeconfig", str(tmp_path / "config")]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"error: {error}"
