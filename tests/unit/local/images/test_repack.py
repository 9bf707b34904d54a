"""Installed packages become the wheels that they came from: everything in its place, nothing of this machine in it."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from paddlecloud.local.images import repack
from paddlecloud.local.images.errors import BuildError

INFO = "tiny_tools-1.0+local.dist-info"


@pytest.fixture(scope="module")
def venv(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment with a package of every kind of file that a wheel may have, installed by pip."""
    folder = tmp_path_factory.mktemp("installed")
    wheel = folder / "tiny_tools-1.0+local-py2.py3-none-any.whl"
    files = {
        "tiny/__init__.py": "def main():\n    print('entry point')\n",
        "tiny/tool": "#!/bin/sh\necho executable\n",
        f"{INFO}/METADATA": "Metadata-Version: 2.1\nName: tiny-tools\nVersion: 1.0+local\n",
        f"{INFO}/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py2-none-any\nTag: py3-none-any\n",
        f"{INFO}/entry_points.txt": "[console_scripts]\ntiny-main = tiny:main\n",
        "tiny_tools-1.0+local.data/scripts/tiny-script": "#!python\nimport sys\nprint(sys.executable)\n",
        "tiny_tools-1.0+local.data/scripts/tiny-shell": "#!/bin/sh\necho shell\n",
        "tiny_tools-1.0+local.data/data/share/tiny/note, with comma.txt": "data\n",
    }
    with zipfile.ZipFile(wheel, "w") as packed:
        for name, text in files.items():
            entry = zipfile.ZipInfo(name, date_time=(2000, 1, 1, 0, 0, 0))
            entry.external_attr = (0o100755 if name == "tiny/tool" or "/scripts/" in name else 0o100644) << 16
            packed.writestr(entry, text)
        rows = "".join(f'"{name}",,\n' for name in (*files, f"{INFO}/RECORD"))
        packed.writestr(f"{INFO}/RECORD", rows)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder / "venv")], check=True)
    install(folder / "venv", wheel)
    return folder / "venv"


def install(venv: Path, wheel: Path) -> None:
    python = str(venv / "bin" / "python")
    command = [sys.executable, "-m", "pip", "--python", python, "install", "--no-index", "--quiet", str(wheel)]
    subprocess.run(command, check=True, timeout=100)


def run(program: Path) -> str:
    return subprocess.run([program], capture_output=True, text=True, check=True).stdout


def test_a_package_installed_again_from_its_wheel_is_the_same(venv: Path, tmp_path: Path) -> None:
    (info,) = repack.installed(venv)
    wheel = repack.write_wheel(info, venv, tmp_path)
    assert wheel.name == "tiny_tools-1.0+local-py2.py3-none-any.whl"
    assert repack.pin(wheel.name) == "tiny_tools==1.0+local"
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
        assert not any(str(venv).encode() in packed.read(name) for name in names), "no path of this machine"
    assert not [name for name in names if "__pycache__" in name or name.endswith(("INSTALLER", "direct_url.json"))]
    assert not [name for name in names if name.endswith("tiny-main")], "installers write it for the entry point"

    other = tmp_path / "other"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(other)], check=True)
    install(other, wheel)
    assert run(other / "bin" / "tiny-main") == "entry point\n"
    assert run(other / "bin" / "tiny-script") == f"{other}/bin/python\n"
    assert run(other / "bin" / "tiny-shell") == "shell\n"
    assert (other / "share/tiny/note, with comma.txt").read_text() == "data\n"
    (again,) = repack.installed(other)
    assert run(again.parent / "tiny" / "tool") == "executable\n"
    assert repack.write_wheel(again, other, other).name == wheel.name, "what was imported can be exported"


def test_only_this_interpreters_scripts_are_changed() -> None:
    venv = Path("/long/venv")
    assert repack.portable_script(b"#!/long/venv/bin/python3\nprint()\n", venv) == b"#!python\nprint()\n"
    for_sh = b"#!/bin/sh\n'''exec' /long/venv/bin/python \"$0\" \"$@\"\n' '''\nprint()\n"
    assert repack.portable_script(for_sh, venv) == b"#!python\nprint()\n"
    for other in (b"\x7fELF", b"#!/bin/sh\necho\n", b"#!/usr/bin/python3\nprint()\n", b""):
        assert repack.portable_script(other, venv) is None


def installed_by_hand(folder: Path, *, record: str | None, url: object = None) -> Path:
    info = folder / "lib/python3.11/site-packages/odd-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "WHEEL").write_text("Tag: py3-none-any\n")
    if record is not None:
        (info / "RECORD").write_text(record)
    if url is not None:
        (info / "direct_url.json").write_text(json.dumps(url))
    return info


@pytest.mark.parametrize(
    ("record", "url", "message"),
    [
        (None, None, "no RECORD"),
        ("odd.py,,\n", None, "has lost its file .*odd.py; remove the image and build it again"),
        ("../../../../../etc/passwd,,\n", None, "outside of the image"),
        ("/etc/passwd,,\n", None, "outside of the image"),
        ("odd.pth,,\n", {"url": "file:///src", "dir_info": {"editable": True}}, "install it without -e"),
    ],
)
def test_what_cannot_be_a_wheel_is_named(tmp_path: Path, record: str | None, url: object, message: str) -> None:
    info = installed_by_hand(tmp_path / "venv", record=record, url=url)
    with pytest.raises(BuildError, match=message):
        repack.write_wheel(info, tmp_path / "venv", tmp_path)
