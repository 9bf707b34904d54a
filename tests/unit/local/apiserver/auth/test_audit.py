"""The audit log: one line per request, no secrets, no waiting, no loss without a count."""

from __future__ import annotations

import json
import os
import select
import stat
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.kube.clock import FakeClock
from paddlecloud.local.apiserver.auth.audit import AuditLog
from paddlecloud.local.apiserver.auth.authentication import User
from paddlecloud.local.apiserver.http.request import RequestInfo

POD = RequestInfo("get", "/api/v1/namespaces/ns/pods/p/log", True, "", "v1", "pods", "ns", "p", "log")


def note(log: AuditLog, path: str = "/api/v1/namespaces/ns/pods/p/log", **changes: Any) -> None:
    fields: dict[str, Any] = {
        "user": User("alice"),
        "verb": "get",
        "info": POD,
        "code": 200,
        "seconds": 0.0125,
        "user_agent": "kubectl/v1.34",
        **changes,
    }
    log.record(path=path, **fields)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "audit.log"


def test_a_request_becomes_one_event(path: Path) -> None:
    log = AuditLog(path, clock=FakeClock(1_700_000_000.5))
    note(log)
    log.close()
    (event,) = lines(path)
    assert event.pop("auditID")
    assert event == {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "level": "Metadata",
        "stage": "ResponseComplete",
        "requestURI": "/api/v1/namespaces/ns/pods/p/log",
        "verb": "get",
        "user": {"username": "alice"},
        "userAgent": "kubectl/v1.34",
        "objectRef": {"resource": "pods", "namespace": "ns", "name": "p", "apiVersion": "v1", "subresource": "log"},
        "responseStatus": {"code": 200},
        "requestReceivedTimestamp": "2023-11-14T22:13:20.487500Z",
        "stageTimestamp": "2023-11-14T22:13:20.500000Z",
        "annotations": {"apiserver.latency.k8s.io/total": "12.500ms"},
    }


def test_a_path_that_names_no_object_has_no_reference(path: Path) -> None:
    log = AuditLog(path)
    note(log, "/version", info=RequestInfo("get", "/version"))
    note(log, "/%00", info=None, code=400)
    log.close()
    assert all("objectRef" not in event for event in lines(path))


def test_queries_are_left_out(path: Path) -> None:
    log = AuditLog(path)
    note(log, "/api/v1/pods?token=s3cr3t&x=1")
    log.close()
    assert "s3cr3t" not in path.read_text()
    assert lines(path)[0]["requestURI"] == "/api/v1/pods"


def test_odd_and_long_texts_stay_one_bounded_line(path: Path) -> None:
    log = AuditLog(path)
    note(log, "/a" * 100_000, user=User("eve\n{}"), user_agent="\udcff\x00" * 5000)
    log.close()
    assert len(lines(path)) == 1
    assert path.stat().st_size < 20_000


def test_both_users_of_an_impersonated_request_are_named(path: Path) -> None:
    log = AuditLog(path)
    bob = User("bob", "7", ("dev",), {"scopes": ("view",)})
    note(log, user=User("alice", groups=("ops", "system:authenticated")), impersonated=bob)
    log.close()
    (event,) = lines(path)
    assert event["user"] == {"username": "alice", "groups": ["ops", "system:authenticated"]}
    assert event["impersonatedUser"] == {
        "username": "bob", "uid": "7", "groups": ["dev"], "extra": {"scopes": ["view"]}
    }  # fmt: skip


def test_a_user_of_endless_groups_stays_a_bounded_line(path: Path) -> None:
    log = AuditLog(path)
    many = tuple(f"{number:09}" for number in range(20_000))
    note(log, impersonated=User("x" * 10_000, "y" * 10_000, many, dict.fromkeys(many, many)))
    log.close()
    assert len(lines(path)) == 1
    assert path.stat().st_size < 100_000


def test_the_file_is_private_whatever_the_umask(path: Path) -> None:
    old = os.umask(0)
    try:
        AuditLog(path).close()
    finally:
        os.umask(old)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_entries_are_written_without_being_asked(path: Path) -> None:
    os.mkfifo(path)  # so that the test can wait for the write instead of looking again and again
    log = AuditLog(path)
    with path.open("rb", buffering=0) as reader:
        note(log)
        assert select.select([reader], [], [], 10)[0], "nothing was written"
        assert json.loads(reader.read(65536))["user"]["username"] == "alice"
        log.close()


def test_a_second_run_appends(path: Path) -> None:
    for _ in range(2):
        log = AuditLog(path)
        note(log)
        log.close()
    assert len(lines(path)) == 2


def test_half_a_line_left_by_a_crash_spoils_no_other(path: Path) -> None:
    path.write_bytes(b'{"kind":"Event"}\n{"kind":"Ev')
    log = AuditLog(path)
    note(log)
    log.close()
    first, torn, second = path.read_text().splitlines()
    assert json.loads(first)
    assert torn == '{"kind":"Ev'
    assert json.loads(second)["user"]["username"] == "alice"


def test_the_log_rotates_by_size_and_keeps_a_few(tmp_path: Path, path: Path) -> None:
    log = AuditLog(path, max_bytes=2000, keep=2)
    for number in range(40):
        note(log, user=User(f"u{number}"))
        log.flush()
    log.close()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["audit.log", "audit.log.1", "audit.log.2"]
    assert all(p.stat().st_size <= 2000 for p in tmp_path.iterdir())
    kept = [e["user"]["username"] for name in (".2", ".1", "") for e in lines(path.with_name(f"audit.log{name}"))]
    assert kept == [f"u{number}" for number in range(40 - len(kept), 40)]


def test_a_batch_larger_than_a_file_is_split(path: Path) -> None:
    log = AuditLog(path, max_bytes=2000, keep=50)
    for number in range(60):
        note(log, user=User(f"u{number}"))
    log.close()
    names = [e["user"]["username"] for p in path.parent.iterdir() for e in lines(p)]
    assert sorted(names) == sorted(f"u{number}" for number in range(60))


def test_a_full_buffer_drops_and_counts(path: Path) -> None:
    log = AuditLog(path, capacity=10)
    with log._writing:  # as if the disk stood still
        for _ in range(25):
            note(log)
    log.close()
    assert len(lines(path)) == 10
    assert log.dropped == 15


def test_a_full_disk_drops_counts_and_recovers(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = AuditLog(path)
    real, budget = os.write, [40]

    def nearly_full(descriptor: int, data: memoryview) -> int:
        if budget[0] <= 0:
            raise OSError(28, "No space left on device")
        written = real(descriptor, data[: budget[0]])
        budget[0] -= written
        return written

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", nearly_full)
        note(log, user=User("lost"))
        log.flush()
    note(log, user=User("kept"))
    log.close()
    assert log.dropped == 1
    torn, whole = path.read_text().splitlines()
    assert len(torn) == 40
    assert json.loads(whole)["user"]["username"] == "kept"
