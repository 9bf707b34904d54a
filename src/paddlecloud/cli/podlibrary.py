"""What programs in pods of this machine may import of the project: `paddlecloud.data`, and nothing else.

Local images do not have the project installed, and putting its own folder on their path would bring everything that is
installed beside it along. So the few files are copied into a folder of the cache, by content: pods of an older release
keep theirs. On a cluster the same comes from `pip install paddlecloud` in the image.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path

import paddlecloud
from paddlecloud.local.images.store import default_cache

_PACKAGE = """\
\"\"\"The part of paddlecloud that training programs use. An installed paddlecloud, if any, completes it.\"\"\"

from pkgutil import extend_path

__path__ = extend_path(__path__, __name__)
"""


def folder() -> Path:
    """The folder for PYTHONPATH; made on first use."""
    source = Path(paddlecloud.__file__).parent / "data"
    files = {path.relative_to(source): path.read_bytes() for path in sorted(source.rglob("*.py"))}
    digest = hashlib.sha256(_PACKAGE.encode())
    for name, content in files.items():
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    place = default_cache().parent / "library" / digest.hexdigest()[:16]
    if not place.is_dir():
        _copy(files, place)
    return place


def _copy(files: dict[Path, bytes], place: Path) -> None:
    """Made beside its place and moved there whole: another platform may do the same at the same moment."""
    draft = place.with_name(f"{place.name}.{os.getpid()}")
    for name, content in files.items():
        target = draft / "paddlecloud" / "data" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(content)
    (draft / "paddlecloud" / "__init__.py").write_text(_PACKAGE)
    try:
        draft.rename(place)
    except OSError:
        shutil.rmtree(draft)
        if not place.is_dir():
            raise
