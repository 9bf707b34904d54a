"""Sync from a real S3 server: content, resumption, rules, and what goes wrong with stores."""

from __future__ import annotations

import base64
import itertools
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness import until
from paddlecloud.storage import endpoints, uri
from tools.s3 import ACCESS_KEY, SECRET_KEY, S3Server
from unit.cache.nuwa import Nuwa, tree

KEYS = {"access-key": f"{ACCESS_KEY}\n", "secret-key": f"{SECRET_KEY}\n"}
"""With the newline that `echo KEY | base64` adds."""
OBJECTS = {
    "train/a.jpg": b"a" * 3000,
    "train/b c'\"%20[1].jpg": b"b" * 4000,
    "train/deep/中文.jpg": b"c" * 5000,
    "val/d.txt": b"",
    "label.txt": b"labels",
}


@pytest.fixture(scope="module")
def bucket(s3_server: S3Server) -> str:
    store = s3_server.store("samples")
    for key, content in OBJECTS.items():
        store.put(f"imagenet/{key}", content)
    store.put("elsewhere/other", b"not ours")
    return "samples"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, s3_server: S3Server) -> Iterator[Nuwa]:
    """One for all, emptied between tests. Its map of mirrors has the manual's bucket."""
    mirrors = {"PADDLECLOUD_ENDPOINTS": f"bos://paddleflow-public.hkg.bcebos.com={s3_server.endpoint}/samples"}
    with Nuwa(tmp_path_factory.mktemp("nuwa"), env=mirrors) as running:
        yield running


@pytest.fixture(autouse=True)
def _empty(server: Nuwa) -> Iterator[None]:
    yield
    for name in sorted(tree(server.data)):
        (server.data / name).unlink()


_ids = itertools.count()


def sync(server: Nuwa, asked: dict[str, Any], keys: dict[str, str], *, timeout: float = 30) -> Any:
    job = f"job-{next(_ids)}"
    server.put(job, "sync", asked, credentials=keys)
    return server.wait(job, timeout=timeout)


def options(server: Nuwa, s3_server: S3Server, prefix: str = "imagenet", **more: Any) -> dict[str, Any]:
    source = f"s3://127.0.0.1:{s3_server.port}/samples/{prefix}"
    return {"source": source, "destination": f"file://{server.data}", "no-https": True, **more}


def test_objects_arrive_whole_and_once(server: Nuwa, s3_server: S3Server, bucket: str) -> None:
    job = sync(server, options(server, s3_server), KEYS)
    assert job["state"] == "Succeeded", job
    assert tree(server.data) == OBJECTS
    again = sync(server, options(server, s3_server, threads=2), KEYS)
    assert again["progress"]["skipped"] == len(OBJECTS)
    assert again["progress"]["bytes"] == 0


def test_objects_are_compared_by_what_the_store_shows_of_their_content(
    server: Nuwa, s3_server: S3Server, bucket: str
) -> None:
    sync(server, options(server, s3_server), KEYS)
    name = "train/a.jpg"
    store = s3_server.store("samples")
    store.put(f"imagenet/{name}", OBJECTS[name])  # uploaded again, the same
    again = sync(server, options(server, s3_server), KEYS)["progress"]
    assert (again["files"] - again["skipped"], again["deleted"]) == (0, 0)
    other = OBJECTS[name][::-1][:-1] + b"!"
    store.put(f"imagenet/{name}", other)
    try:
        newer = sync(server, options(server, s3_server), KEYS)["progress"]
        assert newer["files"] - newer["skipped"] == 1
        assert tree(server.data) == {**OBJECTS, name: other}
    finally:
        store.put(f"imagenet/{name}", OBJECTS[name])


def test_the_manuals_address_is_served_by_a_mirror(server: Nuwa, s3_server: S3Server, bucket: str) -> None:
    source = "bos://paddleflow-public.hkg.bcebos.com/imagenet/train"
    asked = {"source": source, "destination": f"file://{server.data}/train"}
    assert sync(server, asked, KEYS)["state"] == "Succeeded"
    assert len(tree(server.data)) == 3


