"""Uploads in parts: they continue where they stopped, and only what its digest says becomes a file."""

from __future__ import annotations

import asyncio
import os

import pytest

from paddlecloud.modelhub import garbage, layout
from paddlecloud.modelhub.received import SMALLEST_PART, Upload, WrongOffset
from paddlecloud.storage.stores import Store
from unit.modelhub.hubs import Later, Stopped, StopsAfter, faults
from unit.modelhub.server.hub import VERSIONS, Hub, described, sha256

CONTENT = os.urandom(2 * SMALLEST_PART + 100)
BLOB = f"/v1/namespaces/team-a/blobs/{sha256(CONTENT)}"


def part(start: int, end: int, total: int = len(CONTENT)) -> dict[str, str]:
    return {"Content-Range": f"bytes {start}-{end - 1}/{total}"}


async def test_an_upload_continues_where_it_stopped(hub: Hub) -> None:
    first = await hub.ask("PUT", BLOB, data=CONTENT[:SMALLEST_PART], headers=part(0, SMALLEST_PART))
    assert (first.status, first.headers["Upload-Offset"]) == (202, str(SMALLEST_PART))
    head = await hub.ask("HEAD", BLOB)
    assert (head.status, head.headers["Upload-Offset"]) == (404, str(SMALLEST_PART))
    wrong = await hub.ask("PUT", BLOB, data=CONTENT[:SMALLEST_PART], headers=part(0, SMALLEST_PART))
    assert (wrong.status, wrong.json["offset"]) == (409, SMALLEST_PART)
    last = await hub.ask("PUT", BLOB, data=CONTENT[SMALLEST_PART:], headers=part(SMALLEST_PART, len(CONTENT)))
    assert last.status == 201, last.body
    assert (await hub.ask("HEAD", BLOB)).status == 200
    assert not list(hub.store.list(layout.PARTS))
    assert (await hub.post({"w": CONTENT}, version="1")).status == 201
    assert not faults(hub.store)


async def test_a_file_whose_parts_are_all_there_is_put_together(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as killed:
        killed.setattr(Upload, "_finish", None)
        await hub.ask("PUT", BLOB, data=CONTENT[:SMALLEST_PART], headers=part(0, SMALLEST_PART))
        last = await hub.ask("PUT", BLOB, data=CONTENT[SMALLEST_PART:], headers=part(SMALLEST_PART, len(CONTENT)))
        assert last.status == 500
    assert (await hub.ask("HEAD", BLOB)).headers["Upload-Offset"] == str(len(CONTENT))
    done = await hub.ask("PUT", BLOB, data=b"", headers={"Content-Range": f"bytes */{len(CONTENT)}"})
    assert done.status == 201, done.body
    assert (await hub.ask("HEAD", BLOB)).status == 200


async def test_other_bytes_than_the_digest_says_never_become_a_file(hub: Hub) -> None:
    other = b"x" * len(CONTENT)
    whole = await hub.ask("PUT", BLOB, data=other)
    assert (whole.status, whole.json["reason"]) == (400, "Invalid")
    await hub.ask("PUT", BLOB, data=other[:SMALLEST_PART], headers=part(0, SMALLEST_PART))
    last = await hub.ask("PUT", BLOB, data=CONTENT[SMALLEST_PART:], headers=part(SMALLEST_PART, len(CONTENT)))
    assert last.status == 400
    assert not list(hub.store.list(layout.BLOBS))
    assert (await hub.ask("HEAD", BLOB)).headers["Upload-Offset"] == "0"


async def test_a_connection_that_ends_leaves_no_part(hub: Hub) -> None:
    _, writer = await asyncio.open_connection("127.0.0.1", int(hub.url.rpartition(":")[2]))
    head = f"PUT {BLOB} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {hub.tokens['team-a']}\r\n"
    writer.write(f"{head}Content-Length: {len(CONTENT)}\r\n\r\n".encode() + CONTENT[:200_000])
    await writer.drain()
    writer.transport.abort()
    assert (await hub.ask("HEAD", BLOB)).headers["Upload-Offset"] == "0"
    assert (await hub.put(CONTENT)).status == 201
    assert len(list(hub.store.list(layout.BLOBS))) == 1


@pytest.mark.parametrize(
    ("headers", "size", "status"),
    [
        ({"Content-Range": "bytes 0-9/20"}, 10, 400),
        ({"Content-Range": "bytes 0-9/10"}, 9, 400),
        ({"Content-Range": "bytes 5-9/9"}, 5, 400),
        ({"Content-Range": "bytes 0-9/" + "9" * 15}, 10, 413),
        ({"Content-Range": "0-9/10"}, 10, 400),
        ({"Content-Range": "bytes 0-9/*"}, 10, 400),
    ],
)
async def test_ranges_that_make_no_sense_are_refused(hub: Hub, headers: dict[str, str], size: int, status: int) -> None:
    assert (await hub.ask("PUT", BLOB, data=b"x" * size, headers=headers)).status == status


async def test_lists_of_files_that_make_no_sense_are_refused(hub: Hub) -> None:
    good = described("a", b"1")
    for files in (
        [],
        [{**good, "path": "../a"}],
        [{**good, "path": "/a"}],
        [{**good, "sha256": "x"}],
        [{**good, "size": -1}],
        [good, good],
        [{**good, "blob": "c" * 16, "more": 1}],
    ):
        answer = await hub.ask("POST", VERSIONS, json={"files": files, "version": "1"})
        assert answer.status in (400, 409), (files, answer.body)
        assert answer.json["reason"] in ("Invalid", "MissingFiles")
    for body in (b"", b"[" * 10_000, b'{"files": 1}', b"\xff"):
        assert (await hub.ask("POST", VERSIONS, data=body)).status == 400
    latest = await hub.ask("POST", VERSIONS, json={"files": [good], "version": "latest"})
    assert latest.status == 400
    assert not list(hub.store.list(layout.VERSIONS))


def test_a_kill_between_any_two_requests_to_the_store_is_harmless(store: Store) -> None:
    """The next upload continues or begins anew, and the file is right in the end."""

    def attempt(through: Store) -> None:
        upload = Upload(through, "team-a", sha256(CONTENT))
        while upload.finished() is None:
            start = upload.offset()
            end = min(start + SMALLEST_PART, len(CONTENT))
            upload.part(start, end - start, len(CONTENT), [CONTENT[start:end]])

    for steps in range(60):
        try:
            attempt(StopsAfter(store, steps))
        except Stopped:
            assert all(entry.size == len(CONTENT) for entry in store.list(layout.BLOBS))
            continue
        break
    else:
        raise AssertionError("the upload never ends")
    attempt(store)
    assert {entry.size for entry in store.list(layout.BLOBS)} == {len(CONTENT)}


def test_parts_that_nobody_continues_are_collected_and_others_are_kept(store: Store) -> None:
    upload = Upload(store, "team-a", sha256(CONTENT))
    upload.part(0, SMALLEST_PART, len(CONTENT), [CONTENT[:SMALLEST_PART]])
    garbage.collect(store)
    assert upload.offset() == SMALLEST_PART
    garbage.collect(Later(store, garbage.GRACE + 60))
    assert upload.offset() == 0
    with pytest.raises(WrongOffset):
        upload.part(SMALLEST_PART, 1, len(CONTENT), [b"x"])
