"""Objects as data: read from anywhere, written back without loss, shown without harm."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from paddlecloud.api.paddlejob import PaddleJob, PaddleJobSpec, RoleSpec
from paddlecloud.kube.yamlio import load_all
from paddlecloud.sdk.handles import Objects
from paddlecloud.sdk.manifest import JobManifest, Manifest, ManifestError, manifest, read

EXAMPLES = sorted((Path(__file__).parents[3] / "examples").rglob("*.yaml"))


def jobs() -> list[tuple[str, dict[str, Any]]]:
    found = []
    for path in EXAMPLES:
        for line, body in load_all(path.read_text()):
            if isinstance(body, dict) and body.get("kind") == "PaddleJob":
                found.append((f"{path.name}:{line}", body))
    return found


JOBS = jobs()


def test_there_are_examples_to_try() -> None:
    assert len(JOBS) > 15


@pytest.mark.parametrize("body", [body for _, body in JOBS], ids=[name for name, _ in JOBS])
def test_every_example_survives_yaml_and_typed_reading(body: dict[str, Any]) -> None:
    [one] = read(manifest(body).to_yaml())
    assert one.body == body
    if isinstance(one, JobManifest):
        assert one.with_spec(one.spec).body == body


UNKNOWN = {
    "apiVersion": "batch.paddlepaddle.org/v1",
    "kind": "PaddleJob",
    "metadata": {"name": "x", "futureMeta": {"a": [1]}},
    "spec": {
        "futureField": {"deep": [1, {"two": None}]},
        "worker": {"replicas": 2, "futureRole": "kept", "template": {"spec": {"containers": [{"anything": True}]}}},
        "failurePolicy": {"rules": [{"action": "Fail", "exitCodes": [1, "128-159"]}]},
    },
    "status": {"phase": "Running", "futureStatus": 1},
}


def test_a_change_of_the_view_leaves_what_it_does_not_know() -> None:
    one = manifest(UNKNOWN)
    assert isinstance(one, JobManifest)
    spec = one.spec
    assert spec.worker is not None
    spec.worker.replicas = 5
    spec.suspend = True
    changed = one.with_spec(spec)
    worker = UNKNOWN["spec"]["worker"]  # type: ignore[index]
    assert changed.body["spec"] == {**UNKNOWN["spec"], "suspend": True, "worker": {**worker, "replicas": 5}}  # type: ignore[dict-item]
    assert changed.body["status"] == UNKNOWN["status"]
    assert one.body == UNKNOWN, "the original is as it was"


def test_a_field_taken_out_of_the_view_is_taken_out() -> None:
    one = manifest(UNKNOWN)
    assert isinstance(one, JobManifest)
    spec = one.spec
    spec.failure_policy = None
    assert "failurePolicy" not in one.with_spec(spec).body["spec"]
    assert "futureField" in one.with_spec(spec).body["spec"]


counts = st.one_of(st.none(), st.integers(0, 100))


@given(
    raw=st.dictionaries(st.sampled_from(["suspend", "backoffLimit", "strange", "ps", "worker"]), st.none()),
    workers=counts,
    later=counts,
    extra=st.dictionaries(st.text("abc", min_size=1), st.integers()),
)
def test_views_carry_their_changes_and_nothing_else(
    raw: dict[str, Any], workers: int | None, later: int | None, extra: dict[str, int]
) -> None:
    worker: dict[str, Any] = {f"x-{key}": value for key, value in extra.items()}
    if workers is not None:
        worker["replicas"] = workers
    body = {**UNKNOWN, "spec": {**raw, "worker": worker}}
    one = JobManifest(body)
    spec = one.spec
    assert spec.worker is not None
    spec.worker.replicas = later
    changed = one.with_spec(spec)
    assert changed.spec == spec
    assert {key: value for key, value in changed.body["spec"]["worker"].items() if key != "replicas"} == {
        key: value for key, value in worker.items() if key != "replicas"
    }
    assert {key: value for key, value in changed.body["spec"].items() if key != "worker"} == {
        key: value for key, value in raw.items() if key != "worker"
    }


def test_a_job_made_of_typed_parts_can_be_applied() -> None:
    job = PaddleJob(
        api_version="batch.paddlepaddle.org/v1",
        kind="PaddleJob",
        metadata={"name": "typed"},
        spec=PaddleJobSpec(worker=RoleSpec(replicas=2, template={"spec": {"containers": []}})),
    )
    [one] = read(job)
    assert isinstance(one, JobManifest)
    assert one.spec == job.spec
    assert yaml.safe_load(one.to_yaml()) == msgspec.to_builtins(job)


CONFIG = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}}
TEXT = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"


@pytest.mark.parametrize(
    "source",
    [
        TEXT,
        CONFIG,
        [TEXT],
        {"apiVersion": "v1", "kind": "List", "items": [CONFIG]},
        Manifest(CONFIG),
    ],
    ids=["text", "dict", "list", "List", "manifest"],
)
def test_objects_come_from_anywhere(source: Any) -> None:
    [one] = read(source)
    assert (one.kind, one.name) == ("ConfigMap", "c")


def test_files_are_read_by_text_and_by_path(tmp_path: Path) -> None:
    file = tmp_path / "x.yaml"
    file.write_text(TEXT + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: n}\n")
    for source in (file, str(file)):
        assert [one.kind for one in read(source)] == ["Namespace", "ConfigMap"], "what others live in goes first"


@pytest.mark.parametrize(
    ("source", "complaint"),
    [
        ("nowhere.yaml", "cannot read nowhere.yaml"),
        ("a: [\n", "line|expected"),
        ("kind: Pod\n", "apiVersion is missing"),
        ("apiVersion: v1\nkind: Pod\n", "no metadata.name"),
        ("- just\n- text\n", "not an object"),
        ("# nothing\n\n", "no object"),
        (42, "int cannot be applied"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": []}, "no metadata.name"),
    ],
)
def test_what_is_no_object_is_said(source: Any, complaint: str) -> None:
    with pytest.raises(ManifestError, match=complaint):
        read(source)


def test_notebooks_show_text_and_never_markup() -> None:
    evil = "<script>alert(1)</script>"
    job = JobManifest({**UNKNOWN, "metadata": {"name": evil}, "status": {"phase": "Failed", "message": evil}})
    for shown in (job._repr_html_(), Objects([job])._repr_html_(), Manifest(job.body)._repr_html_()):
        assert "<script>" not in shown
        assert "&lt;script&gt;" in shown
    assert "Failed" in job._repr_html_()
    assert repr(manifest(UNKNOWN)) == "<PaddleJob x Running>"


def test_managed_fields_are_the_servers_business() -> None:
    one = Manifest({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "managedFields": [1]}, "x": 1})
    assert "managedFields" not in one.to_yaml()
    assert one.metadata["managedFields"] == [1]
