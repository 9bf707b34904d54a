"""Data → job → version → service, and back, of what exists and of what versions recorded."""

from __future__ import annotations

import contextlib
import time
from typing import Any

import pytest

from paddlecloud.api.names import PACKED_VERSION
from paddlecloud.cli.render.lineage import tree
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.lineage import DATA, JOB, SERVICE, VERSION, LineageNode, NotRecorded, TracedObjects, trace

RECORDED = {
    "job": "train",
    "job-uid": "j-1",
    "image": "paddle:3",
    "command": "python train.py",
    "data": "words",
    "data.words.uid": "s-1",
    "data.words.generation": "1",
}


def obj(name: str, uid: str = "", **body: Any) -> Object:
    return {"metadata": {"name": name, "uid": uid, "generation": 1}, **body}


def version(number: str, origin: dict[str, str] | None = None, model: str = "ocr") -> Object:
    spec = {"model": model, "version": number, "size": 5, "createdAt": f"2026-01-0{number[0]}T00:00:00Z"}
    return obj(f"{model}.{number}", f"v-{number}", spec={**spec, "origin": origin or {}})


def world(**found: list[Object]) -> TracedObjects:
    aliases = {"production": "1", "latest": "1"}
    models = [obj("ocr", spec={"aliases": aliases, "moves": []})]
    return TracedObjects.of({"models": models, "modelversions": [version("1", RECORDED)], **found})


TRAIN = obj(
    "train", "j-1", spec={"sampleSetRef": {"name": "words", "mountPath": "/data"}}, status={"phase": "Completed"}
)
WORDS = obj("words", "s-1", spec={"source": {"uri": "file:///words"}})
SERVED = obj(
    "ocr", "p-1", spec={"model": "ocr@production"}, status={"conditions": [{"type": "Ready", "status": "True"}]}
)


def shown(nodes: list[LineageNode]) -> list[Any]:
    return [(node.kind, node.name, node.state, shown(node.children)) for node in nodes]


def test_a_version_leads_to_its_job_and_data_and_to_its_services() -> None:
    found = trace(world(paddlejobs=[TRAIN], samplesets=[WORDS], paddleservices=[SERVED]), VERSION, "ocr@production")
    assert found.node.name == "ocr:1"
    assert shown(found.origin) == [(JOB, "train", "exists", [(DATA, "words", "exists", [])])]
    assert shown(found.use) == [(SERVICE, "ocr", "exists", [])]
    assert found.use[0].facts["ready"] is True


def test_data_leads_to_jobs_versions_and_services() -> None:
    found = trace(world(paddlejobs=[TRAIN], samplesets=[WORDS], paddleservices=[SERVED]), DATA, "words")
    service: Any = (SERVICE, "ocr", "exists", [])
    assert shown(found.use) == [(JOB, "train", "exists", [(VERSION, "ocr:1", "exists", [service])])]


def test_a_service_leads_back_to_data() -> None:
    found = trace(world(paddlejobs=[TRAIN], samplesets=[WORDS], paddleservices=[SERVED]), SERVICE, "ocr")
    job: Any = (JOB, "train", "exists", [(DATA, "words", "exists", [])])
    assert shown(found.origin) == [(VERSION, "ocr:1", "exists", [job])]


def test_what_a_service_serves_is_what_its_status_says() -> None:
    entries = [{"name": "ocr", "version": "1", "percent": 90}, {"name": "ocr", "version": "2", "percent": 10}]
    service = obj("ocr", spec={"model": "ocr@production"}, status={"models": entries})
    found = trace(world(paddleservices=[service]), SERVICE, "ocr")
    assert [(one.name, one.state) for one in found.origin] == [("ocr:1", "exists"), ("ocr:2", "gone")]
    assert trace(world(paddleservices=[service]), VERSION, "ocr:1").use[0].facts["percent"] == 90


def test_a_service_that_fetches_an_archive_serves_the_version_that_its_step_marked() -> None:
    spec = {"default": {"containerImage": "serving"}, "env": [{"name": "MODEL_DIGEST", "value": "d1"}]}
    for mark, served in (("ocr:1 d1", ["ocr:1"]), ("ocr:1 d2", []), ("ocr:9 d1", []), ("ocr:1", []), ("", [])):
        service = obj("ocr", spec=spec)
        service["metadata"]["annotations"] = {PACKED_VERSION: mark}
        found = trace(world(paddleservices=[service]), SERVICE, "ocr")
        assert [one.name for one in found.origin] == served, mark


def test_a_job_and_data_that_are_gone_are_shown_as_recorded() -> None:
    found = trace(world(), VERSION, "ocr:1")
    assert shown(found.origin) == [(JOB, "train", "gone", [(DATA, "words", "gone", [])])]
    assert found.origin[0].facts["command"] == "python train.py"
    assert shown(trace(world(), JOB, "train").use) == [(VERSION, "ocr:1", "exists", [])]
    assert shown(trace(world(), DATA, "words").use) == [(JOB, "train", "gone", [(VERSION, "ocr:1", "exists", [])])]


def test_another_object_of_the_same_name_is_not_the_origin() -> None:
    later = {**TRAIN, "metadata": {**TRAIN["metadata"], "uid": "j-2"}}
    other = {**WORDS, "metadata": {**WORDS["metadata"], "uid": "s-2"}}
    found = world(paddlejobs=[later], samplesets=[other])
    origin = trace(found, VERSION, "ocr:1").origin
    assert shown(origin) == [(JOB, "train", "replaced", [(DATA, "words", "replaced", [])])]
    assert trace(found, JOB, "train").use == [], "the later job made nothing yet"


