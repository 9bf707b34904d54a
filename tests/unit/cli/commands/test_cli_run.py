"""`pdc run`: which job it sends, on which platform it refuses, and how it ends."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from paddlecloud.sdk import following
from unit.cli.conftest import Pdc
from unit.cli.samples import make_job
from unit.cli.stub import Stub

JOBS = "/apis/batch.paddlepaddle.org/v1/namespaces/default/paddlejobs"


@pytest.fixture
def ours(stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stub:
    """The embedded platform, seen from a folder with three scripts."""
    monkeypatch.chdir(tmp_path)
    for name in ("train.py", "wide.py", "ps.py"):
        (tmp_path / name).touch()
    stub.version = "v1.34.0-paddlecloud.0.1.0"
    return stub


def sent(stub: Stub) -> dict[str, Any]:
    path, _, body = stub.asked("POST")[-1]
    assert path == JOBS
    return dict(body)


def test_the_current_directory_is_where_the_program_runs(ours: Stub, pdc: Pdc, tmp_path: Path) -> None:
    assert pdc("run", "-d", "--workers", "2", "--", "python", "train.py", "--workers", "9").code == 0
    job = sent(ours)
    assert job["metadata"] == {**job["metadata"], "name": "train-1", "namespace": "default"}
    assert job["spec"]["worker"]["replicas"] == 2
    pod = job["spec"]["worker"]["template"]["spec"]
    assert pod["containers"][0]["command"] == ["python", "train.py", "--workers", "9"]
    assert pod["containers"][0]["workingDir"] == str(tmp_path)
    assert pod["containers"][0]["image"] == "paddlecloud/paddle:3.3"
    assert pod["volumes"][0]["hostPath"] == {"path": str(tmp_path)}


def test_a_job_with_servers_gets_a_paddle_that_has_them_unless_an_image_is_named(ours: Stub, pdc: Pdc) -> None:
    for flags, image in (([], "paddlecloud/paddle:2.6"), (["--image", "me/mine:1"], "me/mine:1")):
        assert pdc("run", "-d", "--ps", "1", *flags, "--", "python", "ps.py").code == 0
        spec = sent(ours)["spec"]
        roles = (spec["ps"], spec["worker"])
        assert [role["template"]["spec"]["containers"][0]["image"] for role in roles] == [image, image]


def test_other_clusters_are_refused_without_an_image(stub: Stub, pdc: Pdc) -> None:
    result = pdc("run", "--", "python", "train.py")
    assert result.code == 2
    assert "run on other machines" in result.err
    assert "--image" in result.err
    assert stub.asked("POST") == []


def test_other_clusters_get_an_image_and_no_directory_of_ours(stub: Stub, pdc: Pdc) -> None:
    assert pdc("run", "-d", "--image", "me/mine:1", "--", "python", "train.py").code == 0
    pod = sent(stub)["spec"]["worker"]["template"]["spec"]
    assert "volumes" not in pod
    assert "workingDir" not in pod["containers"][0]


def test_a_taken_name_is_counted_on(ours: Stub, pdc: Pdc) -> None:
    taken: list[str] = []

    def race(method: str, path: str) -> None:
        if method == "POST" and len(taken) < 2:
            name = f"train-{len(taken) + 1}"
            taken.append(name)
            ours.add({"apiVersion": "batch.paddlepaddle.org/v1", "kind": "PaddleJob", "metadata": {"name": name}})

    ours.before = race
    result = pdc("run", "-d", "--", "python", "train.py")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/train-3 created\n")


def test_a_given_name_that_is_taken_is_a_conflict(ours: Stub, pdc: Pdc) -> None:
    make_job(ours)
    result = pdc("run", "-d", "--name", "wide", "--", "true")
    assert result.code == 4
    assert "pdc delete pdj/wide" in result.err


def test_a_dry_run_creates_nothing(ours: Stub, pdc: Pdc) -> None:
    result = pdc("run", "--dry-run", "-o", "json", "--ps", "2", "--elastic", "1:3", "--", "python", "wide.py")
    assert result.code == 0
    job = result.json()
    assert job["metadata"]["name"] == "wide-1"
    assert (job["spec"]["ps"]["replicas"], job["spec"]["worker"]["limits"]) == (2, 3)
    assert ours.asked("POST") == []


def test_a_dry_run_of_the_server_has_it_check_the_job(ours: Stub, pdc: Pdc) -> None:
    result = pdc("run", "--dry-run=server", "--name", "wide", "--", "python", "wide.py")
    assert (result.code, result.out) == (0, "paddlejob.batch.paddlepaddle.org/wide would be created (dry run)\n")
    ((_, query, _),) = ours.asked("POST")
    assert query["dryRun"] == "All"


@pytest.mark.parametrize(("phase", "code"), [("Completed", 0), ("Failed", 100)], ids=["completed", "failed"])
def test_it_follows_every_rank_and_ends_as_the_job_does(
    ours: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, phase: str, code: int
) -> None:
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)
    looks = 0

    def live(method: str, path: str) -> None:
        nonlocal looks
        if method == "GET" and path == f"{JOBS}/wide":
            looks += 1
            if looks == 2:
                make_job(ours, workers=2, servers=1)
            if looks == 6:
                ours.objects[("paddlejobs", "default", "wide")]["status"] = {"phase": phase}

    ours.before = live
    result = pdc("run", "--name", "wide", "--workers", "2", "--", "python", "wide.py")
    assert result.code == code
    assert result.err.startswith("paddlejob.batch.paddlepaddle.org/wide created\n")
    assert {"worker-0 | worker0 says 2", "worker-1 | worker1 says 0", "ps-0     | ps0 says 1"} <= set(
        result.out.splitlines()
    )


NO_RECIPE = 'no recipe answers for image "nosuch:1". Write one, then: pdc image build -f image.yaml -t nosuch:1'

NEXT_STEPS = {
    "an image without a recipe": (
        "Image",
        NO_RECIPE,
        "next:  pdc image build -f image.yaml -t nosuch:1, then: pdc retry wide",
    ),
    "an image that no registry has": (
        "Image",
        "not found",
        "next:  pdc image ls, or another --image; then: pdc retry wide",
    ),
    "a package that the image lacks": (
        "UserError",
        "Traceback …\n  import sklearn\nModuleNotFoundError: No module named 'sklearn'",
        'next:  if it is a package and no file of yours: write the lines "base: nosuch:1" and "pip: [scikit-learn]" '
        "into image.yaml, then: pdc image build -f image.yaml -t mine:1, and run it with --image mine:1",
    ),
    "a Secret that is not there": ("Config", "", "next:  create what is missing, then: pdc retry wide"),
}


@pytest.mark.parametrize("case", NEXT_STEPS.values(), ids=NEXT_STEPS.keys())
def test_a_job_that_could_not_begin_ends_with_the_command_that_helps(
    ours: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch, case: tuple[str, str, str]
) -> None:
    kind, message, step = case
    monkeypatch.setattr(following, "LOOK_SECONDS", 0.05)

    def fail(method: str, path: str) -> None:
        if method == "GET" and path == f"{JOBS}/wide":
            record = {"failureClass": kind, "message": message}
            status = {"phase": "Failed", "message": "wide-worker-0 failed", "failures": [record]}
            ours.objects[("paddlejobs", "default", "wide")]["status"] = status

    ours.before = fail
    result = pdc("run", "--name", "wide", "--image", "nosuch:1", "--", "python", "wide.py")
    assert (result.code, result.err.splitlines()[-1]) == (100, step)


@pytest.mark.parametrize(
    ("flags", "complaint"),
    [
        (["python", "train.py"], "comes after --"),
        (["python", "train.py", "--data", "x"], "next:  pdc run -- python train.py --data x"),
        (["--name", "train.py", "train.py", "-x", "--", "y"], "next:  pdc run -- python train.py -x y"),
        (["--worker", "5", "python", "train.py"], 'did you mean "--workers"?'),
        (["--workers", "0", "--", "x"], "not between 1"),
        (["--elastic", "4", "--", "x"], "MIN:MAX"),
        (["--elastic", "4:2", "--", "x"], "MIN:MAX"),
        (["--cpu", "much", "--", "x"], "cpu 'much'"),
        (["--memory", "4", "--", "x"], "4 means 4 bytes; did you mean 4Gi?"),
        (["--memory", "4GB", "--", "x"], "did you mean 4G or 4Gi?"),
        (["--env", "NOT_SET_ANYWHERE", "--", "x"], "has no value"),
        (["--volume", "/data", "--", "x"], "SRC:PATH"),
        (["--volume", "/nowhere/at/all:/data", "--", "x"], "there is no /nowhere/at/all"),
        (["-o", "yaml", "--", "x"], "not offered here"),
        (["--"], "no program"),
        (["--timeout", "5", "--", "x"], "unknown flag --timeout\n"),
        (["--worker", "5", "--", "x"], 'did you mean "--workers"?'),
        (["--", "python", "-u", "trian.py"], 'did you mean "train.py"?'),
        (["--image", "python:3.11", "--", "python", "src/none.py"], "there is no src/none.py in"),
    ],
)
def test_mistakes_are_usage_errors_and_create_nothing(ours: Stub, pdc: Pdc, flags: list[str], complaint: str) -> None:
    result = pdc("run", *flags)
    assert result.code == 2
    assert complaint in result.err
    assert ours.asked("POST") == []


def test_volumes_are_directories_or_claims(ours: Stub, pdc: Pdc, tmp_path: Path) -> None:
    (tmp_path / "d").mkdir()
    ours.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "imagenet"}})
    flags = ["--volume", f"{tmp_path}/d:/d", "--volume", "imagenet:/data:ro"]
    assert pdc("run", "-d", *flags, "--", "x").code == 0
    volumes = sent(ours)["spec"]["worker"]["template"]["spec"]["volumes"][1:]
    assert volumes == [
        {"name": "mount-1", "hostPath": {"path": f"{tmp_path}/d"}},
        {"name": "mount-2", "persistentVolumeClaim": {"claimName": "imagenet"}},
    ]


@pytest.mark.parametrize("detach", [["-d"], []], ids=["detached", "followed"])
@pytest.mark.parametrize("kind", ["PersistentVolumeClaim", "SampleSet"])
def test_a_volume_that_does_not_exist_is_refused_with_the_nearest_name(
    ours: Stub, pdc: Pdc, kind: str, detach: list[str]
) -> None:
    ours.add({"kind": kind, "metadata": {"name": "samples"}})
    result = pdc("run", *detach, "--volume", "sample:/data", "--", "x")
    assert result.code == 3
    assert 'neither a PersistentVolumeClaim nor a SampleSet "sample"' in result.err
    assert 'did you mean "samples"?' in result.err
    assert ours.asked("POST") == []
    assert pdc("run", "-d", "--volume", "samples:/data", "--", "x").code == 0


def test_a_set_that_is_being_deleted_is_refused(ours: Stub, pdc: Pdc) -> None:
    ours.add({"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "samples"}})
    ours.add({"kind": "SampleSet", "metadata": {"name": "samples", "deletionTimestamp": "2026-01-01T00:00:00Z"}})
    result = pdc("run", "-d", "--volume", "samples:/data", "--", "x")
    assert result.code == 1
    assert 'SampleSet "samples" in namespace default is being deleted' in result.err
    assert ours.asked("POST") == []


def test_a_volume_that_may_not_be_read_is_left_to_the_api_server(ours: Stub, pdc: Pdc) -> None:
    path = "/api/v1/namespaces/default/persistentvolumeclaims/imagenet"
    ours.refuse[("GET", path)] = (403, {"reason": "Forbidden", "code": 403, "message": "no"})
    assert pdc("run", "-d", "--volume", "imagenet:/data", "--", "x").code == 0


def test_a_misspelt_image_of_the_embedded_platform_is_questioned_at_once(ours: Stub, pdc: Pdc) -> None:
    result = pdc("run", "-d", "--image", "paddlecloud/padle:3.3", "--", "x")
    question = 'no recipe answers for image "paddlecloud/padle:3.3"; did you mean "paddlecloud/paddle:3.3"?'
    assert (result.code, result.err) == (0, f"Warning: {question}\n")


def test_an_image_like_no_other_is_answered_with_the_command_that_builds_one(ours: Stub, pdc: Pdc) -> None:
    result = pdc("run", "-d", "--image", "nosuch/image:1", "--", "x")
    advice = (
        'no recipe answers for image "nosuch/image:1"; write one, then: pdc image build -f image.yaml -t nosuch/image:1'
    )
    assert (result.code, result.err) == (0, f"Warning: {advice}\n")


@pytest.mark.parametrize("image", ["paddlecloud/paddle:3.3", "python:3.11"])
def test_an_image_that_is_known_is_not_questioned(ours: Stub, pdc: Pdc, image: str) -> None:
    assert pdc("run", "-d", "--image", image, "--", "x").err == ""


def test_images_of_other_clusters_are_not_questioned(stub: Stub, pdc: Pdc) -> None:
    assert pdc("run", "-d", "--image", "paddlecloud/padle:3.3", "--", "x").err == ""


def test_a_relative_directory_means_nothing_on_other_machines(stub: Stub, pdc: Pdc) -> None:
    result = pdc("run", "-d", "--image", "x", "--volume", "./d:/d", "--", "x")
    assert result.code == 2
    assert "relative path" in result.err


def test_variables_come_from_here_when_only_named(ours: Stub, pdc: Pdc, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_KEY", "s3cret=x")
    assert pdc("run", "-d", "--env", "WANDB_KEY", "--env", "B=1=2", "--", "x").code == 0
    env = sent(ours)["spec"]["worker"]["template"]["spec"]["containers"][0]["env"]
    assert {"name": "WANDB_KEY", "value": "s3cret=x"} in env
    assert {"name": "B", "value": "1=2"} in env


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        (["loop.py"], "pdc run -- python loop.py"),
        (["loop.py", "--", "--steps", "two words"], "pdc run -- python loop.py --steps 'two words'"),
        (["python", "loop.py"], "pdc run -- python loop.py"),
        (["./loop.sh"], "pdc run -- ./loop.sh"),
    ],
)
def test_a_program_before_the_dashes_is_answered_with_the_command_that_works(
    ours: Stub, pdc: Pdc, words: list[str], advice: str
) -> None:
    result = pdc("run", *words)
    assert result.code == 2
    assert f"next:  {advice}\n" in result.err
    assert ours.asked("POST") == []
