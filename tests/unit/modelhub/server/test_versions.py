"""Versions over HTTP: pushed with a token, read with a token or a read grant, and by nobody else."""

from __future__ import annotations

import base64
import gzip
import io
import tarfile

import pytest

from paddlecloud.kube.resource import MODELVERSIONS
from paddlecloud.modelhub import catalogue, layout, read_grant
from paddlecloud.modelhub.catalogue import VersionKey
from unit.modelhub.hubs import faults
from unit.modelhub.server.hub import FILES, KEY, VERSIONS, Hub, sha256

ARCHIVE = "/namespaces/team-a/model-center/ocr/1"


async def test_what_was_pushed_is_read_byte_for_byte(hub: Hub) -> None:
    made = await hub.push(FILES, version="1", metrics={"accuracy": 0.9}, description="first")
    assert made.status == 201, made.body
    assert made.json["createdBy"] == "system:serviceaccount:team-a:member"
    found = await hub.ask("GET", f"{VERSIONS}/1")
    assert {file["path"]: file["sha256"] for file in found.json["files"]} == {
        name: sha256(content) for name, content in FILES.items()
    }
    assert "blob" not in found.body.decode()
    for name, content in FILES.items():
        answer = await hub.ask("GET", f"{VERSIONS}/1/files/{name}")
        assert (answer.status, answer.body) == (200, content)
        assert answer.headers["ETag"] == f'"{sha256(content)}"'
        assert answer.headers["Content-Length"] == str(len(content))
    assert not faults(hub.store)
    assert (await hub.ask("GET", VERSIONS)).json == {"versions": ["1"]}


async def test_inputs_and_outputs_are_kept_with_the_version(hub: Hub) -> None:
    signature = {"inputs": [{"name": "x", "datatype": "FP32", "shape": [-1, 3]}]}
    assert (await hub.push(FILES, version="1", signature=signature)).json["signature"] == signature
    assert (await hub.ask("GET", f"{VERSIONS}/1")).json["signature"] == signature
    for wrong in ({"inputs": [{"name": "x", "datatype": "float"}]}, {"inputs": 1}, {"inputs": [{"name": "x"}]}):
        answer = await hub.post(FILES, version="2", signature=wrong)
        assert (answer.status, answer.json["reason"]) == (400, "Invalid"), answer.body


async def test_the_same_push_again_has_no_effect_and_another_is_refused(hub: Hub) -> None:
    assert (await hub.push(FILES, version="1")).status == 201
    again = await hub.post(FILES, version="1")
    assert (again.status, again.json["created"]) == (200, False)
    other = await hub.push({"inference.json": b"other"}, version="1")
    assert (other.status, other.json["reason"]) == (409, "AlreadyExists")
    assert len((await hub.ask("GET", f"{VERSIONS}/1")).json["files"]) == len(FILES)


async def test_a_push_without_a_version_takes_the_next_number(hub: Hub) -> None:
    assert (await hub.push({"a": b"1"}, version="7")).status == 201
    assert (await hub.push({"a": b"2"})).json["version"] == "8"


async def test_files_that_are_missing_are_named_all_at_once(hub: Hub) -> None:
    await hub.put(FILES["empty"])
    answer = await hub.post(FILES, version="1")
    assert (answer.status, answer.json["reason"]) == (409, "MissingFiles")
    assert answer.json["missing"] == sorted(sha256(one) for name, one in FILES.items() if name != "empty")
    assert not list(catalogue.versions(hub.store))


async def test_a_digest_of_another_tenant_does_not_give_its_file(hub: Hub) -> None:
    """Who knows the digest of a file must not get the file by naming it."""
    assert (await hub.push({"secret": b"of team a"}, version="1")).status == 201
    answer = await hub.post({"secret": b"of team a"}, "team-b", version="1")
    assert (answer.status, answer.json["reason"]) == (409, "MissingFiles")
    head = await hub.ask("HEAD", f"/v1/namespaces/team-b/blobs/{sha256(b'of team a')}", token=hub.tokens["team-b"])
    assert (head.status, head.headers["Upload-Offset"]) == (404, "0")


async def test_a_manifest_without_its_object_opens_nothing(hub: Hub) -> None:
    """Who gets the name of a namespace that is gone must not get what was stored for it."""
    made = await hub.push({"secret": b"of an earlier team a"}, version="1")
    path = f"/apis/{MODELVERSIONS.api_version}/namespaces/team-a/modelversions/ocr.1"
    await hub.client.raw("DELETE", path)
    paths = [f"{VERSIONS}/1", f"{VERSIONS}/1/files/secret", f"{ARCHIVE}/ocr.tar.gz", f"{ARCHIVE}/manifest.json"]
    for path in paths:
        assert (await hub.ask("GET", path)).status == 404, path
    await hub.register({**made.json, "digest": f"sha256:{'0' * 64}"})  # anybody can make one, and not know the digest
    for path in paths:
        answer = await hub.ask("GET", path)
        assert answer.status == 403, path
        assert made.json["digest"].removeprefix("sha256:")[:8] not in answer.body.decode(), path


