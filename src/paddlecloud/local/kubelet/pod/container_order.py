"""From a container of a pod to the order for its shim: argv, environment, mounts, identity. Pure.

The files and directories that the result names as sources are made by `PodFiles` just before the start.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from paddlecloud.kube.quantity import millis, whole
from paddlecloud.kube.resource import Object
from paddlecloud.local.images import stand_in
from paddlecloud.local.images.environment import Environment
from paddlecloud.local.kubelet.pod import exec_limits
from paddlecloud.local.kubelet.pod.env import expand, expand_all
from paddlecloud.local.kubelet.pod.errors import ContainerConfigError
from paddlecloud.local.kubelet.pod.exec_limits import Room
from paddlecloud.local.kubelet.pod.paths import PodPaths
from paddlecloud.local.kubelet.shim import processes
from paddlecloud.local.kubelet.shim.launch import DEFAULT_PATH
from paddlecloud.local.kubelet.shim.sandbox import TMP, Mount
from paddlecloud.local.kubelet.shim.wire import ContainerSpec
from paddlecloud.local.volumes.prepared_volumes import Volume

HOME = f"{TMP}/home"
DEFAULT_TERMINATION_PATH = "/dev/termination-log"


def platform_env(pod: Object, container: Object, image: Environment) -> dict[str, str]:
    """What is set before the pod's own variables."""
    return {
        "HOSTNAME": hostname_of(pod),
        **image_env(image),
        processes.POD_MARK: pod["metadata"]["uid"],
        processes.CONTAINER_MARK: container["name"],
    }


def image_env(image: Environment) -> dict[str, str]:
    """What is the same for all containers of an image."""
    return {"PATH": ":".join((*image.path, DEFAULT_PATH)), "HOME": HOME, **image.env}


def hostname_of(pod: Object) -> str:
    """At most 63 characters: longer pod names are cut, as Kubernetes does."""
    return str(pod["spec"].get("hostname") or pod["metadata"]["name"])[:63].rstrip("-.")


def argv_of(container: Object, image: Environment, env: Mapping[str, str], room: Room) -> tuple[str, ...]:
    """`command` replaces the image's entrypoint and, with it, the image's default arguments."""
    command = expand_all(container.get("command") or (), env, what="command", room=room)
    args = expand_all(container.get("args") or (), env, what="args", room=room)
    argv = (*command, *args) if command else (*image.entrypoint, *(args or image.cmd))
    if not argv:
        raise ContainerConfigError(
            f"no command specified: image {container.get('image')} has none, so the container needs one"
        )
    return argv


def assemble(
    pod: Object,
    container: Object,
    *,
    attempt: int,
    streak: int,
    image: Environment,
    env: dict[str, str],
    room: Room,
    volumes: Mapping[str, Volume],
    paths: PodPaths,
    pod_ip: str,
) -> ContainerSpec:
    name = container["name"]
    security = {**(pod["spec"].get("securityContext") or {}), **(container.get("securityContext") or {})}
    uid, gid = _identity(security, image)
    cwd = container.get("workingDir") or image.workdir or "/"
    limits = (container.get("resources") or {}).get("limits") or {}
    supplementary = [*(security.get("supplementalGroups") or ()), security.get("fsGroup")]
    return ContainerSpec(
        name=name,
        attempt=attempt,
        streak=streak,
        argv=argv_of(container, image, env, room),
        env=env,
        log_path=str(paths.log(name, attempt)),
        cwd=cwd,
        mounts=(
            *_own_mounts(container, paths, attempt),
            *_image_mounts(image, paths, name),
            *_volume_mounts(container, volumes, env),
        ),
        uid=uid,
        gid=gid,
        groups=tuple(group for group in supplementary if group is not None),
        no_new_privileges=security.get("allowPrivilegeEscalation") is False,
        memory_limit=whole(limits.get("memory", 0)),
        cpu_millis=millis(limits.get("cpu", 0)),
        bind_ip=pod_ip,
        stdin=bool(container.get("stdin")),
        stdin_once=bool(container.get("stdinOnce")),
        tty=bool(container.get("tty")),
        note=stand_in.log_line(image.stands_for, image=container["image"]) if image.stands_for else "",
    )


