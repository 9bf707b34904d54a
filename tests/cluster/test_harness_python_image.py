"""A Python image from an installed interpreter: its programs and packages work with nothing of the host around them."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from harness import need
from paddlecloud.local.images.store import ImageStore

from .harness.base_images import ImageCache
from .harness.oci import BlobStore
from .harness.python_image import base, environment_image, packages

INTERPRETERS = sorted(
    {
        str(Path(found).resolve())
        for found in (getattr(sys, "_base_executable", sys.executable), "/usr/bin/python3")
        if Path(found).exists()
    }
)


def fake_environment(folder: Path, version: str) -> Path:
    """What an installer leaves: a module, and a script that names the environment's interpreter, here by a link."""
    site = folder / "lib" / version / "site-packages"
    site.mkdir(parents=True)
    (site / "tiny.py").write_text("import os.path\n\ndef main(): print('tiny', os.path.realpath(__file__))\n")
    (folder / "bin").mkdir()
    link = folder.with_name("link")
    link.symlink_to(folder)
    (folder / "bin" / "tiny").write_text(f"#!{link}/bin/python\nimport tiny; tiny.main()\n")
    (folder / "bin" / "tiny").chmod(0o755)
    return folder


@pytest.mark.parametrize("interpreter", INTERPRETERS)
def test_interpreter_packages_and_scripts_work_in_a_root_of_their_own(interpreter: str, tmp_path: Path) -> None:
    need("root", have=os.geteuid() == 0, hint="changing the root folder of a process takes root")
    need("busybox", have=shutil.which("busybox") is not None, hint="install busybox-static")
    program = Path(interpreter)
    store, root = BlobStore(tmp_path / "images"), tmp_path / "root"
    root.mkdir()
    for layer in (base(program), packages(fake_environment(tmp_path / "venv", program.name))):
        blob = store.path(store.add_layer(layer).digest)
        subprocess.run(["tar", "--extract", "--file", str(blob), "--directory", str(root)], check=True, timeout=60)

    def run(*command: str) -> str:
        enter = ["chroot", str(root), "/usr/bin/env", "-i", *command]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    assert run("/usr/local/bin/tiny") == f"tiny /usr/local/lib/{program.name}/site-packages/tiny.py"
    assert run("/bin/sh", "-c", "echo $((6 * 7))") == "42"
    checks = "import ssl, sqlite3, ctypes, zlib, hashlib; print(ssl.create_default_context() is not None)"
    assert run("/usr/local/bin/python", "-c", checks) == "True"


async def test_the_image_of_a_stand_in_writes_its_note_first_and_only_as_the_containers_own_program(
    tmp_path: Path,
) -> None:
    need("root", have=os.geteuid() == 0, hint="changing the root folder of a process takes root")
    need("busybox", have=shutil.which("busybox") is not None, hint="install busybox-static")
    (tmp_path / "recipes/small").mkdir(parents=True)
    (tmp_path / "recipes/small/image.yaml").write_text("names: [a/suite]\nstands-for: a 'small' program for a suite\n")
    environment = await ImageStore(cache=tmp_path / "cache", folders=[tmp_path / "recipes"]).build("a/suite")
    cache, root = ImageCache(tmp_path / "images"), tmp_path / "root"
    root.mkdir()
    manifest = json.loads(cache.store.path(environment_image(cache, environment).digest).read_bytes())
    for layer in manifest["layers"]:
        blob = cache.store.path(layer["digest"])
        subprocess.run(["tar", "--extract", "--file", str(blob), "--directory", str(root)], check=True, timeout=60)
    config = json.loads(cache.store.path(manifest["config"]["digest"]).read_bytes())["config"]
    assert config["Labels"]["paddlecloud.org/stands-for"] == "a 'small' program for a suite"

    def run(*command: str) -> tuple[str, str]:
        enter = ["unshare", "--pid", "--fork", "chroot", str(root), "/usr/bin/env", "-i", *config["Env"], *command]
        done = subprocess.run(enter, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout, done.stderr

    said = ("out\n", "note: this image is a stand-in: a 'small' program for a suite\n")
    program = "python -c 'print(\"out\")'"
    assert run("python", "-c", "print('out')") == said
    assert run("/bin/bash", "-c", program) == said
    assert run("/bin/bash", "-c", f"true && {program} && true") == said
    beside = f"sh -c {shlex.quote(f'{program}; true')}; true"  # neither the first process nor its child, as with exec
    assert run("sh", "-c", beside) == ("out\n", "")
