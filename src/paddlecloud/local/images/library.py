"""What programs in pods of this machine may import of the project: the packages that run there, and nothing else.

Local images do not have the project installed, and putting its own folder on their path would bring everything that is
installed beside it along. So these few files are copied into a folder of the cache, by content: pods of an older
release keep theirs. On a cluster the same comes from `pip install paddlecloud` in the image.

Nothing here is imported: this reads files.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from functools import lru_cache
from pathlib import Path

import paddlecloud

PACKAGES = (
    "api",
    "cache",
    "data",
    "kube",
    "modelhub",
    "notebooks",
    "pipelines",
    "sdk",
    "serving",
    "storage",
    "suites",
    "visualdl",
)

_COMPLETED = """

# An installed paddlecloud, if any, completes this part of it.
__path__ = __import__("pkgutil").extend_path(__path__, __name__)
"""


def folder(cache: Path) -> Path:
    """The folder for PYTHONPATH, below the cache of images; made on first use."""
    place = cache.parent / "library" / digest()
    if not place.is_dir():
        _copy(_files(), place)
    return place


@lru_cache(maxsize=1)
def digest() -> str:
    """Changes with every file: images that have the library are others then."""
    content = hashlib.sha256()
    for name, data in _files().items():
        content.update(f"{name}\0{len(data)}\0".encode() + data)
    return content.hexdigest()[:16]


def _files() -> dict[Path, bytes]:
    source = Path(paddlecloud.__file__).parent
    paths = [path for package in PACKAGES for path in sorted((source / package).rglob("*.py"))]
    root = (source / "__init__.py").read_bytes() + _COMPLETED.encode()
    return {Path("__init__.py"): root, **{path.relative_to(source): path.read_bytes() for path in paths}}


def _copy(files: dict[Path, bytes], place: Path) -> None:
    """Made beside its place and moved there whole: another platform may do the same at the same moment."""
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    for name, content in files.items():
        target = draft / "paddlecloud" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    try:
        draft.rename(place)
    except OSError:
        shutil.rmtree(draft)
        if not place.is_dir():
            raise
