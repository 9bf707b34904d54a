"""The VisualDL of a job: which volumes hold its records, and the objects that read them."""

from __future__ import annotations

from typing import Any

import pytest

from paddlecloud.api.names import JOB_LABEL
from paddlecloud.visualdl import board, folders
from paddlecloud.visualdl.flags import Flags

CLAIM = {"name": "task", "persistentVolumeClaim": {"claimName": "task"}}
SCRATCH: dict[str, Any] = {"name": "scratch", "emptyDir": {}}
HOST = {"name": "code", "hostPath": {"path": "/home/me/code"}}
AT_TASK = {"name": "task", "mountPath": "/mnt/task"}


def job(
    *mounts: dict[str, Any],
    volumes: tuple[dict[str, Any], ...] = (CLAIM, SCRATCH, HOST),
    workdir: str = "",
    role: str = "worker",
    name: str = "fit",
    **spec: Any,
) -> dict[str, Any]:
    container = {"name": "paddle", "image": "x", "volumeMounts": list(mounts)}
    if workdir:
        container["workingDir"] = workdir
    pod = {"containers": [container], "volumes": list(volumes), "tolerations": [{"key": "gpu"}]}
    return {
        "apiVersion": "batch.paddlepaddle.org/v1",
        "kind": "PaddleJob",
        "metadata": {"name": name, "namespace": "team", "uid": "u1"},
        "spec": {role: {"replicas": 1, "template": {"spec": pod}}, **spec},
    }


@pytest.mark.parametrize(
    ("given", "found"),
    [
        (job(AT_TASK), ("/mnt/task",)),
        (job(AT_TASK, role="ps"), ("/mnt/task",)),
        (job(AT_TASK, {"name": "code", "mountPath": "/src"}, workdir="/src/model/"), ("/src/model",)),
        (job(AT_TASK, workdir="/workspace"), ("/mnt/task",)),
        (job({**AT_TASK, "readOnly": True}), ()),
        (job({"name": "scratch", "mountPath": "/tmp/x"}), ()),
        (job(AT_TASK, {"name": "scratch", "mountPath": "/tmp/x"}), ("/mnt/task",)),
        (job(sampleSetRef={"name": "words", "mountPath": "/data"}), ()),
        (job(), ()),
        ({"metadata": {}, "spec": {}}, ()),
    ],
    ids=[
        "a claim", "of parameter servers", "the working directory on a volume", "one in the image", "read-only",
        "an emptyDir", "a claim beside it", "a SampleSet holds data", "no volume", "no role",
    ],
)  # fmt: skip
def test_records_are_looked_for_where_the_program_can_write(given: dict[str, Any], found: tuple[str, ...]) -> None:
    assert folders.likely(given) == found


def test_a_relative_folder_begins_in_the_working_directory() -> None:
    assert folders.absolute(job(workdir="/src"), ["log", "./a/../b", "/x/"]) == ("/src/log", "/src/b", "/x")
    with pytest.raises(folders.FolderError, match="write the whole path"):
        folders.absolute(job(), ["log"])


def test_the_deepest_mount_above_a_folder_holds_it() -> None:
    given = job(
        AT_TASK,
        {"name": "code", "mountPath": "/mnt/task/log", "subPath": "log"},
        {"name": "scratch", "mountPath": "/mnt"},
    )
    placed = folders.placed(given, ["/mnt/task/log/train"])
    assert placed.mounts == ({"name": "code", "mountPath": "/mnt/task/log", "subPath": "log"},)
    assert placed.volumes == (HOST,)


def test_two_folders_on_one_volume_mount_it_once() -> None:
    placed = folders.placed(job(AT_TASK), ["/mnt/task/a", "/mnt/task/b"])
    assert (placed.mounts, placed.volumes) == ((AT_TASK,), (CLAIM,))


def test_a_folder_of_the_sample_set_can_be_named() -> None:
    placed = folders.placed(job(sampleSetRef={"name": "words", "mountPath": "/data"}), ["/data/log"])
    assert placed.volumes == ({"name": "words", "persistentVolumeClaim": {"claimName": "words"}},)


@pytest.mark.parametrize(
    ("given", "folder", "says"),
    [
        (job(AT_TASK), "/workspace/log", "the container's own disk, which no other pod can read.*/mnt/task"),
        (job(AT_TASK), "/mnt/tasks", "the container's own disk"),
        (job({"name": "scratch", "mountPath": "/s"}), "/s/log", "the volume scratch, which each pod has for itself"),
        (job({"name": "gone", "mountPath": "/s"}), "/s/log", "the volume gone, which each pod has for itself"),
        (job({**AT_TASK, "subPathExpr": "$(POD)"}), "/mnt/task", "subPathExpr, which names another folder in each pod"),
    ],
)
def test_what_another_pod_cannot_read_is_refused_with_the_reason(given: dict[str, Any], folder: str, says: str) -> None:
    with pytest.raises(folders.FolderError, match=says.replace("$", r"\$").replace("(", r"\(")):
        folders.placed(given, [folder])


def test_a_job_without_a_volume_to_write_to_is_refused() -> None:
    with pytest.raises(folders.FolderError, match="give its program a PersistentVolumeClaim"):
        folders.placed(job(), folders.likely(job()))


