"""What is shown of an image that holds something else than its name promises: `stands-for` of a recipe. Pure.

The kubelet writes the sentence as an Event and as the first line of the container's log. A container engine knows
nothing of recipes, so images in its form carry the line themselves: Python and bash write it to standard error when
they are the container's first process (or Python its child), whatever `command` a pod gives. Programs that `exec` and
probes start are neither, so nothing is added to their output. Any other first process, such as `sh`, writes no line.

Containers of a pod that share its processes (`shareProcessNamespace`, as all pods of a PaddleJob) have `pause` as
process 1. Their first process has no parent, and neither have programs that `exec` starts: the first to come leaves a
mark in the container's file system.
"""

from __future__ import annotations

import shlex

LABEL = "paddlecloud.org/stands-for"
_NOTED = "PADDLECLOUD_STAND_IN_NOTED"
_MODULE = "paddlecloud_stand_in"
_BASH = f"/etc/{_MODULE}.sh"

_MARK = f"/var/tmp/{_MODULE}"  # noqa: S108  (of the container, made with O_EXCL)

_IN_PYTHON = """\
import os


def is_first():
    if 1 in (os.getpid(), os.getppid()):
        return True
    with open("/proc/1/comm") as file:
        if file.read() != "pause\\n":
            return False
    parent = os.getppid()
    if parent != 0:
        with open(f"/proc/{{parent}}/stat") as file:
            if file.read().rpartition(")")[2].split()[1] != "0":
                return False
    try:
        os.close(os.open({mark!r}, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    except OSError:
        pass  # a file system that cannot be written: better twice than never
    return True


try:
    if not os.environ.get({noted!r}) and is_first():
        os.environ[{noted!r}] = "1"  # for what this process starts
        os.write(2, {line!r})
except OSError:
    pass  # it runs without standard error or /proc
"""

_IN_BASH = """\
if [ -z "${{{noted}:-}}" ]; then
    {noted}=
    if [ $$ = 1 ]; then
        {noted}=1
    elif [ "$PPID" = 0 ] && [ ! -e {mark} ] && [ "$(</proc/1/comm)" = pause ]; then
        {noted}=1
        : 2>/dev/null >{mark}
    fi
    if [ -n "${noted}" ]; then
        export {noted}
        echo {line} >&2
    fi
fi
"""


def sentence(stands_for: str, *, image: str = "") -> str:
    return f"{f'image {image} here' if image else 'this image'} is a stand-in: {stands_for}"


def log_line(stands_for: str, *, image: str = "") -> str:
    return f"note: {sentence(stands_for, image=image)}"


def is_log_line(text: str) -> bool:
    return text.startswith("note: ") and " is a stand-in: " in text


def files(stands_for: str, *, python: str) -> dict[str, str]:
    """What an image for container engines holds for it, by path. `python` is the version of its interpreter, `3.11`."""
    if not stands_for:
        return {}
    line = log_line(stands_for)
    packages = f"/usr/local/lib/python{python}/site-packages"
    return {
        f"{packages}/{_MODULE}.pth": f"import {_MODULE}\n",
        f"{packages}/{_MODULE}.py": _IN_PYTHON.format(noted=_NOTED, mark=_MARK, line=f"{line}\n".encode()),
        _BASH: _IN_BASH.format(noted=_NOTED, mark=_MARK, line=shlex.quote(line)),
    }


def variables(stands_for: str) -> dict[str, str]:
    return {"BASH_ENV": _BASH} if stands_for else {}


def labels(stands_for: str) -> dict[str, str]:
    return {LABEL: stands_for} if stands_for else {}
