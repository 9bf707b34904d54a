"""The built-in artifact repository: files below the platform's data directory, a folder for each namespace.

    namespaces/NAMESPACE/files/KEY…          what is stored; pods of the namespace see it, read-only
    namespaces/NAMESPACE/records/HASH.json   of each key: digest, size, the workflow that wrote it, when it goes
    outputs/NAMESPACE/POD-UID/               what the executor of a pod saved; that pod alone sees it
    workflows/NAMESPACE/WORKFLOW-UID/POD-UID.json   what was taken over from a pod, and the keys to delete one day

A pod never writes to `namespaces`: when it is over the controller moves its outputs there (`collect`). Moving is
renaming, so the size does not matter, and may be repeated after a crash at any point. Keys are a tenant's, and so is
the tree that a key leads into: what is stored has no links, and every key is walked part by part, links refused.
Functions block: call them in a thread.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import stat
import time
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any, BinaryIO

from paddlecloud.kube.resource import Object
from paddlecloud.local.removal import remove_below, remove_tree
from paddlecloud.local.workflow.artifacts.locations import NEVER
from paddlecloud.local.workflow.executor import trees
from paddlecloud.local.workflow.executor.keys import key_problem, names_of, record_name
from paddlecloud.local.workflow.executor.orders import MOST_REPORT, REPORT_FILE
from paddlecloud.local.workflow.executor.trees import Unfit

Report = dict[str, Any]

log = logging.getLogger(__name__)

MOST_LISTED = 10_000
"""Files of one artifact that are listed: an answer that is held in memory."""
ABANDONED = 300.0
"""Seconds after which a folder of outputs without a pod is removed: the watch of pods may lag behind the kubelet."""


class Repository:
    def __init__(self, folder: Path) -> None:
        self.folder = folder

    # For the kubelet

    def readable_by(self, namespace: str) -> Path:
        place = self._namespace(namespace)
        for name in ("files", "records"):
            (place / name).mkdir(parents=True, exist_ok=True)
        return place

    def outputs_of(self, namespace: str, pod_uid: str) -> Path:
        place = self.folder / "outputs" / namespace / pod_uid
        place.mkdir(parents=True, exist_ok=True)
        place.chmod(0o777)  # whatever user the step runs as; the data directory above it is closed to others
        return place

    # For the controller

    def collect(self, namespace: str, workflow_uid: str, pod_uid: str, orders: Report, report: Report) -> Report:
        """Take over what a pod saved. Gives the whole report, of which `artifacts` are stored; or an `error`."""
        marker = self.folder / "workflows" / namespace / workflow_uid / f"{pod_uid}.json"
        if (known := _read_json(marker)) is not None:
            return known
        outputs = self.outputs_of(namespace, pod_uid)
        if report.get("file"):
            report = _read_json(outputs / REPORT_FILE) or {"error": "the report of the step's outputs cannot be read"}
        report = dict(report)
        saved = report.get("artifacts")
        try:
            report["artifacts"] = self._take_all(namespace, workflow_uid, outputs, orders, saved)
        except (Unfit, FileExistsError, NotADirectoryError, IsADirectoryError, PermissionError) as why:
            report = {"error": f"output artifacts cannot be stored: {why}"}
        marker.parent.mkdir(parents=True, exist_ok=True)
        _write_json(marker, report)
        with _logged(outputs):
            remove_tree(outputs)
        return report

    def _take_all(
        self, namespace: str, workflow_uid: str, outputs: Path, orders: Report, saved: Any
    ) -> list[dict[str, Any]]:
        """Only what was ordered, by its number in the orders: what the pod itself says of places is not read."""
        said = {each.get("name"): each for each in saved if isinstance(each, dict)} if isinstance(saved, list) else {}
        taken = []
        for number, order in enumerate(orders.get("artifacts") or ()):
            about = _about_log(outputs, number) if order.get("log") else said.get(order["name"])
            if about is None:
                continue
            entry = {"name": order["name"], "digest": str(about.get("digest", "")), "size": about.get("size")}
            if "key" in order:
                record = {**entry, "key": order["key"], "workflow": workflow_uid, "gc": order.get("gc", "")}
                self._take(namespace, outputs / str(number), record)
                entry["key"] = order["key"]
            taken.append(entry)
        return taken

    def _take(self, namespace: str, source: Path, record: dict[str, Any]) -> None:
        place = self.readable_by(namespace)
        *folders, name = names_of(record["key"])
        record_file = place / "records" / record_name(record["key"])
        with trees.entered(source.parent, ()) as outputs:
            mode = trees.mode_of(source.name, outputs)
            if mode is None:
                of_same = (_read_json(record_file) or {}).get("workflow") == record["workflow"]
                if of_same and _is_there(place / "files", (*folders, name)):
                    return  # it was moved before a crash
                raise Unfit(f"{record['name']} is gone")
            _make_fit(source.name, outputs, mode, record["name"])
            with trees.entered(place / "files", folders, make=True) as target:
                _write_json(record_file, record)
                there = trees.mode_of(name, target)
                if there is not None and (stat.S_ISDIR(there) or stat.S_ISDIR(mode)):
                    remove_below(name, target)
                os.replace(source.name, name, src_dir_fd=outputs, dst_dir_fd=target)

    def forget(self, namespace: str, key: str, workflow_uid: str) -> None:
        """Delete what a workflow stored under a key, unless another one has overwritten it since."""
        place = self._namespace(namespace)
        record_file = place / "records" / record_name(key)
        if (_read_json(record_file) or {}).get("workflow") != workflow_uid:
            return
        names = names_of(key)
        try:
            with trees.entered(place / "files", names[:-1]) as folder:
                remove_below(names[-1], folder)
        except (FileNotFoundError, NotADirectoryError):
            pass  # it is gone, or behind a link, which is no folder
        record_file.unlink(missing_ok=True)
        for end in range(len(names) - 1, 0, -1):  # empty folders go with their last file
            try:
                with trees.entered(place / "files", names[: end - 1]) as folder:
                    os.rmdir(names[end - 1], dir_fd=folder)
            except OSError:
                break

    def sweep(self, namespaces: Collection[str], workflows: Collection[str], pods: Collection[str]) -> None:
        """Only these namespaces (by name), workflows and pods (by uid) are left: what belongs to others goes."""
        for namespace, folder in _folders(self.folder / "workflows"):
            for uid, inner in _folders(folder):
                if uid not in workflows:
                    with _logged(inner):
                        self._forget_workflow(namespace, uid, inner)
        for _, folder in _folders(self.folder / "outputs"):
            for uid, inner in _folders(folder):
                if uid not in pods and _age(inner) > ABANDONED:
                    with _logged(inner):
                        remove_tree(inner)
        for part in ("namespaces", "outputs", "workflows"):
            for namespace, folder in _folders(self.folder / part):
                if namespace not in namespaces:
                    with _logged(folder):
                        remove_tree(folder)

    def _forget_workflow(self, namespace: str, uid: str, folder: Path) -> None:
        for marker in folder.iterdir():
            for entry in (_read_json(marker) or {}).get("artifacts") or ():
                key = entry.get("key")
                if key and (self.record(namespace, key) or {}).get("gc") != NEVER:
                    self.forget(namespace, key, uid)
        remove_tree(folder)

    def is_stored(self, namespace: str, key: str) -> bool:
        """Whether there is something under a key, which may be a part of what was stored as a folder."""
        return not key_problem(key) and _is_there(self._namespace(namespace) / "files", names_of(key))

    # For users

    def record(self, namespace: str, key: str) -> dict[str, Any] | None:
        return _read_json(self._namespace(namespace) / "records" / record_name(key))

    def opened(self, namespace: str, key: str, inside: str = "") -> BinaryIO | None:
        """The file under a key, or inside the folder under it; None where there is none, or behind a link.

        Raises IsADirectoryError for a folder. The key is a text of tenants: only one with a record is looked for.
        """
        if self.record(namespace, key) is None:
            return None
        inner = [part for part in inside.split("/") if part not in ("", ".")]
        if ".." in inner or "\0" in inside:
            return None
        try:
            handle = trees.opened(self._namespace(namespace) / "files", (*names_of(key), *inner))
        except OSError:
            return None
        mode = os.fstat(handle).st_mode
        if stat.S_ISREG(mode):
            return os.fdopen(handle, "rb")
        os.close(handle)
        if stat.S_ISDIR(mode):
            raise IsADirectoryError(key)
        return None

    def files(self, namespace: str, key: str) -> list[str] | None:
        """The paths of the files of a folder under a key; of a file there is one, and its path is empty.

        None where nothing is stored. Raises `Unfit` for more than `MOST_LISTED`, and for names that are no text.
        """
        if self.record(namespace, key) is None:
            return None
        try:
            handle = trees.opened(self._namespace(namespace) / "files", names_of(key))
        except OSError:
            return None
        try:
            if not stat.S_ISDIR(os.fstat(handle).st_mode):
                return [""]
            found = []
            for parts, mode in trees.walk(handle):
                if stat.S_ISDIR(mode):
                    continue
                found.append("/".join(parts))
                if len(found) > MOST_LISTED:
                    raise Unfit(f"it has more than {MOST_LISTED:,} files; name one of them with path=…")
                if not _is_text(found[-1]):
                    raise Unfit(f"the name of its file {found[-1][:60]!r} is not UTF-8")
            return found
        finally:
            os.close(handle)

    def _namespace(self, namespace: str) -> Path:
        return self.folder / "namespaces" / namespace


def _is_text(name: str) -> bool:
    """Whether a name was UTF-8 on the disk."""
    try:
        name.encode()
    except UnicodeEncodeError:
        return False
    return True


def _about_log(outputs: Path, number: int) -> Report | None:
    """Digest and size of a log, as far as its executor came; None where there is none."""
    if not (outputs / str(number)).is_file():
        return None
    return _read_json(outputs / f"{number}.json") or {}


def _is_there(root: Path, names: tuple[str, ...]) -> bool:
    try:
        with trees.entered(root, names[:-1]) as folder:
            return trees.mode_of(names[-1], folder) is not None
    except OSError:
        return False


def _make_fit(name: str, folder: int, mode: int, shown: str) -> None:
    """What a pod saved is a file that pods may read, or a folder of files and folders. Raises `Unfit`."""
    if stat.S_ISDIR(mode):
        with trees.entered(folder, (name,)) as tree:
            try:
                trees.check_stored(tree)
            except Unfit as why:
                raise Unfit(f"{shown}: {why}") from None
    elif stat.S_ISREG(mode):
        place = os.open(name, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder)
        try:
            os.chmod(f"/proc/self/fd/{place}", 0o644)
        finally:
            os.close(place)
    else:
        raise Unfit(f"{shown} is neither a file nor a folder")


@contextlib.contextmanager
def _logged(folder: Path) -> Iterator[None]:
    """What one tenant left behind does not hold up the removal of other things; the next sweep tries it again."""
    try:
        yield
    except Exception as why:
        log.warning("%s could not be removed: %s; it is tried again", folder, why)


def _folders(folder: Path) -> Iterator[tuple[str, Path]]:
    with contextlib.suppress(FileNotFoundError):
        yield from [(each.name, each) for each in folder.iterdir() if each.is_dir()]


def _age(folder: Path) -> float:
    try:
        return time.time() - folder.stat().st_mtime
    except FileNotFoundError:
        return 0.0


def _read_json(path: Path) -> dict[str, Any] | None:
    """Not through a link: some of these files were written by pods."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            return None
        try:
            found = json.loads(file.read(MOST_REPORT + 1))
        except (ValueError, RecursionError):
            return None
    return found if isinstance(found, dict) else None


def _write_json(path: Path, value: Object) -> None:
    fresh = path.with_name(f".{path.name}.new")
    fresh.write_text(json.dumps(value), encoding="utf-8")
    os.replace(fresh, path)