def made(given: dict[str, Any], **flags: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    plan = board.plan([board.Shown(given, ("/mnt/task/log",))], Flags(logdirs=(), **flags))
    assert plan.flags.logdirs == ("/mnt/task/log",)
    return plan.service, plan.deployment


def test_a_board_belongs_to_its_job_and_only_reads_its_volumes() -> None:
    service, deployment = made(job(AT_TASK))
    for one in (service, deployment):
        assert one["metadata"]["name"] == "fit-visualdl"
        assert [owner["uid"] for owner in one["metadata"]["ownerReferences"]] == ["u1"]
        assert board.belongs_to(one, job(AT_TASK))
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    assert container["volumeMounts"] == [{**AT_TASK, "readOnly": True}]
    assert pod["volumes"] == [CLAIM]
    assert container["env"] == [{"name": "VISUALDL_KEY", "value": "u1"}], "who may read the job knows its uid"
    assert pod["automountServiceAccountToken"] is False
    assert pod["tolerations"] == [{"key": "gpu"}], "where the job's pods may run, their volumes can be mounted"
    assert JOB_LABEL not in deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert service["spec"]["ports"][0]["port"] == 8040


def test_the_probe_asks_what_needs_no_browser() -> None:
    """VisualDL's pages were answered with 500 without Accept-Language, which no probe sends."""
    probe = made(job(AT_TASK))[1]["spec"]["template"]["spec"]["containers"][0]["readinessProbe"]
    assert probe["httpGet"] == {"path": "/alive", "port": 8040}


def test_on_loopback_the_pod_asks_itself() -> None:
    probe = made(job(AT_TASK), host="127.0.0.1", port=9000)[1]["spec"]["template"]["spec"]["containers"][0][
        "readinessProbe"
    ]
    assert "http://127.0.0.1:9000/alive" in probe["exec"]["command"][-1]


def test_a_model_must_lie_on_a_volume_too() -> None:
    with pytest.raises(folders.FolderError, match="/models/x lies on the container's own disk"):
        made(job(AT_TASK), model="/models/x")


def test_a_name_too_long_for_a_service_is_refused() -> None:
    with pytest.raises(board.BoardError, match="more than 63 characters"):
        made(job(AT_TASK, name="n" * 60))


def compared(*given: dict[str, Any], **flags: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Folders as VisualDL gets them, and its pod."""
    shown = [board.Shown(one, folders.likely(one)) for one in given]
    plan = board.plan(shown, Flags(logdirs=(), **flags))
    assert [one["uid"] for one in plan.deployment["metadata"]["ownerReferences"]] == ["u1"], "of the first job"
    return plan.flags.logdirs, plan.deployment["spec"]["template"]["spec"]


def test_jobs_that_write_to_the_same_path_are_compared_under_two_names() -> None:
    other = {"name": "task", "persistentVolumeClaim": {"claimName": "other"}}
    logdirs, pod = compared(job(AT_TASK), job(AT_TASK, volumes=(other,), name="again"), model="/mnt/task/net")
    assert logdirs == ("/jobs/fit/mnt/task", "/jobs/again/mnt/task")
    (container,) = pod["containers"]
    mounts = {mount["mountPath"]: mount["name"] for mount in container["volumeMounts"]}
    sources = {volume["name"]: volume["persistentVolumeClaim"]["claimName"] for volume in pod["volumes"]}
    assert {path: sources[name] for path, name in mounts.items()} == {
        "/jobs/fit/mnt/task": "task", "/jobs/again/mnt/task": "other",
    }  # fmt: skip
    assert all(mount["readOnly"] for mount in container["volumeMounts"])
    assert "/jobs/fit/mnt/task/net" in container["args"], "the model is the first job's"


def test_what_two_jobs_share_is_one_volume_of_the_pod() -> None:
    """A pod with two volumes of one claim does not start where the kubelet mounts a claim once."""
    read_only = {"name": "mine", "persistentVolumeClaim": {"claimName": "task", "readOnly": True}}
    below = {"name": "mine", "mountPath": "/mnt/task", "subPath": "second"}
    second = job(below, volumes=(read_only,), name="second", workdir="/mnt/task")
    _, pod = compared(job(AT_TASK), second)
    assert pod["volumes"] == [{"name": "records-0", "persistentVolumeClaim": {"claimName": "task"}}]
    assert [mount.get("subPath") for mount in pod["containers"][0]["volumeMounts"]] == [None, "second"]


def test_a_claim_keeps_the_records_of_a_job_that_is_gone() -> None:
    claim = folders.of_claim({"metadata": {"name": "old", "namespace": "team", "uid": "u2"}}, "x")
    logdirs, pod = compared(job(AT_TASK), claim)
    assert logdirs == ("/jobs/fit/mnt/task", "/claims/old")
    assert pod["containers"][0]["volumeMounts"][1]["mountPath"] == "/claims/old"
    assert folders.absolute(claim, ["log/train"]) == ("/claims/old/log/train",)


def test_of_several_jobs_the_one_without_records_is_named() -> None:
    with pytest.raises(folders.FolderError, match="again: the job has no volume that it writes to"):
        compared(job(AT_TASK), job(name="again"))