def _identity(security: Object, image: Environment) -> tuple[int | None, int | None]:
    uid, gid = security.get("runAsUser"), security.get("runAsGroup")
    if uid is None and image.user:
        user, _, group = image.user.partition(":")
        uid = int(user) if user.isdigit() else None
        gid = int(group) if gid is None and group.isdigit() else gid
    if security.get("runAsNonRoot") and not uid:
        raise ContainerConfigError("container has runAsNonRoot and image will run as root: set runAsUser")
    if uid is not None and gid is None:
        gid = 0
    return uid, gid


def _own_mounts(container: Object, paths: PodPaths, attempt: int) -> list[Mount]:
    """What every container has; `optional`, because a machine without namespaces can do without."""
    name = container["name"]
    message = container.get("terminationMessagePath") or DEFAULT_TERMINATION_PATH
    return [
        Mount("/etc/hosts", str(paths.hosts), optional=True),
        Mount("/etc/hostname", str(paths.hostname), optional=True),
        Mount(TMP, str(paths.private(name, "tmp")), optional=True),
        Mount(message, str(paths.termination(name, attempt)), optional=True),
    ]


def _image_mounts(image: Environment, paths: PodPaths, name: str) -> list[Mount]:
    mounts = [Mount(str(tree), str(tree), readonly=True, optional=True) for tree in image.readonly]
    if image.root is None:
        return mounts
    copy = paths.private(name, "image")
    return mounts + [Mount("/" + relative, str(copy / relative)) for relative in overlay_points(str(image.root))]


def overlay_points(root: str, base: str = "/") -> list[str]:
    """The fewest paths under `root` whose binding shows all its files without hiding one of the host's."""
    points = []
    for entry in sorted(os.scandir(root), key=lambda item: item.name):
        target = os.path.join(base, entry.name)
        if entry.is_dir(follow_symlinks=False) and os.path.isdir(target):
            points += [f"{entry.name}/{deeper}" for deeper in overlay_points(entry.path, target)]
        else:
            points.append(entry.name)
    return points


def _volume_mounts(container: Object, volumes: Mapping[str, Volume], env: Mapping[str, str]) -> list[Mount]:
    mounts = [
        Mount(volume.everywhere, volume.path, readonly=True, optional=volume.optional)
        for volume in volumes.values()
        if volume.everywhere
    ]
    for mount in container.get("volumeMounts") or ():
        volume = volumes.get(mount["name"])
        if volume is None:
            raise ContainerConfigError(f"volumeMounts name {mount['name']!r}, which is no volume of the pod")
        source = volume.path
        sub = mount.get("subPath")
        if expression := mount.get("subPathExpr"):
            sub = expand(expression, env, what="subPathExpr", limit=exec_limits.PATH)
        if sub:
            source = _inside(volume.path, str(sub))
        mounts.append(
            Mount(
                mount["mountPath"],
                source,
                readonly=bool(mount.get("readOnly")) or volume.readonly,
                optional=volume.optional,
            )
        )
    return mounts


def _inside(folder: str, relative: str) -> str:
    """A path within the volume; one that climbs out of it is refused."""
    if os.path.isabs(relative) or ".." in relative.split("/"):
        raise ContainerConfigError(f"subPath {relative!r} must be a relative path without '..'")
    return os.path.join(folder, relative)


def sub_paths(container: Object, mounts: Sequence[Mount]) -> list[str]:
    """Sources of subPath mounts: made as directories when nothing is there yet, as Kubernetes does."""
    wanted = {m["mountPath"] for m in container.get("volumeMounts") or () if m.get("subPath") or m.get("subPathExpr")}
    return [mount.source for mount in mounts if mount.target in wanted]
