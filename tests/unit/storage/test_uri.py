"""Addresses: the rules that SampleSets have always had, and where object stores really answer."""

from __future__ import annotations

from pathlib import Path

import pytest

from paddlecloud.storage import credentials, endpoints, uri
from paddlecloud.storage.endpoints import Bucket
from paddlecloud.storage.errors import BadUri, Unsupported


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("bos://b.ep/p", ("bos", "b.ep", "p")),
        ("s3://bucket/deep/prefix/", ("s3", "bucket", "deep/prefix/")),
        ("minio://10.0.0.1:9000/bucket/p", ("minio", "10.0.0.1:9000", "bucket/p")),
        ("file:///tmp/d", ("file", "", "/tmp/d")),
        ("  redis://host:6379/1\n", ("redis", "host:6379", "1")),
        ("hdfs://user@namenode:8020/data", ("hdfs", "user@namenode:8020", "data")),
        ("https://host/deep/data.tar.gz", ("https", "host", "deep/data.tar.gz")),
        ("http://host:8000/data.zip", ("http", "host:8000", "data.zip")),
    ],
)
def test_an_address_has_three_parts(text: str, parts: tuple[str, str, str]) -> None:
    location = uri.parse(text)
    assert tuple(location) == parts
    assert str(location) == text.strip()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "empty"),
        ("bucket/path", "SCHEME://"),
        ("https://x/y", "must end in .tar"),
        ("ftp://host/file", "scheme ftp is unknown"),
        ("bos://b://c", "SCHEME://"),
        ("s3://", "names no bucket"),
        ("s3://KEY:geheim@bucket/p", "carries credentials"),
    ],
)
def test_a_bad_address_says_how_it_should_look(text: str, why: str) -> None:
    with pytest.raises(BadUri, match=why) as raised:
        uri.parse(text)
    assert "geheim" not in str(raised.value)


@pytest.mark.parametrize(
    ("source", "destination", "expected"),
    [
        ("bos://b.ep/p", "file:///mnt/S", ("bos://b.ep/p", "file:///mnt/S")),
        ("bos://b.ep/p/", "file:///mnt/S/train", ("bos://b.ep/p/", "file:///mnt/S/train/")),
        ("bos://b.ep/p", "file:///mnt/S/", ("bos://b.ep/p/", "file:///mnt/S/")),
    ],
)
def test_both_ends_name_a_folder_if_one_does(source: str, destination: str, expected: tuple[str, str]) -> None:
    assert uri.paired(source, destination) == expected


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("bos://data.bj.bcebos.com/p", Bucket("https://s3.bj.bcebos.com", "data", "p")),
        ("bos://data.s3.bj.bcebos.com/p", Bucket("https://s3.bj.bcebos.com", "data", "p")),
        ("s3://data", Bucket("https://s3.amazonaws.com", "data", "")),
        ("s3://data.s3.us-east-2.amazonaws.com/a/b", Bucket("https://s3.us-east-2.amazonaws.com", "data", "a/b")),
        ("oss://data.oss-cn-beijing.aliyuncs.com", Bucket("https://oss-cn-beijing.aliyuncs.com", "data", "")),
        ("minio://host:9000/data/a", Bucket("https://host:9000", "data", "a")),
        ("s3://127.0.0.1:8333/data/a", Bucket("https://127.0.0.1:8333", "data", "a")),
    ],
)
def test_where_a_store_answers(address: str, bucket: Bucket) -> None:
    assert endpoints.bucket_of(uri.parse(address), rewritten={}) == bucket


def test_a_store_without_an_endpoint_is_refused() -> None:
    with pytest.raises(BadUri, match="names no endpoint"):
        endpoints.bucket_of(uri.parse("oss://data/prefix"), rewritten={})


@pytest.mark.parametrize(
    ("address", "bucket"),
    [
        ("bos://public.hkg.bcebos.com/imagenet", Bucket("http://mirror:8333", "copies", "imagenet")),
        ("bos://other.hkg.bcebos.com/imagenet", Bucket("http://any:8333", "other", "imagenet")),
        ("bos://other.bj.bcebos.com/x", Bucket("https://s3.bj.bcebos.com", "other", "x")),
    ],
)
def test_the_map_of_mirrors_prefers_whole_names(address: str, bucket: Bucket) -> None:
    text = "bos://*.hkg.bcebos.com=http://any:8333,\nbos://public.hkg.bcebos.com=http://mirror:8333/copies"
    rewritten = endpoints.rewrites({endpoints.VARIABLE: text})
    assert endpoints.bucket_of(uri.parse(address), rewritten=rewritten) == bucket


def test_the_map_may_lie_in_a_file_and_must_be_pairs(tmp_path: Path) -> None:
    (tmp_path / "map").write_text("s3://a=http://h:1/b\n")
    assert endpoints.rewrites({endpoints.VARIABLE: f"@{tmp_path}/map"}) == {"s3://a": "http://h:1/b"}
    with pytest.raises(BadUri, match="is not SCHEME"):
        endpoints.rewrites({endpoints.VARIABLE: "s3://a"})


def test_keys_are_trimmed_and_never_shown(tmp_path: Path) -> None:
    (tmp_path / "access-key").write_text("AKID\n")
    (tmp_path / "secret-key").write_text(" geheim\n")
    keys = credentials.from_folder(tmp_path)
    assert (keys.access_key, keys.secret_key) == ("AKID", "geheim")
    assert "geheim" not in f"{keys!r} {keys}"
    assert credentials.redact("failed: geheim of AKID", keys) == "failed: … of …"
    assert not credentials.from_folder(tmp_path / "none")


def test_keys_reach_programs_by_environment_or_not_at_all() -> None:
    keys = credentials.from_values({"access-key": "AK", "secret-key": "SK", "other": "x"})
    assert keys.environment("bos") == {"BDCLOUD_ACCESS_KEY": "AK", "BDCLOUD_SECRET_KEY": "SK"}
    assert keys.environment("redis") == {"REDIS_PASSWORD": "SK"}
    assert credentials.from_values({}).environment("ceph") == {}
    with pytest.raises(Unsupported, match="ceph"):
        keys.environment("ceph")