def test_data_that_changed_after_the_training_says_so() -> None:
    changed = {**WORDS, "metadata": {**WORDS["metadata"], "generation": 2}}
    ((job,),) = [trace(world(samplesets=[changed]), VERSION, "ocr:1").origin]
    assert (job.children[0].state, job.children[0].facts["now"]) == ("changed", {"generation": "2"})


def synced(revision: int, files: int) -> Object:
    return {**WORDS, "status": {"content": {"revision": revision, "files": files, "bytes": files * 10}}}


def test_files_that_were_synced_after_the_training_are_another_state_of_the_data() -> None:
    recorded = {**RECORDED, "data.words.revision": "1", "data.words.files": "1", "data.words.size": "21 B"}
    found = trace(world(modelversions=[version("1", recorded)], samplesets=[synced(3, 2)]), VERSION, "ocr:1")
    assert tree(found, "en")[3].endswith("revision 1 · 1 file · 21 B · changed since: revision 3 now")
    same = trace(world(modelversions=[version("1", recorded)], samplesets=[synced(1, 1)]), VERSION, "ocr:1")
    assert same.origin[0].children[0].state == "exists"


def test_jobs_show_the_state_of_the_data_that_their_pods_started_with() -> None:
    jobs = []
    for number in (1, 2):
        seen = [{"name": "words", "uid": "s-1", "revision": number, "files": number}]
        status = {"phase": "Completed", "data": seen}
        jobs.append(obj(f"train-{number}", f"j-{number}", spec=TRAIN["spec"], status=status))
    found = world(modelversions=[], paddlejobs=jobs, samplesets=[synced(2, 2)])
    first, second = (trace(found, JOB, f"train-{number}").origin[0] for number in (1, 2))
    assert (first.state, first.facts["files"], first.facts["now"]) == ("changed", "1", {"revision": "2"})
    assert (second.state, second.facts["files"]) == ("exists", "2")


def test_what_an_earlier_release_recorded_claims_no_state_of_the_files() -> None:
    (job,) = trace(world(samplesets=[synced(3, 2)]), VERSION, "ocr:1").origin
    assert "revision" not in job.children[0].facts
    assert "files" not in job.children[0].facts


def test_an_origin_that_was_written_by_hand_goes_by_name() -> None:
    versions = [version("1", {"job": "train"})]
    assert shown(trace(world(modelversions=versions, paddlejobs=[TRAIN]), VERSION, "ocr:1").origin) == [
        (JOB, "train", "exists", [])
    ]


def test_a_converted_version_leads_to_its_source_and_no_circle_is_endless() -> None:
    versions = [version("1", RECORDED), version("1-onnx", {"source": "ocr:1"})]
    found = world(modelversions=versions)
    assert shown(trace(found, VERSION, "ocr:1").use) == [(VERSION, "ocr:1-onnx", "exists", [])]
    (source,) = trace(found, VERSION, "ocr:1-onnx").origin
    assert (source.name, [one.name for one in source.children]) == ("ocr:1", ["train"])
    circle = world(modelversions=[version("1", {"source": "ocr:2"}), version("2", {"source": "ocr:1"})])
    trace(circle, VERSION, "ocr:1")


@pytest.mark.parametrize(
    ("kind", "name"), [(VERSION, "ocr:9"), (VERSION, "none"), (JOB, "x"), (DATA, "x"), (SERVICE, "x")]
)
def test_what_nobody_knows_is_unknown(kind: str, name: str) -> None:
    with pytest.raises(NotRecorded):
        trace(world(), kind, name)


def test_the_tree_is_in_both_languages() -> None:
    found = trace(world(samplesets=[WORDS], paddleservices=[SERVED]), VERSION, "ocr:1")
    lines = tree(found, "en")
    assert lines[0] == "model/ocr:1  production, latest · 5 B"
    assert lines[1:] == [
        "├─ from",
        "│  └─ pdj/train  gone, recorded · paddle:3 · python train.py",
        "│     └─ sampleset/words  file:///words · generation 1",
        "└─ to",
        "   └─ pds/ocr  ocr@production · ready",
    ]
    assert tree(found, "zh")[1:3] == ["├─ 来自", "│  └─ pdj/train  已不存在，仅有记录 · paddle:3 · python train.py"]
    bare = trace(world(modelversions=[version("1")]), VERSION, "ocr:1")
    assert tree(bare, "en")[1] == "   where it came from was not recorded"


def derived(number: int, source: str, **origin: str) -> Object:
    return version(str(number), {"source": source, "data": "words", **origin}, model="big")


HOSTILE = {
    "a long chain": [derived(n, f"big:{n - 1}") for n in range(1, 5000)],
    "very many of one": [derived(n, "big:1") for n in range(1, 5000)],
    "a circle": [derived(n, f"big:{(n + 1) % 5000}") for n in range(5000)],
    "one that names very much data": [derived(1, "", data="words," * 200_000)],
    "one that names much data": [derived(1, "", data=",".join(map(str, range(200_000))))],
}


@pytest.mark.parametrize("versions", HOSTILE.values(), ids=HOSTILE.keys())
def test_origins_that_are_made_to_be_slow_cost_little_and_the_trace_says_that_there_is_more(
    versions: list[Object],
) -> None:
    began = time.process_time()
    for kind, name in ((VERSION, "big:1"), (VERSION, "big:4000"), (DATA, "words")):
        found = world(modelversions=versions, samplesets=[WORDS])
        with contextlib.suppress(NotRecorded):
            lines = tree(trace(found, kind, name), "en")
            assert len(lines) < 1100
            if kind == DATA:
                assert found.is_cut == (len(versions) > 1)
    assert time.process_time() - began < 2, "seconds; a page of the dashboard waits for it"
