"""Which versions retention removes, and who uses a version: tables of both."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.model.aliases import moved
from paddlecloud.api.model.spec import ModelSpec, Retention
from paddlecloud.kube.times import rfc3339
from paddlecloud.modelhub.retention import due, next_removal, seconds_of, verdicts
from paddlecloud.modelhub.users import named, slim, users_by_version, users_of, users_of_model

NOW = 1_790_000_000.0
DAY = 86400.0
AT = "2026-11-18T12:00:00Z"


def version(name: str, age: float, *, pushed: float | None = None) -> dict[str, Any]:
    spec = {"model": "ocr", "version": name, "createdAt": rfc3339(NOW - (age if pushed is None else pushed))}
    return {"metadata": {"name": f"ocr.{name}", "creationTimestamp": rfc3339(NOW - age)}, "spec": spec}


def service(name: str, *, model: str = "", status: dict[str, Any] | None = None, group: str = "serving") -> Any:
    kind = {"apiVersion": f"{group}.paddlepaddle.org/v1", "kind": "PaddleService"}
    return {**kind, "metadata": {"name": name}, "spec": {"model": model}, "status": status or {}}


def spec_with(retention: Retention | None, *moves: tuple[str, str]) -> ModelSpec:
    spec = ModelSpec(retention=retention)
    for alias, to in moves:
        spec = moved(spec, alias, to, by="ada", at=AT) or spec
    return spec


FIVE = [version(str(number), (5 - number) * 10 * DAY + DAY) for number in range(1, 6)]  # 41, 31, 21, 11, 1 days old


@pytest.mark.parametrize(
    ("retention", "moves", "services", "expected"),
    [
        (None, (), (), ""),
        (Retention(count=2), (), (), "3 2 1"),
        (Retention(count=9), (), (), ""),
        (Retention(count=1), (), (), "4 3 2 1"),
        (Retention(age="30d"), (), (), "2 1"),
        (Retention(age="1h"), (), (), "4 3 2 1"),  # never the newest
        (Retention(count=4, age="15d"), (), (), "1"),  # each keeps
        (Retention(count=2, age="35d"), (), (), "1"),
        (Retention(count=2), (("production", "1"),), (), "3 2"),
        (Retention(count=2), (("production", "1"), ("production", "5")), (), "3 2"),  # a rollback would go to it
        (Retention(count=2), (("production", "1"), ("production", "2"), ("production", "5")), (), "3 1"),
        (Retention(count=2), (("latest", "1"), ("latest", "5")), (), "3 2 1"),  # nobody rolls latest back
        (Retention(count=2), (), (service("s", model="ocr:2"),), "3 1"),
        (Retention(count=2), (), (service("s", model="ocr@gone"), service("t", model="other:2")), "3 2 1"),
        (Retention(count=2), (), (service("s", status={"default": {"model": "ocr:2"}}),), "3 1"),
        (Retention(count=2), (), (service("s", status={"models": [{"name": "ocr", "version": "1"}]}),), "3 2"),
        (Retention(age="soon"), (), (), ""),  # stored under another schema
    ],
)
def test_what_retention_removes(retention: Any, moves: Any, services: Any, expected: str) -> None:
    found = verdicts("ocr", spec_with(retention, *moves), FIVE, services)
    assert [each.version for each in due(found, NOW)] == expected.split()
    assert all(bool(each.kept) == (each.removed_at is None) for each in found)
    assert all(each.reason for each in due(found, NOW))


def test_what_is_removed_next_and_when() -> None:
    found = verdicts("ocr", spec_with(Retention(age="30d", count=2)), FIVE, ())
    coming = next_removal(each for each in found if each not in due(found, NOW))
    assert coming is not None
    assert (coming.version, coming.removed_at) == ("3", NOW + 9 * DAY)
    assert coming.reason == "older than 30d and not one of the newest 2"


def test_a_wrong_clock_of_a_client_neither_removes_its_version_nor_makes_it_the_newest_for_ever() -> None:
    behind = version("late", 60, pushed=400 * DAY)
    ahead = version("early", 20 * DAY, pushed=-400 * DAY)
    found = verdicts("ocr", spec_with(Retention(age="30d")), [*FIVE, behind, ahead], ())
    assert [each.version for each in found] == ["5", "4", "early", "3", "2", "1", "late"]
    assert [each.version for each in due(found, NOW)] == ["2", "1"]


@pytest.mark.parametrize(("text", "seconds"), [("90m", 5400), ("12h", 43200), ("30d", 30 * DAY), ("2w", 14 * DAY)])
def test_ages(text: str, seconds: float) -> None:
    assert seconds_of(text) == seconds


@pytest.mark.parametrize("text", ["", "0d", "30", "1.5d", "d", "-1d", "1y"])
def test_what_is_no_age(text: str) -> None:
    with pytest.raises(ValueError, match="30d"):
        seconds_of(text)


def test_users_are_aliases_and_services_that_name_or_serve_a_version() -> None:
    spec = spec_with(None, ("production", "6"), ("latest", "7"), ("production", "7"))
    services = [
        service("follows", model="ocr@production", status={"models": [{"name": "ocr", "version": "6"}]}),
        service("names", model="ocr:6", group="elasticserving"),
        service("newest", model="ocr"),
        service("folder", model="file:///ocr:6"),
        service("odd", model="OCR:6", status={"models": "7", "default": 3}),
    ]
    found = users_by_version("ocr", spec, [slim(each) for each in services])
    assert named(found["7"]) == "alias production, alias latest, PaddleService follows, PaddleService newest"
    assert named(found["6"]) == "PaddleService follows, PaddleService names.elasticserving.paddlepaddle.org"
    assert users_of("ocr", "5", spec, services) == []
    assert named(users_of_model("ocr", spec, services)) == (
        "alias production, PaddleService follows, PaddleService names.elasticserving.paddlepaddle.org, "
        "PaddleService newest"
    )
    assert users_of("ocr", "7", None, services[1:2]) == []
    assert named(users_of_model("ocr", None, services[3:])) == ""
    assert named(found["7"] * 4).endswith(" and 6 more")
