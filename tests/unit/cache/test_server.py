"""The HTTP API of a cache server, as controllers of today and of yesterday use it."""

from __future__ import annotations

import json
import resource
import signal
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from harness import PATIENCE, until
from unit.cache.nuwa import TOKEN, Nuwa, tree

STRANGE = ["plain.jpg", "with space.jpg", "quote'\".jpg", "line\nbreak.jpg", "-rf", "$(touch pwned).jpg", "中文.jpg"]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "source"
    (folder / "train").mkdir(parents=True)
    for number, name in enumerate(STRANGE):
        (folder / "train" / name).write_bytes(bytes([number]) * (1000 + number))
    (folder / "label.txt").write_text("labels")
    return folder


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Nuwa]:
    with Nuwa(tmp_path) as running:
        yield running


@pytest.fixture(scope="module")
def idle(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Nuwa]:
    """One server for all tests that change nothing."""
    with Nuwa(tmp_path_factory.mktemp("idle")) as running:
        yield running


def sync_options(source: Path, server: Nuwa, **more: object) -> dict[str, object]:
    return {"source": f"file://{source}", "destination": f"file://{server.data}", **more}


@pytest.mark.parametrize("path", ["keys", "keys/tls.key", "cache/.paddlecloud", "link", "proc"])
def test_a_servers_own_keys_are_no_source(server: Nuwa, tmp_path: Path, path: str) -> None:
    """A user who may make a SampleJob would otherwise read them in the set."""
    (tmp_path / "link").symlink_to(tmp_path / "keys")
    source = f"/proc/{server.process.pid}" if path == "proc" else f"{tmp_path}/{path}"
    job = server.do("theft", "sync", {"source": f"file://{source}", "destination": f"file://{server.data}/in"})
    assert (job["state"], "may not read" in job["message"]) == ("Failed", True), job
    assert tree(server.data) == {}


def test_a_life_of_sync_warmup_clear_rmr(server: Nuwa, source: Path) -> None:
    """When the end of a job is reported, so is its effect on the figures."""
    size = sum(path.stat().st_size for path in source.rglob("*") if path.is_file())
    assert server.status()["totalBytes"] == 0
    job = server.do("one", "sync", sync_options(source, server))
    assert job["state"] == "Succeeded", job
    assert job["progress"]["files"] == job["progress"]["filesTotal"] == len(STRANGE) + 1
    assert job["progress"]["bytes"] == size
    assert tree(server.data) == tree(source)
    assert server.status()["totalBytes"] == size
    assert server.status()["cachedBytes"] == 0

    job = server.do("two", "warmup")
    assert job["state"] == "Succeeded", job
    assert job["coverage"] == {"planned": len(STRANGE) + 1, "cached": len(STRANGE) + 1, "missing": []}
    assert tree(server.cache) == tree(source)
    assert server.status()["cachedBytes"] == size

    assert server.do("three", "clear")["state"] == "Succeeded"
    assert tree(server.cache) == {}
    assert server.status()["cachedBytes"] == 0

    assert server.do("four", "rmr", {"paths": [f"{server.data}/train"]})["state"] == "Succeeded"
    assert tree(server.data) == {"label.txt": b"labels"}
    assert server.status()["totalFiles"] == 1


def test_an_order_is_idempotent_and_its_id_taken(server: Nuwa, source: Path) -> None:
    first = server.put("same", "sync", sync_options(source, server))
    server.wait("same")
    again = server.put("same", "sync", sync_options(source, server))
    assert again["id"] == first["id"]
    assert again["state"] == "Succeeded"
    body = {"type": "sync", "options": sync_options(source, server, threads=3)}
    status, answer = server.request("PUT", "/v2/jobs/same", body)
    assert (status, answer["reason"]) == (409, "Conflict")


@pytest.mark.parametrize(
    ("kind", "options", "why"),
    [
        ("sync", {"source": "ftp://x/yyyyyy", "destination": "DATA"}, "scheme ftp is unknown"),
        ("sync", {"source": "", "destination": "DATA"}, "source is empty"),
        ("sync", {"source": "https://x/y", "destination": "DATA"}, "must end in .tar"),
        ("sync", {"source": "s3://K:geheim@b.ep/p", "destination": "DATA"}, "carries credentials"),
        ("sync", {"source": "file:///tmp", "destination": "file:///etc"}, "lies outside"),
        ("sync", {"source": "file:///tmp", "destination": "DATA/../../up"}, "must not contain"),
        ("sync", {"source": "file:///tmp", "destination": "DATA", "speed": 3}, "has no option 'speed'"),
        ("sync", {"source": "file:///tmp", "destination": "DATA", "threads": "many"}, "threads must be a whole number"),
        ("warmup", {"strategyName": "psychic"}, "strategyName 'psychic' is unknown"),
        ("warmup", {"paths": ["/etc"]}, "lies outside"),
        ("rmr", {}, "paths is empty"),
        ("rmr", {"paths": ["/PLACE"]}, "lies outside"),
        ("rmr", {"paths": ["ROOT"]}, "is the whole set"),
        ("rmr", {"paths": ["ROOT/.paddlecloud/manifest.db"]}, "the server's own"),
        ("clear", {"paths": ["/etc/*"]}, "lies outside"),
        ("dance", {}, "type 'dance' is unknown"),
    ],
)
def test_a_bad_order_is_refused_at_once_with_the_reason(
    idle: Nuwa, kind: str, options: dict[str, object], why: str
) -> None:
    text = json.dumps(options).replace("DATA", f"file://{idle.data}").replace("ROOT", str(idle.data))
    status, answer = idle.request("PUT", "/v2/jobs/bad", {"type": kind, "options": json.loads(text)})
    assert (status, answer["reason"]) == (400, "Invalid")
    assert why in answer["message"]
    assert "geheim" not in answer["message"]
    assert idle.request("GET", "/v2/jobs/bad")[0] == 404


