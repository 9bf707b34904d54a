"""The same `image.yaml` as a Dockerfile: for people with docker, podman or buildkit, and for registries.

What is written is a folder: the Dockerfile and everything it copies, so that `docker build FOLDER` needs nothing else.
It has the steps of every form of the image: system packages, requirements, files, settings. `docker build --build-arg
PIP_INDEX_URL=…` takes packages from another index than the public one.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
import shutil
import sys
from pathlib import Path

from paddlecloud import __version__
from paddlecloud.local.images import library as project
from paddlecloud.local.images import stand_in
from paddlecloud.local.images.builder import copy_files, npm_install
from paddlecloud.local.images.plan import ImagePlan
from paddlecloud.local.images.store import default_cache

FILE = "Dockerfile"
_FILES = "files"
_WHEELS = "wheels"
_LIBRARY = "library"
_STAND_IN = "stand-in"
LIBRARY = "/opt/paddlecloud"
"""Where the parts of this project that run in pods lie in an image that asks for them."""
LABELS = {"paddlecloud.org/version": __version__}
"""Labels of every image: which version of this project made it. Its own version is in its name."""
_VERSION = re.compile(r"python(\d+\.\d+)$")
_PADDLE = re.compile(r"paddlepaddle(-gpu)?\s*($|[=<>!~;\[ ])")
_BESIDE = f"/tmp/{_WHEELS}"  # noqa: S108 - a path in the image, not on this machine


def render(plan: ImagePlan, *, on: str = "") -> str:
    """The Dockerfile. Everything it copies lies beside it: `write` puts it there. `on` is an image that has Paddle, for
    CPU or a GPU, with the system's packages that Paddle needs; the image then installs only the rest."""
    if on:
        plan = _without_paddle(plan)
    lines = [f"# {plan.names[0]}", f"FROM {on or f'python:{_python(plan)}-slim'}"]
    if plan.apt:
        install = f"apt-get install --yes --no-install-recommends {shlex.join(plan.apt)}"
        lines.append(f"RUN apt-get update && {install} && rm -rf /var/lib/apt/lists/*")
    if plan.pip or plan.pip_no_deps:
        lines += _requirements(plan)
    if plan.npm:
        lines.append(f"RUN npm {shlex.join([*npm_install('/usr/local'), *plan.npm])} && npm cache clean --force")
    if plan.library:
        lines.append(f"COPY {_LIBRARY}/ {LIBRARY}/")
    if plan.files:
        lines.append(f"COPY {_FILES}/ /")
    if plan.stands_for:
        lines.append(f"COPY {_STAND_IN}/ /")
    labels = {**LABELS, **plan.labels, **stand_in.labels(plan.stands_for)}
    lines += [f"LABEL {name}={_quoted(value)}" for name, value in labels.items()]
    lines += [f"ENV {name}={_quoted(value)}" for name, value in _variables(plan).items()]
    lines += [f"EXPOSE {port}" for port in plan.expose]
    if plan.workdir:
        lines.append(f"WORKDIR {_escaped(plan.workdir)}")
    if plan.user:
        lines.append(f"USER {plan.user}")
    lines += [f"ENTRYPOINT {json.dumps(plan.entrypoint)}"] if plan.entrypoint else []
    lines += [f"CMD {json.dumps(plan.cmd)}"] if plan.cmd else []
    return "\n".join(lines) + "\n"


def write(plan: ImagePlan, folder: Path, *, on: str = "") -> Path:
    """The folder for `docker build`; returns the Dockerfile. What the folder held of an earlier one is replaced."""
    wheels = {f"/{source.name}": source for item in (*plan.pip, *plan.pip_no_deps) if (source := _local(item))}
    library = {"/paddlecloud": project.folder(default_cache()) / "paddlecloud"} if plan.library else {}
    for name, files in ((_FILES, plan.files), (_WHEELS, wheels), (_LIBRARY, library)):
        shutil.rmtree(folder / name, ignore_errors=True)
        copy_files(files, folder / name)
    shutil.rmtree(folder / _STAND_IN, ignore_errors=True)
    for target, text in stand_in.files(plan.stands_for, python=_python(plan)).items():
        place = folder / _STAND_IN / target.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / FILE
    path.write_text(render(plan, on=on))
    return path


def _without_paddle(plan: ImagePlan) -> ImagePlan:
    lowest = plan
    while lowest.beneath is not None:
        lowest = lowest.beneath
    pip = tuple(item for item in plan.pip if not _PADDLE.match(item))
    return dataclasses.replace(plan, pip=pip, apt=tuple(item for item in plan.apt if item not in lowest.apt))


def _requirements(plan: ImagePlan) -> list[str]:
    beside = any(_local(item) for item in (*plan.pip, *plan.pip_no_deps))
    installs = ((plan.pip, plan.pip_options), (plan.pip_no_deps, ("--no-deps", *plan.pip_options)))
    command = " && ".join(
        f"pip install --no-cache-dir {shlex.join([*options, *map(_in_image, wanted)])}"
        for wanted, options in installs
        if wanted
    )
    index = ["ARG PIP_INDEX_URL", "ARG PIP_TRUSTED_HOST"]
    if not beside:
        return [*index, f"RUN {command}"]
    return [*index, f"COPY {_WHEELS}/ {_BESIDE}/", f"RUN {command} && rm -r {_BESIDE}"]


def _variables(plan: ImagePlan) -> dict[str, str]:
    variables = {"PYTHONUNBUFFERED": "1", **stand_in.variables(plan.stands_for), **plan.env}
    if plan.library:
        variables["PYTHONPATH"] = ":".join(filter(None, (LIBRARY, plan.env.get("PYTHONPATH"))))
    return variables


def _in_image(requirement: str) -> str:
    source = _local(requirement)
    return f"{_BESIDE}/{source.name}" if source else requirement


def _local(requirement: str) -> Path | None:
    return Path(requirement) if requirement.startswith("/") else None


def _python(plan: ImagePlan) -> str:
    found = _VERSION.search(plan.python)
    return found[1] if found else f"{sys.version_info.major}.{sys.version_info.minor}"


def _quoted(value: str) -> str:
    return f'"{_escaped(value)}"'


def _escaped(text: str) -> str:
    """Dockerfiles replace variables in these instructions; an image.yaml means what it says."""
    return re.sub(r'([\\"$])', r"\\\1", text)
