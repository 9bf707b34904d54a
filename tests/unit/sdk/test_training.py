"""What job a command becomes, and what it is called."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from paddlecloud.api.paddlejob import decode, normalise, validate
from paddlecloud.sdk.jobs import command_of
from paddlecloud.sdk.training import (
    Mount,
    Training,
    TrainingError,
    home_mount,
    job,
    next_name,
    prepare,
    script_of,
    stem,
)


def container(obj: dict[str, Any], role: str = "worker") -> dict[str, Any]:
    pod: dict[str, Any] = obj["spec"][role]["template"]["spec"]
    return dict(pod["containers"][0])


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["python", "train.py"], "train"),
        (["python3.11", "-u", "src/Wide_and_Deep.py", "--lr", "0.1"], "wide-and-deep"),
        (["python", "-m", "paddle.distributed.launch", "train.py"], "train"),
        (["python", "-m", "pkg.fit"], "fit"),
        (["bash", "run.sh"], "run"),
        (["/usr/bin/nvidia-smi"], "nvidia-smi"),
        (["python", "-c", "print(1)"], "job"),
        (["sh", "-c", "echo"], "job"),
        (["python", "2024.py"], "job-2024"),
        (["python", "训练.py"], "job"),
        (["python", "a" * 80 + ".py"], "a" * 40),
    ],
)
def test_a_job_is_called_after_its_script(command: list[str], expected: str) -> None:
    assert stem(command) == expected


@pytest.mark.parametrize(
    ("taken", "expected"),
    [
        ([], "train-1"),
        (["train-1", "train-3"], "train-4"),
        (["train", "train-x", "other-7", "retrain-9", "train-9-worker"], "train-1"),
    ],
)
def test_numbers_count_on_from_the_highest(taken: list[str], expected: str) -> None:
    assert next_name("train", taken) == expected


@pytest.mark.parametrize("program", ["mnist.py --epochs 2", "src/mnist.py x"])
def test_a_script_and_its_arguments_in_one_text_are_answered_with_the_right_form(program: str) -> None:
    script, *arguments = program.split()
    words = ", ".join(f'"{word}"' for word in (script, *arguments))
    with pytest.raises(TrainingError) as refused:
        command_of(program, ())
    assert str(refused.value).endswith(f'write run({words}) or run("python {program}")')
    assert command_of(script, [*arguments, 2, 0.5]) == ["python", script, *arguments, "2", "0.5"]
    assert command_of(f"python {program}", ()) == ["python", *program.split()]


FULL = Training(
    command=["python", "train.py", "--lr=1"],
    workers=3,
    servers=2,
    gpus=1,
    cpu="500m",
    memory="2Gi",
    env={"A": "b"},
    mounts=[Mount("/w", host="/w"), Mount("/data", claim="imagenet", read_only=True)],
    workdir="/w",
    retries=2,
)


@pytest.mark.parametrize(
    "training",
    [Training(command=["true"]), FULL, Training(command=["true"], elastic=(2, 4))],
    ids=["least", "full", "elastic"],
)
def test_every_job_made_is_one_the_controller_accepts(training: Training) -> None:
    parsed = decode(job(training, name="x", namespace="ns"))
    assert [str(problem) for problem in validate(parsed)] == []
    assert normalise(parsed).warnings == []


def test_flags_end_where_they_belong() -> None:
    made = job(FULL, name="x")
    assert made["spec"]["worker"]["replicas"] == 3
    assert made["spec"]["ps"]["replicas"] == 2
    assert made["spec"]["backoffLimit"] == 2
    for role in ("worker", "ps"):
        one = container(made, role)
        assert one["command"] == ["python", "train.py", "--lr=1"]
        assert one["workingDir"] == "/w"
        assert {"name": "A", "value": "b"} in one["env"]
        assert one["resources"] == {
            "requests": {"cpu": "500m", "memory": "2Gi"},
            "limits": {"memory": "2Gi", "nvidia.com/gpu": "1"},
        }
        volumes = made["spec"][role]["template"]["spec"]["volumes"]
        assert [volume.get("hostPath") or volume.get("persistentVolumeClaim") for volume in volumes] == [
            {"path": "/w"},
            {"claimName": "imagenet"},
        ]
        assert [mount.get("readOnly") for mount in one["volumeMounts"]] == [None, True]


def test_a_program_is_run_once_unless_retries_are_asked_for() -> None:
    once, thrice = (normalise(decode(job(Training(command=["x"], retries=n), name="x"))).settings for n in (0, 2))
    assert (once.backoff_limit, once.roles[0].restart_policy) == (0, "Never")
    assert (thrice.backoff_limit, thrice.roles[0].restart_policy) == (2, "OnFailure")
    assert once.clean_pod_policy == "Never", "what it printed must stay readable"


def test_an_elastic_job_begins_with_the_least() -> None:
    settings = normalise(decode(job(Training(command=["x"], elastic=(2, 8)), name="x"))).settings
    role = settings.roles[0]
    assert (role.minimum, role.replicas, role.maximum) == (2, 2, 8)


def test_the_roles_share_nothing_that_could_be_changed_by_one() -> None:
    made = job(FULL, name="x")
    container(made, "ps")["env"].append({"name": "ONLY", "value": "ps"})
    assert {"name": "ONLY", "value": "ps"} not in container(made, "worker")["env"]


@pytest.mark.parametrize(
    ("training", "complaint"),
    [
        (Training(command=[]), "no program"),
        (Training(command=["x"], workers=0), "at least one worker"),
        (Training(command=["x"], elastic=(3, 2)), "MIN:MAX"),
        (Training(command=["x"], elastic=(0, 2)), "MIN:MAX"),
        (Training(command=["x"], workers=9, elastic=(1, 2)), "9 workers"),
        (Training(command=["x"], cpu="two"), "cpu 'two'"),
        (Training(command=["x"], memory="0"), "memory must be more than 0"),
        (Training(command=["x"], cpu="-1"), "cpu must be more than 0, not -1"),
        (Training(command=["x"], memory="4"), r"memory 4 means 4 bytes; did you mean 4Gi\?"),
        (Training(command=["x"], memory="2048"), r"2048 means 2048 bytes; did you mean 2048Mi\?"),
        (Training(command=["x"], memory="500m"), r"500m means 0.5 bytes; did you mean 500Mi\?"),
        (Training(command=["x"], memory="512Ki"), r"512Ki means 524288 bytes; did you mean 512Mi\?"),
        (Training(command=["x"], memory="4GB"), r"memory '4GB' is not .*; did you mean 4G or 4Gi\?"),
        (Training(command=["x"], memory="1.5 gib"), r"did you mean 1.5G or 1.5Gi\?"),
        (Training(command=["x"], memory="512mb"), r"did you mean 512M or 512Mi\?"),
        (Training(command=["x"], env={"1A": "x"}), "'1A'"),
    ],
)
def test_what_makes_no_job_is_said(training: Training, complaint: str) -> None:
    with pytest.raises(TrainingError, match=complaint):
        job(training, name="x")


@pytest.mark.parametrize("memory", ["1Mi", "1048576", "4G", "0.5Gi", "1e9"])
def test_memory_that_a_program_can_run_in_is_taken_as_it_is(memory: str) -> None:
    resources = container(job(Training(command=["x"], memory=memory), name="x"), "worker")["resources"]
    assert resources["limits"]["memory"] == memory


@pytest.mark.parametrize(
    ("command", "script"),
    [
        ("python train.py --lr 1", "train.py"),
        ("python3.11 -u -X dev -W ignore src/train.py", "src/train.py"),
        ("/usr/bin/python -uB train.py", "train.py"),
        ("python -m paddle.distributed.launch train.py", ""),
        ("python -c pass train.py", ""),
        ("python -um pkg train.py", ""),
        ("python train", ""),
        ("python", ""),
        ("bash train.py", ""),
    ],
)
def test_the_script_of_a_command(command: str, script: str) -> None:
    assert script_of(command.split()) == script


def test_a_script_that_is_not_in_the_folder_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "mnist.py").touch()

    def start(script: str, *, local: bool = True, volumes: Sequence[str] = ()) -> None:
        prepare(["python", script], image="i", local=local, directory=str(tmp_path), volumes=volumes)

    with pytest.raises(TrainingError) as refused:
        start("src/mnits.py")
    assert str(refused.value) == f'there is no src/mnits.py in {tmp_path}; did you mean "src/mnist.py"?'
    start("src/mnist.py")
    start("/opt/elsewhere.py")
    start("train.py", local=False)
    start("code/train.py", volumes=[f"claim:{tmp_path}/code"])


def test_a_program_may_be_a_path() -> None:
    script, program = Path("my folder/train.py"), Path("bin/fit")
    assert command_of(script, (2, Path("data"))) == ["python", "my folder/train.py", "2", "data"]
    assert command_of(program, ()) == ["bin/fit"]
    assert command_of(["python", "-u", script], ()) == ["python", "-u", "my folder/train.py"]


@pytest.mark.parametrize("local", [True, False])
def test_in_a_notebook_its_claim_is_mounted_for_the_folder_that_it_holds(local: bool, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "train.py").write_text("")
    home = home_mount({"PADDLECLOUD_HOME_CLAIM": f"notebook-ada:{tmp_path}/"})
    assert home == Mount(str(tmp_path), claim="notebook-ada")
    made = prepare(["python", "train.py"], image=None, local=local, directory=str(tmp_path / "work"), home=home)
    assert (made.mounts, made.workdir) == ([home], str(tmp_path / "work"))
    with pytest.raises(TrainingError, match=f"is on no volume, .* work below {tmp_path}"):
        prepare(["python", "train.py"], image=None, local=local, directory=str(tmp_path) + "-other", home=home)


@pytest.mark.parametrize("value", [None, "", "notebook-ada", ":/home", "notebook-ada:home"])
def test_without_a_claim_in_the_environment_there_is_no_notebook(value: str | None) -> None:
    assert home_mount({} if value is None else {"PADDLECLOUD_HOME_CLAIM": value}) is None
