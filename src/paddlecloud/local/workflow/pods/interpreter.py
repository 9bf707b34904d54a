"""How pods start the executor: by the platform's interpreter, where it lies or, where they cannot reach it, by mounts.

A platform of root may lie in a home that is closed to others (an interpreter of pyenv, a virtual environment). A step
that runs as another user then gets the interpreter, its packages and the platform as read-only volumes. So does every
step of a platform below /tmp, of which each pod has its own. Other steps of root, and pods in a user namespace, in
which every user is that of the platform, use them in place and need no mounts.
"""

from __future__ import annotations

import functools
import os
import stat
import sys
import sysconfig
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from paddlecloud.kube.resource import Object
from paddlecloud.local.kubelet.shim.sandbox import TMP
from paddlecloud.local.workflow.executor import main as executor
from paddlecloud.local.workflow.executor.orders import PACKAGES

PYTHON, PLATFORM = "/argo/python", "/argo/platform"
_MAIN = os.path.abspath(executor.__file__)
_ROOT, _, _INSIDE = _MAIN.rpartition("/paddlecloud/")
_PROGRAM = os.path.realpath(sys.executable)
FOLDERS = {
    "python": Path(os.path.realpath(sys.base_prefix)),
    "packages": Path(sysconfig.get_paths()["purelib"]),
    "platform": Path(_ROOT),
}
"""What volumes show, by the name of their folder."""
_USED = (sys.executable, _PROGRAM, _MAIN, FOLDERS["packages"])
_TARGETS = {"python": PYTHON, "packages": PACKAGES, "platform": PLATFORM}


def volume_name(folder: str) -> str:
    return f"argo-{folder}"


def start(container: Object, arguments: tuple[str, ...], *, packages: bool = False, user: int = 0) -> None:
    """The executor as the command of a container, whose program runs as `user`."""
    isolated = ["-I"] if packages else ["-I", "-S"]
    if not is_hidden() and (not user or is_reachable()):
        container["command"] = [sys.executable, *isolated, _MAIN, *arguments]
        return
    program = os.path.join(PYTHON, os.path.relpath(_PROGRAM, FOLDERS["python"]))
    container["command"] = [program, *isolated, f"{PLATFORM}/paddlecloud/{_INSIDE}", *arguments]
    mounts = [
        {"name": volume_name(folder), "mountPath": target, "readOnly": True} for folder, target in _TARGETS.items()
    ]
    container["volumeMounts"] = [*(container.get("volumeMounts") or ()), *mounts]


def user_of(container: Mapping[str, Any], *others: Mapping[str, Any]) -> int:
    """`runAsUser` of a container, else of what is around it; 0 where nothing says so."""
    for each in (container, *others):
        user = (each.get("securityContext") or {}).get("runAsUser")
        if user is not None:
            return int(user)
    return 0


@functools.cache
def is_hidden() -> bool:
    """Whether pods do not see the interpreter or the modules where they lie: below the machine's /tmp."""
    return any(str(each).startswith(f"{TMP}/") for each in _USED)


@functools.cache
def is_reachable() -> bool:
    """Whether any user of the machine may run the interpreter and read the modules, where they lie."""
    return os.getuid() != 0 or all(_is_open(Path(each)) for each in _USED)


def _is_open(path: Path) -> bool:
    try:
        readable = bool(path.stat().st_mode & stat.S_IROTH)
        return readable and all(folder.stat().st_mode & stat.S_IXOTH for folder in path.parents)
    except OSError:
        return False
