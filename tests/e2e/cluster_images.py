"""The images of the suite as real ones, for the fixture: busybox, the programs of the suite, and a page or two.

They are put into its registry, from which its nodes pull whatever they are asked for. As on the embedded
platform small programs stand for web servers; what a spec needs beyond them fails there and is no fault of ours.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from cluster.harness import libraries
from cluster.harness.base_images import ACCOUNTS, ImageCache, busybox_program
from cluster.harness.layout import Layout
from cluster.harness.oci import BlobStore, Descriptor, Entry, Settings
from cluster.harness.registry import Catalogue

from . import images

SHELL = {"sh": "bash"}
"""The shell of Debian's busybox runs its own `nc`, whatever lies in the PATH, and drops variables like `data-1`."""
TOOLS = {"curl": "curl", "nc": "nc.openbsd", "dig": "dig"}
"""Programs of this machine that the real agnhost image has beside busybox, by the name that specs call."""


def offer(programs: Path) -> None:
    cache = ImageCache(Layout.default().images)
    catalogue = Catalogue(cache.store.folder)
    for recipe in images.RECIPES.values():
        made = _image(cache, recipe, programs)
        catalogue.add(dict.fromkeys(recipe["names"], made.digest))


def _image(cache: ImageCache, recipe: dict[str, Any], programs: Path) -> Descriptor:
    busybox = busybox_program()
    own = SHELL | (TOOLS if images.AGNHOST_NAME in recipe["names"] else {})
    entries = [*ACCOUNTS, *_applets(busybox, but={*own}), *_copies(own), *_files(recipe, programs)]
    settings = Settings(
        entrypoint=recipe.get("entrypoint", ()),
        cmd=recipe.get("cmd", ()),
        env={"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
    )

    def make(store: BlobStore) -> Descriptor:
        return store.add_image([store.add_layer(entries)], settings)

    said = ("e2e", 4, recipe, programs.name, hashlib.sha256(busybox.read_bytes()).hexdigest())
    return cache.ensure(said, make)


def _applets(busybox: Path, *, but: set[str]) -> Iterator[Entry]:
    names = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True, timeout=10).stdout.split()
    yield Entry("bin/busybox", source=busybox)
    for name in names:
        if name not in {"busybox", *but}:
            yield Entry(f"bin/{name}", link="/bin/busybox")


def _copies(programs: dict[str, str]) -> Iterator[Entry]:
    """Programs of this machine with the libraries that they load, by their names in the image."""
    found = {name: Path(images.program(program)).resolve() for name, program in programs.items()}
    for name in ("lib", "lib64"):
        yield Entry(name, link=f"usr/{name}")
    for name, program in found.items():
        yield Entry(f"bin/{name}", source=program, mode=0o755)
    yield from libraries.entries(libraries.closure(found.values()).libraries)


def _files(recipe: dict[str, Any], programs: Path) -> Iterator[Entry]:
    for path, file in recipe.get("files", {}).items():
        inside = path.strip("/")
        if file in images.FOLDERS:
            for name, text in images.FOLDERS[file].items():
                yield Entry(f"{inside}/{name}", data=text.encode(), mode=0o644)
        elif file == "agnhost-2":
            yield Entry(inside, link="/agnhost")
        else:
            mode = 0o4755 if file == "nonewprivs" else 0o644 if file.startswith("localhost.") else 0o755
            yield Entry(inside, source=programs / file, mode=mode)
