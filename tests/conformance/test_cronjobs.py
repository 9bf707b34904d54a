"""CronJobs as an API: defaults, what is refused, columns, patches, status. None of them is ever due here."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.kube.resource import CRONJOBS, Object

from .world import TABLE, ScratchNamespace, a

POD = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "registry.example/none:1"}]}
JOB = {"spec": {"template": {"spec": POD}}}
YEARLY = "0 0 1 1 *"


def spec(**fields: Any) -> Object:
    return {"schedule": YEARLY, "suspend": True, "jobTemplate": JOB, **fields}


def test_a_cron_job_gets_its_defaults_and_the_job_in_it_does_not(here: ScratchNamespace) -> None:
    made = here.make(CRONJOBS, "c", spec={"schedule": YEARLY, "jobTemplate": JOB})
    found = {name: value for name, value in made["spec"].items() if name != "jobTemplate"}
    assert found == {
        "schedule": YEARLY,
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
    }
    assert list(made["spec"]["jobTemplate"]["spec"]) == ["template"]
    assert made["spec"]["jobTemplate"]["spec"]["template"]["metadata"] == {}
    owned = made["metadata"]["managedFields"][0]["fieldsV1"]["f:spec"]["f:jobTemplate"]["f:spec"]["f:template"]
    assert "f:metadata" not in owned
    pod = made["spec"]["jobTemplate"]["spec"]["template"]["spec"]
    assert (pod["terminationGracePeriodSeconds"], pod["dnsPolicy"]) == (30, "ClusterFirst")
    assert made["metadata"]["generation"] == 1
    assert made["status"] == {}


@pytest.mark.parametrize(
    "schedule", ["*/15 0-6,22 1,15 jan-jun mon-fri", "@hourly", "@every 1h30m", "0 0 ? * 0", "5/15 * * * *"]
)
def test_schedules_that_are_read(here: ScratchNamespace, schedule: str) -> None:
    assert here.make(CRONJOBS, "c", spec=spec(schedule=schedule))["spec"]["schedule"] == schedule


BAD: list[tuple[Object, str, str]] = [
    ({"schedule": ""}, "spec.schedule", "FieldValueRequired"),
    ({"schedule": "every morning"}, "spec.schedule", "FieldValueInvalid"),
    ({"schedule": "60 * * * *"}, "spec.schedule", "FieldValueInvalid"),
    ({"schedule": "0 0 * * 7"}, "spec.schedule", "FieldValueInvalid"),
    ({"schedule": "TZ=UTC 0 0 * * *"}, "spec.schedule", "FieldValueInvalid"),
    ({"timeZone": ""}, "spec.timeZone", "FieldValueInvalid"),
    ({"timeZone": "Local"}, "spec.timeZone", "FieldValueInvalid"),
    ({"timeZone": "Moon/Tycho"}, "spec.timeZone", "FieldValueInvalid"),
    ({"concurrencyPolicy": "Queue"}, "spec.concurrencyPolicy", "FieldValueNotSupported"),
    ({"startingDeadlineSeconds": -1}, "spec.startingDeadlineSeconds", "FieldValueInvalid"),
    ({"successfulJobsHistoryLimit": -1}, "spec.successfulJobsHistoryLimit", "FieldValueInvalid"),
    (
        {"jobTemplate": {"spec": {"template": {"spec": {**POD, "restartPolicy": "Always"}}}}},
        "spec.jobTemplate.spec.template.spec.restartPolicy",
        "FieldValueRequired",
    ),
    (
        {"jobTemplate": {"spec": {**JOB["spec"], "manualSelector": True}}},
        "spec.jobTemplate.spec.manualSelector",
        "FieldValueNotSupported",
    ),
]


@pytest.mark.parametrize(("fields", "field", "reason"), BAD)
def test_what_is_refused_names_its_field(here: ScratchNamespace, fields: Object, field: str, reason: str) -> None:
    status = here.api.refuse("POST", here.path(CRONJOBS), a(CRONJOBS, "c", spec=spec(**fields)))
    assert (status["code"], status["reason"]) == (422, "Invalid")
    assert (field, reason) in {(cause["field"], cause["reason"]) for cause in status["details"]["causes"]}


def test_a_name_leaves_room_for_the_time_of_a_run(here: ScratchNamespace) -> None:
    here.make(CRONJOBS, "n" * 52, spec=spec())
    status = here.api.refuse("POST", here.path(CRONJOBS), a(CRONJOBS, "n" * 53, spec=spec()))
    assert "must be no more than 52 characters" in status["message"]


def test_a_cron_job_is_changed_by_every_kind_of_patch_and_deleted(here: ScratchNamespace) -> None:
    here.make(CRONJOBS, "c", spec=spec())
    assert here.patch(CRONJOBS, "c", {"spec": {"timeZone": "Asia/Shanghai"}})["spec"]["timeZone"] == "Asia/Shanghai"
    steps = [{"op": "replace", "path": "/spec/schedule", "value": "@daily"}]
    assert here.patch(CRONJOBS, "c", steps, kind="json")["spec"]["schedule"] == "@daily"
    containers = [
        {"name": "main", "image": "registry.example/none:2"},
        {"name": "side", "image": "registry.example/x:1"},
    ]
    job = {"jobTemplate": {"spec": {"template": {"spec": {"containers": containers}}}}}
    patched = here.patch(CRONJOBS, "c", {"spec": job}, kind="strategic")
    found = patched["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"]
    assert sorted((each["name"], each["image"]) for each in found) == [
        ("main", "registry.example/none:2"),
        ("side", "registry.example/x:1"),
    ]
    assert patched["metadata"]["generation"] == 4
    here.delete(CRONJOBS, "c")
    assert here.names(CRONJOBS) == []


def test_the_status_is_written_through_its_own_path_only(here: ScratchNamespace) -> None:
    here.make(CRONJOBS, "c", spec=spec())
    last = {"lastScheduleTime": "2026-01-01T00:00:00Z"}
    assert "lastScheduleTime" not in here.patch(CRONJOBS, "c", {"status": last})["status"]
    written = here.patch(CRONJOBS, "c", {"status": last, "spec": {"suspend": False}}, subresource="status")
    assert written["status"]["lastScheduleTime"] == "2026-01-01T00:00:00Z"
    assert written["spec"]["suspend"] is True


def test_columns(here: ScratchNamespace) -> None:
    here.make(CRONJOBS, "c", spec=spec(timeZone="Etc/UTC"))
    found = here.api.fetch(here.path(CRONJOBS), accept=TABLE)
    columns = [column["name"] for column in found["columnDefinitions"]]
    assert columns == [
        "Name", "Schedule", "Timezone", "Suspend", "Active", "Last Schedule", "Age", "Containers", "Images", "Selector",
    ]  # fmt: skip
    (row,) = found["rows"]
    assert row["cells"][:6] == ["c", YEARLY, "Etc/UTC", "True", 0, "<none>"]
    assert row["cells"][7:] == ["main", "registry.example/none:1", "<none>"]
