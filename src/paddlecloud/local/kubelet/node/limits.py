"""Which limits of containers the kernel enforces on this machine, and why not the others.

A cgroup is used only if it was given to the platform, never because it happens to be writable: root may write to all
of them, and almost all belong to a service manager or to a container engine. Given is

- a cgroup called `paddlecloud` at the top (or what PADDLECLOUD_CGROUP names instead), in whichever trees it exists;
- the cgroup this process runs in, where its manager says that it was delegated (`systemd-run -p Delegate=yes`).

Without one, the shim watches memory itself, a moment late; CPU limits are not enforced then, and the Node says so.
"""

from __future__ import annotations

import hashlib
import os
import subprocess
from collections.abc import Mapping
from typing import NamedTuple

from paddlecloud.local.kubelet.shim import cgroups
from paddlecloud.local.kubelet.shim.cgroups import CONTROLLERS, CgroupPath, Limits

ANNOTATION = "paddlecloud.org/limits"
NAME_VARIABLE, DEFAULT_NAME = "PADDLECLOUD_CGROUP", "paddlecloud"
DELEGATED = ("user.delegate", "trusted.delegate")
"""What systemd writes on a cgroup that it gave away."""

TRIAL_SECONDS = 10
CONTROL = "control"
"""Where the platform's own processes go in a cgroup that was delegated to it: beside its pods, not above them."""


class Hierarchy(NamedTuple):
    """One mounted tree of cgroups, and where in it this process is."""

    version: int
    controllers: frozenset[str]
    mount: str
    own: str

    @property
    def own_path(self) -> str:
        """A platform that started again finds itself where the first one moved to."""
        path = os.path.normpath(self.mount + "/" + self.own)
        parent, name = os.path.split(path)
        return parent if name == CONTROL and _delegated(parent) else path


class Enforcement(NamedTuple):
    place: CgroupPath | None
    """Where pods get their cgroups; None where limits cannot be enforced."""
    reason: str = ""
    """Why it is not more."""
    fix: str = ""
    own: bool = False
    """The place is the cgroup this process itself runs in."""

    def describe(self) -> str:
        """For the Node, and for people."""
        held = self.place.dirs if self.place else {}
        words = {
            "memory": "cgroup" if "memory" in held else "watched",
            "cpu": "cgroup" if "cpu" in held else "not enforced",
            "pids": "cgroup" if "pids" in held else "watched",
        }
        text = ", ".join(f"{name}: {how}" for name, how in words.items())
        return f"{text} ({self.reason})" if self.reason else text


def hierarchies(*, mountinfo: str, membership: str) -> list[Hierarchy]:
    """From the texts of /proc/self/mountinfo and /proc/self/cgroup."""
    own = {}
    for line in membership.splitlines():
        _, names, path = line.split(":", 2)
        own[names] = path
    found = []
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        mount = before.split()[4]
        if kind == "cgroup2":
            found.append(Hierarchy(2, frozenset(), mount, own.get("", "/")))
        elif kind == "cgroup":
            controllers = frozenset(options.split(",")) & frozenset(CONTROLLERS)
            path = next((path for names, path in own.items() if controllers & frozenset(names.split(","))), "/")
            if controllers:
                found.append(Hierarchy(1, controllers, mount, path))
    return found


def find(*, environ: Mapping[str, str] = os.environ, proc: str = "/proc/self", forbid: str = "") -> Enforcement:
    """Look, without changing anything."""
    if "cgroups" in forbid.split(","):
        return Enforcement(None, "cgroups are switched off")
    try:
        with open(f"{proc}/mountinfo") as mountinfo, open(f"{proc}/cgroup") as membership:
            trees = hierarchies(mountinfo=mountinfo.read(), membership=membership.read())
    except OSError as error:
        return Enforcement(None, f"this machine has no cgroups: {error}")
    if not trees:
        return Enforcement(None, "no cgroup file system is mounted", "sudo mount -t cgroup2 none /sys/fs/cgroup")
    name = (environ.get(NAME_VARIABLE) or DEFAULT_NAME).strip("/")
    unified = [tree for tree in trees if tree.version == 2 and _controllers(tree.mount)]
    for tree in unified:
        named = os.path.join(tree.mount, name)
        for path, own in ((named, False), *(((tree.own_path, True),) if _delegated(tree.own_path) else ())):
            if os.access(path, os.W_OK):
                return _judge(CgroupPath(2, dict.fromkeys(sorted(_controllers(path)), path)), own=own)
    dirs = {}
    for tree in trees:
        if tree.version == 1 and os.access(path := os.path.join(tree.mount, name), os.W_OK):
            dirs.update(dict.fromkeys(sorted(tree.controllers), path))
    if dirs:
        return _judge(CgroupPath(1, dirs), own=False)
    where = ", ".join(dict.fromkeys(tree.own_path for tree in (unified or trees) if tree.version == 1 or unified))
    reason = f"no cgroup was given to the platform: it runs in {where}, which others manage"
    return Enforcement(None, reason, fix_for(trees))


