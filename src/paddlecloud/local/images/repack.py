"""Installed packages back into wheels, so that an environment can be made again elsewhere without an index.

An environment cannot be moved: its scripts name its interpreter by path. But every installed package lists its files
(`RECORD`) and keeps the tags of its wheel (`WHEEL`), so the wheel can be written again. Scripts of entry points and
byte code are left out: installers make them anew. Nothing is downloaded, and what is packed is what was used here.
"""

from __future__ import annotations

import csv
import io
import json
import os
import zipfile
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from hashlib import sha256
from importlib.metadata import Distribution
from pathlib import Path

from paddlecloud.local.images.errors import BuildError

OF_THE_INSTALLER = frozenset(
    ("INSTALLER", "RECORD", "RECORD.jws", "RECORD.p7s", "REQUESTED", "direct_url.json", "uv_cache.json")
)
LEVEL = 1
"""Of compression: the usual 6 takes twice as long and saves an eighth of the size."""


def installed(venv: Path) -> list[Path]:
    """The `.dist-info` folders of the packages of an environment."""
    return sorted(venv.glob("lib/python3*/site-packages/*.dist-info"))


def python_version(venv: Path) -> str:
    """`3.11`."""
    return next((path.name.removeprefix("python") for path in sorted(venv.glob("lib/python3*"))), "")


def packed_size(venv: Path) -> int:
    """Bytes that are to be packed: what the installer made is not."""
    files = (path for path in venv.rglob("*") if path.parent.name != "__pycache__")
    return sum(path.lstat().st_size for path in files if path.is_file() and not path.is_symlink())


def wheel_name(info: Path) -> str:
    name, _, version = info.name.removesuffix(".dist-info").rpartition("-")
    tags = [line.partition(":")[2].strip() for line in _read(info, "WHEEL").splitlines() if line.startswith("Tag:")]
    parts = zip(*(tag.split("-", 2) for tag in tags or ["py3-none-any"]), strict=True)
    return "-".join((name.replace("-", "_"), version, *(".".join(dict.fromkeys(part)) for part in parts))) + ".whl"


def pin(wheel: str) -> str:
    """The requirement that only this wheel meets: `tiny-1.0-py3-none-any.whl` → `tiny==1.0`."""
    name, version = wheel.split("-")[:2]
    return f"{name}=={version}"


def write_wheel(info: Path, venv: Path, folder: Path, *, moved: Callable[[int], None] = lambda count: None) -> Path:
    """The wheel of an installed package, in a folder. `moved` gets the bytes packed. Raises `BuildError`."""
    path = folder / wheel_name(info)
    record = io.StringIO()
    rows = csv.writer(record, lineterminator="\n")
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL, strict_timestamps=False) as wheel:
        for file, name, noted in _contents(info, venv):
            if ".data/scripts/" in name and (script := portable_script(file.read_bytes(), venv)) is not None:
                entry = zipfile.ZipInfo.from_file(file, name, strict_timestamps=False)  # with its mode
                wheel.writestr(entry, script, zipfile.ZIP_DEFLATED)
                noted = [f"sha256={urlsafe_b64encode(sha256(script).digest()).rstrip(b'=').decode()}", str(len(script))]
            else:
                wheel.write(file, name)
            rows.writerow([name, *noted])
            moved(file.stat().st_size)
        rows.writerow([f"{info.name}/RECORD", "", ""])
        wheel.writestr(f"{info.name}/RECORD", record.getvalue())
    return path


def portable_script(content: bytes, venv: Path) -> bytes | None:
    """A script with `#!python`, which installers replace by their interpreter; None if it is not for this one."""
    python = bytes(venv / "bin" / "python")
    first, _, rest = content.partition(b"\n")
    if first.startswith(b"#!" + python):
        return b"#!python\n" + rest
    lines = content.split(b"\n", 3)  # installers write paths too long for a kernel's #! into a line for sh
    if first == b"#!/bin/sh" and len(lines) == 4 and lines[1].startswith(b"'''exec'") and python in lines[1]:
        return b"#!python\n" + lines[3]
    return None


def _contents(info: Path, venv: Path) -> Iterator[tuple[Path, str, list[str]]]:
    """Each file of a package, its name in the wheel, and hash and size as they were noted."""
    if json.loads(_read(info, "direct_url.json") or "{}").get("dir_info", {}).get("editable"):
        raise BuildError(f"{info.name} leads to a folder of sources outside of the image; install it without -e")
    listed = _read(info, "RECORD")
    if not listed:
        raise BuildError(f"{info.name} has no RECORD: it was not installed from a wheel")
    made = {entry.name for entry in Distribution.at(info).entry_points if entry.group.endswith("_scripts")}
    data = info.name.replace(".dist-info", ".data")
    for name, *noted in csv.reader(io.StringIO(listed)):
        file = Path(os.path.normpath(info.parent / name))
        if (file.parent == info and file.name in OF_THE_INSTALLER) or "__pycache__" in file.parts:
            continue
        if file.is_relative_to(info.parent):
            place = str(file.relative_to(info.parent))
        elif file.parent == venv / "bin":
            if file.name in made:
                continue
            place = f"{data}/scripts/{file.name}"
        elif file.is_relative_to(venv):
            place = f"{data}/data/{file.relative_to(venv)}"
        else:
            raise BuildError(f"{info.name} has the file {file} outside of the image")
        if not file.is_file():
            raise BuildError(f"{info.name} has lost its file {file}; remove the image and build it again")
        yield file, place, noted


def _read(info: Path, name: str) -> str:
    try:
        return (info / name).read_text()
    except FileNotFoundError:
        return ""