async def test_a_lost_copy_is_restored_by_the_same_push(hub: Hub) -> None:
    await hub.push(FILES, version="1")
    lost = catalogue.get(hub.store, VersionKey("team-a", "ocr", "1")).files[0]
    hub.store.delete(layout.blob(lost.sha256, lost.blob))
    answer = await hub.ask("GET", f"{VERSIONS}/1/files/{lost.path}")
    assert (answer.status, answer.json["reason"]) == (500, "Damaged")
    assert (await hub.post(FILES, version="1")).json["missing"] == [lost.sha256]
    assert (await hub.push(FILES, version="1")).status == 200
    assert not faults(hub.store)


RANGES = [
    ("bytes=0-9", 206, slice(0, 10), "bytes 0-9/300000"),
    ("bytes=299990-", 206, slice(299990, None), "bytes 299990-299999/300000"),
    ("bytes=-5", 206, slice(299995, None), "bytes 299995-299999/300000"),
    ("bytes=0-", 200, slice(None), None),
    ("bytes=5-2", 200, slice(None), None),
    ("bytes=300000-", 416, None, None),
    ("bytes=1-2,5-6", 200, slice(None), None),
    ("lines=1-2", 200, slice(None), None),
]


async def test_ranges_continue_a_download(hub: Hub) -> None:
    content = bytes(range(256)) * 1200
    content = content[:300_000]
    await hub.push({"w": content}, version="1")
    path = f"{VERSIONS}/1/files/w"
    for header, status, part, shown in RANGES:
        answer = await hub.ask("GET", path, headers={"Range": header})
        assert (answer.status, answer.headers.get("Content-Range")) == (status, shown), header
        if part is not None:
            assert answer.body == content[part], header
    other = await hub.ask("GET", path, headers={"Range": "bytes=5-", "If-Range": '"other"'})
    assert (other.status, len(other.body)) == (200, len(content))
    same = await hub.ask("GET", path, headers={"If-None-Match": f'"{sha256(content)}"'})
    assert (same.status, same.body) == (304, b"")
    head = await hub.ask("HEAD", path)
    assert (head.status, head.headers["Content-Length"], head.body) == (200, str(len(content)), b"")


async def test_an_alias_is_resolved_by_the_model(hub: Hub) -> None:
    await hub.push(FILES, version="1")
    assert (await hub.ask("GET", f"{VERSIONS}/@production")).status == 404
    move = {"alias": "production", "to": "1", "by": "ada", "at": "2026-11-18T12:00:00Z"}
    spec = {"aliases": {"production": "1"}, "moves": [move]}
    body = {"apiVersion": "modelhub.paddlepaddle.org/v1alpha1", "kind": "Model", "metadata": {"name": "ocr"}}
    made = await hub.client.raw(
        "POST", "/apis/modelhub.paddlepaddle.org/v1alpha1/namespaces/team-a/models", body={**body, "spec": spec}
    )
    assert made.status == 201
    try:
        assert (await hub.ask("GET", f"{VERSIONS}/@production")).json["version"] == "1"
        assert (await hub.ask("GET", f"{VERSIONS}/@other")).status == 404
        assert (await hub.ask("GET", f"{VERSIONS}/@production", token=hub.tokens["team-b"])).status == 403
    finally:
        await hub.client.raw("DELETE", "/apis/modelhub.paddlepaddle.org/v1alpha1/namespaces/team-a/models/ocr")


async def test_nothing_is_answered_without_the_right_to_it(hub: Hub) -> None:
    await hub.push(FILES, version="1")
    blob = f"/v1/namespaces/team-a/blobs/{sha256(b'x')}"
    requests = [
        ("GET", VERSIONS),
        ("POST", VERSIONS),
        ("GET", f"{VERSIONS}/1"),
        ("DELETE", f"{VERSIONS}/1"),
        ("GET", f"{VERSIONS}/1/files/inference.json"),
        ("HEAD", blob),
        ("PUT", blob),
        ("GET", f"{ARCHIVE}/ocr.tar.gz"),
        ("GET", f"{ARCHIVE}/manifest.json"),
    ]
    for method, path in requests:
        async with hub.session.request(method, hub.url + path) as answer:
            assert answer.status == 401, (method, path)
        assert (await hub.ask(method, path, token="nobody-gave-this")).status == 401, (method, path)
        assert (await hub.ask(method, path, token=hub.tokens["team-b"])).status == 403, (method, path)
    assert (await hub.ask("GET", f"{VERSIONS}/1")).status == 200