@pytest.mark.parametrize(
    ("more", "arrived"),
    [
        ({"exclude": "*.txt"}, {key for key in OBJECTS if key.endswith(".jpg")}),
        ({"include": "label.txt", "exclude": "*.txt"}, {key for key in OBJECTS if key != "val/d.txt"}),
        ({"start": "train/b", "end": "val"}, {"train/b c'\"%20[1].jpg", "train/deep/中文.jpg"}),
        ({"dry": True}, set()),
    ],
)
def test_a_part_is_chosen(
    server: Nuwa, s3_server: S3Server, bucket: str, more: dict[str, Any], arrived: set[str]
) -> None:
    job = sync(server, options(server, s3_server, **more), KEYS)
    assert job["state"] == "Succeeded", job
    assert set(tree(server.data)) == arrived
    assert job["progress"]["files"] == (len(arrived) or len(OBJECTS))


def test_what_is_there_is_judged_by_the_rules_of_juicefs(server: Nuwa, s3_server: S3Server, bucket: str) -> None:
    train = server.data / "train"
    train.mkdir(parents=True, exist_ok=True)
    (train / "a.jpg").write_bytes(b"x" * 3000)  # same size, other content, unknown to the manifest
    (server.data / "label.txt").write_bytes(b"short")
    (server.data / "stranger").write_bytes(b"mine")
    future = 4_000_000_000
    os.utime(server.data / "label.txt", (future, future))
    sync(server, options(server, s3_server, update=True, exclude="a.jpg"), KEYS)
    assert (server.data / "label.txt").read_bytes() == b"short", "what is newer here was overwritten"
    sync(server, options(server, s3_server), KEYS)
    assert {key: value for key, value in tree(server.data).items() if key != "stranger"} == OBJECTS
    job = sync(server, options(server, s3_server, **{"delete-dst": True}), KEYS)
    assert job["state"] == "Succeeded"
    assert tree(server.data) == OBJECTS


@pytest.mark.parametrize(
    ("source", "keys", "words"),
    [
        ("s3://127.0.0.1:1/samples/imagenet", KEYS, ("Unreachable", "127.0.0.1:1", "refused")),
        ("s3://HOST/samples/imagenet", {**KEYS, "secret-key": "wrong"}, ("AccessDenied", "access-key")),
        ("s3://HOST/samples/imagenet", {}, ("AccessDenied", "name a Secret")),
        ("s3://HOST/no-such-bucket/x", KEYS, ("NotFound", "no-such-bucket", "check bucket")),
        ("file:///no/such/folder", {}, ("NotFound", "/no/such/folder")),
    ],
)
def test_a_store_that_fails_says_why_within_seconds(
    server: Nuwa, s3_server: S3Server, bucket: str, source: str, keys: dict[str, str], words: tuple[str, ...]
) -> None:
    address = source.replace("HOST", f"127.0.0.1:{s3_server.port}")
    asked = {"source": address, "destination": f"file://{server.data}", "no-https": True}
    job = sync(server, asked, keys, timeout=20)
    assert job["state"] == "Failed"
    assert all(word in job["message"] for word in words), job["message"]
    corrected = sync(server, options(server, s3_server), KEYS)
    assert corrected["state"] == "Succeeded", "work resumes when it is corrected"