@pytest.mark.parametrize(
    ("method", "path"),
    [("GET", "/v2/jobs"), ("GET", "/v2/status"), ("PUT", "/v2/jobs/x"), ("GET", "/metrics"), ("POST", "/upload/x")],
)
def test_without_the_token_nothing_is_revealed(idle: Nuwa, method: str, path: str) -> None:
    no_text = {"Authorization": "Bearer \xff"}
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Authorization": TOKEN[:-1]}, no_text):
        assert idle.request(method, path, headers=headers)[0] == 401


def test_clients_that_never_agree_on_tls_leave_room_for_others(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, hard))
    try:
        server = Nuwa(tmp_path).start()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    host, _, port = server.address.partition(":")
    silent: list[socket.socket] = []
    try:
        silent.extend(socket.create_connection((host, int(port)), timeout=PATIENCE) for _ in range(200))
        assert server.request("GET", "/healthz", headers={}) == (200, "ok")
        # A burst may be accepted before the first of it are closed: the event loop then says so once and waits.
        assert server.log.read_text().count("Too many open files") < 10
    finally:
        server.stop()
        for each in silent:
            each.close()


def test_probes_need_no_token(idle: Nuwa) -> None:
    assert idle.request("GET", "/healthz", headers={}) == (200, "ok")
    assert idle.request("GET", "/readyz", headers={}) == (200, "ok")


def test_a_server_without_a_token_is_for_this_machine_only(tmp_path: Path) -> None:
    with Nuwa(tmp_path, "--serverAddress=0.0.0.0", token="") as server:
        assert server.address.startswith("127.0.0.1:")
        assert server.request("GET", "/v2/jobs", headers={})[0] == 200
        port = int(server.address.rpartition(":")[2])
        with socket.socket() as other:
            assert other.connect_ex(("127.0.0.2", port)) != 0


@pytest.mark.parametrize("path", ["/", "/runtime", "/syncOptions/", "/syncOptions", "/v2/", "/jobs/../../etc/passwd"])
def test_there_is_no_directory_listing(idle: Nuwa, path: str) -> None:
    assert idle.request("GET", path)[0] == 404


