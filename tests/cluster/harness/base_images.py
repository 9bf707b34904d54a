"""The images of the cluster's own pods, and a small one for tests: each a static program and little else."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

from .errors import HarnessError
from .oci import BlobStore, Descriptor, Entry, Settings
from .registry import Catalogue

ACCOUNTS = (
    Entry("etc/passwd", data=b"root:x:0:0:root:/root:/bin/sh\nnonroot:x:65532:65532::/:/bin/sh\n", mode=0o644),
    Entry("etc/group", data=b"root:x:0:\nnonroot:x:65532:\n", mode=0o644),
    Entry("tmp", mode=0o1777),
)


class ImageCache:
    """Images by the hash of their recipe: what was made once is not made again."""

    def __init__(self, folder: Path) -> None:
        self.store = BlobStore(folder)
        self._made = folder / "made"

    def ensure(self, recipe: object, make: Callable[[BlobStore], Descriptor]) -> Descriptor:
        """`recipe` is anything whose repr says all that decides the image."""
        record = self._made / hashlib.sha256(repr(recipe).encode()).hexdigest()
        try:
            known = Descriptor(**json.loads(record.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            known = None
        if known is not None and self.store.holds(known):
            return known
        made = make(self.store)
        self._made.mkdir(parents=True, exist_ok=True)
        unfinished = record.with_suffix(f".{os.getpid()}")
        unfinished.write_text(json.dumps({"media_type": made.media_type, "digest": made.digest, "size": made.size}))
        unfinished.rename(record)
        return made

    def prune(self, offered: Iterable[str], *, unused_for: float = 3600) -> None:
        """Delete what no offered image (by digest) consists of. What is newer may be an image in the making."""
        kept = {part for digest in offered for part in self.store.parts(digest)}
        for blob in self.store.blobs():
            if f"sha256:{blob.name}" not in kept and time.time() - blob.stat().st_mtime > unused_for:
                blob.unlink()


def program_image(cache: ImageCache, program: Path, *, path: str = "", user: str = "") -> Descriptor:
    """An image of one static binary. The binary's path holds the hash of what it was built from."""
    inside = path or f"/{program.name}"

    def make(store: BlobStore) -> Descriptor:
        layer = store.add_layer([*ACCOUNTS, Entry(inside, source=program)])
        return store.add_image([layer], Settings(entrypoint=[inside], user=user))

    return cache.ensure(("program", 1, str(program), inside, user), make)


def busybox_image(cache: ImageCache, cmd: Sequence[str] = ("sh",)) -> Descriptor:
    program = busybox_program()
    applets = subprocess.run([program, "--list"], capture_output=True, text=True, check=True, timeout=10).stdout.split()

    def make(store: BlobStore) -> Descriptor:
        links = [Entry(f"bin/{name}", link="/bin/busybox") for name in applets if name != "busybox"]
        layer = store.add_layer([*ACCOUNTS, Entry("bin/busybox", source=program), *links])
        return store.add_image([layer], Settings(cmd=list(cmd)))

    return cache.ensure(("busybox", 1, hashlib.sha256(program.read_bytes()).hexdigest(), *cmd), make)


def busybox_program() -> Path:
    """A busybox that needs no libraries, which Debian calls busybox-static."""
    found = shutil.which("busybox")
    if found is None:
        raise HarnessError("there is no busybox: install busybox-static", reason="NoBusybox")
    return Path(found).resolve()


def offer_base_images(cache: ImageCache, binaries: Mapping[str, Path]) -> None:
    """Put the base cluster's images into the registry's catalogue, and forget what nothing in it names any more."""
    images: Mapping[Sequence[str], Descriptor] = {
        ("dev.local/pause:1",): program_image(cache, binaries["pause"]),
        ("dev.local/coredns:1",): program_image(cache, binaries["coredns"]),
        ("dev.local/busybox:1", "busybox"): busybox_image(cache),
        ("nginx",): busybox_image(cache, ("httpd", "-f", "-p", "80")),  # what the manual's demonstrations run
    }
    catalogue = Catalogue(cache.store.folder)
    catalogue.add({name: image.digest for names, image in images.items() for name in names})
    cache.prune(catalogue.read().values())
