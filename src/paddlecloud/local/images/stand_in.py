"""What is shown of an image that holds something else than its name promises: `stands-for` of a recipe. Pure.

The kubelet writes the sentence as an Event and as the first line of the container's log. A container engine knows
nothing of recipes, so images in its form carry the line themselves: Python and bash write it to standard error when
they are the container's first process (or Python its child), whatever `command` a pod gives. Programs that `exec` and
probes start are neither, so nothing is added to their output. Any other first process, such as `sh`, writes no line.
"""

from __future__ import annotations

import shlex

LABEL = "paddlecloud.org/stands-for"
_NOTED = "PADDLECLOUD_STAND_IN_NOTED"
_MODULE = "paddlecloud_stand_in"
_BASH = f"/etc/{_MODULE}.sh"

_IN_PYTHON = """\
import os

if 1 in (os.getpid(), os.getppid()) and not os.environ.get({noted!r}):
    os.environ[{noted!r}] = "1"  # for what this process starts
    try:
        os.write(2, {line!r})
    except OSError:
        pass  # it runs without standard error
"""

_IN_BASH = """\
if [ $$ = 1 ] && [ -z "${{{noted}:-}}" ]; then
    export {noted}=1
    echo {line} >&2
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
        f"{packages}/{_MODULE}.py": _IN_PYTHON.format(noted=_NOTED, line=f"{line}\n".encode()),
        _BASH: _IN_BASH.format(noted=_NOTED, line=shlex.quote(line)),
    }


def variables(stands_for: str) -> dict[str, str]:
    return {"BASH_ENV": _BASH} if stands_for else {}


def labels(stands_for: str) -> dict[str, str]:
    return {LABEL: stands_for} if stands_for else {}
