"""Detects that the files of a folder were changed: a digest of their names, sizes and times of modification.

Contents are not read: a model has gigabytes, and the question is only whether somebody wrote there since. Links are not
followed.
"""

from __future__ import annotations

import hashlib
import os

MOST = 10_000
"""Entries of a folder that are looked at; one that has more has no fingerprint."""


def of_folder(path: str) -> str:
    """Empty where the folder cannot be read, or has too many entries."""
    digest, left = hashlib.sha256(), MOST
    try:
        for folder, folders, files in os.walk(path, onerror=_fail):
            folders.sort()
            left -= len(folders) + len(files)
            if left < 0:
                return ""
            for name in sorted(files):
                state = os.lstat(os.path.join(folder, name))
                place = os.path.relpath(os.path.join(folder, name), path)
                digest.update(repr((place, state.st_mode, state.st_size, state.st_mtime_ns)).encode())
    except OSError:
        return ""
    return digest.hexdigest()


def _fail(error: OSError) -> None:
    raise error
