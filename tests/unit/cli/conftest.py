"""Every CLI test runs `main` in this process against its own stub API, with its own home directory."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from paddlecloud.cli.main import main
from unit.cli.stub import Stub


class Result(NamedTuple):
    code: int
    out: str
    err: str

    def json(self) -> Any:
        return json.loads(self.out)


Pdc = Callable[..., Result]


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "PADDLECLOUD_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


@pytest.fixture
def stub(home: Path) -> Iterator[Stub]:
    with Stub().running() as server:
        write_kubeconfig(home, server.url)
        yield server


def write_kubeconfig(home: Path, server: str) -> Path:
    path = home / ".kube" / "config"
    path.parent.mkdir(exist_ok=True)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "stub",
        "contexts": [{"name": "stub", "context": {"cluster": "stub", "user": "me"}}],
        "clusters": [{"name": "stub", "cluster": {"server": server}}],
        "users": [{"name": "me", "user": {"token": "secret-token"}}],
    }
    path.write_text(json.dumps(config))
    return path


@pytest.fixture
def pdc(capsys: pytest.CaptureFixture[str]) -> Pdc:
    def run(*arguments: str) -> Result:
        code = main(list(arguments))
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return run