def test_jobs_wait_in_line_and_can_be_taken_back(server: Nuwa, source: Path, tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.mkdir()
    (large / "file").write_bytes(bytes(30_000_000))
    server.put("slow", "sync", sync_options(source, server, bwlimit=1, threads=1))
    # Minutes at 1 Mbit/s: it is at work while the others are looked at, however busy the machine is.
    server.put("slower", "sync", sync_options(large, server, bwlimit=1, threads=1))
    server.put("later", "warmup")
    server.put("last", "clear")
    assert server.get("last")["position"] >= 1
    assert [job["id"] for job in server.request("GET", "/v2/jobs")[1]["jobs"]] == ["slow", "slower", "later", "last"]
    status, _ = server.request("DELETE", "/v2/jobs/later")
    assert status == 202
    assert server.get("later")["state"] == "Cancelled"
    server.request("DELETE", "/v2/jobs/slower")
    assert server.wait("slower")["state"] == "Cancelled"
    assert server.wait("last")["state"] == "Succeeded"
    assert server.request("DELETE", "/v2/jobs/none")[0] == 404


def test_the_metrics_count_what_happened(server: Nuwa, source: Path) -> None:
    server.do("one", "sync", sync_options(source, server))
    until(lambda: "total_files 8" in server.request("GET", "/metrics")[1])
    text = server.request("GET", "/metrics")[1]
    assert 'paddlecloud_cache_jobs{type="sync",state="Succeeded"} 1' in text
    assert text.count("# TYPE") == text.count("# HELP") >= 8


# The API of old


def test_the_old_api_answers_as_before(server: Nuwa, source: Path) -> None:
    token = {"Authorization": f"Bearer {TOKEN}"}
    options = sync_options(source, server, threads=4)
    path = "/upload/syncOptions"
    assert server.request("POST", path, options, headers=token)[0] == 400  # no filename
    assert server.request("GET", path, headers=token)[0] == 405
    assert server.request("POST", path, options, headers={**token, "filename": "a-uuid"}) == (200, "")
    until(lambda: server.request("GET", "/syncResult/a-uuid")[1] == {"status": "success"})
    assert server.request("GET", "/syncOptions/a-uuid") == (200, options)
    assert server.request("GET", "/warmupResult/a-uuid")[0] == 404
    until(lambda: server.request("GET", "/cacheStatus/cacheInfo.json")[1]["totalFiles"] == "8")

    bad = {"source": "file:///nowhere/at/all", "destination": f"file://{server.data}"}
    server.request("POST", path, bad, headers={**token, "filename": "another"})
    until(lambda: server.request("GET", "/syncResult/another")[1].get("status") == "fail")
    assert "No such file" in server.request("GET", "/syncResult/another")[1]["message"]

    terminated = server.request(
        "POST", "/upload/clearOptions?terminate=true", None, headers={**token, "filename": "terminate"}
    )
    assert terminated == (200, "")


def test_keys_in_an_old_address_are_taken_out_before_anything_is_kept(server: Nuwa, tmp_path: Path) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "filename": "old"}
    options = {"source": "s3://AKOLD:geheim@127.0.0.1:1/bucket/", "destination": f"file://{server.data}/"}
    assert server.request("POST", "/upload/syncOptions", options, headers=headers)[0] == 200
    assert server.request("GET", "/syncOptions/old")[1]["source"] == "s3://127.0.0.1:1/bucket/"
    server.wait("old")
    kept = b"".join(path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())
    assert b"geheim" not in kept


# Ends


def test_sigterm_is_a_graceful_stop_and_the_next_start_goes_on(tmp_path: Path, source: Path) -> None:
    (source / "large").write_bytes(bytes(range(256)) * 4000)
    with Nuwa(tmp_path) as server:
        server.put("slow", "sync", sync_options(source, server, bwlimit=8, threads=1))
        until(lambda: server.get("slow")["state"] == "Running", every=0.02)
        server.put("next", "warmup")
        assert server.stop() == 0
    state = server.cache / ".paddlecloud" / "jobs"
    assert json.loads((state / "slow.json").read_text())["state"] == "Queued"
    assert "Traceback" not in server.log.read_text()
    server.start()
    assert server.wait("slow")["state"] == "Succeeded"
    assert server.wait("next")["state"] == "Succeeded"
    assert tree(server.cache) == tree(source)
    server.stop()


def test_a_killed_server_goes_on_where_it_was(tmp_path: Path, source: Path) -> None:
    for index in range(300):
        (source / f"file-{index:03}").write_bytes(bytes([index % 256]) * 5000)
    server = Nuwa(tmp_path).start()
    server.put("sync", "sync", sync_options(source, server, bwlimit=8, threads=4))
    until(lambda: server.get("sync")["progress"]["files"] > 50, every=0.02)
    server.stop(signal.SIGKILL)
    done = set(tree(server.data))
    before = {name: (server.data / name).stat().st_ino for name in done}
    server.start()
    job = server.wait("sync")
    assert job["state"] == "Succeeded", job
    assert tree(server.data) == tree(source)
    assert {name: (server.data / name).stat().st_ino for name in done} == before, "what was whole was copied again"
    assert job["progress"]["skipped"] >= len(done)
    server.stop()


def test_a_server_killed_while_warming_up_goes_on(tmp_path: Path, source: Path) -> None:
    for index in range(3000):
        (source / f"file-{index:04}").write_bytes(b"%04d" % index)
    server = Nuwa(tmp_path).start()
    server.do("sync", "sync", sync_options(source, server))
    server.put("warm", "warmup", {"threads": 1})
    until(lambda: len(list(server.cache.iterdir())) > 100, every=0.005)
    server.stop(signal.SIGKILL)
    server.start()
    job = server.wait("warm")
    assert job["coverage"] == {"planned": 3008, "cached": 3008, "missing": []}
    assert tree(server.cache) == tree(source)
    server.stop()


def test_a_job_that_kills_its_server_each_time_is_given_up(tmp_path: Path, source: Path) -> None:
    server = Nuwa(tmp_path).start()
    server.do("sync", "sync", sync_options(source, server))
    server.stop()
    path = server.cache / ".paddlecloud" / "jobs" / "sync.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "state": "Running", "attempts": 5}))
    (path.parent / "torn.json").write_text('{"id": "to')
    server.start()
    assert server.get("sync")["state"] == "Failed"
    assert "ended 5 times" in server.get("sync")["message"]
    assert server.request("GET", "/v2/jobs/torn")[0] == 404
    server.stop()
