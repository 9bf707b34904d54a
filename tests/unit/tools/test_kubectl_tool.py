"""Where kubectl comes from when the machine has none."""

from __future__ import annotations

from pathlib import Path

import pytest

from tools import kubectl


@pytest.fixture
def bare(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without kubectl, and a folder for what is built."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PDC_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    (tmp_path / "bin").mkdir()
    return tmp_path


VERSION = 'if [ "$1" = version ]; then echo go version go1.26.1 linux/amd64; exit; fi'


def program(path: Path, text: str = "") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_the_one_on_path_is_taken_first(bare: Path) -> None:
    program(bare / "tools" / "kubectl")
    found = program(bare / "bin" / "kubectl")
    assert kubectl.find_or_build() == str(found)


def test_without_go_the_way_out_is_named(bare: Path) -> None:
    assert kubectl.find() is None
    with pytest.raises(kubectl.BuildError, match="install kubectl, or Go"):
        kubectl.find_or_build()


def test_it_is_built_once_and_kept(bare: Path) -> None:
    program(bare / "bin" / "go", f"{VERSION}; echo run >> {bare}/runs; test -s go.mod && echo built > kubectl")
    first = kubectl.find_or_build()
    assert first == kubectl.find_or_build() == str(bare / "tools" / "kubectl")
    assert Path(first).read_text() == "built\n"
    assert (bare / "runs").read_text() == "run\n"
    assert [path.name for path in (bare / "tools").iterdir()] == [Path(first).name]


def test_a_failed_build_leaves_nothing_and_says_why(bare: Path) -> None:
    program(bare / "bin" / "go", f"{VERSION}; echo no network >&2; exit 1")
    with pytest.raises(kubectl.BuildError, match="no network"):
        kubectl.find_or_build()
    assert list((bare / "tools").iterdir()) == []


def test_the_wrapper_pins_every_staging_module() -> None:
    text = kubectl.go_mod()
    assert "require k8s.io/kubernetes v1.34.3\n" in text
    assert "\tk8s.io/client-go => k8s.io/client-go v0.34.3\n" in text
    assert text.count("=>") == len(kubectl.STAGING)
