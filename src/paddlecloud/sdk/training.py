"""The PaddleJob behind “run this program on so many workers”: what `pdc run` and `client.jobs.run` make.

The job keeps its pods when it has ended (`cleanPodPolicy: Never`), because who runs a program by hand wants to read
what it printed; and it is not restarted unless asked (`retries`): a typing error is no better the fourth time.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from paddlecloud.api.names import PADDLEJOB
from paddlecloud.kube.literal_text import literal, literals
from paddlecloud.kube.nearest import question
from paddlecloud.kube.quantity import ONE, Amount, QuantityError, parse
from paddlecloud.kube.resource import Object
from paddlecloud.sdk.checking import ArgumentError

DEFAULT_IMAGE = "paddlecloud/paddle:3.3"
SERVERS_IMAGE = "paddlecloud/paddle:2.6"
"""Of jobs with parameter servers, which later releases of Paddle do not have."""
NAME_LENGTH = 40
"""Leaves room for `-<n>` and for `-worker-<index>` within the 63 characters of a host name."""

LEAST_MEMORY: Amount = 2**20 * ONE
"""No program runs in less: who asks for less has left out a unit or chosen a wrong one."""
MOST_GIBIBYTES = 64
"""A larger number without a unit is more likely one of mebibytes."""

HOME_CLAIM = "PADDLECLOUD_HOME_CLAIM"
"""Variable of notebooks: the claim with their files, and where it is mounted."""

_ENV_NAME = re.compile(r"[A-Za-z_.-][A-Za-z0-9_.-]*")
_PYTHON = re.compile(r"python[0-9.]*")
_FLAGS = "bBdEiIOPqRsSuvx"
"""Of python, without a value."""
_INTERPRETERS = re.compile(r"(python|pypy|bash|sh)[0-9.]*")


class TrainingError(ArgumentError):
    """What was asked for makes no job; the text says which part and how to write it."""


@dataclass(frozen=True, slots=True)
class Mount:
    """A directory of the node (`host`) or a PersistentVolumeClaim (`claim`) that pods see at `path`."""

    path: str
    host: str = ""
    claim: str = ""
    read_only: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Training:
    """A program and how many of it. `workers` of None means one, or the least an elastic job may have."""

    command: Sequence[str]
    image: str = DEFAULT_IMAGE
    workers: int | None = None
    servers: int = 0
    elastic: tuple[int, int] | None = None
    gpus: int = 0
    cpu: str = ""
    memory: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    mounts: Sequence[Mount] = ()
    workdir: str = ""
    retries: int = 0

    @property
    def replicas(self) -> int:
        if self.workers is not None:
            return self.workers
        return self.elastic[0] if self.elastic else 1


def job(training: Training, *, name: str, namespace: str | None = None) -> Object:
    """The object to create. Raises `TrainingError`."""
    _check(training)
    meta = {"name": name, "namespace": namespace} if namespace else {"name": name}
    spec: Object = {"cleanPodPolicy": "Never", "backoffLimit": training.retries}
    if training.servers:
        spec["ps"] = {"replicas": training.servers, "template": _template(training)}
    worker: Object = {"replicas": training.replicas}
    if training.elastic:
        spec["elastic"] = 1
        worker["requests"], worker["limits"] = training.elastic
    spec["worker"] = {**worker, "template": _template(training)}
    return {"apiVersion": PADDLEJOB.api_version, "kind": PADDLEJOB.kind, "metadata": meta, "spec": spec}


def _check(training: Training) -> None:
    if not training.command:
        raise TrainingError("there is no program to run")
    if training.elastic:
        low, high = training.elastic
        if not 1 <= low <= high:
            raise TrainingError(f"elastic bounds {low}:{high} must be MIN:MAX with 1 <= MIN <= MAX")
        if not low <= training.replicas <= high:
            raise TrainingError(f"{training.replicas} workers are not between the elastic bounds {low} and {high}")
    if training.replicas < 1:
        raise TrainingError("a job needs at least one worker")
    for name in training.env:
        if not _ENV_NAME.fullmatch(name):
            raise TrainingError(f"{name!r} cannot be the name of an environment variable")
    for what, amount in (("cpu", training.cpu), ("memory", training.memory)):
        if amount:
            _positive(what, amount)


def _positive(what: str, amount: str) -> None:
    try:
        value = parse(amount)
    except QuantityError as error:
        meant = _meant_suffix(amount) if what == "memory" else ""
        raise TrainingError(f"{what} {amount!r} is not a quantity such as 2, 500m or 4Gi{meant}") from error
    if value <= 0:
        raise TrainingError(f"{what} must be more than 0, not {amount}")
    if what == "memory" and value < LEAST_MEMORY:
        raise TrainingError(f"memory {amount} means {value / ONE:.12g} bytes; did you mean {_meant_unit(amount)}?")


def _meant_suffix(amount: str) -> str:
    """`4GB`, `4 gib` and `4g` are not written as Kubernetes writes them."""
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgtpe])i?b?", amount.strip(), re.IGNORECASE)
    if not found:
        return ""
    number, letter = found[1], found[2].upper()
    decimal = "k" if letter == "K" else letter
    return f"; did you mean {number}{decimal} or {number}{letter}i?"


def _meant_unit(amount: str) -> str:
    number = re.match(r"\+?([0-9.]*)", amount)
    digits = number[1] if number else ""
    plain = digits == amount.lstrip("+") and float(digits) <= MOST_GIBIBYTES
    return f"{digits}{'Gi' if plain else 'Mi'}"


def _template(training: Training) -> Object:
    container: Object = {"name": "paddle", "image": training.image, "command": literals(training.command)}
    if training.workdir:
        container["workingDir"] = training.workdir
    # Without it Python keeps its output for itself until it has a few kilobytes, and followers see nothing.
    env = {"PYTHONUNBUFFERED": "1", **training.env}
    container["env"] = [{"name": name, "value": literal(value)} for name, value in env.items()]
    if resources := _resources(training):
        container["resources"] = resources
    pod: Object = {"restartPolicy": "OnFailure" if training.retries else "Never", "containers": [container]}
    if training.mounts:
        names = [f"mount-{number}" for number in range(len(training.mounts))]
        pairs = list(zip(names, training.mounts, strict=True))
        container["volumeMounts"] = [_volume_mount(name, mount) for name, mount in pairs]
        pod["volumes"] = [_volume(name, mount) for name, mount in pairs]
    return {"spec": pod}


def _resources(training: Training) -> Object:
    """Memory and GPUs are limits too; a CPU limit would only slow a job down while the machine is idle."""
    requests = {"cpu": training.cpu, "memory": training.memory}
    limits = {"memory": training.memory, "nvidia.com/gpu": str(training.gpus) if training.gpus else ""}
    blocks = {"requests": requests, "limits": limits}
    return {
        block: given
        for block, amounts in blocks.items()
        if (given := {name: amount for name, amount in amounts.items() if amount})
    }


def _volume_mount(name: str, mount: Mount) -> Object:
    entry: Object = {"name": name, "mountPath": mount.path}
    return {**entry, "readOnly": True} if mount.read_only else entry


def _volume(name: str, mount: Mount) -> Object:
    if mount.claim:
        return {"name": name, "persistentVolumeClaim": {"claimName": mount.claim}}
    return {"name": name, "hostPath": {"path": mount.host}}


# From where the user is


def home_mount(environment: Mapping[str, str]) -> Mount | None:
    """The claim that this program has its files on, where it runs in a notebook: `PADDLECLOUD_HOME_CLAIM=NAME:PATH`."""
    claim, _, path = environment.get(HOME_CLAIM, "").partition(":")
    return Mount(path.rstrip("/"), claim=claim) if claim and path.startswith("/") else None


def prepare(
    command: Sequence[str],
    *,
    image: str | None,
    local: bool,
    directory: str,
    volumes: Iterable[str] = (),
    home: Mount | None = None,
    **rest: Any,
) -> Training:
    """The training of a command given in `directory`; `rest` are fields of `Training`.

    Pods of a `local` platform are processes of this machine: they find the directory at its own path and start there.
    In a notebook it is on the notebook's claim (`home`), which they mount at the same path.
    """
    if not local and image is None and home is None:
        raise TrainingError(
            "the pods run on other machines and would not find the program, which is on this one: "
            "give an image that holds it"
        )
    directory = os.path.abspath(directory)
    mounts = [_own_files(directory, home)] if local or home else []
    mounts += [mount(text, local=local and home is None, directory=directory) for text in volumes]
    workdir = directory if local or home else ""
    if workdir:
        _check_script(command, directory, [one.path for one in mounts[1:]])
    fitting = SERVERS_IMAGE if rest.get("servers") else DEFAULT_IMAGE
    return Training(command=command, image=image or fitting, mounts=mounts, workdir=workdir, **rest)


def _own_files(directory: str, home: Mount | None) -> Mount:
    if home is None:
        return Mount(directory, host=directory)
    if directory != home.path and not directory.startswith(home.path + "/"):
        raise TrainingError(f"{directory} is on no volume, and other pods do not find it: work below {home.path}")
    return home


def _check_script(command: Sequence[str], directory: str, mounted: Sequence[str]) -> None:
    """Refuses a relative script that is not in the directory where the program starts. What may come from elsewhere,
    as an absolute path, a module or a file of another volume, is left to the pod."""
    script = script_of(command)
    path = os.path.normpath(os.path.join(directory, script))
    outside = any(path == one or path.startswith(one.rstrip("/") + "/") for one in mounted)
    if not script or os.path.isabs(script) or outside or os.path.exists(path):
        return
    folder = os.path.dirname(script)
    beside = os.path.join(directory, folder)
    found = [name for name in os.listdir(beside) if name.endswith(".py")] if os.path.isdir(beside) else []
    meant = question(script, [os.path.join(folder, name) for name in found])
    raise TrainingError(f"there is no {script} in {directory}" + (f"; {meant}" if meant else ""))


def script_of(command: Sequence[str]) -> str:
    """The script that an interpreter of Python is given; empty for modules (`-m`), texts (`-c`) and other programs."""
    words = iter(command)
    if not _PYTHON.fullmatch(PurePosixPath(next(words, "")).name):
        return ""
    for word in words:
        if word in ("-W", "-X"):
            next(words, "")
        elif not word.startswith("-"):
            return word if word.endswith(".py") else ""
        elif word.startswith("--") or word[1:].lstrip(_FLAGS):
            return ""  # -c, -m, or a flag that only the interpreter knows
    return ""


def mount(text: str, *, local: bool, directory: str) -> Mount:
    """`./data:/data:ro` is a directory, `imagenet:/data` a claim, as with other tools that run containers."""
    source, _, rest = text.partition(":")
    path, _, mode = rest.partition(":")
    if not source or not path.startswith("/") or mode not in ("", "ro", "rw"):
        raise TrainingError(f"volume {text!r} is not SRC:PATH[:ro], such as /data:/data:ro")
    read_only = mode == "ro"
    if not source.startswith(("/", ".", "~")):
        return Mount(path, claim=source, read_only=read_only)
    if not local and not source.startswith("/"):
        raise TrainingError(
            f"volume {text!r}: a relative path means a directory of this machine, and the pods run on others; "
            "give an absolute path of the nodes, or the name of a PersistentVolumeClaim"
        )
    host = os.path.abspath(os.path.join(directory, os.path.expanduser(source)))
    if local and not os.path.exists(host):
        raise TrainingError(f"volume {text!r}: there is no {host}")
    return Mount(path, host=host, read_only=read_only)


# Names


def stem(command: Sequence[str]) -> str:
    """What a job is called after: `python -u train.py --lr 1` is `train`, `python -m pkg.fit` is `fit`."""
    words = list(command)
    script = next((word for word in words if word.endswith((".py", ".sh"))), "")
    if not script and "-m" in words[:-1]:
        script = words[words.index("-m") + 1].rpartition(".")[2]
    if not script:
        program = PurePosixPath(words[0]).name if words else ""
        script = "" if _INTERPRETERS.fullmatch(program) else program
    name = PurePosixPath(script).name.removesuffix(".py").removesuffix(".sh")
    plain = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if plain[:1].isdigit():
        plain = f"job-{plain}"
    return plain[:NAME_LENGTH].strip("-") or "job"


def next_name(base: str, taken: Iterable[str]) -> str:
    """`<base>-<n>`, one more than the highest number in use."""
    numbers = [0]
    for name in taken:
        head, dash, tail = name.rpartition("-")
        if dash and head == base and tail.isdigit():
            numbers.append(int(tail))
    return f"{base}-{max(numbers) + 1}"
