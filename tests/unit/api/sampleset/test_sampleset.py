"""SampleSet and SampleJob: what is understood, what is refused, and in which words."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api import samplejob, sampleset


def sample_set(spec: dict[str, Any], name: str = "imagenet") -> sampleset.SampleSet:
    return sampleset.decode({"metadata": {"name": name, "namespace": "paddle-system"}, "spec": spec})


def sample_job(spec: dict[str, Any]) -> samplejob.SampleJob:
    return samplejob.decode({"metadata": {"name": "job", "namespace": "paddle-system"}, "spec": spec})


SOURCE = {"source": {"uri": "bos://bucket.ep/imagenet"}}
REF = {"sampleSetRef": {"name": "imagenet"}}


def test_one_partition_when_none_is_asked_for() -> None:
    assert sampleset.normalise(sample_set(SOURCE)).settings.partitions == 1


def test_credentials_of_the_source_fall_back_field_by_field() -> None:
    spec = {
        "source": {"uri": "bos://bucket.ep/x", "secretRef": {"namespace": "other"}},
        "secretRef": {"name": "data-center"},
    }
    settings = sampleset.normalise(sample_set(spec)).settings
    assert settings.source_secret == ("data-center", "other")
    assert settings.secret == ("data-center", "paddle-system")
    assert sampleset.normalise(sample_set(SOURCE)).settings.source_secret is None


def test_mount_options_keep_their_juicefs_names_and_zero_means_not_set() -> None:
    options = {"cache-size": 1024, "open-cache": 0, "writeback": True, "enable-xattr": False, "sub-dir": "a"}
    settings, warnings = sampleset.normalise(sample_set({**SOURCE, "csi": {"juiceFSMountOptions": options}}))
    assert settings.mount_options == {"cache-size": "1024", "writeback": True, "subdir": "a"}
    assert "subdir" in warnings[0]


def test_the_engine_is_left_open_when_none_is_named() -> None:
    assert sampleset.normalise(sample_set(SOURCE)).settings.driver == ""
    assert sampleset.normalise(sample_set({**SOURCE, "csi": {"driver": "local"}})).settings.driver == "local"


def test_cache_levels_split_their_paths() -> None:
    levels = [{"mediumType": "MEM", "path": "/dev/shm/a:/dev/shm/b", "cacheSize": 150}, {"path": "/data/c"}]
    found = sampleset.normalise(sample_set({**SOURCE, "cache": {"levels": levels}})).settings.levels
    assert [(level.medium, level.paths, level.size_mib) for level in found] == [
        ("MEM", ("/dev/shm/a", "/dev/shm/b"), 150),
        ("", ("/data/c",), 0),
    ]


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.source.uri", "FieldValueRequired"),
        ({**SOURCE, "partitions": 0}, "spec.partitions", "FieldValueInvalid"),
        ({**SOURCE, "partitions": 2_000_000_000}, "spec.partitions", "FieldValueInvalid"),
        ({"source": {"uri": "bos://"}}, "spec.source.uri", "FieldValueInvalid"),
        ({"source": {"uri": "file://tmp/x"}}, "spec.source.uri", "FieldValueInvalid"),
        ({"source": {"uri": "bucket/path/x"}}, "spec.source.uri", "FieldValueInvalid"),
        ({"source": {"uri": "https://example.org/y"}}, "spec.source.uri", "FieldValueInvalid"),
        ({"source": {"uri": "gopher://example.org"}}, "spec.source.uri", "FieldValueInvalid"),
        ({**SOURCE, "csi": {"driver": "alluxio"}}, "spec.csi.driver", "FieldValueNotSupported"),
        ({**SOURCE, "csi": {"driver": "juicefs"}}, "spec.secretRef.name", "FieldValueRequired"),
        ({**SOURCE, "cache": {"levels": []}}, "spec.cache.levels", "FieldValueInvalid"),
        (
            {**SOURCE, "cache": {"levels": [{"mediumType": "TAPE"}]}},
            "spec.cache.levels[0].mediumType",
            "FieldValueNotSupported",
        ),
    ],
)
def test_bad_sets_are_named_by_field_and_reason(spec: dict[str, Any], field: str, reason: str) -> None:
    found = sampleset.validate(sample_set(spec))
    assert (field, reason) in [(problem.field, problem.reason) for problem in found]
    sampleset.normalise(sample_set(spec))


@pytest.mark.parametrize("text", ["/a,writeback", "/a b", "/a\nsub-dir=/", "/$(id)", "/a;id", "/a|id", "/'a", "/`id`"])
def test_a_value_cannot_become_another_mount_option_or_command(text: str) -> None:
    options = [("metrics", text), ("cache-dir", text), ("sub-dir", text), ("free-space-ratio", f"0.1{text[2:]}")]
    for name, value in options:
        found = sampleset.validate(sample_set({**SOURCE, "csi": {"juiceFSMountOptions": {name: value}}}))
        assert [problem.field for problem in found] == [f"spec.csi.juiceFSMountOptions.{name}"]
    found = sampleset.validate(sample_set({**SOURCE, "cache": {"levels": [{"path": text}]}}))
    assert [problem.field for problem in found] == ["spec.cache.levels[0].path"]


def test_white_space_around_a_value_is_not_passed_on() -> None:
    options = {"sub-dir": "/a\n", "free-space-ratio": " 0.1\n"}
    spec = {**SOURCE, "csi": {"juiceFSMountOptions": options}, "cache": {"levels": [{"path": "/a:/b\n"}]}}
    settings, _ = sampleset.normalise(sample_set(spec))
    assert settings.mount_options == {"subdir": "/a", "free-space-ratio": "0.1"}
    assert settings.levels[0].paths == ("/a", "/b")


@pytest.mark.parametrize(("ratio", "fits"), [("0.2", True), ("0", True), (0, True), ("1.0", False), ("abc", False)])
def test_free_space_ratio(ratio: str | int, fits: bool) -> None:
    spec = {**SOURCE, "csi": {"juiceFSMountOptions": {"free-space-ratio": ratio}}}
    assert (sampleset.validate(sample_set(spec)) == []) == fits


@pytest.mark.parametrize(
    "uri", ["bos://b.ep/p", "s3://b.ep/p/", "file:///tmp/data", "https://example.org/data.tar.gz?x=1"]
)
def test_sources_that_can_be_read(uri: str) -> None:
    assert sampleset.uri_problem(uri) is None


@pytest.mark.parametrize(
    ("uri", "meant"),
    [
        ("/data/x", "did you mean file:///data/x?"),
        ("file://data/x", "did you mean file:///data/x?"),
        ("numbers", "as in file:///data/x"),
        ("s3://", "names no bucket or host"),
    ],
)
def test_an_address_of_another_form_is_answered_with_the_right_one(uri: str, meant: str) -> None:
    (problem,) = sampleset.validate(sample_set({"source": {"uri": uri}}))
    assert problem.message.endswith(meant)


def test_a_set_whose_data_is_there_needs_no_source() -> None:
    assert sampleset.validate(sample_set({"noSync": True})) == []


@pytest.mark.parametrize(
    ("name", "fits"), [("a" * 44, True), ("a" * 45, False), ("1st", False), ("a.b", False), ("a-1", True)]
)
def test_names_become_node_labels_and_services(name: str, fits: bool) -> None:
    assert (sampleset.validate(sample_set(SOURCE, name=name)) == []) == fits


@pytest.mark.parametrize(
    ("spec", "field", "reason"),
    [
        ({}, "spec.type", "FieldValueRequired"),
        ({"type": "copy", **REF}, "spec.type", "FieldValueNotSupported"),
        ({"type": "clear"}, "spec.sampleSetRef", "FieldValueRequired"),
        ({"type": "clear", "sampleSetRef": {}}, "spec.sampleSetRef.name", "FieldValueRequired"),
        ({"type": "sync", **REF, "syncOptions": {"source": "s3://b/x"}}, "spec.secretRef.name", "FieldValueRequired"),
        ({"type": "rmr", **REF}, "spec.rmrOptions.paths", "FieldValueRequired"),
        ({"type": "rmr", **REF, "rmrOptions": {"paths": []}}, "spec.rmrOptions.paths", "FieldValueInvalid"),
        ({"type": "rmr", **REF, "rmrOptions": {"paths": ["/"]}}, "spec.rmrOptions.paths[0]", "FieldValueInvalid"),
        (
            {"type": "rmr", **REF, "rmrOptions": {"paths": ["a/../../b"]}},
            "spec.rmrOptions.paths[0]",
            "FieldValueInvalid",
        ),
        (
            {"type": "sync", **REF, "secretRef": {"name": "none"}, "syncOptions": {"destination": "../x"}},
            "spec.syncOptions.destination",
            "FieldValueInvalid",
        ),
        (
            {"type": "warmup", **REF, "warmupOptions": {"strategyName": "magic"}},
            "spec.warmupOptions.strategyName",
            "FieldValueNotSupported",
        ),
        *(
            ({"type": "warmup", **REF, "warmupOptions": {name: 2_000_000_000}}, field, "FieldValueInvalid")
            for name in ("threads", "epochs", "ranksPerNode")
            if (field := f"spec.warmupOptions.{name}")
        ),
        ({"type": "warmup", **REF, "schedule": "every night"}, "spec.schedule", "FieldValueInvalid"),
    ],
)
def test_bad_jobs_are_named_by_field_and_reason(spec: dict[str, Any], field: str, reason: str) -> None:
    found = samplejob.validate(sample_job(spec))
    assert (field, reason) in [(problem.field, problem.reason) for problem in found]
    samplejob.normalise(sample_job(spec))


def test_a_warm_up_is_in_sequence_by_default() -> None:
    settings = samplejob.normalise(sample_job({"type": "warmup", **REF})).settings
    assert (settings.warmup.strategy, settings.warmup.threads, settings.warmup.paths) == ("sequence", 50, ())


def test_options_juicefs_no_longer_has_are_dropped_and_said() -> None:
    options = {"threads": 20, "update": True, "bwlimit": 0, "http-port": 6070, "start": 100, "destination": "train"}
    spec = {"type": "sync", **REF, "secretRef": {"name": "none"}, "syncOptions": options}
    settings, warnings = samplejob.normalise(sample_job(spec))
    assert settings.sync_options == {"threads": "20", "update": True, "start": "100"}
    assert settings.destination == "train"
    assert "http-port" in warnings[0]


def test_partitions_of_a_warm_up_come_from_the_set() -> None:
    spec = {"type": "warmup", **REF, "warmupOptions": {"partitions": 3}}
    assert "partitions" in samplejob.normalise(sample_job(spec)).warnings[0]


def test_an_unknown_scheme_is_answered_with_all_that_can_be_read() -> None:
    text = sampleset.uri_problem("ftp://host/data") or ""
    assert "scheme ftp is unknown: use http or https for an archive, or one of b2, bos" in text
