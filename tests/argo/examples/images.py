"""The images that Argo's files name, for both platforms: small programs of this machine under their names.

On the embedded platform `busybox`, `alpine`, `debian` and `nginx` are the machine itself; the others are
recipes. For the fixture all are one layer, Python with a shell and busybox, and differ in what they run by default. An
image that is not listed here (docker, golang's network builds, gnuplot …) is on neither platform. Python's dice fall
the same way each time, so that two runs of an example that throws some can be compared.
"""

from __future__ import annotations

import hashlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import yaml

SAY = """#!/bin/sh
# Stands for argosay: echo [TEXT [FILE]], cat FILE, sleep SECONDS, exit [CODE], assert_contains FILE TEXT.
set -eu
command=${1:-echo}
[ $# -eq 0 ] || shift
case $command in
  echo) if [ $# -lt 2 ]; then echo "${1:-hello argo}"; else mkdir -p "$(dirname "$2")"; echo "$1" > "$2"; fi ;;
  cat) cat "$1" ;;
  sleep) sleep "$1" ;;
  exit) exit "${1:-0}" ;;
  assert_contains) grep -F "$2" "$1" ;;
  sh) sh "$@" ;;
  *) exit 1 ;;
esac
"""
COW = """#!/bin/sh
# Stands for cowsay: what it is given, in a bubble.
[ $# -gt 0 ] && text="$*" || text=$(cat)
printf ' ____\\n< %s >\\n ----\\n    \\\\   ^__^\\n     \\\\  (oo)\\n' "$text"
"""


DICE = "import random\n\nrandom.seed(6)\n"
"""Heads at the first throw; the retried programs fail each time."""


class Image(NamedTuple):
    names: tuple[str, ...]
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ("sh",)
    host: bool = False
    """The embedded platform has it without a recipe."""


IMAGES = {
    "shells": Image(("busybox", "alpine", "debian", "ubuntu"), host=True),
    "python": Image(("python",), cmd=("python3",)),
    "argosay": Image(("argoproj/argosay:v2",), entrypoint=("/argosay",), cmd=()),
    "whalesay": Image(("argoproj/argosay:v1", "docker/whalesay"), cmd=("cowsay",)),
    "curl": Image(("curlimages/curl", "appropriate/curl"), entrypoint=("curl",), cmd=()),
    "jq": Image(("stedolan/jq",), entrypoint=("jq",), cmd=()),
}
PROGRAMS = {
    "argosay": ("/argosay", SAY),
    "whalesay": ("/usr/games/cowsay", COW),
    "python": ("/opt/dice/sitecustomize.py", DICE),
}
"""What recipes add: path and text of a script."""
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/games"


_SHELL = "/usr/local/sbin/sh"
"""busybox, as in the layer of the fixture: it knows `[[`, and the machine's own shell may not."""


def write_recipes(folder: Path) -> None:
    """Into the folder of recipes of a data directory of the embedded platform."""
    for name, image in IMAGES.items():
        if image.host:
            continue
        place = folder / f"argo-{name}"
        place.mkdir(parents=True)
        recipe: dict[str, Any] = {
            "names": list(image.names),
            "entrypoint": list(image.entrypoint),
            "cmd": list(image.cmd),
            "env": _env(name),
        }
        if name == "python":
            recipe["base"] = "python"
        if name in PROGRAMS:
            path, text = PROGRAMS[name]
            recipe["files"] = {path: "program"}
            (place / "program").write_text(text)
            (place / "program").chmod(0o755)
        if name in ("argosay", "whalesay") and (shell := shutil.which("busybox")):
            recipe["files"][_SHELL] = "sh"
            shutil.copyfile(shell, place / "sh")
            (place / "sh").chmod(0o755)
        (place / "image.yaml").write_text(yaml.safe_dump({key: value for key, value in recipe.items() if value}))


def _env(name: str) -> dict[str, str]:
    return {"PYTHONPATH": "/opt/dice"} if name == "python" else {"PATH": _PATH}


def offer() -> None:
    """Into the registry of the fixture."""
    from cluster.harness.base_images import ImageCache
    from cluster.harness.layout import Layout
    from cluster.harness.oci import BlobStore, Descriptor, Settings
    from cluster.harness.registry import Catalogue

    cache = ImageCache(Layout.default().images)

    def make(store: BlobStore, image: Image) -> Descriptor:
        env = {"PATH": _PATH, "PYTHONPATH": "/opt/dice"}
        return store.add_image(
            [store.add_layer(_layer())], Settings(entrypoint=image.entrypoint, cmd=image.cmd, env=env)
        )

    version = hashlib.sha256(Path(sys.executable).resolve().read_bytes()).hexdigest()
    for image in IMAGES.values():
        made = cache.ensure(
            ("argo-examples", 2, image, PROGRAMS, version), lambda store, image=image: make(store, image)
        )
        Catalogue(cache.store.folder).add(dict.fromkeys(image.names, made.digest))


def _layer() -> Iterator[Any]:
    from cluster.harness import libraries, python_image
    from cluster.harness.oci import Entry

    yield from python_image.base(Path(sys.executable).resolve())
    yield Entry("etc/os-release", source=Path("/etc/os-release").resolve(), mode=0o644)
    for path, text in PROGRAMS.values():
        yield Entry(path.lstrip("/"), data=text.encode())
    programs = [Path(found).resolve() for name in ("curl", "jq") if (found := shutil.which(name))]
    for program in programs:
        yield Entry(f"usr/local/bin/{program.name}", source=program)
    yield from libraries.entries(libraries.closure(programs).libraries)
