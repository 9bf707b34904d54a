"""`delete-dst`: files go that the source does not have, as far as the selection reaches; hidden ones are left alone."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Collection

from paddlecloud.cache.confine import Confined
from paddlecloud.cache.manifest import SampleManifest, walk
from paddlecloud.cache.sync.patterns import Selection


def delete_others(
    root: str,
    inner: str,
    *,
    keep: Collection[str],
    selection: Selection,
    manifest: SampleManifest,
    check: Callable[[], None],
    dry: bool,
) -> int:
    """Below `inner`, keep only `keep`, which are paths from the root. `check` may end the work before each file.
    Returns how many files went, or would go with `dry`."""
    tree = Confined(root)
    cut = len(inner) + 1 if inner else 0
    doomed = [file.path for file in walk(root, inner) if file.path not in keep and selection.takes(file.path[cut:])]
    if dry:
        return len(doomed)
    for path in doomed:
        check()
        with contextlib.suppress(FileNotFoundError):
            tree.remove(path)
    manifest.remove(doomed)
    _remove_empty_folders(root, inner, {path.rpartition("/")[0] for path in doomed})
    return len(doomed)


def _remove_empty_folders(root: str, inner: str, folders: Collection[str]) -> None:
    for folder in sorted(folders, key=len, reverse=True):
        while folder and folder != inner:
            try:
                os.rmdir(os.path.join(root, folder))
            except OSError:
                break  # something is left in it
            folder = folder.rpartition("/")[0]
