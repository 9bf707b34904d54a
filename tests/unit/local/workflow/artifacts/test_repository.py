"""The built-in repository: what pods saved is taken over once, whatever crashes, and goes with its workflow."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.local.workflow.artifacts import repository as module
from paddlecloud.local.workflow.artifacts.repository import Repository
from paddlecloud.local.workflow.executor.keys import record_name
from paddlecloud.local.workflow.executor.trees import Unfit
from unit.local.deep import deep_tree

ORDERS: dict[str, Any] = {"artifacts": [{"name": "made", "path": "/tmp/made", "archive": "none", "key": "wf/pod/made"}]}
REPORT: dict[str, Any] = {"artifacts": [{"name": "made", "file": "../../../x", "digest": "sha256:1", "size": 5}]}


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    return Repository(tmp_path)


def save(repository: Repository, pod: str = "pod-uid", text: str = "hello", namespace: str = "ns") -> None:
    (repository.outputs_of(namespace, pod) / "0").write_text(text)


def content(repository: Repository, namespace: str = "ns", key: str = "wf/pod/made", inside: str = "") -> str | None:
    found = repository.opened(namespace, key, inside)
    if found is None:
        return None
    with found:
        return found.read().decode()


def collect(repository: Repository, workflow: str = "wf-uid", pod: str = "pod-uid", **orders: Any) -> dict[str, Any]:
    return repository.collect("ns", workflow, pod, orders or ORDERS, REPORT)


def test_outputs_are_taken_over_and_their_digests_recorded(repository: Repository) -> None:
    save(repository)
    report = collect(repository)
    assert report["artifacts"] == [{"name": "made", "digest": "sha256:1", "size": 5, "key": "wf/pod/made"}]
    assert content(repository) == "hello"
    assert (repository.record("ns", "wf/pod/made") or {})["digest"] == "sha256:1"
    assert content(repository, namespace="other") is None


def test_what_is_stored_under_a_key_is_there_until_it_is_forgotten(repository: Repository) -> None:
    assert not repository.is_stored("ns", "wf/pod/made"), "a namespace without artifacts has no folder"
    save(repository)
    collect(repository)
    kept = {key for key in ("wf/pod/made", "/wf/pod/made", "wf/pod", "wf/other", "", "x" * 2000, "wf/pod/made/x", "..")
            if repository.is_stored("ns", key)}  # fmt: skip
    assert kept == {"wf/pod/made", "/wf/pod/made", "wf/pod"}
    assert not repository.is_stored("other", "wf/pod/made")
    repository.forget("ns", "wf/pod/made", "wf-uid")
    assert not repository.is_stored("ns", "wf/pod/made")


def test_taking_over_may_be_repeated_after_a_crash_at_any_point(
    repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(repository)
    for broken in ("_write_json", "os.replace"):

        def crash(*_: Any, **__: Any) -> None:
            raise SystemExit

        with monkeypatch.context() as patch:
            patch.setattr(module.os if "." in broken else module, broken.rpartition(".")[2], crash)
            with pytest.raises(SystemExit):
                collect(repository)
    with monkeypatch.context() as patch:
        real, calls = module._write_json, []

        def crash_at_the_marker(path: Path, value: Any) -> None:
            calls.append(path)
            if "workflows" in path.parts:
                raise SystemExit
            real(path, value)

        patch.setattr(module, "_write_json", crash_at_the_marker)
        with pytest.raises(SystemExit):
            collect(repository)
    first = collect(repository)
    assert first == collect(repository)
    assert content(repository) == "hello"


@pytest.mark.parametrize("kind", ["link", "pipe", "gone"])
def test_what_is_neither_a_file_nor_a_folder_is_not_taken(kind: str, repository: Repository, tmp_path: Path) -> None:
    place = repository.outputs_of("ns", "pod-uid") / "0"
    if kind == "link":
        (tmp_path / "secret").write_text("secret")
        place.symlink_to(tmp_path / "secret")
    if kind == "pipe":
        os.mkfifo(place)
    assert "cannot be stored" in collect(repository)["error"]
    assert content(repository) is None


def test_a_report_that_is_a_link_is_not_read(repository: Repository, tmp_path: Path) -> None:
    (tmp_path / "other.json").write_text('{"result": "of another"}')
    (repository.outputs_of("ns", "pod-uid") / "report.json").symlink_to(tmp_path / "other.json")
    report = repository.collect("ns", "wf-uid", "pod-uid", ORDERS, {"file": "report.json"})
    assert "cannot be read" in report["error"]


def test_a_key_inside_a_file_is_an_error_of_the_step(repository: Repository) -> None:
    save(repository)
    collect(repository)
    save(repository, "second")
    order = {**ORDERS["artifacts"][0], "key": "wf/pod/made/inner"}
    assert "cannot be stored" in collect(repository, pod="second", artifacts=[order])["error"]


def test_artifacts_go_with_their_workflow_unless_another_overwrote_them_or_they_stay_for_ever(
    repository: Repository,
) -> None:
    for number, (key, gc) in enumerate({"a/usual": "", "a/never": "Never", "a/over": ""}.items()):
        save(repository, f"pod-{number}")
        collect(repository, "first", f"pod-{number}", artifacts=[{**ORDERS["artifacts"][0], "key": key, "gc": gc}])
    save(repository, "pod-later", "later")
    collect(repository, "second", "pod-later", artifacts=[{**ORDERS["artifacts"][0], "key": "a/over"}])
    repository.sweep({"ns"}, {"second"}, ())
    assert content(repository, key="a/usual") is None
    assert content(repository, key="a/never") == "hello"
    assert content(repository, key="a/over") == "later"
    repository.sweep({"ns"}, (), ())
    assert content(repository, key="a/over") is None
    repository.sweep((), (), ())
    assert content(repository, key="a/never") is None


def test_outputs_without_a_pod_go_after_a_while(repository: Repository) -> None:
    save(repository)
    place = repository.outputs_of("ns", "pod-uid")
    repository.sweep({"ns"}, (), ())
    assert place.exists()
    os.utime(place, (1, 1))
    repository.sweep({"ns"}, (), {"pod-uid"})
    assert place.exists()
    repository.sweep({"ns"}, (), ())
    assert not place.exists()


def test_files_inside_a_folder_are_found(repository: Repository, tmp_path: Path) -> None:
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    (folder / "deep").mkdir(parents=True)
    (folder / "deep" / "file").write_text("inner")
    (tmp_path / "secret").write_text("secret")
    collect(repository)
    assert content(repository, inside="deep/file") == "inner"
    assert content(repository, inside="../../../secret") is None
    with pytest.raises(IsADirectoryError):
        repository.opened("ns", "wf/pod/made", "deep")


def test_the_files_of_an_artifact_are_listed(repository: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    (folder / "deep" / "empty").mkdir(parents=True)
    for name in ("deep/b", "deep/a", "top"):
        (folder / name).write_text(name)
    collect(repository)
    assert sorted(repository.files("ns", "wf/pod/made") or ()) == ["deep/a", "deep/b", "top"]
    assert repository.files("ns", "wf/pod") is None, "a key without a record"
    assert repository.files("other", "wf/pod/made") is None
    save(repository, "pod-later", "later")
    collect(repository, "later", "pod-later", artifacts=[{**ORDERS["artifacts"][0], "key": "file"}])
    assert repository.files("ns", "file") == [""]
    monkeypatch.setattr("paddlecloud.local.workflow.artifacts.repository.MOST_LISTED", 2)
    with pytest.raises(Unfit, match="more than 2 files"):
        repository.files("ns", "wf/pod/made")


def test_a_name_that_is_no_text_is_not_listed(repository: Repository) -> None:
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    folder.mkdir()
    (folder / os.fsdecode(b"\xff")).write_text("odd")
    collect(repository)
    with pytest.raises(Unfit, match="is not UTF-8"):
        repository.files("ns", "wf/pod/made")


def test_a_key_without_a_record_of_the_namespace_is_not_served(repository: Repository) -> None:
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    folder.mkdir()
    (folder / "file").write_text("inner")
    collect(repository)
    assert content(repository, key="wf/pod/made/file") is None


@pytest.mark.parametrize("kind", ["link", "link in a folder", "pipe"])
def test_a_folder_with_more_than_files_and_folders_is_not_taken(kind: str, repository: Repository) -> None:
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    (folder / "deep").mkdir(parents=True)
    if kind == "pipe":
        os.mkfifo(folder / "odd")
    else:
        (folder / "deep" / "odd" if "folder" in kind else folder / "odd").symlink_to("../../../..")
    error = collect(repository)["error"]
    assert "odd" in error
    assert "store it as a tar" in error
    assert content(repository, inside="odd") is None


@pytest.fixture
def linked(repository: Repository, tmp_path: Path) -> Path:
    """A stored folder with a link, as a program that still runs could leave one: gives the folder it leads to."""
    folder = repository.outputs_of("ns", "pod-uid") / "0"
    folder.mkdir()
    collect(repository)
    outside = tmp_path / "outside"
    (outside / "folder").mkdir(parents=True)
    (outside / "secret").write_text("secret")
    (tmp_path / "namespaces/ns/files/wf/pod/made/link").symlink_to(outside)
    return outside


@pytest.mark.parametrize("name", ["secret", "folder", "new", "new/er"])
def test_no_key_writes_through_a_link(name: str, repository: Repository, linked: Path) -> None:
    before = sorted(linked.rglob("*"))
    for pod, make in (("file", Path.touch), ("tree", Path.mkdir)):
        make(repository.outputs_of("ns", pod) / "0")
        order = {**ORDERS["artifacts"][0], "key": f"wf/pod/made/link/{name}"}
        assert "cannot be stored" in collect(repository, pod=pod, artifacts=[order])["error"]
    assert sorted(linked.rglob("*")) == before
    assert (linked / "secret").read_text() == "secret"


@pytest.mark.parametrize("key", ["wf/pod/made/link/secret", "wf/pod/made/link/folder", "wf/pod/made/link"])
def test_no_key_reads_or_deletes_through_a_link(key: str, repository: Repository, linked: Path) -> None:
    record = {"key": key, "workflow": "wf-uid"}
    module._write_json(repository.readable_by("ns") / "records" / record_name(key), record)
    assert content(repository, key=key) is None
    assert content(repository, inside="link/secret") is None
    repository.forget("ns", key, "wf-uid")
    assert (linked / "secret").read_text() == "secret"
    assert (linked / "folder").is_dir()
    assert repository.record("ns", key) is None


def test_a_folder_that_is_too_deep_is_not_taken_and_goes(repository: Repository, tmp_path: Path) -> None:
    with deep_tree(repository.outputs_of("ns", "pod-uid") / "0"):
        assert "inside one another" in collect(repository)["error"]
        assert not (tmp_path / "outputs" / "ns" / "pod-uid").exists()


@pytest.mark.parametrize("how", ["overwritten", "forgotten", "swept with its workflow", "swept with its namespace"])
def test_a_deep_folder_goes(how: str, repository: Repository, tmp_path: Path) -> None:
    (repository.outputs_of("ns", "pod-uid") / "0").mkdir()
    collect(repository)
    stored = tmp_path / "namespaces" / "ns" / "files" / "wf" / "pod" / "made"
    with deep_tree(stored):
        if how == "overwritten":
            save(repository, "second")
            collect(repository, pod="second")
            assert content(repository) == "hello"
        elif how == "forgotten":
            repository.forget("ns", "wf/pod/made", "wf-uid")
        else:
            repository.sweep({"ns"} if "workflow" in how else (), (), ())
        assert not stored.is_dir()


def test_deep_outputs_without_a_pod_go(repository: Repository) -> None:
    place = repository.outputs_of("ns", "pod-uid")
    with deep_tree(place):
        os.utime(place, (1, 1))
        repository.sweep({"ns"}, (), ())
        assert not place.exists()


def test_a_folder_that_cannot_be_removed_does_not_keep_others(
    repository: Repository, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    real = module.remove_tree

    def fail_for_one(place: Path) -> None:
        if place.name == "stuck":
            raise RecursionError("too deep")
        real(place)

    monkeypatch.setattr(module, "remove_tree", fail_for_one)
    for pod in ("a", "stuck", "z"):
        os.utime(repository.outputs_of("ns", pod), (1, 1))
    repository.sweep({"ns"}, (), ())
    assert [each.name for each in (repository.folder / "outputs" / "ns").iterdir()] == ["stuck"]
    assert "stuck could not be removed" in caplog.text