async def test_a_read_grant_opens_its_version_and_nothing_else(hub: Hub) -> None:
    made = await hub.push(FILES, version="1")
    await hub.push({"a": b"2"}, version="2")
    digest = made.json["digest"]
    grant = read_grant.sign(KEY, "team-a", "ocr", "1", digest)
    content = FILES["inference.pdiparams"]
    assert (await hub.ask("GET", f"{VERSIONS}/1/files/inference.pdiparams", token=grant)).body == content
    assert (await hub.ask("GET", f"{VERSIONS}/1", token=grant)).status == 200
    assert (await hub.ask("GET", f"{ARCHIVE}/ocr.tar.gz", token=grant)).status == 200
    for method, path in [
        ("GET", f"{VERSIONS}/2"),
        ("GET", f"{VERSIONS}/2/files/a"),
        ("GET", VERSIONS),
        ("POST", VERSIONS),
        ("DELETE", f"{VERSIONS}/1"),
        ("PUT", f"/v1/namespaces/team-a/blobs/{sha256(b'x')}"),
        ("GET", "/namespaces/team-a/model-center/ocr/2/ocr.tar.gz"),
    ]:
        assert (await hub.ask(method, path, token=grant)).status == 403, (method, path)
    assert (await hub.ask("GET", f"{VERSIONS}/1", token=grant[:-1] + "x")).status == 401
    forged = read_grant.sign(b"o" * 32, "team-a", "ocr", "1", digest)
    assert (await hub.ask("GET", f"{VERSIONS}/1", token=forged)).status == 401
    other = read_grant.sign(KEY, "team-a", "ocr", "1", "sha256:" + "0" * 64)
    assert (await hub.ask("GET", f"{VERSIONS}/1", token=other)).status == 403


async def test_the_original_s_archive_has_the_files_and_the_same_bytes_every_time(hub: Hub) -> None:
    await hub.push(FILES, version="1")
    manifest = (await hub.ask("GET", f"{ARCHIVE}/manifest.json")).json
    first = await hub.ask("GET", f"{ARCHIVE}/ocr.tar.gz")
    assert (sha256(first.body), len(first.body)) == (manifest["sha256"], manifest["size"])
    assert first.headers["Content-Length"] == str(len(first.body))
    assert (await hub.ask("GET", f"{ARCHIVE}/ocr.tar.gz")).body == first.body
    with tarfile.open(fileobj=io.BytesIO(gzip.decompress(first.body))) as archive:
        found = {member.name: archive.extractfile(member) for member in archive}
        assert {name: file.read() for name, file in found.items() if file} == FILES
    assert (await hub.ask("GET", f"{ARCHIVE}/other.tar.gz")).status == 404
    basic = base64.b64encode(f"token:{hub.tokens['team-a']}".encode()).decode()
    headers = {"Authorization": f"Basic {basic}"}
    assert (await hub.ask("GET", f"{ARCHIVE}/ocr.tar.gz", headers=headers)).body == first.body


@pytest.mark.parametrize(
    "path",
    [
        f"{VERSIONS}/1/files/../../../../etc/passwd",
        f"{VERSIONS}/1/files/..%2f..%2fformat.json",
        "/v1/namespaces/..%2f..%2fx/models/ocr/versions/1",
        "/v1/namespaces/team-a/models/O_C_R/versions/1",
        f"{VERSIONS}/a%00b",
    ],
)
async def test_paths_lead_to_files_of_versions_alone(hub: Hub, path: str) -> None:
    await hub.push(FILES, version="1")
    assert (await hub.ask("GET", path)).status in (400, 404)


async def test_a_version_is_removed_with_the_right_to_delete_it(hub: Hub) -> None:
    await hub.push(FILES, version="1")
    assert (await hub.ask("DELETE", f"{VERSIONS}/1")).status == 204
    assert (await hub.ask("GET", f"{VERSIONS}/1")).status == 404
    assert (await hub.ask("DELETE", f"{VERSIONS}/1")).status == 404


async def test_health_and_numbers_need_no_credentials(hub: Hub) -> None:
    await hub.ask("GET", f"{VERSIONS}/1")
    for path in ("/healthz", "/readyz", "/metrics"):
        async with hub.session.get(hub.url + path) as answer:
            assert answer.status == 200
            text = await answer.text()
    assert 'code="404"' in text
    assert "team-a" not in text
