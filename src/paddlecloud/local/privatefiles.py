"""Files only their owner may read: keys, tokens and kubeconfigs.

A file is written under another name, flushed and then renamed, so that a crash leaves the old content or the new one,
and its mode is set before a byte is in it. A file found with a wider mode (copied, restored from a backup) is narrowed.
"""

from __future__ import annotations

import os
from pathlib import Path


def private_directory(path: Path) -> None:
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    if path.stat().st_mode & 0o077:
        path.chmod(0o700)


def write_private(path: Path, content: bytes) -> None:
    """A link in its place is replaced, not followed."""
    import tempfile  # not cheap, and most who import this module only read

    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # created with mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


def read_private(path: Path) -> bytes | None:
    """The content, None if there is no such file."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                os.fchmod(file.fileno(), 0o600)
            return file.read()
    except FileNotFoundError:
        return None