def test_keys_are_seen_nowhere(tmp_path: Path, s3_server: S3Server, bucket: str) -> None:
    """Not in logs, answers, files but the one that only we can read, nor in any process's arguments or environment."""
    store = s3_server.store("many")
    for number in range(60):
        store.put(f"set/{number}", bytes(8000))
    with Nuwa(tmp_path) as server:
        source = f"s3://127.0.0.1:{s3_server.port}/many/set"
        asked = {"source": source, "destination": f"file://{server.data}", "no-https": True, "bwlimit": 1}
        server.put("slow", "sync", asked, credentials=KEYS)
        until(lambda: server.get("slow")["progress"]["files"] > 0, every=0.02)
        kept = server.cache / ".paddlecloud" / "jobs" / "slow.keys"
        assert kept.stat().st_mode & 0o077 == 0
        assert not [path for path in _holding(tmp_path, SECRET_KEY.encode()) if path != kept]
        assert SECRET_KEY not in str(server.request("GET", "/v2/jobs"))
        assert SECRET_KEY not in _process_list(server.process.pid)
        server.request("DELETE", "/v2/jobs/slow")
        server.wait("slow")
        sync(server, {**asked, "threads": 2}, {**KEYS, "access-key": "other"})
        assert not _holding(tmp_path, SECRET_KEY.encode()), "the kept keys outlived their job"
        assert not _holding(tmp_path, base64.b64encode(SECRET_KEY.encode()))


def test_a_killed_server_takes_up_its_sync_with_its_keys(tmp_path: Path, s3_server: S3Server) -> None:
    store = s3_server.store("resumed")
    objects = {f"{number:03}": os.urandom(4000) for number in range(300)}
    for key, content in objects.items():
        store.put(f"set/{key}", content)
    server = Nuwa(tmp_path).start()
    source = f"s3://127.0.0.1:{s3_server.port}/resumed/set"
    asked = {"source": source, "destination": f"file://{server.data}", "no-https": True, "bwlimit": 8}
    server.put("sync", "sync", asked, credentials=KEYS)
    until(lambda: server.get("sync")["progress"]["files"] > 50, every=0.02)
    server.stop(signal.SIGKILL)
    whole = tree(server.data)
    assert all(objects[key] == content for key, content in whole.items()), "a part of a file had its name"
    spoiled = next(iter(whole))
    (server.data / spoiled).write_bytes(b"x" * 4000)  # as a torn disk would leave it: right size, wrong content
    server.start()
    job = server.wait("sync")
    assert job["state"] == "Succeeded", job
    assert tree(server.data) == objects
    server.stop()


def _holding(folder: Path, secret: bytes) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and secret in path.read_bytes()]


def _process_list(pid: int) -> str:
    """Arguments of everybody and the environment of the server and what it started."""
    arguments = subprocess.run(["ps", "-ewwo", "args"], capture_output=True, text=True, check=True).stdout
    family = [pid, *map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())]
    return arguments + "".join(Path(f"/proc/{each}/environ").read_text() for each in family)


def test_an_image_without_certificates_reads_buckets_all_the_same(
    tmp_path: Path, s3_server: S3Server, bucket: str
) -> None:
    """The client refuses to start without any, though it is to use plain HTTP."""
    bare = {"SSL_CERT_FILE": "/nonexistent", "SSL_CERT_DIR": "/nonexistent"}
    with Nuwa(tmp_path, env=bare) as server:
        source = f"s3://{s3_server.host}:{s3_server.port}/{bucket}/imagenet"
        job = sync(server, {"source": source, "destination": f"file://{server.data}", "no-https": True}, KEYS)
        assert (job["state"], job["progress"]["files"]) == ("Succeeded", len(OBJECTS)), job


def test_a_store_of_plain_http_is_named_as_such_with_what_to_set(
    server: Nuwa, s3_server: S3Server, bucket: str
) -> None:
    address = f"127.0.0.1:{s3_server.port}"
    asked = {"source": f"minio://{address}/{bucket}/imagenet", "destination": f"file://{server.data}"}
    failed = sync(server, asked, KEYS)
    assert f"the server at https://{address} does not use TLS" in str(failed)
    setting = f"minio://{address}=http://{address}"
    assert f"PADDLECLOUD_ENDPOINTS={setting}" in str(failed)
    location = uri.parse(asked["source"])
    found = endpoints.bucket_of(location, rewritten=endpoints.rewrites({"PADDLECLOUD_ENDPOINTS": setting}))
    assert found == (f"http://{address}", bucket, "imagenet"), "what it advises reaches the bucket"