def _judge(place: CgroupPath, *, own: bool) -> Enforcement:
    missing = [name for name in CONTROLLERS if name not in place.dirs]
    if not place.dirs:
        return Enforcement(None, "the cgroup given to the platform has none of the controllers cpu, memory, pids")
    return Enforcement(place, f"{', '.join(missing)} not available there" if missing else "", own=own)


def _controllers(path: str) -> frozenset[str]:
    try:
        with open(os.path.join(path, "cgroup.controllers")) as handle:
            return frozenset(handle.read().split()) & frozenset(CONTROLLERS)
    except OSError:
        return frozenset()


def _delegated(path: str) -> bool:
    for name in DELEGATED:
        try:
            if os.getxattr(path, name) == b"1":
                return True
        except OSError:
            continue  # not set, or not readable by us
    return False


def fix_for(trees: list[Hierarchy], *, root: bool | None = None, systemd: str = "/run/systemd/system") -> str:
    """The one command after which there is a cgroup for the platform."""
    root = os.geteuid() == 0 if root is None else root
    unified = next((tree for tree in trees if tree.version == 2 and _controllers(tree.mount)), None)
    if unified is None:
        mounts = sorted({tree.mount for tree in trees if tree.version == 1})
        folders = " ".join(os.path.join(mount, DEFAULT_NAME) for mount in mounts)
        return f"sudo install -d -o $USER {folders}"
    if os.path.isdir(systemd):
        return f"systemd-run {'' if root else '--user '}--scope -p Delegate=yes pdc up"
    wanted = " ".join(f"+{name}" for name in CONTROLLERS)
    mount = unified.mount
    return f"sudo sh -c 'echo {wanted} > {mount}/cgroup.subtree_control; mkdir {mount}/{DEFAULT_NAME}'"


class PodCgroups:
    """The part of the given place that one platform uses: a directory for each of its pods."""

    def __init__(self, found: Enforcement, *, data: str) -> None:
        self.enforcement = found
        self._part = "pods-" + hashlib.sha256(data.encode()).hexdigest()[:10]

    def start(self) -> None:
        """Take the place into use. What fails here leaves the pods without limits, and `enforcement` says so."""
        found = self.enforcement
        if found.place is None:
            return
        try:
            if found.own:
                self._clear_own(found.place)
            cgroups.open_to_children(found.place)
            pods = found.place.below(self._part)
            cgroups.make(pods, Limits())
            cgroups.open_to_children(pods)
            self._try(pods.below("trial"))
        except (OSError, subprocess.SubprocessError) as error:
            self.enforcement = Enforcement(None, f"the cgroup given to the platform cannot be used: {error}")

    def _clear_own(self, place: CgroupPath) -> None:
        """A cgroup whose children have limits may hold no process itself: ours move one down."""
        leaf = place.below(CONTROL)
        cgroups.make(leaf, Limits())
        for path in leaf.paths:
            for pid in cgroups.members(place):
                with open(os.path.join(path, cgroups.PROCS), "w") as handle:
                    handle.write(str(pid))

    def _try(self, place: CgroupPath) -> None:
        """Only a process that was moved and limited proves that pods can be."""
        cgroups.make(place, Limits(memory=64 << 20, cpu_millis=1000, pids=64))
        try:
            for path in place.paths:
                script = 'echo 0 > "$1"'
                subprocess.run(
                    ["sh", "-c", script, "sh", os.path.join(path, cgroups.PROCS)],
                    check=True, capture_output=True, timeout=TRIAL_SECONDS,
                )  # fmt: skip
        finally:
            cgroups.remove(place)

    def pod(self, uid: str) -> CgroupPath | None:
        place = self.enforcement.place
        return place.below(self._part).below(uid) if place else None

    def stop(self) -> None:
        """Leave nothing behind but what a pod is still in."""
        if self.enforcement.place is not None:
            for path in self.enforcement.place.below(self._part).paths:
                try:
                    os.rmdir(path)
                except OSError:
                    continue  # pods live on in it
